//! The most overdue row of every partition. One lookup in the due index for
//! each cluster, so that the cost does not depend on how many rows are due.

use std::time::Duration;

use slipway_app::broker::port::OverduePartition;
use slipway_core::ids::Partition;
use sqlx::Row as _;

use super::page::now;
use super::{Connection, claims};
use crate::failure::Failure;
use crate::micros::Micros;

/// Nothing is placed on a deleted cluster, so its partition is not listed.
pub(crate) async fn list_overdue(
    connection: &mut Connection,
    (): (),
) -> Result<Vec<OverduePartition>, Failure> {
    let found = sqlx::query(concat!(
        sql!("SELECT ", now, " AS now, id, name, "),
        slipway_durable::oldest_due!("provisioned_resources", "partition = clusters.id"),
        " AS oldest FROM clusters WHERE deleted_at IS NULL ORDER BY name"
    ))
    .fetch_all(&mut *connection)
    .await?;
    let mut overdue = Vec::new();
    for row in found {
        let Some(waiting) = claims::overdue_by(&row)? else { continue };
        overdue.push(OverduePartition {
            partition: Partition::new(row.try_get("id")?),
            cluster: row.try_get("name")?,
            overdue: waiting,
        });
    }
    Ok(overdue)
}

/// Attempts that have been due for longer than this and that nobody has claimed, by
/// cluster, so that the index of due rows answers.
pub(crate) async fn count_unserved(
    connection: &mut Connection,
    after: Duration,
) -> Result<u64, sqlx::Error> {
    let before: Micros = now(connection).await?.minus(after).into();
    let row = sqlx::query(
        "SELECT count(*) AS found FROM clusters c \
         JOIN provisioned_resources a ON a.partition = c.id AND a.due_at < $1 \
         WHERE c.deleted_at IS NULL",
    )
    .bind(before)
    .fetch_one(connection)
    .await?;
    Ok(u64::try_from(row.try_get::<i64, _>("found")?).unwrap_or(0))
}
