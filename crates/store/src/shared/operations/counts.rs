//! The counts of the installation: three statements, each one scan of its
//! table. No index supports the scan of the attempts: every change of phase
//! would write it, and it would be read a few times a minute.

use slipway_app::operations::port::Counts;
use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::commit::Recheck;
use slipway_core::nodes::node::Reachability;
use sqlx::Row as _;

use super::{Connection, Row, commit};
use crate::failure::Failure;

pub(crate) async fn count(connection: &mut Connection, (): ()) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    let found = sqlx::query(
        "SELECT status AS name, count(*) AS found FROM provisioned_resources GROUP BY status",
    )
    .fetch_all(&mut *connection)
    .await?;
    for row in &found {
        // A phase that this version does not know is a quarantined row, and
        // shown as a blocker.
        if let Some(phase) = Phase::parse(row.try_get("name")?) {
            counts.phases.insert(phase, number(row, "found")?);
        }
    }
    let found = sqlx::query("SELECT code AS name, count(*) AS found FROM blockers GROUP BY code")
        .fetch_all(&mut *connection)
        .await?;
    for row in &found {
        if let Some(code) = BlockerCode::parse(row.try_get("name")?) {
            counts.blockers.insert(code, number(row, "found")?);
        }
    }
    let row = sqlx::query(sql!(
        "SELECT count(*) AS registered, \
         count(*) FILTER (WHERE last_heartbeat_at IS NULL) AS silent, \
         count(*) FILTER (WHERE last_heartbeat_at > (SELECT ",
        now,
        (minus_micros "$1"),
        ")) AS healthy, count(*) FILTER (WHERE last_heartbeat_at < (SELECT ",
        now,
        (minus_micros "$2"),
        ")) AS unreachable FROM nodes WHERE deregistered_at IS NULL"
    ))
    .bind(commit::recheck_micros(Recheck::After(Reachability::STALE_AFTER)))
    .bind(commit::recheck_micros(Recheck::After(Reachability::UNREACHABLE_AFTER)))
    .fetch_one(&mut *connection)
    .await?;
    let [registered, silent, healthy, unreachable] =
        ["registered", "silent", "healthy", "unreachable"].map(|name| number(&row, name));
    let (registered, silent, healthy, unreachable) = (registered?, silent?, healthy?, unreachable?);
    counts.nodes.insert(Reachability::Unknown, silent);
    counts.nodes.insert(Reachability::Healthy, healthy);
    counts.nodes.insert(Reachability::Unreachable, unreachable);
    let others = silent.saturating_add(healthy).saturating_add(unreachable);
    counts.nodes.insert(Reachability::Stale, registered.saturating_sub(others));
    Ok(counts)
}

fn number(row: &Row, column: &str) -> Result<u64, Failure> {
    let number: i64 = row.try_get(column)?;
    Ok(u64::try_from(number).unwrap_or(0))
}
