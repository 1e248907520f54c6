//! Deletes the history of attempts that were kept long enough, and names the subjects
//! whose audit is kept.
//!
//! "Deleted" refers to the declared slot: a failed attempt of a resource that
//! still exists keeps its history and its entries.

use std::time::Duration;

use slipway_durable::claim::micros;

use super::Connection;
use super::deletion::leak_rows::open_leak;
use crate::failure::Failure;

/// The id is that of a resource that is not deleted, or of an attempt of one.
macro_rules! live_resource_or_attempt {
    ($id:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM resources r WHERE r.id = ",
            $id,
            " AND r.deleted_at IS NULL) OR EXISTS (SELECT 1 FROM provisioned_resources a \
             JOIN resources r ON r.id = a.resource_id WHERE a.id = ",
            $id,
            " AND r.deleted_at IS NULL)"
        )
    };
}
pub(crate) use live_resource_or_attempt;

pub(crate) async fn prune_history(
    connection: &mut Connection,
    (keep, limit): (Duration, u32),
) -> Result<u64, Failure> {
    let removed = sqlx::query(concat!(
        "DELETE FROM phase_history WHERE provisioned_resource_id IN (SELECT a.id \
         FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id \
         WHERE r.deleted_at IS NOT NULL AND r.deleted_at <= ",
        sql!(now, (minus_micros "$1")),
        " AND EXISTS (SELECT 1 FROM phase_history h WHERE h.provisioned_resource_id = a.id) \
         AND NOT ",
        open_leak!("l.subject_id = a.id"),
        " ORDER BY r.deleted_at, a.id LIMIT $2)"
    ))
    .bind(micros(keep))
    .bind(i64::from(limit))
    .execute(&mut *connection)
    .await?;
    Ok(removed.rows_affected())
}
