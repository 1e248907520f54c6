//! `slipway deletion …`: the one record of each removal.

use clap::Subcommand;
use slipway_wire::deletion::Deletion;

use crate::arguments::{IdArguments, PageArguments};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum DeletionCommand {
    /// List deletions
    List(PageArguments),
    /// Show one deletion
    Get(IdArguments),
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway deletion list --limit 20",
    "slipway deletion get 0192f0c1-2b3c-7d4e-8f50-123456789abc",
];

impl Kind for Deletion {
    const PATH: &'static str = "deletions";
}

impl Row for Deletion {
    fn cells(&self) -> Cells {
        vec![
            ("TARGET", format!("{} {}", self.kind, self.target_id)),
            ("STATE", self.state.clone()),
            ("REQUESTED", time(&self.requested_at)),
            ("BY", self.requested_by.clone()),
            ("REASON", self.reason.clone()),
            ("ID", self.id.clone()),
        ]
    }
}

impl Detail for Deletion {
    fn facts(&self) -> Facts {
        let members: Vec<_> =
            self.members.iter().map(|member| format!("{} {}", member.kind, member.id)).collect();
        vec![
            ("id", Some(self.id.clone())),
            ("target", Some(format!("{} {}", self.kind, self.target_id))),
            ("state", Some(self.state.clone())),
            ("requested", Some(time(&self.requested_at))),
            ("by", Some(self.requested_by.clone())),
            ("reason", Some(self.reason.clone())),
            ("members", Some(members.join(", "))),
            ("done", optional_time(self.done_at.as_ref())),
            ("restorable until", optional_time(self.restorable_until.as_ref())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: DeletionCommand) -> Result<(), Error> {
    match command {
        DeletionCommand::List(page) => session.list::<Deletion>(page).await,
        DeletionCommand::Get(arguments) => session.get::<Deletion>(&arguments.id).await,
    }
}
