//! The loop's side: claiming, renewing, releasing, quarantining and waking
//! attempts. The statements are those of every table with the columns of a claim,
//! see `slipway_durable::claim`.
//!
//! They touch the loop's columns only and lock only the rows that they write. A
//! release that names an old claim token changes nothing.

use std::time::Duration;

use slipway_app::broker::port::Claimed;
use slipway_core::blocker::{self, DeregistrationSeam};
use slipway_core::catalog::label::LabelKey;
use slipway_core::commit::Release;
use slipway_core::ids::{ClaimToken, Partition, ProjectId, ProvisionedResourceId};
use slipway_core::{Phase, Timestamp};
use slipway_durable::claim::{self, Claim, Demand, Failures, Table};
use slipway_durable::database::End;
use sqlx::Row as _;
use uuid::Uuid;

use super::operations::clock;
use super::{Connection, Db, Row, blockers, commit};
use crate::failure::Failure;
use crate::id_list::IdList;
use crate::micros::Micros;

/// The claims of attempts.
pub(crate) const ATTEMPTS: Table<Db> = claimable!("provisioned_resources");

/// Moves the beginnings of waits that a clock that went back left in the future: a wait
/// would end that much later.
pub(crate) const STARTS: [&str; 3] = [
    sql!("UPDATE provisioned_resources SET phase_since = ", now, " WHERE phase_since > ", now),
    sql!(
        "UPDATE provisioned_resources SET unsettled_since = ",
        now,
        " WHERE unsettled_since > ",
        now
    ),
    sql!(
        "UPDATE provisioned_resources SET deletion_requested_at = ",
        now,
        " WHERE deletion_requested_at > ",
        now
    ),
];

pub(crate) async fn claim(
    connection: &mut Connection,
    (worker, partition, limit, lease): (&str, Partition, u32, Duration),
) -> Result<Vec<Claimed>, Failure> {
    let demand = Demand { worker, limit, lease };
    let claimed = ATTEMPTS.claim(connection, partition.as_uuid(), demand).await?;
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

fn key(id: ProvisionedResourceId, claim_token: ClaimToken) -> Claim<Uuid> {
    Claim { key: id.as_uuid(), claim_token: claim_token.0 }
}

pub(crate) async fn renew(
    connection: &mut Connection,
    (worker, claims, lease): (&str, &[Claimed], Duration),
) -> Result<Vec<ProvisionedResourceId>, Failure> {
    let claims: Vec<_> =
        claims.iter().map(|claimed| key(claimed.id, claimed.claim_token)).collect();
    let renewed = ATTEMPTS.renew(connection, worker, &claims, lease).await?;
    Ok(renewed.into_iter().map(ProvisionedResourceId::new).collect())
}

/// Releases many by one statement, and answers how many of these claims were held.
pub(crate) async fn release(
    connection: &mut Connection,
    releases: &[Release],
) -> Result<u64, Failure> {
    let releases: Vec<_> = releases
        .iter()
        .map(|release| claim::Release {
            claim: Claim { key: release.subject.id(), claim_token: release.claim_token.0 },
            due_in: commit::due_in(release.recheck),
            failures: Failures::Set(release.failures),
            error: None,
        })
        .collect();
    Ok(ATTEMPTS.release(connection, &releases).await?)
}

/// Quarantines a row that cannot be hydrated: puts a blocker on it and releases
/// its claim. Does nothing if the claim is lost: another worker has the row.
pub(crate) async fn quarantine(
    connection: &mut Connection,
    (claimed, reason, seam, recheck): (Claimed, &str, Option<DeregistrationSeam>, Duration),
) -> Result<End<()>, Failure> {
    let release = claim::Release {
        claim: key(claimed.id, claimed.claim_token),
        due_in: Some(recheck),
        failures: Failures::Keep,
        error: None,
    };
    if ATTEMPTS.release(connection, &[release]).await? == 0 {
        return Ok(End::Rollback(()));
    }
    let now = clock::now(connection, ()).await?;
    let next = Some(now.plus(recheck));
    let blocker = blocker::of_unreadable(claimed.id, reason, seam, now, next);
    blockers::put(connection, claimed.id.into(), &blocker).await?;
    Ok(End::Commit(()))
}

/// Ends the claims of a worker that is known to be dead, in one partition.
pub(crate) async fn reclaim(
    connection: &mut Connection,
    (worker, partition): (&str, Partition),
) -> Result<u64, Failure> {
    Ok(ATTEMPTS.reclaim_in(connection, worker, partition.as_uuid()).await?)
}

/// Ends every claim and fences off its holder: every token is then at least `floor`.
/// In the order of the ids, like every statement that locks many of these rows.
pub(crate) async fn raise_tokens(
    connection: &mut Connection,
    floor: ClaimToken,
) -> Result<(), sqlx::Error> {
    sqlx::query(sql!(
        "UPDATE provisioned_resources SET claim_token = ",
        greatest,
        "(claim_token + 1, $1), claimed_by = NULL, lease_until = NULL WHERE id ",
        picked_from,
        "SELECT id FROM provisioned_resources ORDER BY id",
        for_update,
        picked_end
    ))
    .bind(floor.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Wakes every attempt of every partition that is not settled for good.
pub(crate) async fn wake_all(connection: &mut Connection) -> Result<(), sqlx::Error> {
    sqlx::query(concat!(
        "UPDATE provisioned_resources SET ",
        wake_assignments!(),
        " WHERE id ",
        sql!(
            picked_from,
            "SELECT id FROM provisioned_resources WHERE status NOT IN ($1, $2) ORDER BY id",
            for_update,
            picked_end
        ),
    ))
    .bind(Phase::Failed.as_str())
    .bind(Phase::Deleted.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn wake(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<End<()>, Failure> {
    let attempts: Vec<_> = attempts.iter().map(|id| id.as_uuid()).collect();
    ATTEMPTS.wake(connection, &attempts).await?;
    Ok(End::Commit(()))
}

/// Wakes the attempts that are not Deleted and may become due, in the order of their ids.
macro_rules! wake_where {
    ($condition:literal) => {
        concat!(
            "UPDATE provisioned_resources SET ",
            wake_assignments!(),
            " WHERE id ",
            sql!(picked_from),
            "SELECT id FROM provisioned_resources WHERE status <> $1 AND due_at IS NOT NULL AND ",
            $condition,
            " ORDER BY id",
            sql!(for_update, picked_end)
        )
    };
}

/// Wakes every attempt of the project that is not Deleted and may become due.
pub(crate) async fn wake_project(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<(), Failure> {
    let statement = wake_where!("project_id = $2");
    sqlx::query(statement)
        .bind(Phase::Deleted.as_str())
        .bind(project.as_uuid())
        .execute(connection)
        .await?;
    Ok(())
}

/// The same for those of every project with this label in effect.
pub(crate) async fn wake_label(connection: &mut Connection, key: &LabelKey) -> Result<(), Failure> {
    let statement = wake_where!(
        "EXISTS (SELECT 1 FROM resources r JOIN projects p ON p.id = r.project_id \
         WHERE r.id = provisioned_resources.resource_id \
         AND (r.labels ->> $2 IS NOT NULL OR p.labels ->> $2 IS NOT NULL))"
    );
    sqlx::query(statement)
        .bind(Phase::Deleted.as_str())
        .bind(key.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Ends the claims of these attempts, whoever has them, and leaves them due only when they
/// are woken. The new claim token keeps the record and the release of the earlier worker out.
pub(crate) async fn end(connection: &mut Connection, attempts: &[Uuid]) -> Result<(), Failure> {
    if attempts.is_empty() {
        return Ok(());
    }
    sqlx::query(sql!(
        "UPDATE provisioned_resources SET due_at = NULL, claimed_by = NULL, lease_until = NULL, \
         claim_token = claim_token + 1 WHERE id ",
        (one_of "$1")
    ))
    .bind(IdList(attempts.to_vec()))
    .execute(connection)
    .await?;
    Ok(())
}

/// Wakes every attempt of the partition that is not settled for good. A Deleted row
/// keeps the due time of its deletion verification; one that has neither a due time
/// nor a proof of absence gets one here, unless it was abandoned.
pub(crate) async fn wake_partition(
    connection: &mut Connection,
    partition: Partition,
) -> Result<u64, Failure> {
    let woken = sqlx::query(concat!(
        "UPDATE provisioned_resources SET ",
        wake_assignments!(),
        " WHERE (status NOT IN ($1, $2) \
            OR (status = $2 AND absence_proven_at IS NULL AND abandoned_at IS NULL \
                AND due_at IS NULL)) \
         AND partition = $3"
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
    let row = sqlx::query(concat!(
        sql!("SELECT ", now, " AS now, "),
        slipway_durable::oldest_due!("provisioned_resources", "partition = $1"),
        " AS oldest"
    ))
    .bind(partition.as_uuid())
    .fetch_one(&mut *connection)
    .await?;
    Ok(overdue_by(&row)?)
}

/// How long the oldest due row of a partition has been due; `None` if none is.
pub(crate) fn overdue_by(row: &Row) -> Result<Option<Duration>, sqlx::Error> {
    let now: Timestamp = row.try_get::<Micros, _>("now")?.into();
    let oldest: Option<Timestamp> = row.try_get::<Option<Micros>, _>("oldest")?.map(Into::into);
    Ok(oldest.filter(|oldest| *oldest <= now).map(|oldest| now.since(oldest)))
}
