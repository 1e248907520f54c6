//! `slipway deletion purge` and `purge-many`: what was deleted goes for good.

use clap::Args;
use slipway_wire::deletion::{
    Deletion, Purge, PurgeDeletion, PurgeDeletions, PurgedDeletion, PurgedDeletions,
};
use slipway_wire::fleet::Generator;

use crate::arguments::IdArguments;
use crate::broker::target::Gone;
use crate::error::Error;
use crate::fleet::find::{self, Within};
use crate::kind::{Detail, Facts, Kind};
use crate::session::Session;

#[derive(Debug, Clone, Args)]
pub struct PurgeArguments {
    #[command(flatten)]
    pub deletion: IdArguments,
    #[command(flatten)]
    pub how: How,
}

/// Deletions that are done, of test data for example
#[derive(Debug, Clone, Args)]
pub struct PurgeManyArguments {
    /// Only of this project and what is in it (name or id)
    #[arg(long, required_unless_present = "generator")]
    pub project: Option<String>,
    /// Only stacks and templates of this generator (name or id), which may be deleted itself
    #[arg(long)]
    pub generator: Option<String>,
    /// Only of things of this kind, such as stack or resource
    #[arg(long)]
    pub kind: Option<String>,
    /// Only of things whose name begins like this
    #[arg(long, required_unless_present = "label")]
    pub name_prefix: Option<String>,
    /// Only of stacks, templates and agents with this label
    #[arg(long)]
    pub label: Option<String>,
    #[command(flatten)]
    pub how: How,
}

/// What one purge and many have in common.
#[derive(Debug, Clone, Args)]
pub struct How {
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

impl Detail for PurgedDeletions {
    fn facts(&self) -> Facts {
        let name = |one: &PurgedDeletion| {
            format!("{} {}", one.kind, one.target.as_deref().unwrap_or(&one.deletion_id))
        };
        let free: Vec<_> =
            self.deletions.iter().filter(|one| one.withheld.is_empty()).map(name).collect();
        let withheld: Vec<_> = self
            .deletions
            .iter()
            .filter_map(|one| Some((one, one.withheld.first()?)))
            .map(|(one, why)| format!("{}: {}", name(one), why.message))
            .collect();
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let next = "nothing was removed; `--force --reason WHY` does it";
        vec![
            ("found", Some(self.found.to_string())),
            ("purged", Some(self.begun.to_string())),
            ("such as", some(free.join(", "))),
            ("not now", some(withheld.join("; "))),
            ("next", (self.begun == 0 && !free.is_empty()).then(|| next.to_owned())),
        ]
    }
}

pub(crate) async fn run_many(
    session: &mut Session<'_>,
    arguments: PurgeManyArguments,
) -> Result<(), Error> {
    let PurgeManyArguments { project, generator, kind, name_prefix, label, how } = arguments;
    let generator_id = match generator {
        Some(given) => {
            let within = Within { project: project.clone() };
            let found = find::find::<Generator>(&session.client, &given, &within, Gone::Allowed);
            Some(found.await?.id)
        }
        None => None,
    };
    let How { force, now, despite_protection, reason } = how;
    let body = PurgeDeletions {
        project,
        generator_id,
        kind,
        name_prefix,
        label,
        force,
        reason,
        despite_protection,
        now,
    };
    session.post::<PurgedDeletions>(&["deletion-purges"], &body).await
}

pub(crate) async fn run(session: &mut Session<'_>, arguments: PurgeArguments) -> Result<(), Error> {
    let PurgeArguments { deletion, how } = arguments;
    let How { force, now, despite_protection, reason } = how;
    let path = [Deletion::PATH, &deletion.id, "purge"];
    session.post::<Purge>(&path, &PurgeDeletion { force, reason, despite_protection, now }).await
}
