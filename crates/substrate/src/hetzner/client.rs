//! A thin client of the provider's API: one request per call, with a time limit, within the
//! [budget](super::budget). It decides nothing and does not try again.
//!
//! A [`Session`] reads the token once. A token is bound to one project, so what several requests
//! of one session say is about the same project, also if the file changes meanwhile.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_core::nodes::token::SecretHash;

use super::budget::{Budget, Purpose, RateHeaders, Spent};
use super::endpoint::Endpoint;
use super::error::{ApiError, Reason};
use super::http_date;
use super::shapes::{
    Action, Created, Labels, Meta, NewLabels, NewPlacementGroup, NewServer, Page, PlacementGroup,
    Protection, Server,
};
use super::token::TokenFile;

/// The most objects that the API puts into a page.
pub(super) const PAGE: u64 = 50;

/// Most calls are answered within a second; a create may take a few.
const DEADLINE: Duration = Duration::from_secs(8);

/// A page of 50 servers has less than half of it.
const LONGEST: usize = 4 << 20;

/// How a project at the provider is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectAccess {
    pub endpoint: Endpoint,
    pub token: TokenFile,
}

/// The client of one project. Clones share the budget.
#[derive(Debug, Clone)]
pub(super) struct Client {
    access: ProjectAccess,
    http: reqwest::Client,
    budget: Arc<Budget>,
}

/// Requests with one token, for one purpose.
#[derive(Debug, Clone)]
pub(super) struct Session {
    endpoint: Endpoint,
    authorization: HeaderValue,
    purpose: Purpose,
    http: reqwest::Client,
    budget: Arc<Budget>,
}

/// Which servers a list has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Filter<'a> {
    pub name: Option<&'a str>,
    pub labels: Option<&'a str>,
}

impl Client {
    /// Sends no request and reads no file.
    pub(super) fn new(access: ProjectAccess) -> Result<Self, ApiError> {
        // An error means that a provider of cryptography is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .timeout(DEADLINE)
            // The token is for this server alone.
            .redirect(redirect::Policy::none())
            .no_proxy();
        let builder = match access.endpoint.is_plain() {
            true => builder.tls_certs_only([]),
            false => builder,
        };
        let http = builder.build().map_err(|error| {
            ApiError::new(Reason::Refused, format!("no HTTP client: {}", with_causes(&error)))
        })?;
        Ok(Self { access, http, budget: Arc::default() })
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Reads the token for the requests of one piece of work.
    pub(super) async fn session(&self, purpose: Purpose) -> Result<Session, ApiError> {
        let ProjectAccess { endpoint, token } = &self.access;
        Ok(Session {
            endpoint: endpoint.clone(),
            authorization: token.header().await?,
            purpose,
            http: self.http.clone(),
            budget: Arc::clone(&self.budget),
        })
    }
}

impl Session {
    /// Tells tokens apart without keeping one.
    pub(super) fn token_hash(&self) -> SecretHash {
        SecretHash::of(self.authorization.as_bytes())
    }

    /// One page of servers, by id.
    pub(super) async fn servers(
        &self,
        filter: Filter<'_>,
        page: u64,
    ) -> Result<Page<Server>, ApiError> {
        self.list("servers", filter, page, PAGE).await
    }

    /// The same with at most so many in a page.
    pub(super) async fn few_servers(
        &self,
        filter: Filter<'_>,
        page: u64,
        size: u64,
    ) -> Result<Page<Server>, ApiError> {
        self.list("servers", filter, page, size.clamp(1, PAGE)).await
    }

    /// `None` if there is no server with this id.
    pub(super) async fn server(&self, id: u64) -> Result<Option<Server>, ApiError> {
        found(self.read(&["servers", &id.to_string()], "server").await)
    }

    pub(super) async fn server_create(&self, new: &NewServer) -> Result<Created, ApiError> {
        let answer = self.send(Method::POST, &["servers"], &[], Some(new)).await?;
        parsed("POST servers", answer)
    }

    /// Replaces all labels.
    pub(super) async fn server_label(&self, id: u64, labels: Labels) -> Result<Server, ApiError> {
        let path = ["servers", &id.to_string()];
        let answer = self.send(Method::PUT, &path, &[], Some(&NewLabels { labels })).await?;
        field("PUT servers", answer, "server")
    }

    pub(super) async fn server_protect(&self, id: u64, protect: bool) -> Result<Action, ApiError> {
        let path = ["servers", &id.to_string(), "actions", "change_protection"];
        let body = Protection { delete: protect, rebuild: protect };
        let answer = self.send(Method::POST, &path, &[], Some(&body)).await?;
        field("POST change_protection", answer, "action")
    }

    pub(super) async fn server_delete(&self, id: u64) -> Result<(), ApiError> {
        let path = ["servers", &id.to_string()];
        self.send(Method::DELETE, &path, &[], None::<&Value>).await.map(|_| ())
    }

    /// The first actions of a server; the one that made it is among them.
    pub(super) async fn server_actions(&self, id: u64) -> Result<Vec<Action>, ApiError> {
        let path = ["servers", &id.to_string(), "actions"];
        let query = [("sort", "id:asc".to_owned())];
        let answer = self.send(Method::GET, &path, &query, None::<&Value>).await?;
        field("GET server actions", answer, "actions")
    }

    /// `None` if there is no action with this id.
    pub(super) async fn action(&self, id: u64) -> Result<Option<Action>, ApiError> {
        found(self.read(&["actions", &id.to_string()], "action").await)
    }

    pub(super) async fn placement_groups(
        &self,
        filter: Filter<'_>,
    ) -> Result<Vec<PlacementGroup>, ApiError> {
        let (mut found, mut page) = (Vec::new(), 1);
        loop {
            let listed = self.list("placement_groups", filter, page, PAGE).await?;
            found.extend(listed.items);
            let Some(next) = listed.next else { return Ok(found) };
            page = next;
        }
    }

    pub(super) async fn placement_group_create(
        &self,
        new: &NewPlacementGroup,
    ) -> Result<PlacementGroup, ApiError> {
        let answer = self.send(Method::POST, &["placement_groups"], &[], Some(new)).await?;
        field("POST placement_groups", answer, "placement_group")
    }

    /// Replaces all labels.
    pub(super) async fn placement_group_label(
        &self,
        id: u64,
        labels: Labels,
    ) -> Result<PlacementGroup, ApiError> {
        let path = ["placement_groups", &id.to_string()];
        let answer = self.send(Method::PUT, &path, &[], Some(&NewLabels { labels })).await?;
        field("PUT placement_groups", answer, "placement_group")
    }

    pub(super) async fn placement_group_delete(&self, id: u64) -> Result<(), ApiError> {
        let path = ["placement_groups", &id.to_string()];
        self.send(Method::DELETE, &path, &[], None::<&Value>).await.map(|_| ())
    }

    async fn list<T: DeserializeOwned>(
        &self,
        kind: &str,
        filter: Filter<'_>,
        page: u64,
        size: u64,
    ) -> Result<Page<T>, ApiError> {
        let mut query = vec![("page", page.to_string()), ("per_page", size.to_string())];
        query.extend(filter.name.map(|name| ("name", name.to_owned())));
        query.extend(filter.labels.map(|labels| ("label_selector", labels.to_owned())));
        let mut answer = self.send(Method::GET, &[kind], &query, None::<&Value>).await?;
        let call = format!("GET {kind}");
        let meta: Meta = match answer.get_mut("meta") {
            Some(meta) => parsed(&call, meta.take())?,
            None => Meta::default(),
        };
        let items = field(&call, answer, kind)?;
        let pagination = meta.pagination;
        Ok(Page { items, next: pagination.next_page, total: pagination.total_entries })
    }

    async fn read<T: DeserializeOwned>(&self, path: &[&str], key: &str) -> Result<T, ApiError> {
        let answer = self.send(Method::GET, path, &[], None::<&Value>).await?;
        field(&format!("GET {key}"), answer, key)
    }

    /// One request; the JSON of its answer.
    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<&impl Serialize>,
    ) -> Result<Value, ApiError> {
        self.budget.take(self.purpose).map_err(spent)?;
        let call = format!("{method} {}", path.join("/"));
        let reads = method == Method::GET;
        let request = self.http.request(method, self.endpoint.at(path)).query(query);
        let request = request.header(AUTHORIZATION, self.authorization.clone());
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let lost = |error: reqwest::Error| {
            let reason = match reads || error.is_connect() || error.is_builder() {
                true => Reason::Refused,
                false => Reason::NoAnswer,
            };
            let causes = with_causes(&error.without_url());
            ApiError::new(reason, format!("{call}: the provider did not answer: {causes}"))
        };
        let answer = request.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        if let Some(seen) = rate_headers(answer.headers()) {
            self.budget.learn(seen);
        }
        let body = bounded(answer).await.map_err(lost)?;
        let json = serde_json::from_slice::<Value>(&body);
        if (200..300).contains(&status) {
            if body.is_empty() {
                return Ok(Value::Null);
            }
            return json.map_err(|_| {
                let reason = if reads { Reason::Refused } else { Reason::NoAnswer };
                ApiError::new(reason, format!("{call}: the answer is no JSON"))
            });
        }
        let error = json.unwrap_or_default();
        let text = |key: &str| error["error"][key].as_str().unwrap_or_default().to_owned();
        let error = ApiError::answered(&call, status, &text("code"), &text("message"));
        if error.reason == Reason::RateLimited {
            self.budget.is_spent();
        }
        Err(error)
    }
}

/// 404 is an answer and no error.
fn found<T>(read: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.reason == Reason::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn field<T: DeserializeOwned>(call: &str, mut answer: Value, key: &str) -> Result<T, ApiError> {
    parsed(call, answer.get_mut(key).map(Value::take).unwrap_or_default())
}

/// The answer may repeat what was sent, so the error names no value.
fn parsed<T: DeserializeOwned>(call: &str, value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| {
        let problem = format!("{call}: the answer has another shape ({:?})", error.classify());
        ApiError::new(Reason::NoAnswer, problem)
    })
}

fn spent(spent: Spent) -> ApiError {
    let Spent { left, limit, again_in } = spent;
    let problem = format!(
        "the rate limit of the project leaves {left:.0} of {limit} requests an hour, which are kept for what is more urgent; again in {} s",
        again_in.as_secs().max(1)
    );
    ApiError::new(Reason::RateLimited, problem)
}

fn rate_headers(headers: &HeaderMap) -> Option<RateHeaders> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let number = |name: &str| text(name)?.trim().parse::<u32>().ok();
    let reset = text("ratelimit-reset").and_then(|text| text.trim().parse::<u64>().ok());
    let date = text(DATE.as_str()).and_then(http_date::seconds);
    let full_in = reset.zip(date).map(|(reset, date)| reset.saturating_sub(date));
    Some(RateHeaders {
        limit: number("ratelimit-limit")?,
        remaining: number("ratelimit-remaining")?,
        full_in: full_in.map(Duration::from_secs),
    })
}

/// The part of an answer that is too long for the API is not read.
async fn bounded(mut answer: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await? {
        body.extend_from_slice(&part);
        if body.len() > LONGEST {
            break;
        }
    }
    Ok(body)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
