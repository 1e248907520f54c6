//! `deletion`: what deletions cost.

mod purge;

use crate::machine;
use crate::report::Report;

pub(crate) async fn run(rows: u32) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let mut report = Report::default();
    purge::purge(rows, &mut report).await?;
    report.finish();
    Ok(())
}
