//! One request on one connection: keeps the slot's record of what the connection
//! does, and leaves the connection usable after an answer that needed no body.
//!
//! An answer may come before its request was read to the end: a refused key, a
//! full rate, a body that is too long. What is left of the body would be taken
//! for the next request, so hyper closes such a connection, and a client that
//! keeps it for a next request finds it broken. So a short rest is read first;
//! otherwise the answer says `Connection: close`, and the connection is closed
//! only after the client could read that ([`super::close`]).

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{self, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use slipway_core::error::Refusal;
use slipway_core::ids::ApiKeyId;
use tokio::time::timeout;

use super::peer::{Peer, Proxy};
use super::slots::Slot;
use crate::error::Rejection;
use crate::request::BODY_LIMIT;

/// How long the rest of a body may take that nobody asked for. It usually
/// arrives with the head.
const REST_TIME: Duration = Duration::from_secs(1);

/// The service of one connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionService {
    pub(super) router: TowerToHyperService<Router>,
    pub(super) slot: Arc<Slot>,
    pub(super) peer: Peer,
    pub(super) proxy: Option<Proxy>,
    /// Set if the client may still be sending when its answer is complete.
    pub(super) unread: Arc<AtomicBool>,
}

/// A request that came when there were too many already.
#[derive(Debug, Clone)]
struct Overload(Refusal);

/// The slot that a request is served in.
#[derive(Debug, Clone)]
struct RequestSlot(Arc<Slot>);

/// Counts a request that was admitted with this key, or refuses it.
pub(crate) fn count_for_key(request: &Request, key: Option<ApiKeyId>) -> Result<(), Refusal> {
    match (request.extensions().get::<RequestSlot>(), key) {
        (Some(RequestSlot(slot)), Some(key)) => slot.admitted(key),
        // Not on a connection, as in tests of the router.
        _ => Ok(()),
    }
}

/// Refuses what [`ConnectionService`] found to be too many. A layer of the
/// protocols' routers, so that each writes its own document, and probes pass.
pub(crate) async fn refuse_overload(request: Request, next: Next) -> Response {
    match request.extensions().get::<Overload>() {
        Some(Overload(refusal)) => Rejection::from(refusal.clone()).into_response(),
        None => next.run(request).await,
    }
}

impl Service<http::Request<Incoming>> for ConnectionService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let peer = self.proxy.and_then(|proxy| proxy.peer(request.headers())).unwrap_or(self.peer);
        let waits_for_consent = request.headers().contains_key(EXPECT);
        let begun = self.slot.begin(peer, request.body().is_end_stream());
        let rest = Rest::default();
        let (slot, left) = (Arc::clone(&self.slot), Arc::clone(&rest));
        let mut request = request.map(|body| RequestBody { body: Some(body), slot, left });
        request.extensions_mut().insert(RequestSlot(Arc::clone(&self.slot)));
        if let Err(refusal) = begun {
            request.extensions_mut().insert(Overload(refusal));
        }
        let answer = self.router.call(request);
        let (slot, unread) = (Arc::clone(&self.slot), Arc::clone(&self.unread));
        Box::pin(async move {
            let mut response = answer.await?;
            let left = rest.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(body) = left {
                let closes = response.headers().contains_key(CONNECTION);
                // Reading would tell the client to send what nobody wants.
                if closes || waits_for_consent || !read_rest(body).await {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    unread.store(true, Ordering::Relaxed);
                }
            }
            slot.arrived();
            Ok(response.map(|body| Body::new(ResponseBody { body, slot })))
        })
    }
}

/// Reads what is left of a body; whether that was all.
async fn read_rest(mut body: Incoming) -> bool {
    let limit = BODY_LIMIT as u64;
    if body.size_hint().lower() > limit {
        return false;
    }
    let reading = async {
        let mut read = 0_u64;
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(frame) = frame else { return false };
            read += frame.data_ref().map_or(0, |data| data.len() as u64);
            if read > limit {
                return false;
            }
        }
        true
    };
    timeout(REST_TIME, reading).await.unwrap_or(false)
}

/// Where a handler leaves a body that it did not read to its end.
type Rest = Arc<Mutex<Option<Incoming>>>;

/// Tells the slot when the request is complete.
#[derive(Debug)]
struct RequestBody {
    body: Option<Incoming>,
    slot: Arc<Slot>,
    left: Rest,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(&mut *body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || body.is_end_stream() {
            self.body = None;
            self.slot.arrived();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}

/// Tells the slot when the answer is complete.
#[derive(Debug)]
struct ResponseBody {
    body: Body,
    slot: Arc<Slot>,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.slot.finished();
    }
}
