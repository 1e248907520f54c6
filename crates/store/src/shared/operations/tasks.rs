//! Periodic tasks: claimed by name, released by their claim token. The columns
//! follow the rules of every claim, see `slipway_durable`.

use std::time::Duration;

use slipway_app::operations::port::Task;
use slipway_core::commit::Recheck;
use slipway_core::ids::ClaimToken;
use sqlx::Row as _;

use super::{Connection, Row, commit};
use crate::failure::Failure;
use crate::micros::Micros;

fn micros(duration: Duration) -> Option<i64> {
    commit::recheck_micros(Recheck::After(duration))
}

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

pub(crate) async fn reclaim(connection: &mut Connection, worker: &str) -> Result<(), Failure> {
    sqlx::query(sql!(
        "UPDATE periodic_tasks SET claim_token = claim_token + 1, claimed_by = NULL, \
         lease_until = NULL, due_at = ",
        now,
        " WHERE claimed_by = $1"
    ))
    .bind(worker)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

pub(crate) async fn is_due(connection: &mut Connection, name: &str) -> Result<bool, Failure> {
    let due = sqlx::query(sql!(
        "SELECT name FROM periodic_tasks WHERE name = $1 AND due_at <= ",
        now,
        " AND (lease_until IS NULL OR lease_until <= ",
        now,
        ")"
    ))
    .bind(name)
    .fetch_optional(&mut *connection)
    .await?;
    Ok(due.is_some())
}

pub(crate) async fn claim(
    connection: &mut Connection,
    (name, worker, lease): (&str, &str, Duration),
) -> Result<Option<ClaimToken>, Failure> {
    let claimed = sqlx::query(sql!(
        "UPDATE periodic_tasks SET claim_token = claim_token + 1, claimed_wake = wake, \
         claimed_by = $2, lease_until = ",
        now,
        (plus_micros "$3"),
        ", due_at = ",
        now,
        (plus_micros "$3"),
        " WHERE name = $1 AND due_at <= ",
        now,
        " AND (lease_until IS NULL OR lease_until <= ",
        now,
        ") RETURNING claim_token"
    ))
    .bind(name)
    .bind(worker)
    .bind(micros(lease))
    .fetch_optional(&mut *connection)
    .await?;
    Ok(claimed.map(|row| row.try_get("claim_token").map(ClaimToken)).transpose()?)
}

pub(crate) async fn release(
    connection: &mut Connection,
    (name, claim, next, error): (&str, ClaimToken, Duration, Option<&str>),
) -> Result<bool, Failure> {
    let released = sqlx::query(sql!(
        "UPDATE periodic_tasks SET claimed_by = NULL, lease_until = NULL, \
         due_at = CASE WHEN wake <> claimed_wake THEN ",
        now,
        " ELSE ",
        now,
        (plus_micros "$3"),
        " END, last_ended_at = ",
        now,
        ", last_error = $4 WHERE name = $1 AND claim_token = $2 AND claimed_by IS NOT NULL"
    ))
    .bind(name)
    .bind(claim.0)
    .bind(micros(next))
    .bind(error)
    .execute(&mut *connection)
    .await?;
    Ok(released.rows_affected() > 0)
}

pub(crate) async fn wake(connection: &mut Connection, name: &str) -> Result<(), Failure> {
    sqlx::query(concat!("UPDATE periodic_tasks SET ", wake_assignments!(), " WHERE name = $1"))
        .bind(name)
        .execute(&mut *connection)
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
