//! The loop's side: claiming, releasing, quarantining and waking attempts.
//!
//! These statements touch the loop's columns only and lock only the row that
//! they write. A release that names an old claim token changes nothing.

use std::time::Duration;

use serde_json::json;
use slipway_app::broker::port::Claimed;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::commit::{Recheck, Release};
use slipway_core::ids::{ClaimToken, Partition, ProvisionedResourceId};
use slipway_core::{Phase, Timestamp};
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;

use super::{Connection, blockers, commit, rows, write};
use crate::failure::Failure;

pub(crate) async fn claim(
    connection: &mut Connection,
    (worker, partition, limit, lease): (&str, Partition, u32, Duration),
) -> Result<Vec<Claimed>, Failure> {
    let claimed = sqlx::query(claim_sql!())
        .bind(worker)
        .bind(commit::recheck_micros(Recheck::After(lease)))
        .bind(i64::from(limit))
        .bind(partition.as_uuid())
        .fetch_all(&mut *connection)
        .await?;
    claimed
        .iter()
        .map(|row| {
            Ok(Claimed {
                id: ProvisionedResourceId::new(row.try_get("id")?),
                claim_token: ClaimToken(row.try_get("claim_token")?),
            })
        })
        .collect()
}

/// Releases many by one statement.
pub(crate) async fn release(
    connection: &mut Connection,
    releases: &[Release],
) -> Result<(), Failure> {
    if releases.is_empty() {
        return Ok(());
    }
    // In the order of their ids, as decisions lock them.
    let mut releases: Vec<_> = releases.iter().collect();
    releases.sort_by_key(|release| release.subject);
    let given: Vec<_> = releases
        .iter()
        .map(|release| {
            json!({
                "id": release.subject.id(),
                "claim_token": release.claim_token.0,
                "micros": commit::recheck_micros(release.recheck),
                "failures": release.failures,
            })
        })
        .collect();
    sqlx::query(concat!(
        "UPDATE provisioned_resources SET claimed_by = NULL, lease_until = NULL, \
         failures = given.failures, due_at = CASE WHEN wake <> claimed_wake THEN ",
        sql!(now, " ELSE ", now),
        " + ",
        json_micros!(),
        " END FROM ",
        rows_from_json!(id: uuid, claim_token: bigint, micros: bigint, failures: integer),
        " WHERE provisioned_resources.id = given.id \
         AND provisioned_resources.claim_token = given.claim_token",
    ))
    .bind(Json(given))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Quarantines a row that cannot be hydrated: puts a blocker on it and releases
/// its claim. Does nothing if the claim is lost: another worker has the row.
pub(crate) async fn hold(
    connection: &mut Connection,
    (claimed, reason, recheck): (Claimed, &str, Duration),
) -> Result<End<()>, Failure> {
    let row = sqlx::query(sql!(
        "SELECT ",
        now,
        " AS now, failures FROM provisioned_resources WHERE id = $1 AND claim_token = $2",
        for_update
    ))
    .bind(claimed.id.as_uuid())
    .bind(claimed.claim_token.0)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(End::Rollback(())) };
    let now = rows::time(&row, "now")
        .map_err(|fault| Failure::Corrupt { id: claimed.id.as_uuid(), fault })?;
    let blocker = Blocker {
        code: BlockerCode::RowInvalid,
        message: format!("the row breaks an invariant and is left alone: {reason}"),
        since: now,
        evidence: json!({ "provisioned_resource_id": claimed.id, "reason": reason }),
        next_retry_at: Some(now.plus(recheck)),
    };
    blockers::put(connection, claimed.id.into(), &blocker).await?;
    let release = Release {
        subject: claimed.id.into(),
        claim_token: claimed.claim_token,
        recheck: Recheck::After(recheck),
        failures: row.try_get("failures")?,
    };
    write::release(connection, release).await?;
    Ok(End::Commit(()))
}

/// Ends the claims of a worker that is known to be dead.
pub(crate) async fn reclaim(connection: &mut Connection, worker: &str) -> Result<u64, Failure> {
    let ended = sqlx::query(sql!(
        "UPDATE provisioned_resources SET claim_token = claim_token + 1, claimed_by = NULL, \
         lease_until = NULL, due_at = ",
        now,
        " WHERE claimed_by = $1"
    ))
    .bind(worker)
    .execute(&mut *connection)
    .await?;
    Ok(ended.rows_affected())
}

/// Wakes every attempt of the partition that is not settled for good, and takes
/// in rows without a partition whose project is assigned to it. A Deleted row
/// keeps the due time of its deletion verification; one without a due time,
/// which an older version deleted, gets one here.
pub(crate) async fn wake_all(
    connection: &mut Connection,
    partition: Partition,
) -> Result<u64, Failure> {
    let woken = sqlx::query(concat!(
        "UPDATE provisioned_resources SET partition = $3, ",
        wake_assignments!(),
        " WHERE (status NOT IN ($1, $2) \
            OR (status = $2 AND absence_proven_at IS NULL AND due_at IS NULL)) \
         AND (partition = $3 OR (partition IS NULL AND project_id IN \
         (SELECT project_id FROM cluster_assignments WHERE cluster_id = $3)))"
    ))
    .bind(Phase::Failed.as_str())
    .bind(Phase::Deleted.as_str())
    .bind(partition.as_uuid())
    .execute(&mut *connection)
    .await?;
    Ok(woken.rows_affected())
}

pub(crate) async fn overdue(
    connection: &mut Connection,
    partition: Partition,
) -> Result<Option<Duration>, Failure> {
    let row = sqlx::query(sql!(
        "SELECT ",
        now,
        " AS now, min(due_at) AS oldest FROM provisioned_resources \
         WHERE partition = $1 AND due_at IS NOT NULL AND due_at <= (SELECT ",
        now,
        ")"
    ))
    .bind(partition.as_uuid())
    .fetch_one(&mut *connection)
    .await?;
    let now: Timestamp = row.try_get::<crate::micros::Micros, _>("now")?.into();
    let oldest: Option<crate::micros::Micros> = row.try_get("oldest")?;
    Ok(oldest.map(|oldest| now.since(oldest.into())))
}
