//! Periodic tasks: claimed by name, released by their claim token. The statements
//! are those of every table with the columns of a claim, see
//! `slipway_durable::claim`.

use std::time::Duration;

use slipway_app::operations::port::Task;
use slipway_core::ids::ClaimToken;
use slipway_durable::claim::{Claim, Demand, Failures, Release, Table, micros};
use sqlx::Row as _;

use super::{Connection, Db, Row};
use crate::failure::Failure;
use crate::micros::Micros;

/// The claims of tasks.
pub(crate) const TASKS: Table<Db> = claimable!("periodic_tasks", {
    key: name text,
    by: name,
    and: "",
    returning: "name, claim_token",
    release: sql!(", last_ended_at = ", now, ", last_error = given.error"),
});

/// A claimed task keeps its due time: its holder sets the next one.
pub(crate) async fn ensure(
    connection: &mut Connection,
    (name, within): (&str, Duration),
) -> Result<(), Failure> {
    sqlx::query(sql!(
        "INSERT INTO periodic_tasks (name, due_at) VALUES ($1, ",
        now,
        (plus_micros "$2"),
        ") ON CONFLICT (name) DO UPDATE SET due_at = ",
        least,
        "(periodic_tasks.due_at, excluded.due_at) WHERE periodic_tasks.lease_until IS NULL \
         OR periodic_tasks.lease_until <= ",
        now
    ))
    .bind(name)
    .bind(micros(within))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Ends the claim of a worker that is known to be dead.
pub(crate) async fn reclaim(
    connection: &mut Connection,
    (name, worker): (&str, &str),
) -> Result<(), Failure> {
    TASKS.reclaim_in(connection, worker, name).await?;
    Ok(())
}

pub(crate) async fn is_due(connection: &mut Connection, name: &str) -> Result<bool, Failure> {
    Ok(TASKS.is_due(connection, name).await?)
}

pub(crate) async fn claim(
    connection: &mut Connection,
    (name, worker, lease): (&str, &str, Duration),
) -> Result<Option<ClaimToken>, Failure> {
    let claimed = TASKS.claim(connection, name, Demand { worker, limit: 1, lease }).await?;
    Ok(claimed.first().map(|row| row.try_get("claim_token").map(ClaimToken)).transpose()?)
}

pub(crate) async fn renew(
    connection: &mut Connection,
    (name, worker, claim, lease): (&str, &str, ClaimToken, Duration),
) -> Result<bool, Failure> {
    let claims = [Claim { key: name.to_owned(), claim_token: claim.0 }];
    Ok(!TASKS.renew(connection, worker, &claims, lease).await?.is_empty())
}

pub(crate) async fn release(
    connection: &mut Connection,
    (name, claim, next, error): (&str, ClaimToken, Duration, Option<&str>),
) -> Result<bool, Failure> {
    let release = Release {
        claim: Claim { key: name, claim_token: claim.0 },
        due_in: Some(next),
        failures: if error.is_some() { Failures::Add } else { Failures::Set(0) },
        error,
    };
    Ok(TASKS.release(connection, &[release]).await? > 0)
}

pub(crate) async fn wake(connection: &mut Connection, name: &str) -> Result<(), Failure> {
    Ok(TASKS.wake(connection, &[name]).await?)
}

/// Makes every task due now.
pub(crate) async fn wake_all(connection: &mut Connection) -> Result<(), sqlx::Error> {
    sqlx::query(concat!("UPDATE periodic_tasks SET ", wake_assignments!()))
        .execute(connection)
        .await?;
    Ok(())
}

pub(crate) async fn list(connection: &mut Connection, (): ()) -> Result<Vec<Task>, Failure> {
    let found = sqlx::query(
        "SELECT name, due_at, claimed_by, last_ended_at, last_error FROM periodic_tasks \
         ORDER BY name",
    )
    .fetch_all(&mut *connection)
    .await?;
    Ok(found.iter().map(task).collect::<Result<_, _>>()?)
}

fn task(row: &Row) -> Result<Task, sqlx::Error> {
    Ok(Task {
        name: row.try_get("name")?,
        due_at: row.try_get::<Micros, _>("due_at")?.into(),
        claimed_by: row.try_get("claimed_by")?,
        last_ended_at: row.try_get::<Option<Micros>, _>("last_ended_at")?.map(Into::into),
        last_error: row.try_get("last_error")?,
    })
}
