//! Subscriptions: durable cursors into the outbox, each served by the one
//! replica that holds its claim.
//!
//! The claim's statements are those of every table with the columns of a claim,
//! see `slipway_durable::claim`. The claim itself checks for
//! events after the cursor, so a subscription without any is never written,
//! however often a worker tries to claim it.

use std::time::Duration;

use slipway_app::events::port::{ClaimedSubscription, Published, Subscription};
use slipway_core::access::audit::{About, Actor, AuditEntry};
use slipway_core::ids::{AuditEntryId, ClaimToken, SubscriptionId};
use slipway_core::{ErrorKind, Refusal};
use slipway_durable::claim::{Claim, Demand, Failures, Release, Table};
use slipway_durable::database::End;
use sqlx::Row as _;

use super::page::now;
use super::{Connection, Db, Row, access, writes};
use crate::failure::Failure;
use crate::micros::Micros;

/// Starts at the pruned position, not at zero: a cursor that is too old would be a fault.
/// Events that retention prunes in the same moment are older than the subscription. One
/// that exists and waits after a failure is due at once: whoever starts a process expects
/// it to try, and the clock may have gone back while none ran.
pub(crate) async fn open(
    connection: &mut Connection,
    (id, name): (SubscriptionId, &str),
) -> Result<(), Failure> {
    sqlx::query(sql!(
        "INSERT INTO event_subscriptions (id, name, position) \
         SELECT $1, $2, pruned_position FROM outbox_head WHERE singleton = 1 \
         ON CONFLICT (name) DO UPDATE SET due_at = ",
        now,
        " WHERE event_subscriptions.lease_until IS NULL AND event_subscriptions.due_at > ",
        now
    ))
    .bind(id.as_uuid())
    .bind(name)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// There are events after the cursor.
macro_rules! is_behind {
    () => {
        " AND position < (SELECT last_position FROM outbox_head)"
    };
}

/// The claims of subscriptions.
pub(crate) const SUBSCRIPTIONS: Table<Db> = claimable!("event_subscriptions", {
    key: id uuid,
    by: name,
    and: is_behind!(),
    returning: "id, name, claim_token, position, failures",
    release: ", last_error = coalesce(given.error, last_error)",
});

pub(crate) async fn due(connection: &mut Connection, (): ()) -> Result<Vec<String>, Failure> {
    let found = sqlx::query(concat!(
        "SELECT name FROM event_subscriptions WHERE ",
        due_condition!(),
        is_behind!(),
        " ORDER BY due_at, name"
    ))
    .fetch_all(&mut *connection)
    .await?;
    Ok(found.iter().map(|row| row.try_get("name")).collect::<Result<_, _>>()?)
}

pub(crate) async fn claim(
    connection: &mut Connection,
    (name, worker, lease): (&str, &str, Duration),
) -> Result<Option<ClaimedSubscription>, Failure> {
    let rows = SUBSCRIPTIONS.claim(connection, name, Demand { worker, limit: 1, lease }).await?;
    Ok(rows.first().map(claimed).transpose()?)
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
    let (pause, failures, error) = match published {
        Published::Well => (Duration::ZERO, Failures::Keep, None),
        Published::Failed { error, retry_after } => (*retry_after, Failures::Add, Some(&**error)),
    };
    let claim = Claim { key: claimed.id.as_uuid(), claim_token: claimed.claim_token.0 };
    let release = Release { claim, due_in: Some(pause), failures, error };
    SUBSCRIPTIONS.release(connection, &[release]).await?;
    Ok(())
}

pub(crate) async fn reclaim(connection: &mut Connection, worker: &str) -> Result<u64, Failure> {
    Ok(SUBSCRIPTIONS.reclaim(connection, worker).await?)
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
    let about = About::new(SubscriptionId::new(removed.try_get("id")?));
    let entry = AuditEntry {
        id: audit,
        ..AuditEntry::new("subscription.remove", actor, about, now(connection).await?)
    }
    .with(details);
    access::audit::insert(connection, &[&entry]).await?;
    Ok(End::Commit(true))
}
