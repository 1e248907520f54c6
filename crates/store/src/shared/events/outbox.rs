//! The outbox: numbers events and reads them by position.
//!
//! The relay numbers an event after it was committed, under the lock of the one row
//! with the last position. Positions are therefore dense and in the order of commits:
//! an event that becomes visible later gets a later one, and a reader that has read
//! position n has read all before it. Hot transactions never touch that row.

use slipway_app::events::port::{Backlog, PositionedEvent};
use slipway_app::ports::store::Page;
use slipway_core::Timestamp;
use slipway_core::events::positions::Span;
use slipway_core::ids::{EventId, ProjectId, Revision};
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;

use super::{Connection, Row};
use crate::failure::Failure;
use crate::micros::Micros;

/// Waiting events are counted up to this many; a relay that is further behind
/// is as alarming as it gets, and counting costs.
const COUNTED: i64 = 10_000;

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
        "UPDATE outbox_events SET position = numbered.position FROM \
         (SELECT seq, $1 + row_number() OVER (ORDER BY seq) AS position FROM \
            (SELECT seq FROM outbox_events WHERE position IS NULL ORDER BY seq LIMIT $2) \
            AS unpublished) \
         AS numbered WHERE outbox_events.position IS NULL AND outbox_events.seq = numbered.seq",
    )
    .bind(last)
    .bind(i64::from(limit))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    sqlx::query("UPDATE outbox_head SET last_position = last_position + $1")
        .bind(i64::try_from(given).unwrap_or(i64::MAX))
        .execute(&mut *connection)
        .await?;
    Ok(End::Commit(given))
}

pub(crate) async fn has_unpublished(connection: &mut Connection, (): ()) -> Result<bool, Failure> {
    let row = sqlx::query("SELECT seq FROM outbox_events WHERE position IS NULL LIMIT 1")
        .fetch_optional(&mut *connection)
        .await?;
    Ok(row.is_some())
}

pub(crate) async fn backlog(connection: &mut Connection, (): ()) -> Result<Backlog, Failure> {
    let row = sqlx::query(sql!(
        "SELECT ",
        now,
        " AS now, count(*) AS waiting, min(occurred_at) AS oldest FROM \
         (SELECT occurred_at FROM outbox_events WHERE position IS NULL ORDER BY seq LIMIT $1) \
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
    let found = sqlx::query(
        "SELECT id, position, event_type, aggregate_id, project_id, revision, occurred_at, \
         payload FROM outbox_events WHERE position > $1 ORDER BY position LIMIT $2",
    )
    .bind(page.after.unwrap_or(0))
    .bind(i64::from(page.limit))
    .fetch_all(&mut *connection)
    .await?;
    Ok(found.iter().map(event).collect::<Result<_, _>>()?)
}

pub(crate) fn event(row: &Row) -> Result<PositionedEvent, sqlx::Error> {
    Ok(PositionedEvent {
        id: EventId::new(row.try_get("id")?),
        position: row.try_get("position")?,
        event_type: row.try_get("event_type")?,
        aggregate_id: row.try_get("aggregate_id")?,
        project_id: ProjectId::new(row.try_get("project_id")?),
        revision: Revision(row.try_get("revision")?),
        occurred_at: row.try_get::<Micros, _>("occurred_at")?.into(),
        payload: row.try_get::<Json<serde_json::Value>, _>("payload")?.0,
    })
}
