//! Leak records of the resource loop: what still exists outside after its
//! deletion, and when it was gone.

use slipway_core::commit::LeakRecord;
use slipway_core::ids::ProvisionedResourceId;
use sqlx::types::Json;

use super::Connection;
use crate::failure::Failure;
use crate::id_list::IdList;
use crate::micros::Micros;

/// The same finding has the same id, and is recorded once. A resolved one that
/// is found again is reopened; the time it was first found stays.
pub(crate) async fn insert(connection: &mut Connection, leak: &LeakRecord) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO leak_records (id, kind, subject_id, found_at, evidence) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE SET resolved_at = NULL, \
         resolved_by = NULL, resolution = NULL, evidence = excluded.evidence WHERE leak_records.resolved_at IS NOT NULL",
    )
    .bind(leak.id.as_uuid())
    .bind(leak.kind)
    .bind(leak.subject_id.as_uuid())
    .bind(Micros::from(leak.found_at))
    .bind(Json(&leak.evidence))
    .execute(connection)
    .await?;
    Ok(())
}

/// Resolves what the resource loop recorded about these attempts. The leak scan
/// resolves its own records (those with a finding): a duplicate elsewhere is
/// not gone because the object in its namespace is.
pub(crate) async fn resolve(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<(), Failure> {
    if attempts.is_empty() {
        return Ok(());
    }
    let list: IdList = attempts.iter().map(|id| id.as_uuid()).collect();
    sqlx::query(sql!(
        "UPDATE leak_records SET resolved_at = ",
        now,
        " WHERE resolved_at IS NULL AND finding IS NULL AND subject_id ",
        (one_of "$1")
    ))
    .bind(list)
    .execute(connection)
    .await?;
    Ok(())
}
