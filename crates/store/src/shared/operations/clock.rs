//! The database's clock, and moving the schedule back to it after a jump. A test
//! (`clock_tests.rs`) knows every time of the schema and what happens to it.

use std::time::Duration;

use slipway_core::Timestamp;
use slipway_durable::database::End;
use sqlx::Row as _;

use super::broker::claims::{self, ATTEMPTS};
use super::deletion::leak_rows;
use super::events::subscriptions::SUBSCRIPTIONS;
use super::tasks::TASKS;
use super::{Connection, control, nodes, rollouts, tenants};
use crate::failure::Failure;
use crate::micros::Micros;

pub(crate) async fn now(connection: &mut Connection, (): ()) -> Result<Timestamp, Failure> {
    let row = sqlx::query(sql!("SELECT ", now, " AS now")).fetch_one(&mut *connection).await?;
    Ok(row.try_get::<Micros, _>("now")?.into())
}

/// What is moved beside the schedules of the claimed tables.
pub(crate) fn starts() -> impl Iterator<Item = &'static str> {
    // In the order of locks: nodes before attempts.
    let of_rooms: [&[&'static str]; 5] = [
        &nodes::write::STARTS,
        &claims::STARTS,
        &leak_rows::STARTS,
        &rollouts::write::STARTS,
        &control::STARTS,
    ];
    of_rooms.into_iter().flatten().copied()
}

/// Moves the schedule of every table whose rows are claimed, and every beginning of a
/// wait that lies in the future. What ends at a time that people were told stays: a
/// freeze, and the validity of keys and tokens.
pub(crate) async fn pull_in(
    connection: &mut Connection,
    (jump, lease): (Duration, Duration),
) -> Result<End<u64>, Failure> {
    let mut pulled = 0;
    for statement in starts() {
        pulled += sqlx::query(statement).execute(&mut *connection).await?.rows_affected();
    }
    for table in [&ATTEMPTS, &TASKS, &SUBSCRIPTIONS] {
        pulled += table.pull_in(connection, jump, lease).await?;
    }
    pulled += tenants::tasks::pull_in(connection, jump).await?;
    Ok(End::Commit(pulled))
}
