//! Our API over HTTP: a few shapes of calls, one attempt each unless the server says that a
//! request came too soon. Commands give
//! the path; lists are read to their end through the `next` links.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, IF_MATCH, LINK, LOCATION, RETRY_AFTER};
use reqwest::{
    Certificate, ClientBuilder, Method, RequestBuilder, Response, StatusCode, Url, redirect,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_core::secret::Secret;
use slipway_core::time::Timestamp;
use slipway_wire::list::QUARANTINED_ROWS;
use slipway_wire::operations::{Readiness, WITHHELD_UNCHECKED};
use slipway_wire::problem::Problem;

use crate::error::Error;

/// Handlers run within one transaction; a longer request is stuck.
const DEADLINE: Duration = Duration::from_secs(30);

/// A stream sends a heartbeat every 15 s; this is three of them.
const SILENCE: Duration = Duration::from_secs(45);

/// What makes a copy first, such as of a large database, says nothing until that is complete.
const PREPARES: Duration = Duration::from_secs(15 * 60);

/// How often a request is sent that comes too soon, and how long it waits between at most.
const MOST_TRIES: u32 = 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The most that the server returns per page.
const PAGE: u32 = 500;

/// A list request: its filters, and the most items wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    filters: Vec<(&'static str, String)>,
    limit: Option<u32>,
    /// What changes is shown, too, as long as somebody looks.
    pub(crate) is_watched: bool,
}

impl Listing {
    pub(crate) fn first(limit: Option<u32>) -> Self {
        Self { filters: Vec::new(), limit, is_watched: false }
    }

    /// Adds a filter if it has a value.
    pub(crate) fn with(mut self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        self.filters.extend(value.map(|value| (name, value.into())));
        self
    }

    pub(crate) fn watched(self, is_watched: bool) -> Self {
        Self { is_watched, ..self }
    }

    pub(crate) fn show_deleted(self, show: bool) -> Self {
        self.with("show_deleted", show.then_some("true"))
    }
}

/// A list, and the ids of quarantined rows that the server left out.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) quarantined: Vec<String>,
    /// For withheld actions: number of resources not checked yet.
    pub(crate) open: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// For responses that do not end.
    streams: reqwest::Client,
    /// Those to trust instead of the system's.
    authorities: Option<Vec<Certificate>>,
    server: Url,
    key: Option<Secret>,
    /// The project of resources if a command names none.
    project: Option<String>,
    /// The `Date` of the last answer, in microseconds; 0 before the first.
    answered_at: Arc<AtomicI64>,
}

impl Client {
    /// `authorities`: a PEM file with those to trust instead of the system's.
    pub(crate) fn new(
        server: &str,
        key: Option<Secret>,
        authorities: Option<&Path>,
    ) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Usage(format!("--server `{server}` {problem}"));
        let server =
            Url::parse(server).map_err(|_| wrong("is no URL, such as http://127.0.0.1:7700"))?;
        if !["http", "https"].contains(&server.scheme()) {
            return Err(wrong("must begin with http:// or https://"));
        }
        let authorities = authorities.map(read_authorities).transpose()?;
        // An error means that a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let build = |builder| build(&server, authorities.as_deref(), builder);
        let http = build(reqwest::Client::builder().timeout(DEADLINE))?;
        let streams = reqwest::Client::builder().connect_timeout(DEADLINE).read_timeout(SILENCE);
        let streams = build(streams)?;
        let (project, answered_at) = (None, Arc::default());
        Ok(Self { http, streams, authorities, server, key, project, answered_at })
    }

    pub(crate) fn in_project(self, project: Option<String>) -> Self {
        Self { project, ..self }
    }

    /// The address that it was made with.
    pub(crate) fn server(&self) -> &str {
        self.server.as_str()
    }

    /// The project of the context.
    pub(crate) fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// The server's time at its last answer.
    pub(crate) fn server_time(&self) -> Option<Timestamp> {
        let at = Timestamp::from_micros(self.answered_at.load(Ordering::Relaxed));
        (!at.is_zero()).then_some(at)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Error> {
        self.decode(self.request(Method::GET, path)).await
    }

    /// One document; of the listing only the filters count.
    pub(crate) async fn get_where<T: DeserializeOwned>(
        &self,
        path: &[&str],
        wanted: Listing,
    ) -> Result<T, Error> {
        self.decode(self.request(Method::GET, path).query(&wanted.filters)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.decode(self.request(Method::POST, path).json(body)).await
    }

    /// Refused if somebody wrote since this revision, if one is given.
    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
        if_match: Option<i64>,
    ) -> Result<T, Error> {
        self.patch_where(path, &[], body, if_match).await
    }

    /// The same with a query.
    pub(crate) async fn patch_where<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &impl Serialize,
        if_match: Option<i64>,
    ) -> Result<T, Error> {
        let request = self.request(Method::PATCH, path).query(query).json(body);
        self.decode(at_revision(request, if_match)).await
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.decode(self.request(Method::PUT, path).json(body)).await
    }

    /// Sends a body and ignores the answer.
    pub(crate) async fn silent_json(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<(), Error> {
        self.send(self.request(method, path).json(body)).await.map(|_| ())
    }

    /// Posts a verb without a body, such as `retire`.
    pub(crate) async fn invoke<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Error> {
        self.decode(self.request(Method::POST, path)).await
    }

    /// `T` is an `Option` where the answer may be empty.
    pub(crate) async fn delete<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Error> {
        self.delete_read(path, query, None).await
    }

    /// The same; refused if somebody wrote since this revision, if one is given.
    pub(crate) async fn delete_read<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        if_match: Option<i64>,
    ) -> Result<T, Error> {
        let request = self.request(Method::DELETE, path).query(query);
        self.decode(at_revision(request, if_match)).await
    }

    /// The same where the answer is empty; the id at the end of its `Location`.
    pub(crate) async fn delete_located(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Option<String>, Error> {
        let response = self.send(self.request(Method::DELETE, path).query(query)).await?;
        let location = header(response.headers(), LOCATION.as_str());
        Ok(location.and_then(|at| at.rsplit('/').next()).map(str::to_owned))
    }

    /// Sends a request without a body and ignores the answer.
    pub(crate) async fn silent(&self, method: Method, path: &[&str]) -> Result<(), Error> {
        self.silent_with(method, path, &[]).await
    }

    /// The same with a query.
    pub(crate) async fn silent_with(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<(), Error> {
        self.send(self.request(method, path).query(query)).await.map(|_| ())
    }

    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        wanted: impl Into<Listing>,
    ) -> Result<Listed<T>, Error> {
        let Listing { mut filters, limit, .. } = wanted.into();
        let most = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        filters.push(("limit", limit.unwrap_or(PAGE).min(PAGE).to_string()));
        let mut request = self.request(Method::GET, path).query(&filters);
        let mut listed = Listed { items: Vec::new(), quarantined: Vec::new(), open: 0 };
        let mut last = None;
        loop {
            let response = self.send(request).await?;
            let headers = response.headers();
            let next = next_link(&self.server, headers);
            let quarantined = header(headers, QUARANTINED_ROWS).into_iter();
            let quarantined = quarantined.flat_map(|ids| ids.split(','));
            listed.quarantined.extend(quarantined.map(str::to_owned));
            let open = header(headers, WITHHELD_UNCHECKED).and_then(|open| open.parse().ok());
            listed.open = open.unwrap_or(0);
            let page: Vec<T> = self.read(response).await?;
            listed.items.extend(page);
            match next {
                // A page may be empty because its rows are quarantined, and the
                // list continues after them; a repeated link would loop.
                Some(next) if listed.items.len() < most && last.as_ref() != Some(&next) => {
                    request = self.authorised(self.http.get(next.clone()));
                    last = Some(next);
                }
                _ => break,
            }
        }
        listed.items.truncate(most);
        listed.quarantined.sort_unstable();
        listed.quarantined.dedup();
        Ok(listed)
    }

    /// A long or endless answer; read it with [`Client::next_piece`].
    pub(crate) async fn stream(&self, path: &[&str], wanted: Listing) -> Result<Response, Error> {
        let request = self.streams.get(self.url(path)).query(&wanted.filters);
        self.send(self.authorised(request)).await
    }

    /// A long answer to something that is done; the same. It may be silent before and between.
    pub(crate) async fn post_stream(&self, path: &[&str]) -> Result<Response, Error> {
        let patient = reqwest::Client::builder().connect_timeout(DEADLINE).read_timeout(PREPARES);
        let patient = build(&self.server, self.authorities.as_deref(), patient)?;
        self.send(self.authorised(patient.post(self.url(path)))).await
    }

    /// `None` at the end of the stream.
    pub(crate) async fn next_piece(
        &self,
        stream: &mut Response,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        stream.chunk().await.map_err(|error| self.unreachable(error))
    }

    /// The server's probes, whether or not it is ready; sent without the key.
    pub(crate) async fn readiness(&self) -> Result<(Readiness, HeaderMap), Error> {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("readyz");
        }
        let response = self.http.get(url).send().await.map_err(|error| self.unreachable(error))?;
        let headers = response.headers().clone();
        Ok((self.read(response).await?, headers))
    }

    pub(crate) async fn headers(&self, path: &[&str]) -> Result<HeaderMap, Error> {
        let response = self.send(self.request(Method::GET, path)).await?;
        Ok(response.headers().clone())
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.authorised(self.http.request(method, self.url(path)))
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        url
    }

    fn authorised(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }

    async fn decode<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let response = self.send(request).await?;
        self.read(response).await
    }

    /// Sends a request; any status but success is an error.
    /// A request that came too soon was not carried out: it is sent again when the server
    /// says so, for a command that sends many.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let mut request = request;
        let mut tries = 1;
        let response = loop {
            let again = request.try_clone();
            let response = request.send().await.map_err(|error| self.unreachable(error))?;
            let after = header(response.headers(), RETRY_AFTER.as_str());
            let after = after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
            match (again, after.filter(|after| *after <= LONGEST_PAUSE)) {
                (Some(again), Some(after))
                    if response.status() == StatusCode::TOO_MANY_REQUESTS && tries < MOST_TRIES =>
                {
                    tokio::time::sleep(after).await;
                    request = again;
                    tries += 1;
                }
                _ => break response,
            }
        };
        let date = header(response.headers(), DATE.as_str()).and_then(Timestamp::from_http_date);
        if let Some(date) = date {
            self.answered_at.store(date.as_micros(), Ordering::Relaxed);
        }
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(|error| self.unreachable(error))?;
        Err(match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Error::Problem(Box::new(problem)),
            Err(_) => {
                self.unreadable(format!("status {} without a problem document", status.as_u16()))
            }
        })
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Error> {
        let empty = response.status() == StatusCode::NO_CONTENT;
        let body = response.bytes().await.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(if empty { b"null" } else { &body })
            .map_err(|error| self.unreadable(error.to_string()))
    }

    fn unreachable(&self, error: reqwest::Error) -> Error {
        Error::Unreachable { server: self.shown(), reason: with_causes(&error.without_url()) }
    }

    /// The error of a caller that gave up before the client's own deadline.
    pub(crate) fn silent_for(&self, time: Duration) -> Error {
        let reason = format!("no answer within {:.1} s", time.as_secs_f64());
        Error::Unreachable { server: self.shown(), reason }
    }

    pub(crate) fn unreadable(&self, reason: String) -> Error {
        Error::Unreadable { server: self.shown(), reason }
    }

    /// The server without parts of the URL that may be secret.
    fn shown(&self) -> String {
        self.server.origin().ascii_serialization()
    }
}

fn at_revision(request: RequestBuilder, revision: Option<i64>) -> RequestBuilder {
    match revision {
        Some(revision) => request.header(IF_MATCH, format!("\"{revision}\"")),
        None => request,
    }
}

fn build(
    server: &Url,
    authorities: Option<&[Certificate]>,
    builder: ClientBuilder,
) -> Result<reqwest::Client, Error> {
    let built = for_server(server, authorities, builder).build();
    built.map_err(|error| Error::Unreachable {
        server: server.to_string(),
        reason: with_causes(&error),
    })
}

/// Settings of every request to this server.
fn for_server(
    server: &Url,
    authorities: Option<&[Certificate]>,
    builder: ClientBuilder,
) -> ClientBuilder {
    // The key is for this server, not for a redirect target.
    let mut builder = builder.redirect(redirect::Policy::none());
    if server.scheme() == "http" {
        // Otherwise the system's certificates are loaded even for plain HTTP,
        // which fails on a machine that has none.
        builder = builder.tls_certs_only([]);
    } else if let Some(authorities) = authorities {
        builder = builder.tls_certs_only(authorities.iter().cloned());
    }
    if server.host_str().is_some_and(|host| host == "localhost" || host.starts_with("127.")) {
        builder = builder.no_proxy();
    }
    builder
}

fn read_authorities(path: &Path) -> Result<Vec<Certificate>, Error> {
    let wrong = |problem: String| Error::Usage(format!("--ca-file `{}` {problem}", path.display()));
    let pem = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(wrong("has no certificate in PEM".to_owned())),
    }
}

/// The text of a header, if it has one.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The target of `Link: <…>; rel="next"`, only on the same server: the key is
/// sent along.
fn next_link(server: &Url, headers: &HeaderMap) -> Option<Url> {
    let value = header(headers, LINK.as_str())?;
    let (target, relation) = value.strip_prefix('<')?.split_once('>')?;
    let next = relation.contains("rel=\"next\"").then(|| server.join(target).ok())??;
    (next.origin() == server.origin()).then_some(next)
}

/// reqwest's own text says "error sending request"; the useful part, such as
/// "connection refused", is in the causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_the_same_server_are_followed() {
        let server = Url::parse("http://127.0.0.1:7700").unwrap();
        let next = |link: &str| {
            let headers = HeaderMap::from_iter([(LINK, link.parse().unwrap())]);
            next_link(&server, &headers).map(String::from)
        };
        assert_eq!(
            next("</api/v1/events?cursor=5>; rel=\"next\"").as_deref(),
            Some("http://127.0.0.1:7700/api/v1/events?cursor=5")
        );
        assert_eq!(next("<http://elsewhere/x>; rel=\"next\""), None);
        assert_eq!(next("</x>; rel=\"prev\""), None);
        assert_eq!(next("nonsense"), None);
    }

    #[test]
    fn a_server_that_is_no_url_is_wrong_usage() {
        for bad in ["nonsense", "ftp://x", "127.0.0.1:7700"] {
            assert!(matches!(Client::new(bad, None, None), Err(Error::Usage(_))), "{bad}");
        }
    }
}
