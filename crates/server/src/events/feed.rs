//! Events in the order of their positions, as pages or as a stream. The cursor
//! is a position: a reader that remembers its last one misses nothing, and gets
//! an error if the next events were pruned.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use slipway_app::events::feed;
use slipway_app::events::port::PositionedEvent;
use slipway_app::ports::Listed;
use slipway_core::error::Refusal;
use slipway_core::ids::ProjectId;
use slipway_wire::events::Event;

use super::streams::EventStream;
use crate::request::{Answered, Call};
use crate::state::ServerState;

/// Browsers send this header when they resume a stream.
const LAST_EVENT_ID: &str = "last-event-id";

/// Interval of comments that show the reader and the proxies between that the
/// stream is alive. Proxies close connections that are silent for 30 to 60 s.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How soon a browser resumes a stream that ended.
const RETRY: Duration = Duration::from_secs(1);

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let events = feed::list(&call.context, &call.caller, page).await?;
    let listed = Listed::complete(events, page.limit, |event| event.position);
    Ok(call.page(listed.map(document), page.limit))
}

pub(super) async fn follow(
    call: Call,
    State(state): State<ServerState>,
    headers: HeaderMap,
) -> Answered {
    let given = call.query.get("after");
    // The header wins: a client resumes with the same URL, whose `after` is
    // where the stream first began.
    let resumed = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    let (field, after) = match resumed {
        Some(value) => (LAST_EVENT_ID, value.to_str().ok().and_then(|text| text.parse().ok())),
        None => ("after", given.and_then(|text| text.parse().ok())),
    };
    if after.is_none() && (resumed.is_some() || given.is_some()) {
        let problem = "must be the position of an event, such as 42";
        return Err(Refusal::invalid(field, problem).into());
    }
    let permit = state.streams.reserve(&call.caller)?;
    let after = feed::begin_stream(&call.context, &call.caller, field, after).await?;
    let frames = frames(after, state.streams.subscribe(after, permit), call.caller.project);
    let stream = Sse::new(frames).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("alive"));
    // Otherwise a buffering proxy would delay events.
    let unbuffered = [(HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((unbuffered, stream).into_response())
}

/// The first frame has no event, only the start position: a reader that is
/// disconnected before the first event resumes there and not at the end.
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

/// The events that the reader may see. If the batch ends with an event that it
/// may not see, an empty frame tells it the position, so that it resumes there
/// and not at its own last event.
fn shown(events: &[Arc<PositionedEvent>], project: Option<ProjectId>) -> Vec<Frame> {
    let own = |event: &&Arc<PositionedEvent>| project.is_none() || event.project_id == project;
    let mut frames: Vec<_> = events.iter().filter(own).map(|event| frame(event)).collect();
    if let Some(last) = events.last().filter(|last| !own(last)) {
        frames.push(Frame::default().id(last.position.to_string()));
    }
    frames
}

fn frame(event: &PositionedEvent) -> Frame {
    let document = document(event);
    // Only map keys that are not text could fail here; there are none.
    let data = serde_json::to_string(&document).unwrap_or_default();
    Frame::default().id(document.position.to_string()).event(document.event_type).data(data)
}

/// The document of an event, the same in lists, streams and sinks.
pub fn document(event: &PositionedEvent) -> Event {
    Event {
        id: event.id.to_string(),
        position: event.position,
        event_type: event.event_type.clone(),
        aggregate_id: event.aggregate_id.to_string(),
        resource_id: event.resource.as_ref().map(|(id, _)| id.to_string()),
        handle: event.resource.as_ref().map(|(_, handle)| handle.clone()),
        changed: event.changed.clone(),
        revision: event.revision.0,
        occurred_at: event.occurred_at.to_string(),
        abandoned: event.abandoned,
        payload: event.payload.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use slipway_core::ids::{EventId, Revision};
    use slipway_core::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn mk_event(position: i64, project_id: Option<ProjectId>) -> Arc<PositionedEvent> {
        Arc::new(PositionedEvent {
            id: EventId::new(Uuid::nil()),
            position,
            event_type: "test.Happened".to_owned(),
            aggregate_id: Uuid::nil(),
            project_id,
            revision: Revision::FIRST,
            occurred_at: Timestamp::from_micros(0),
            abandoned: false,
            resource: None,
            changed: Vec::new(),
            payload: Value::Null,
        })
    }

    #[test]
    fn a_reader_of_one_project_sees_no_event_without_a_project() {
        let project = |number| ProjectId::new(Uuid::from_u128(number));
        let (own, other) = (project(1), project(2));
        let events = [
            mk_event(1, None),
            mk_event(2, Some(other)),
            mk_event(3, None),
            mk_event(4, Some(own)),
        ];
        assert_eq!(shown(&events, Some(own)).len(), 1);
        assert_eq!(shown(&events, None).len(), events.len());
    }
}
