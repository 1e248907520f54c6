//! `slipway deletion purge`: what was deleted goes for good.

use clap::Args;
use slipway_wire::deletion::{Deletion, Purge, PurgeDeletion};

use crate::arguments::IdArguments;
use crate::error::Error;
use crate::kind::{Detail, Facts, Kind};
use crate::session::Session;

#[derive(Debug, Clone, Args)]
pub struct PurgeArguments {
    #[command(flatten)]
    pub deletion: IdArguments,
    /// Remove it for good; without this nothing is removed
    #[arg(long, requires = "reason")]
    pub force: bool,
    /// Erase the content of stacks and templates at once, also while agents owe a marker
    #[arg(long, requires = "reason")]
    pub now: bool,
    /// Although purge protection was on when it was deleted
    #[arg(long, requires = "reason")]
    pub despite_protection: bool,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: Option<String>,
}

impl Detail for Purge {
    fn facts(&self) -> Facts {
        let began = self.state == "purging" || self.state == "purged";
        let target = format!("{} {}", self.kind, self.target.as_deref().unwrap_or("-"));
        let tables: Vec<_> =
            self.tables.iter().map(|one| format!("{} {}", one.rows, one.table)).collect();
        let sample: Vec<_> = self
            .sample
            .iter()
            .map(|one| format!("{} {}", one.kind, one.name.as_deref().unwrap_or(&one.id)))
            .collect();
        let withheld: Vec<_> = self.withheld.iter().map(|one| &*one.message).collect();
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        vec![
            ("target", Some(target)),
            ("deletion", Some(self.deletion_id.clone())),
            ("state", Some(self.state.clone())),
            ("rows", Some(self.total.to_string())),
            ("tables", some(tables.join(", "))),
            ("such as", some(sample.join(", "))),
            ("not now", some(withheld.join("; "))),
            (
                "next",
                (!began && withheld.is_empty())
                    .then(|| "nothing was removed; `--force --reason WHY` does it".to_owned()),
            ),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, arguments: PurgeArguments) -> Result<(), Error> {
    let PurgeArguments { deletion, force, now, despite_protection, reason } = arguments;
    let path = [Deletion::PATH, &deletion.id, "purge"];
    session.post::<Purge>(&path, &PurgeDeletion { force, reason, despite_protection, now }).await
}
