//! The database's clock, and moving the schedule back to it after a jump.

use std::time::Duration;

use slipway_core::Timestamp;
use slipway_core::commit::Recheck;
use sqlx::Row as _;

use super::{Connection, commit};
use crate::failure::Failure;
use crate::micros::Micros;

pub(crate) async fn now(connection: &mut Connection, (): ()) -> Result<Timestamp, Failure> {
    let row = sqlx::query(sql!("SELECT ", now, " AS now")).fetch_one(&mut *connection).await?;
    Ok(row.try_get::<Micros, _>("now")?.into())
}

pub(crate) async fn pull_in(
    connection: &mut Connection,
    (jump, lease): (Duration, Duration),
) -> Result<u64, Failure> {
    let pulled = sqlx::query(concat!(
        "UPDATE provisioned_resources SET due_at = ",
        sql!(greatest, "(", now, ", due_at", (minus_micros "$1"), ")"),
        ", lease_until = CASE WHEN lease_until > ",
        sql!(now, (plus_micros "$2")),
        " THEN ",
        sql!(greatest, "(", now, ", lease_until", (minus_micros "$1"), ")"),
        " ELSE lease_until END WHERE due_at > ",
        sql!("(SELECT ", now, ")"),
    ))
    .bind(commit::recheck_micros(Recheck::After(jump)))
    .bind(commit::recheck_micros(Recheck::After(lease)))
    .execute(&mut *connection)
    .await?;
    Ok(pulled.rows_affected())
}
