//! The history of state changes.

use serde::Serialize;
use slipway_app::broker::port::HistoryLine;
use slipway_core::commit::StateChange;
use slipway_core::ids::ProvisionedResourceId;
use sqlx::Row as _;
use uuid::Uuid;

use super::json_values::JsonTime;
use super::{Connection, writes};
use crate::failure::Failure;
use crate::micros::Micros;

#[derive(Serialize)]
struct LineRow<'a> {
    id: Uuid,
    seq: i64,
    at: JsonTime,
    from_phase: Option<&'static str>,
    to_phase: &'static str,
    why: &'a str,
}

/// A line is numbered by the revision that its write gives the subject, see
/// [`StateChange`].
pub(crate) async fn append(
    connection: &mut Connection,
    lines: &[&StateChange],
) -> Result<(), Failure> {
    let rows: Vec<_> = lines
        .iter()
        .map(|line| LineRow {
            id: line.subject.id,
            seq: line.revision.0,
            at: line.at.into(),
            from_phase: line.from,
            to_phase: line.to,
            why: &line.why,
        })
        .collect();
    const INSERT: &str = concat!(
        "INSERT INTO phase_history (provisioned_resource_id, seq, at, from_phase, to_phase, why) \
         SELECT given.id, given.seq, given.at, given.from_phase, given.to_phase, given.why FROM ",
        rows_from_json!(
            id: uuid,
            seq: bigint,
            at: time,
            from_phase: text,
            to_phase: text,
            why: text,
        ),
    );
    Ok(writes::write(connection, INSERT, &rows).await?)
}

pub(crate) async fn list(
    connection: &mut Connection,
    id: ProvisionedResourceId,
) -> Result<Vec<HistoryLine>, Failure> {
    let found = sqlx::query(
        "SELECT at, from_phase, to_phase, why FROM phase_history \
         WHERE provisioned_resource_id = $1 ORDER BY seq",
    )
    .bind(id.as_uuid())
    .fetch_all(&mut *connection)
    .await?;
    let lines = found.iter().map(|row| {
        Ok(HistoryLine {
            at: row.try_get::<Micros, _>("at")?.into(),
            from: row.try_get("from_phase")?,
            to: row.try_get("to_phase")?,
            why: row.try_get("why")?,
        })
    });
    Ok(lines.collect::<Result<_, sqlx::Error>>()?)
}
