//! The database's clock, and moving the schedule back to it after a jump.

use std::time::Duration;

use slipway_core::Timestamp;
use slipway_durable::database::End;
use sqlx::Row as _;

use super::Connection;
use super::broker::claims::ATTEMPTS;
use super::events::subscriptions::SUBSCRIPTIONS;
use super::tasks::TASKS;
use crate::failure::Failure;
use crate::micros::Micros;

pub(crate) async fn now(connection: &mut Connection, (): ()) -> Result<Timestamp, Failure> {
    let row = sqlx::query(sql!("SELECT ", now, " AS now")).fetch_one(&mut *connection).await?;
    Ok(row.try_get::<Micros, _>("now")?.into())
}

/// Moves the schedule of every table whose rows are claimed.
pub(crate) async fn pull_in(
    connection: &mut Connection,
    (jump, lease): (Duration, Duration),
) -> Result<End<u64>, Failure> {
    let mut pulled = 0;
    for table in [&ATTEMPTS, &TASKS, &SUBSCRIPTIONS] {
        pulled += table.pull_in(connection, jump, lease).await?;
    }
    Ok(End::Commit(pulled))
}
