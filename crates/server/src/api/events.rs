//! Events: the lifecycle in the order of its positions, page by page or as a
//! stream. The cursor is a position, so a reader that remembers the last one
//! misses nothing, and is told when it would.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use slipway_app::ports::Listed;
use slipway_app::ports::events::PositionedEvent;
use slipway_app::ports::store::Page;
use slipway_app::usecases::events;
use slipway_core::error::Refusal;
use slipway_core::ids::ProjectId;

use super::convert;
use super::list::page;
use crate::error::Rejection;
use crate::extract::Authenticated;
use crate::query::Parameters;
use crate::state::ServerState;
use crate::streams::EventStream;

/// What a browser sends when it takes a stream up again.
const LAST_EVENT_ID: &str = "last-event-id";

/// A comment this often tells a reader, and whatever is between, that the
/// stream is alive. Proxies cut what is silent for 30 to 60 s.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How soon a browser takes a stream up again that ended.
const RETRY: Duration = Duration::from_secs(1);

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<i64> = parameters.take_page()?;
    parameters.finish()?;
    let events = events::list(&state.context, &caller, wanted).await?;
    let listed = Listed::whole(events, wanted.limit, |event| event.position);
    Ok(page(listed.map(convert::event), "/api/v1/events", wanted.limit, &[]))
}

pub(super) async fn follow(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let given = parameters.take("after");
    parameters.finish()?;
    // The header wins: whoever resumes asks the same address again, and the
    // `after` in it is where the stream once began.
    let resumed = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    let (field, after) = match resumed {
        Some(value) => (LAST_EVENT_ID, value.to_str().ok().and_then(|text| text.parse().ok())),
        None => ("after", given.as_deref().and_then(|text| text.parse().ok())),
    };
    if after.is_none() && (resumed.is_some() || given.is_some()) {
        let problem = "must be the position of an event, such as 42";
        return Err(Refusal::invalid(field, problem).into());
    }
    let place = state.streams.place()?;
    let after = events::begin_stream(&state.context, &caller, field, after).await?;
    let frames = frames(after, state.streams.subscribe(after, place), caller.project);
    let stream = Sse::new(frames).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("alive"));
    // A proxy that collects answers before it passes them on would hold events.
    let unbuffered = [(HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((unbuffered, stream).into_response())
}

/// The first frame holds no event, only where the stream begins: a reader that
/// is cut off before the first event resumes there and not at the end.
fn frames(
    after: i64,
    stream: EventStream,
    project: Option<ProjectId>,
) -> impl Stream<Item = Result<Frame, Infallible>> {
    let first = Frame::default().retry(RETRY).id(after.to_string());
    let first = stream::once(async { first });
    let batches = stream::unfold((stream, project), async |(mut stream, project)| {
        let events = stream.next().await?;
        Some((stream::iter(shown(&events, project)), (stream, project)))
    });
    first.chain(batches.flatten()).map(Ok)
}

/// The events that the reader may see. Behind others it is told how far the
/// stream has come, so that it resumes there and not where its own last was.
fn shown(events: &[Arc<PositionedEvent>], project: Option<ProjectId>) -> Vec<Frame> {
    let own = |event: &&Arc<PositionedEvent>| project.is_none_or(|own| event.project_id == own);
    let mut frames: Vec<_> = events.iter().filter(own).map(|event| frame(event)).collect();
    if let Some(last) = events.last().filter(|last| !own(last)) {
        frames.push(Frame::default().id(last.position.to_string()));
    }
    frames
}

fn frame(event: &PositionedEvent) -> Frame {
    let document = convert::event(event);
    // These documents have text keys only, which is all that can fail.
    let data = serde_json::to_string(&document).unwrap_or_default();
    Frame::default().id(document.position.to_string()).event(document.event_type).data(data)
}
