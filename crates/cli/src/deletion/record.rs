//! `slipway deletion …`: the one record of each removal.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use slipway_core::deletion::record::DeletionState;
use slipway_wire::deletion::{AgentRemoval, CancelDeletion, Deletion};

use super::report;
use crate::arguments::{IdArguments, PageArguments};
use crate::client::Listing;
use crate::deletion::purge::{self, PurgeArguments, PurgeManyArguments};
use crate::deletion::restore::{self, RestoreArguments};
use crate::deletion::settings::{self, SettingsCommand};
use crate::deletion::which::{Found, Which};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{name_and_id, optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum DeletionCommand {
    /// List deletions, all or some: WHEN is when a scheduled one begins, until when one that is
    /// done can be restored, else when it was asked for
    List(Box<DeletionListArguments>),
    /// Show one deletion
    Get(IdArguments),
    /// Cancel a deletion before its grace ends: everything stays as it is
    Cancel {
        #[command(flatten)]
        which: Which,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// Bring back what a deletion took: its members, all of them or none
    Restore(Box<RestoreArguments>),
    /// Show what a purge would remove; with --force remove it for good
    Purge(PurgeArguments),
    /// Show what a purge of the deletions that fit would remove, such as those of test data;
    /// with --force remove it for good
    PurgeMany(Box<PurgeManyArguments>),
    /// Grace, retention, approval and purge protection, per project and kind
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Show everything that was made for what it deletes, and how each was proven gone
    ///
    /// `-o json` is one line of JSON for each, in a fixed order; the last line has a SHA-256
    /// digest of the lines before it.
    Report(IdArguments),
}

#[derive(Debug, Clone, Args)]
pub struct DeletionListArguments {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(DeletionState::ALL.iter().map(|state| state.as_str())))]
    pub state: Option<String>,
    /// Only of things of this kind, such as project or resource
    #[arg(long)]
    pub kind: Option<String>,
    /// Only of this project and what is in it (name or id); it may be deleted itself
    #[arg(long)]
    pub project: Option<String>,
    /// Only of something with this name, or of the thing with this id
    #[arg(long)]
    pub name: Option<String>,
    /// Only those that this key asked for, such as key:admin
    #[arg(long)]
    pub requested_by: Option<String>,
    /// Only those that can be restored now
    #[arg(long)]
    pub restorable: bool,
    /// Go on and show every deletion that changes, until interrupted
    #[arg(long, conflicts_with = "limit")]
    pub watch: bool,
    #[command(flatten)]
    pub page: PageArguments,
}

impl From<DeletionListArguments> for Listing {
    fn from(list: DeletionListArguments) -> Self {
        Self::from(list.page)
            .with("state", list.state)
            .with("kind", list.kind)
            .with("project", list.project)
            .with("name", list.name)
            .with("requested_by", list.requested_by)
            .with("restorable", list.restorable.then_some("true"))
            .watched(list.watch)
    }
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway deletion list --limit 20",
    "slipway deletion list --state scheduled",
    "slipway deletion list --restorable --project shop",
    "slipway deletion get 0192f0c1-2b3c",
    "slipway deletion cancel 0192f0c1-2b3c --reason needed",
    "slipway deletion cancel resource web-1 --reason needed",
    "slipway deletion restore 0192f0c1-2b3c --dry-run",
    "slipway deletion restore project shop --redeclare --reason needed",
    "slipway deletion restore cloud berlin --rename berlin-2",
    "slipway deletion report 0192f0c1-2b3c",
    "slipway deletion report 0192f0c1-2b3c -o json",
    "slipway deletion purge 0192f0c1-2b3c",
    "slipway deletion purge 0192f0c1-2b3c --force --reason privacy",
    "slipway deletion purge-many --project shop --name-prefix e2e- --kind stack",
    "slipway deletion purge-many --generator ci --label e2e --force --reason tests",
    "slipway deletion settings list",
    "slipway deletion settings set --project shop --kind resource --retention 7d",
    "slipway deletion settings set --project shop --grace 24h --approve-above 10",
    "slipway deletion settings remove --project shop --kind resource",
];

impl Kind for Deletion {
    const PATH: &'static str = "deletions";
}

/// The time that matters in this state: when it begins, until when it can be restored, else
/// when it was asked for.
fn when(deletion: &Deletion) -> String {
    let next = match deletion.state.as_str() {
        "scheduled" => deletion.scheduled_for.as_ref(),
        "done" => deletion.restorable_until.as_ref(),
        _ => None,
    };
    next.unwrap_or(&deletion.requested_at).clone()
}

impl Row for Deletion {
    fn cells(&self) -> Cells {
        vec![
            ("ID", self.id.clone()),
            ("KIND", self.kind.clone()),
            ("NAME", self.target.as_ref().unwrap_or(&self.target_id).clone()),
            ("PROJECT", or_dash(self.project.as_deref())),
            ("STATE", self.state.clone()),
            ("WHEN", when(self)),
            ("BY", self.requested_by.clone()),
            ("REASON", self.reason.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("AGE", self.requested_at.clone()),
            ("DONE", or_dash(self.done_at.as_deref())),
            ("TARGET ID", self.target_id.clone()),
        ]
    }
}

impl Detail for Deletion {
    const NOUN: &'static str = "deletion";

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
        let removals: Vec<_> = self.deliveries.iter().map(removal).collect();
        vec![
            ("id", Some(self.id.clone())),
            ("target", Some(named(&self.kind, &self.target, &self.target_id))),
            ("state", Some(self.state.clone())),
            ("requested", Some(time(&self.requested_at))),
            ("by", Some(self.requested_by.clone())),
            ("reason", Some(self.reason.clone())),
            ("resources", self.cascade.then(|| self.resources.to_string())),
            ("members", Some(members.join(", ")).filter(|members| !members.is_empty())),
            ("agents", Some(removals.join("\n"))),
            ("begins", optional_time(self.scheduled_for.as_ref())),
            ("done", optional_time(self.done_at.as_ref())),
            ("restorable until", optional_time(self.restorable_until.as_ref())),
            ("purge protected", self.purge_protected.then(|| "until then".to_owned())),
            ("ended", optional_time(self.ended_at.as_ref())),
        ]
    }
}

/// `edge: web removed at …`, or that it is owed.
fn removal(one: &AgentRemoval) -> String {
    let AgentRemoval { agent, stack, .. } = one;
    match (&one.removed_at, one.agent_deleted) {
        (Some(at), _) => format!("{agent}: {stack} removed at {}", time(at)),
        (None, true) => format!("{agent}: deleted with {stack}, see `slipway leaks list`"),
        (None, false) => format!("{agent}: {stack} not removed yet"),
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: DeletionCommand) -> Result<(), Error> {
    match command {
        DeletionCommand::List(list) => session.list::<Deletion>(*list).await,
        DeletionCommand::Get(arguments) => session.get::<Deletion>(&arguments.id).await,
        DeletionCommand::Cancel { which, reason } => {
            let id = which.find(session, Found::Scheduled).await?;
            let path = [Deletion::PATH, &id, "cancel"];
            session.post::<Deletion>(&path, &CancelDeletion { reason }).await
        }
        DeletionCommand::Restore(arguments) => Box::pin(restore::run(session, *arguments)).await,
        DeletionCommand::Purge(arguments) => Box::pin(purge::run(session, arguments)).await,
        DeletionCommand::PurgeMany(arguments) => {
            Box::pin(purge::run_many(session, *arguments)).await
        }
        DeletionCommand::Settings(command) => Box::pin(settings::run(session, command)).await,
        DeletionCommand::Report(deletion) => report::show(session, &deletion.id).await,
    }
}
