//! The outbox: numbers events and reads them by position.
//!
//! The relay numbers an event after it was committed, under the lock of the one row
//! with the last position. Positions are therefore dense and in the order of commits:
//! an event that becomes visible later gets a later one, and a reader that has read
//! position n has read all before it. Hot transactions never touch that row.
//!
//! A trigger notes each announced event in `outbox_pending`. The relay moves it from
//! there to `event_positions`; both have narrow rows, and the event itself is never
//! updated.
//!
//! A row that cannot be read, or is missing, keeps its position and is answered as an
//! unreadable event: it breaks no page, and no reader waits for it.

use serde_json::json;
use slipway_app::events::port::{Backlog, PositionedEvent};
use slipway_app::ports::store::Page;
use slipway_core::Timestamp;
use slipway_core::events::positions::Span;
use slipway_core::events::unreadable;
use slipway_core::ids::{EventId, ProjectId, ResourceId, Revision};
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// Waiting events are counted up to this many; a relay that is further behind
/// is as alarming as it gets, and counting costs.
const COUNTED: i64 = 10_000;

/// The columns of events with their positions, from this table of positions.
macro_rules! positioned_events {
    ($positions:literal) => {
        concat!(
            "SELECT e.id, p.position, e.event_type, e.aggregate_id, p.project_id, e.revision, \
             e.occurred_at, e.abandoned, e.changed, e.payload, r.id AS resource_id, r.handle FROM ",
            $positions,
            " p LEFT JOIN outbox_events e ON e.seq = p.seq \
             LEFT JOIN provisioned_resources a ON a.id = e.aggregate_id \
             LEFT JOIN resources r ON r.id = a.resource_id "
        )
    };
}
pub(crate) use positioned_events;

pub(crate) const EVENTS: &str = concat!(
    positioned_events!("event_positions"),
    "WHERE p.position > $1 ORDER BY p.position LIMIT $2"
);

pub(crate) fn span(row: &Row) -> Result<Span, sqlx::Error> {
    Ok(Span { pruned: row.try_get("pruned_position")?, last: row.try_get("last_position")? })
}

pub(crate) async fn current_span(connection: &mut Connection, (): ()) -> Result<Span, Failure> {
    let row = sqlx::query("SELECT pruned_position, last_position FROM outbox_head")
        .fetch_one(connection)
        .await?;
    Ok(span(&row)?)
}

pub(crate) async fn relay(connection: &mut Connection, limit: u32) -> Result<End<u64>, Failure> {
    let last: i64 = sqlx::query(sql!("SELECT last_position FROM outbox_head", for_update))
        .fetch_one(&mut *connection)
        .await?
        .try_get("last_position")?;
    let given = sqlx::query(
        "INSERT INTO event_positions (position, seq, project_id) \
         SELECT $1 + row_number() OVER (ORDER BY pending.seq), pending.seq, event.project_id \
         FROM (SELECT seq FROM outbox_pending ORDER BY seq LIMIT $2) AS pending \
         LEFT JOIN outbox_events event ON event.seq = pending.seq",
    )
    .bind(last)
    .bind(i64::from(limit))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    // By their positions and not by the same subquery: an event with a lower `seq` may have
    // been committed between the two statements.
    sqlx::query(concat!(
        "DELETE FROM outbox_pending WHERE seq ",
        one_of!("SELECT seq FROM event_positions WHERE position > $1")
    ))
    .bind(last)
    .execute(&mut *connection)
    .await?;
    sqlx::query("UPDATE outbox_head SET last_position = last_position + $1")
        .bind(i64::try_from(given).unwrap_or(i64::MAX))
        .execute(&mut *connection)
        .await?;
    Ok(End::Commit(given))
}

pub(crate) async fn has_unpublished(connection: &mut Connection, (): ()) -> Result<bool, Failure> {
    let row = sqlx::query("SELECT seq FROM outbox_pending LIMIT 1")
        .fetch_optional(&mut *connection)
        .await?;
    Ok(row.is_some())
}

pub(crate) async fn backlog(connection: &mut Connection, (): ()) -> Result<Backlog, Failure> {
    let row = sqlx::query(sql!(
        "SELECT ",
        now,
        " AS now, count(*) AS waiting, min(occurred_at) AS oldest FROM \
         (SELECT event.occurred_at FROM outbox_pending pending \
            JOIN outbox_events event ON event.seq = pending.seq ORDER BY pending.seq LIMIT $1) \
         AS unpublished"
    ))
    .bind(COUNTED)
    .fetch_one(&mut *connection)
    .await?;
    let now: Timestamp = row.try_get::<Micros, _>("now")?.into();
    let waiting: i64 = row.try_get("waiting")?;
    let oldest: Option<Micros> = row.try_get("oldest")?;
    Ok(Backlog {
        waiting: u64::try_from(waiting).unwrap_or_default(),
        oldest: oldest.map(|oldest| now.since(oldest.into())),
    })
}

pub(crate) async fn list(
    connection: &mut Connection,
    page: Page<i64>,
) -> Result<Vec<PositionedEvent>, Failure> {
    let found = sqlx::query(EVENTS)
        .bind(page.after.unwrap_or(0))
        .bind(i64::from(page.limit))
        .fetch_all(&mut *connection)
        .await?;
    Ok(found.iter().map(event).collect::<Result<_, _>>()?)
}

pub(crate) fn event(row: &Row) -> Result<PositionedEvent, sqlx::Error> {
    let position = row.try_get("position")?;
    Ok(read(row, position).unwrap_or_else(|fault| unreadable(row, position, &fault)))
}

fn read(row: &Row, position: i64) -> Result<PositionedEvent, Fault> {
    let changed: Option<Json<Vec<String>>> = rows::get(row, "changed")?;
    Ok(PositionedEvent {
        id: EventId::new(rows::get(row, "id")?),
        position,
        event_type: rows::get(row, "event_type")?,
        aggregate_id: rows::get(row, "aggregate_id")?,
        project_id: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
        revision: Revision(rows::get(row, "revision")?),
        occurred_at: rows::time(row, "occurred_at")?,
        abandoned: rows::get::<i32>(row, "abandoned")? != 0,
        resource: resource(row)?,
        changed: changed.map(|changed| changed.0).unwrap_or_default(),
        payload: rows::json(row, "payload")?,
    })
}

/// What can be read of the row, and the reason instead of the payload. Without a
/// project only readers of all projects see it.
fn unreadable(row: &Row, position: i64, fault: &Fault) -> PositionedEvent {
    let id = |column| rows::get::<Uuid>(row, column).ok();
    PositionedEvent {
        id: EventId::new(id("id").unwrap_or_else(|| unreadable::message_id(position))),
        position,
        event_type: unreadable::TYPE.to_owned(),
        aggregate_id: id("aggregate_id").unwrap_or_default(),
        project_id: id("project_id").map(ProjectId::new),
        revision: Revision(rows::get(row, "revision").unwrap_or_default()),
        occurred_at: rows::time(row, "occurred_at").unwrap_or(Timestamp::ZERO),
        abandoned: false,
        resource: resource(row).unwrap_or_default(),
        changed: Vec::new(),
        payload: json!({ "reason": fault.to_string() }),
    }
}

/// The resource of the attempt that the event is about. It is read with the event: an
/// attempt never changes its resource, and a resource keeps its handle.
fn resource(row: &Row) -> Result<Option<(ResourceId, String)>, Fault> {
    let id = rows::get::<Option<Uuid>>(row, "resource_id")?.map(ResourceId::new);
    Ok(id.zip(rows::get(row, "handle")?))
}
