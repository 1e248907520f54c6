//! Our API over HTTP: one method per call, one attempt each, lists read to
//! their end by following the `next` links.

mod access;
mod catalog;
mod look;

use std::time::Duration;

use reqwest::header::{HeaderMap, LINK};
use reqwest::{ClientBuilder, Method, RequestBuilder, Response, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_core::secret::Secret;
use slipway_wire::api::{
    Control, DeclareResource, Deletion, Event, Explanation, ForceDrain, HELD_ROWS, Node, PLAN_OPEN,
    PlanLine, PutFreeze, Resource, Resume, Retry, Subscription,
};
use slipway_wire::leaks::{Leak, LeakLook, LeakReason};
use slipway_wire::problem::Problem;

pub use self::look::{KeyLook, ServerLook, look_at_server};
use crate::error::Error;

/// Handlers answer within a transaction; what takes longer than this is stuck.
const DEADLINE: Duration = Duration::from_secs(30);

/// A stream says every 15 s that it is alive; three times that is silence.
const SILENCE: Duration = Duration::from_secs(45);

/// The most that the server gives at once.
const PAGE: u32 = 500;

/// A list, and ids of rows that the server had to leave out of it.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) held: Vec<String>,
    /// Of a plan: how much the server has yet to look at.
    pub(crate) open: u64,
}

/// Which resources to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceQuery {
    pub(crate) project: Option<String>,
    pub(crate) handle: Option<String>,
    pub(crate) phase: Option<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) blocked: Option<String>,
    pub(crate) show_deleted: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// For answers that do not end.
    streams: reqwest::Client,
    server: Url,
    key: Option<Secret>,
}

impl Client {
    pub(crate) fn new(server: &str, key: Option<Secret>) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Usage(format!("--server `{server}` {problem}"));
        let server =
            Url::parse(server).map_err(|_| wrong("is no URL, such as http://127.0.0.1:7700"))?;
        if !["http", "https"].contains(&server.scheme()) {
            return Err(wrong("must begin with http:// or https://"));
        }
        // An error says that a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let build = |builder: ClientBuilder| {
            let built = for_server(&server, builder).build();
            built.map_err(|error| Error::Unreachable {
                server: server.to_string(),
                reason: with_causes(&error),
            })
        };
        let http = build(reqwest::Client::builder().timeout(DEADLINE))?;
        let streams = reqwest::Client::builder().connect_timeout(DEADLINE).read_timeout(SILENCE);
        let streams = build(streams)?;
        Ok(Self { http, streams, server, key })
    }

    pub(crate) async fn resource_declare(&self, body: &DeclareResource) -> Result<Resource, Error> {
        self.decode(self.request(Method::POST, &["resources"]).json(body)).await
    }

    pub(crate) async fn resource_list(
        &self,
        query: &ResourceQuery,
        limit: Option<u32>,
    ) -> Result<Listed<Resource>, Error> {
        let mut pairs = Vec::new();
        for (name, value) in [
            ("project", &query.project),
            ("handle", &query.handle),
            ("phase", &query.phase),
            ("blocked", &query.blocked),
        ] {
            if let Some(value) = value {
                pairs.push((name, value.clone()));
            }
        }
        pairs.extend(query.labels.iter().map(|label| ("label", label.clone())));
        if query.show_deleted {
            pairs.push(("show_deleted", "true".to_owned()));
        }
        self.list("resources", pairs, limit).await
    }

    pub(crate) async fn resource_get(&self, id: &str) -> Result<Resource, Error> {
        self.decode(self.request(Method::GET, &["resources", id])).await
    }

    pub(crate) async fn explain(&self, kind: &str, id: &str) -> Result<Explanation, Error> {
        self.decode(self.request(Method::GET, &["explain", kind, id])).await
    }

    pub(crate) async fn resource_delete(
        &self,
        id: &str,
        reason: Option<&str>,
    ) -> Result<Deletion, Error> {
        let mut request = self.request(Method::DELETE, &["resources", id]);
        if let Some(reason) = reason {
            request = request.query(&[("reason", reason)]);
        }
        self.decode(request).await
    }

    pub(crate) async fn resource_force_drain(
        &self,
        id: &str,
        reason: &str,
    ) -> Result<Resource, Error> {
        let body = ForceDrain { reason: reason.to_owned() };
        self.decode(self.request(Method::POST, &["resources", id, "force-drain"]).json(&body)).await
    }

    pub(crate) async fn resource_retry(&self, id: &str, reason: &str) -> Result<Resource, Error> {
        let body = Retry { reason: reason.to_owned() };
        self.decode(self.request(Method::POST, &["resources", id, "retry"]).json(&body)).await
    }

    pub(crate) async fn node_list(&self, limit: Option<u32>) -> Result<Listed<Node>, Error> {
        self.list("nodes", Vec::new(), limit).await
    }

    pub(crate) async fn node_get(&self, id: &str) -> Result<Node, Error> {
        self.decode(self.request(Method::GET, &["nodes", id])).await
    }

    pub(crate) async fn deletion_list(
        &self,
        limit: Option<u32>,
    ) -> Result<Listed<Deletion>, Error> {
        self.list("deletions", Vec::new(), limit).await
    }

    pub(crate) async fn deletion_get(&self, id: &str) -> Result<Deletion, Error> {
        self.decode(self.request(Method::GET, &["deletions", id])).await
    }

    pub(crate) async fn event_list(
        &self,
        after: Option<i64>,
        limit: Option<u32>,
    ) -> Result<Listed<Event>, Error> {
        let pairs = after.map(|position| ("cursor", position.to_string()));
        self.list("events", pairs.into_iter().collect(), limit).await
    }

    pub(crate) async fn leak_list(
        &self,
        state: &str,
        kind: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Listed<Leak>, Error> {
        let mut pairs = vec![("state", state.to_owned())];
        pairs.extend(kind.map(|kind| ("kind", kind.to_owned())));
        self.list("leaks", pairs, limit).await
    }

    pub(crate) async fn leak_get(&self, id: &str) -> Result<Leak, Error> {
        self.decode(self.request(Method::GET, &["leaks", id])).await
    }

    pub(crate) async fn leak_find(&self) -> Result<Vec<LeakLook>, Error> {
        self.decode(self.request(Method::POST, &["leaks", "find"])).await
    }

    pub(crate) async fn leak_resolve(&self, id: &str, reason: &str) -> Result<Leak, Error> {
        let body = LeakReason { reason: reason.to_owned() };
        self.decode(self.request(Method::POST, &["leaks", id, "resolve"]).json(&body)).await
    }

    pub(crate) async fn leak_remove(&self, id: &str, reason: &str) -> Result<Leak, Error> {
        let body = LeakReason { reason: reason.to_owned() };
        self.decode(self.request(Method::POST, &["leaks", id, "remove"]).json(&body)).await
    }

    pub(crate) async fn control_get(&self) -> Result<Control, Error> {
        self.decode(self.request(Method::GET, &["control"])).await
    }

    pub(crate) async fn freeze_put(&self, body: &PutFreeze) -> Result<Control, Error> {
        self.decode(self.request(Method::PUT, &["control", "freeze"]).json(body)).await
    }

    pub(crate) async fn freeze_delete(&self, reason: &str) -> Result<Control, Error> {
        let request = self.request(Method::DELETE, &["control", "freeze"]);
        self.decode(request.query(&[("reason", reason)])).await
    }

    pub(crate) async fn resume(&self, reason: &str) -> Result<Control, Error> {
        let body = Resume { reason: reason.to_owned() };
        self.decode(self.request(Method::POST, &["control", "resume"]).json(&body)).await
    }

    pub(crate) async fn plan_list(&self, limit: Option<u32>) -> Result<Listed<PlanLine>, Error> {
        self.list_at(&["control", "plan"], Vec::new(), limit).await
    }

    /// Events as they happen; read with [`Client::next_piece`].
    pub(crate) async fn event_stream(&self, after: Option<i64>) -> Result<Response, Error> {
        let url = self.url(&["events", "stream"]);
        let mut request = self.authorised(self.streams.get(url));
        if let Some(position) = after {
            request = request.query(&[("after", position.to_string())]);
        }
        self.send(request).await
    }

    /// `None` at the end of the stream.
    pub(crate) async fn next_piece(
        &self,
        stream: &mut Response,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        stream.chunk().await.map_err(|error| self.unreachable(error))
    }

    pub(crate) async fn subscription_list(&self) -> Result<Vec<Subscription>, Error> {
        self.decode(self.request(Method::GET, &["subscriptions"])).await
    }

    pub(crate) async fn subscription_remove(&self, name: &str) -> Result<(), Error> {
        self.send(self.request(Method::DELETE, &["subscriptions", name])).await?;
        Ok(())
    }

    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Vec<(&str, String)>,
        limit: Option<u32>,
    ) -> Result<Listed<T>, Error> {
        self.list_at(&[path], query, limit).await
    }

    async fn list_at<T: DeserializeOwned>(
        &self,
        path: &[&str],
        mut query: Vec<(&str, String)>,
        limit: Option<u32>,
    ) -> Result<Listed<T>, Error> {
        let most = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        query.push(("limit", limit.unwrap_or(PAGE).min(PAGE).to_string()));
        let mut request = self.request(Method::GET, path).query(&query);
        let mut listed = Listed { items: Vec::new(), held: Vec::new(), open: 0 };
        let mut last = None;
        loop {
            let response = self.send(request).await?;
            let next = next_link(&self.server, response.headers());
            let held = response.headers().get(HELD_ROWS).and_then(|value| value.to_str().ok());
            listed
                .held
                .extend(held.into_iter().flat_map(|held| held.split(',')).map(str::to_owned));
            let open = response.headers().get(PLAN_OPEN).and_then(|value| value.to_str().ok());
            listed.open = open.and_then(|open| open.parse().ok()).unwrap_or(0);
            let page: Vec<T> = self.read(response).await?;
            listed.items.extend(page);
            match next {
                // A page may be empty because its rows are held, and the list
                // goes on behind them; a link to the same page again would not.
                Some(next) if listed.items.len() < most && last.as_ref() != Some(&next) => {
                    request = self.authorised(self.http.get(next.clone()));
                    last = Some(next);
                }
                _ => break,
            }
        }
        listed.items.truncate(most);
        listed.held.sort_unstable();
        listed.held.dedup();
        Ok(listed)
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

    /// Sends; an answer that is no success is an error.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
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
        let body = response.bytes().await.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&body).map_err(|error| self.unreadable(error.to_string()))
    }

    fn unreachable(&self, error: reqwest::Error) -> Error {
        Error::Unreachable { server: self.shown(), reason: with_causes(&error.without_url()) }
    }

    /// For a caller who did not wait for the client's own deadline.
    pub(crate) fn silent_for(&self, time: Duration) -> Error {
        let reason = format!("no answer within {:.1} s", time.as_secs_f64());
        Error::Unreachable { server: self.shown(), reason }
    }

    pub(crate) fn unreadable(&self, reason: String) -> Error {
        Error::Unreadable { server: self.shown(), reason }
    }

    /// Without what may be secret in a URL.
    fn shown(&self) -> String {
        self.server.origin().ascii_serialization()
    }
}

/// What holds for every request to this server.
fn for_server(server: &Url, builder: ClientBuilder) -> ClientBuilder {
    // A key is for this server, not for whatever it points to.
    let mut builder = builder.redirect(redirect::Policy::none());
    if server.scheme() == "http" {
        // Without this the system's certificates are loaded even for plain
        // HTTP, and a machine that has none gets an error.
        builder = builder.tls_certs_only([]);
    }
    if server.host_str().is_some_and(|host| host == "localhost" || host.starts_with("127.")) {
        builder = builder.no_proxy();
    }
    builder
}

/// The target of `Link: <…>; rel="next"`, only if it is on the same server:
/// the key goes with it.
fn next_link(server: &Url, headers: &HeaderMap) -> Option<Url> {
    let value = headers.get(LINK)?.to_str().ok()?;
    let (target, relation) = value.strip_prefix('<')?.split_once('>')?;
    let next = relation.contains("rel=\"next\"").then(|| server.join(target).ok())??;
    (next.origin() == server.origin()).then_some(next)
}

/// reqwest's own text says "error sending request"; what a person needs, such
/// as "connection refused", is in the causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// A document as it is shown with `-o json`.
pub(crate) fn to_json(document: &impl Serialize) -> String {
    // The documents of this API have text keys only, which is all that can fail.
    serde_json::to_string_pretty(document).unwrap_or_default()
}

/// The same with `-o yaml`.
pub(crate) fn to_yaml(document: &impl Serialize) -> String {
    let text = serde_yaml_ng::to_string(document).unwrap_or_default();
    text.trim_end().to_owned()
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
            assert!(matches!(Client::new(bad, None), Err(Error::Usage(_))), "{bad}");
        }
    }
}
