//! `topology`: what the gates cost a server that is scaled down beside the deletion of a plain
//! resource, among 10,000 servers, and what the teardown of a workspace saves beside taking its
//! servers down one after the other, on both databases.

mod gates;
mod population;
mod teardown;

use crate::database::{Kind, durable_server};
use crate::machine;
use crate::report::Report;

/// How much is measured. The installation has the same size in both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// All sides run in turn, this often.
    rounds: usize,
    /// Decisions of each caller in a round.
    decisions: usize,
    /// The same of the sides that have no limit.
    extra: usize,
    /// Servers of the workspace that is taken down, and how often.
    servers: u32,
    teardowns: usize,
}

impl Size {
    pub(crate) const FULL: Self =
        Self { rounds: 10, decisions: 5, extra: 2, servers: 100, teardowns: 3 };
    pub(crate) const QUICK: Self =
        Self { rounds: 4, decisions: 5, extra: 2, servers: 100, teardowns: 1 };
}

pub(crate) async fn run(size: Size) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let server = durable_server()?;
    let mut report = Report::default();
    for kind in [Kind::Postgres, Kind::Sqlite] {
        gates::measure(kind, &server, size, &mut report).await?;
        teardown::measure(kind, &server, size, &mut report).await?;
    }
    report.finish();
    Ok(())
}
