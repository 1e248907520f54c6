//! Subscriptions: durable cursors into the outbox, each served by the one
//! replica that holds its claim.
//!
//! Every write of a worker names its claim token. The claim itself checks for
//! events after the cursor, so a subscription without any is never written,
//! however often a worker tries to claim it.

use std::time::Duration;

use slipway_app::events::port::{ClaimedSubscription, Published, Subscription};
use slipway_core::access::audit::Actor;
use slipway_core::commit::Recheck;
use slipway_core::ids::{AuditEntryId, ClaimToken, SubscriptionId};
use slipway_core::{ErrorKind, Refusal};
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::commit::recheck_micros;
use super::{Connection, Row, writes};
use crate::failure::Failure;
use crate::micros::Micros;

/// Starts at the pruned position, not at zero: a cursor that is too old would be a fault.
/// Events that retention prunes in the same moment are older than the subscription.
pub(crate) async fn open(
    connection: &mut Connection,
    (id, name): (SubscriptionId, &str),
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO event_subscriptions (id, name, position) \
         SELECT $1, $2, pruned_position FROM outbox_head WHERE singleton = 1 \
         ON CONFLICT (name) DO NOTHING",
    )
    .bind(id.as_uuid())
    .bind(name)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The condition under which a subscription may be claimed.
macro_rules! claimable {
    () => {
        sql!(
            "due_at <= ",
            now,
            " AND (lease_until IS NULL OR lease_until <= ",
            now,
            ") AND position < (SELECT last_position FROM outbox_head)"
        )
    };
}

pub(crate) async fn due(connection: &mut Connection, (): ()) -> Result<Vec<String>, Failure> {
    let found = sqlx::query(concat!(
        "SELECT name FROM event_subscriptions WHERE ",
        claimable!(),
        " ORDER BY due_at, name"
    ))
    .fetch_all(&mut *connection)
    .await?;
    Ok(found.iter().map(|row| row.try_get("name")).collect::<Result<_, _>>()?)
}

/// Two workers that claim the same row are serialised; the second checks the
/// conditions again and finds a lease.
pub(crate) async fn claim(
    connection: &mut Connection,
    (name, worker, lease): (&str, &str, Duration),
) -> Result<Option<ClaimedSubscription>, Failure> {
    let row = sqlx::query(concat!(
        sql!(
            "UPDATE event_subscriptions SET claim_token = claim_token + 1, claimed_by = $1, \
             lease_until = ",
            now,
            (plus_micros "$2"),
            " WHERE name = $3 AND "
        ),
        claimable!(),
        " RETURNING id, name, claim_token, position, failures"
    ))
    .bind(worker)
    .bind(recheck_micros(Recheck::After(lease)))
    .bind(name)
    .fetch_optional(&mut *connection)
    .await?;
    Ok(row.as_ref().map(claimed).transpose()?)
}

fn claimed(row: &Row) -> Result<ClaimedSubscription, sqlx::Error> {
    Ok(ClaimedSubscription {
        id: SubscriptionId::new(row.try_get("id")?),
        name: row.try_get("name")?,
        claim_token: ClaimToken(row.try_get("claim_token")?),
        position: row.try_get("position")?,
        failures: row.try_get("failures")?,
    })
}

/// A successful publication resets the failures.
pub(crate) async fn advance(
    connection: &mut Connection,
    (claimed, position): (&ClaimedSubscription, i64),
) -> Result<(), Failure> {
    let moved = sqlx::query(sql!(
        "UPDATE event_subscriptions SET position = $3, failures = 0, last_error = NULL, \
         published_at = ",
        now,
        " WHERE id = $1 AND claim_token = $2 AND position <= $3"
    ))
    .bind(claimed.id.as_uuid())
    .bind(claimed.claim_token.0)
    .bind(position)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    writes::one_row(moved, || {
        Refusal::new(
            ErrorKind::ClaimLost,
            format!(
                "claim {} of subscription `{}` is no longer held; another worker has it",
                claimed.claim_token.0, claimed.name
            ),
        )
    })
}

pub(crate) async fn release(
    connection: &mut Connection,
    (claimed, published): (&ClaimedSubscription, &Published),
) -> Result<(), Failure> {
    let (pause, failed, error) = match published {
        Published::Well => (Duration::ZERO, 0, None),
        Published::Failed { error, retry_after } => (*retry_after, 1, Some(error)),
    };
    sqlx::query(sql!(
        "UPDATE event_subscriptions SET claimed_by = NULL, lease_until = NULL, due_at = ",
        now,
        (plus_micros "$3"),
        ", failures = failures + $4, last_error = COALESCE($5, last_error) \
         WHERE id = $1 AND claim_token = $2"
    ))
    .bind(claimed.id.as_uuid())
    .bind(claimed.claim_token.0)
    .bind(recheck_micros(Recheck::After(pause)))
    .bind(failed)
    .bind(error)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

pub(crate) async fn reclaim(connection: &mut Connection, worker: &str) -> Result<u64, Failure> {
    let ended = sqlx::query(
        "UPDATE event_subscriptions SET claim_token = claim_token + 1, claimed_by = NULL, \
         lease_until = NULL WHERE claimed_by = $1",
    )
    .bind(worker)
    .execute(&mut *connection)
    .await?;
    Ok(ended.rows_affected())
}

pub(crate) async fn list(
    connection: &mut Connection,
    (): (),
) -> Result<Vec<Subscription>, Failure> {
    // A worker that died with a claim publishes nothing, so it is not shown as
    // the holder.
    let found = sqlx::query(sql!(
        "SELECT id, name, position, failures, last_error, published_at, due_at, \
         CASE WHEN lease_until > ",
        now,
        " THEN claimed_by END AS claimed_by, \
         (SELECT last_position FROM outbox_head) AS last_position \
         FROM event_subscriptions ORDER BY name"
    ))
    .fetch_all(&mut *connection)
    .await?;
    Ok(found.iter().map(subscription).collect::<Result<_, _>>()?)
}

fn subscription(row: &Row) -> Result<Subscription, sqlx::Error> {
    Ok(Subscription {
        id: SubscriptionId::new(row.try_get("id")?),
        name: row.try_get("name")?,
        position: row.try_get("position")?,
        last_position: row.try_get("last_position")?,
        failures: row.try_get("failures")?,
        last_error: row.try_get("last_error")?,
        published_at: row.try_get::<Option<Micros>, _>("published_at")?.map(Into::into),
        due_at: row.try_get::<Micros, _>("due_at")?.into(),
        claimed_by: row.try_get("claimed_by")?,
    })
}

/// The database's clock sets the time of the entry, by the column's default.
pub(crate) async fn remove(
    connection: &mut Connection,
    (name, audit, actor): (&str, AuditEntryId, &Actor),
) -> Result<End<bool>, Failure> {
    let removed =
        sqlx::query("DELETE FROM event_subscriptions WHERE name = $1 RETURNING id, position")
            .bind(name)
            .fetch_optional(&mut *connection)
            .await?;
    let Some(removed) = removed else { return Ok(End::Rollback(false)) };
    let details = serde_json::json!({
        "name": name,
        "position": removed.try_get::<i64, _>("position")?,
    });
    sqlx::query(
        "INSERT INTO audit_entries (id, actor, verb, subject_kind, subject_id, details, \
         correlation_id) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(audit.as_uuid())
    .bind(&actor.name)
    .bind("subscription.remove")
    .bind(SubscriptionId::KIND)
    .bind(removed.try_get::<Uuid, _>("id")?)
    .bind(Json(details))
    .bind(actor.correlation_id.as_deref())
    .execute(&mut *connection)
    .await?;
    Ok(End::Commit(true))
}
