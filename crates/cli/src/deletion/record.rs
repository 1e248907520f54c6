//! `slipway deletion …`: the one record of each removal.

use clap::Subcommand;
use slipway_wire::deletion::{CancelDeletion, Deletion};

use super::report;
use crate::arguments::{IdArguments, PageArguments};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{name_and_id, optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum DeletionCommand {
    /// List deletions
    List(PageArguments),
    /// Show one deletion
    Get(IdArguments),
    /// Cancel a deletion before its grace ends: everything stays as it is
    Cancel {
        #[command(flatten)]
        deletion: IdArguments,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// Show everything that was made for what it deletes, and how each was proven gone
    ///
    /// `-o json` is one line of JSON for each, in a fixed order; the last line has a SHA-256
    /// digest of the lines before it.
    Report(IdArguments),
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway deletion list --limit 20",
    "slipway deletion get 0192f0c1-2b3c",
    "slipway deletion cancel 0192f0c1-2b3c --reason needed",
    "slipway deletion report 0192f0c1-2b3c",
    "slipway deletion report 0192f0c1-2b3c -o json",
];

impl Kind for Deletion {
    const PATH: &'static str = "deletions";
}

impl Row for Deletion {
    fn cells(&self) -> Cells {
        vec![
            ("ID", self.id.clone()),
            ("TARGET", self.target.as_ref().unwrap_or(&self.target_id).clone()),
            ("KIND", self.kind.clone()),
            ("STATE", self.state.clone()),
            ("AGE", self.requested_at.clone()),
            ("BY", self.requested_by.clone()),
            ("REASON", self.reason.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("DONE", or_dash(self.done_at.as_deref())), ("TARGET ID", self.target_id.clone())]
    }
}

impl Detail for Deletion {
    fn facts(&self) -> Facts {
        let named = |kind: &str, name: &Option<String>, id: &str| {
            format!("{kind} {}", name_and_id(name.as_deref(), id))
        };
        let members = self.members.iter();
        let mut members: Vec<_> =
            members.map(|member| named(&member.kind, &member.name, &member.id)).collect();
        let all = self.member_count.unwrap_or_default();
        if let Some(more @ 1..) = all.checked_sub(members.len() as u64) {
            members.push(format!("{more} more"));
        }
        vec![
            ("id", Some(self.id.clone())),
            ("target", Some(named(&self.kind, &self.target, &self.target_id))),
            ("state", Some(self.state.clone())),
            ("requested", Some(time(&self.requested_at))),
            ("by", Some(self.requested_by.clone())),
            ("reason", Some(self.reason.clone())),
            ("resources", self.cascade.then(|| self.resources.to_string())),
            ("members", Some(members.join(", ")).filter(|members| !members.is_empty())),
            ("begins", optional_time(self.scheduled_for.as_ref())),
            ("done", optional_time(self.done_at.as_ref())),
            ("restorable until", optional_time(self.restorable_until.as_ref())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: DeletionCommand) -> Result<(), Error> {
    match command {
        DeletionCommand::List(page) => session.list::<Deletion>(page).await,
        DeletionCommand::Get(arguments) => session.get::<Deletion>(&arguments.id).await,
        DeletionCommand::Cancel { deletion, reason } => {
            let path = [Deletion::PATH, &deletion.id, "cancel"];
            session.post::<Deletion>(&path, &CancelDeletion { reason }).await
        }
        DeletionCommand::Report(deletion) => report::show(session, &deletion.id).await,
    }
}
