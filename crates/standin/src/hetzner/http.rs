//! The HTTP half: authentication, the rate limit, faults, and the schemas around a call.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, Response, StatusCode, header};
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::calls::{Request, carry_out};
use super::provider::{State, lock};
use super::rate::Rate;
use super::script::Fault;
use super::shapes::{Call, fault};

/// More than the longest user data.
const BODY_MAX: usize = 256 << 10;

pub(super) async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let handle = move |request: HttpRequest| answer(Arc::clone(&state), request);
    if let Err(error) = axum::serve(listener, Router::new().fallback(handle)).await {
        tracing::error!(%error, "the provider serves no longer");
    }
}

/// A request as it arrived.
struct Arrived {
    method: String,
    /// Without `/v1`.
    path: String,
    query: BTreeMap<String, String>,
    headers: HeaderMap,
    body: Bytes,
}

async fn answer(state: Arc<Mutex<State>>, request: HttpRequest) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_MAX).await else { return broken() };
    let query = axum::extract::Query::try_from_uri(&parts.uri);
    let path = parts.uri.path();
    let arrived = Arrived {
        method: parts.method.to_string(),
        path: path.strip_prefix("/v1").unwrap_or(path).to_owned(),
        query: query.map(|query| query.0).unwrap_or_default(),
        headers: parts.headers,
        body,
    };
    let ordered = {
        let mut state = lock(&state);
        let shown = parts.uri.query().map_or_else(String::new, |query| format!("?{query}"));
        state.requests.push(format!("{} {}{shown}", arrived.method, arrived.path));
        state.script.fault(&arrived.method, &arrived.path)
    };
    match ordered {
        Some(Fault::Drop) => return broken(),
        Some(Fault::Answer(status, code)) => {
            let message = format!("ordered by a test: {code}");
            return document(status, &error(&code, &message), None);
        }
        _ => {}
    }
    // A task of its own: a request is carried out although its client has gone.
    let is_lost = ordered == Some(Fault::LoseAnswer);
    let work = tokio::spawn(async move {
        let delay = match ordered {
            Some(Fault::Delay(time)) => Some(time),
            _ => None,
        };
        if let Some(time) = delay {
            lock(&state).delayed += 1;
            tokio::time::sleep(time).await;
        }
        let mut state = lock(&state);
        state.delayed -= usize::from(delay.is_some());
        state.advance();
        state.handle(&arrived)
    });
    match work.await {
        Ok(_) if is_lost => broken(),
        Ok((status, body, rate)) => document(status, &body, rate),
        Err(_) => broken(),
    }
}

impl State {
    fn handle(&mut self, arrived: &Arrived) -> (u16, Value, Option<Rate>) {
        let token =
            arrived.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer "));
        let Some(project) = token.and_then(|token| self.tokens.get(token)).cloned() else {
            let message = "the token you provided is invalid";
            return (401, error("unauthorized", message), None);
        };
        let rate = self.rates.get_mut(&project).map(super::rate::Bucket::take);
        let (admitted, rate) = rate.map_or((true, None), |(admitted, rate)| (admitted, Some(rate)));
        if !admitted {
            let message = "limit of requests per hour reached";
            return (429, error("rate_limit_exceeded", message), rate);
        }
        let (status, body) = match self.checked(&project, arrived) {
            Ok((status, body)) => (status, body),
            Err((status, code, message)) => (status, error(code, &message)),
        };
        let shape = if status < 400 { None } else { fault("error", &body) };
        self.violations.extend(shape.map(|found| format!("our error: {found}")));
        (status, body, rate)
    }

    /// Checks the request against its shape, carries it out, and checks the answer.
    fn checked(
        &mut self,
        project: &str,
        arrived: &Arrived,
    ) -> Result<(u16, Value), super::calls::Refused> {
        let Arrived { method, path, query, .. } = arrived;
        let mut invalid = |found: String| {
            self.violations.push(format!("{method} {path}: {found}"));
            (422, "invalid_input", found)
        };
        let Some((call, id)) = Call::of(method, path) else {
            let message = format!("there is no call {method} {path}");
            return Err((404, "not_found", invalid(message).2));
        };
        let shape = call.shape();
        if let Some(unknown) = query.keys().find(|key| !shape.query.contains(&key.as_str())) {
            return Err(invalid(format!("unknown query parameter {unknown}")));
        }
        let body = match (shape.request, arrived.body.is_empty()) {
            (None, true) => Value::Null,
            (None, false) => return Err(invalid("a body where none is taken".to_owned())),
            (Some(shape), _) => {
                let json: Result<Value, _> = serde_json::from_slice(&arrived.body);
                let body = json.map_err(|error| invalid(error.to_string()))?;
                if let Some(found) = fault(shape, &body) {
                    return Err(invalid(found));
                }
                body
            }
        };
        let missing = || (404, "not_found", "no such project".to_owned());
        let world = self.worlds.get_mut(project).ok_or_else(missing)?;
        let request = Request { call, id, query, body: &body };
        let answer = carry_out(world, &mut self.script, &request)?;
        if let Some(found) = shape.answer.and_then(|shape| fault(shape, &answer)) {
            self.violations.push(format!("our answer to {method} {path}: {found}"));
        }
        if call.writes() {
            tracing::debug!(method, path, "the provider changed something");
        }
        Ok((shape.status, answer))
    }
}

fn error(code: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message, "details": null } })
}

fn document(status: u16, body: &Value, rate: Option<Rate>) -> Response<Body> {
    let mut answer = Response::builder().status(status);
    if let Some(Rate { limit, remaining, reset }) = rate {
        answer = answer
            .header("RateLimit-Limit", limit)
            .header("RateLimit-Remaining", remaining)
            .header("RateLimit-Reset", reset);
    }
    let text = match status {
        204 => Body::empty(),
        _ => Body::from(body.to_string()),
    };
    answer.header(header::CONTENT_TYPE, "application/json").body(text).unwrap_or_else(|_| broken())
}

/// A connection that ends in the middle of an answer.
fn broken() -> Response<Body> {
    let part = io::Error::other("the answer is lost");
    let mut answer = Response::new(Body::from_stream(stream::iter([Err::<Bytes, _>(part)])));
    *answer.status_mut() = StatusCode::OK;
    answer
}
