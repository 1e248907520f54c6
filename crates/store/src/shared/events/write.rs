//! Writes events to the outbox.

use serde::Serialize;
use serde_json::Value;
use slipway_core::event::Event;
use slipway_core::{ErrorKind, Refusal};
use uuid::Uuid;

use super::json_values::JsonTime;
use super::{Connection, writes};
use crate::failure::Failure;

#[derive(Serialize)]
struct EventRow<'a> {
    id: Uuid,
    aggregate_kind: &'static str,
    aggregate_id: Uuid,
    revision: i64,
    event_type: &'static str,
    project_id: Option<Uuid>,
    payload: &'a Value,
    occurred_at: JsonTime,
    abandoned: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<&'a [String]>,
}

impl<'a> EventRow<'a> {
    fn of(event: &'a Event) -> (Uuid, Self) {
        let row = Self {
            id: event.id.as_uuid(),
            aggregate_kind: event.subject.kind.as_str(),
            aggregate_id: event.subject.id,
            revision: event.revision.0,
            event_type: event.event_type.as_str(),
            project_id: event.project_id.map(|id| id.as_uuid()),
            payload: &event.payload,
            occurred_at: event.occurred_at.into(),
            abandoned: event.abandoned.into(),
            changed: Some(&event.changed[..]).filter(|changed| !changed.is_empty()),
        };
        (row.id, row)
    }
}

/// An event is unique on (subject, revision, type). The insert checks this by ON
/// CONFLICT and the rows that it answers, since continuing after a violation
/// differs between the databases. A duplicate means that a decision announced
/// the event twice.
pub(crate) async fn insert(connection: &mut Connection, events: &[&Event]) -> Result<(), Failure> {
    const INSERT: &str = concat!(
        "INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
         project_id, payload, occurred_at, abandoned, changed) SELECT given.id, given.aggregate_kind, \
         given.aggregate_id, given.revision, given.event_type, given.project_id, \
         coalesce(given.payload, 'null'), given.occurred_at, given.abandoned, given.changed FROM ",
        rows_from_json!(
            id: uuid,
            aggregate_kind: text,
            aggregate_id: uuid,
            revision: bigint,
            event_type: text,
            project_id: uuid,
            payload: json,
            occurred_at: time,
            abandoned: integer,
            changed: json,
        ),
        " WHERE true ON CONFLICT DO NOTHING RETURNING id",
    );
    writes::write_guarded(connection, INSERT, events, EventRow::of, |event| {
        Refusal::new(
            ErrorKind::RevisionStale,
            format!(
                "{} of {} was announced already at revision {}; read it again",
                event.event_type.as_str(),
                event.subject.id,
                event.revision.0
            ),
        )
    })
    .await
}
