//! The counts of the installation: three statements, each one scan of its
//! table. No index supports the scan of the attempts: every change of phase
//! would write it, and it would be read a few times a minute.

use slipway_app::operations::port::Counts;
use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use sqlx::Row as _;

use super::{Connection, Row, nodes};
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
    counts.nodes = nodes::reads::count(connection).await?;
    Ok(counts)
}

fn number(row: &Row, column: &str) -> Result<u64, Failure> {
    let number: i64 = row.try_get(column)?;
    Ok(u64::try_from(number).unwrap_or(0))
}
