//! The table of what the last apply of each source could not apply.

use std::time::Duration;

use slipway_app::files::port::SourceFaults;
use slipway_core::files::fault::{Fault, Faults};
use slipway_core::ids::ProjectId;
use slipway_durable::claim::micros;
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::{Connection, Row, rows};
use crate::failure::Failure;

/// The most sources with faults that are kept for the keys of one reach; the oldest go.
const MOST_SOURCES: i64 = 500;

/// The nil id stands for a key that reaches every project.
fn scope(project: Option<ProjectId>) -> Uuid {
    project.map_or_else(Uuid::nil, |id| id.as_uuid())
}

/// Replaces the faults of a source, if they are others; without any its row goes.
pub(crate) async fn put(
    connection: &mut Connection,
    (source, project, faults): (&str, Option<ProjectId>, &Faults),
) -> Result<End<()>, Failure> {
    if faults.is_empty() {
        sqlx::query("DELETE FROM file_faults WHERE source = $1 AND project_id = $2")
            .bind(source)
            .bind(scope(project))
            .execute(connection)
            .await?;
        return Ok(End::Commit(()));
    }
    let written = sqlx::query(sql!(
        "INSERT INTO file_faults (source, project_id, faults, total, updated_at) \
         VALUES ($1, $2, $3, $4, ",
        now,
        ") ON CONFLICT (source, project_id) DO UPDATE SET faults = excluded.faults, \
         total = excluded.total, updated_at = excluded.updated_at \
         WHERE file_faults.faults <> excluded.faults OR file_faults.total <> excluded.total"
    ))
    .bind(source)
    .bind(scope(project))
    .bind(Json(&faults.kept))
    .bind(i32::try_from(faults.total).unwrap_or(i32::MAX))
    .execute(&mut *connection)
    .await?;
    if written.rows_affected() == 0 {
        return Ok(End::Rollback(()));
    }
    sqlx::query(
        "DELETE FROM file_faults WHERE project_id = $1 AND source NOT IN (SELECT source \
         FROM file_faults WHERE project_id = $1 ORDER BY updated_at DESC, source LIMIT $2)",
    )
    .bind(scope(project))
    .bind(MOST_SOURCES)
    .execute(connection)
    .await?;
    Ok(End::Commit(()))
}

/// The faults of a source that keys of this project recorded, or all of them.
pub(crate) async fn of(
    connection: &mut Connection,
    (source, project): (&str, Option<ProjectId>),
) -> Result<Faults, Failure> {
    let found = sqlx::query(
        "SELECT faults, total FROM file_faults WHERE source = $1 \
         AND ($2 IS NULL OR project_id = $2) ORDER BY project_id",
    )
    .bind(source)
    .bind(project.map(|id| id.as_uuid()))
    .fetch_all(connection)
    .await?;
    let mut faults = Faults::default();
    for row in &found {
        // A row that cannot be read is replaced by the next apply.
        let kept: Vec<Fault> = rows::json(row, "faults").unwrap_or_default();
        faults.kept.extend(kept);
        faults.total += u32::try_from(row.try_get::<i32, _>("total")?).unwrap_or_default();
    }
    Ok(faults)
}

/// Sources that have faults, by name.
pub(crate) async fn list(
    connection: &mut Connection,
    limit: u32,
) -> Result<Vec<SourceFaults>, Failure> {
    let found = sqlx::query(
        "SELECT source, CAST(sum(total) AS BIGINT) AS total FROM file_faults GROUP BY source \
         ORDER BY source LIMIT $1",
    )
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    let one = |row: &Row| {
        let total: i64 = row.try_get("total")?;
        let total = u64::try_from(total).unwrap_or_default();
        Ok(SourceFaults { source: row.try_get("source")?, total })
    };
    found.iter().map(one).collect()
}

/// Removes rows that were written so long ago; a source that is still applied writes its own
/// again.
pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, limit): (Duration, u32),
) -> Result<u64, Failure> {
    let removed = sqlx::query(sql!(
        "DELETE FROM file_faults WHERE (source, project_id) IN (SELECT source, project_id \
         FROM file_faults WHERE updated_at <= ",
        now,
        (minus_micros "$1"),
        " LIMIT $2)"
    ))
    .bind(micros(keep))
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
