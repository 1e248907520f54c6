//! `slipway audit …`: who did what to which subject, and why.

use clap::{Args, Subcommand};
use slipway_core::ids::NodeId;
use slipway_wire::access::AuditEntry;

use crate::arguments::PageArguments;
use crate::client::Listing;
use crate::error::Error;
use crate::kind::{Cells, Row};
use crate::output::{SHORT_ID, or_dash};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum AuditCommand {
    /// List who did what, the newest first
    List {
        #[command(flatten)]
        filter: AuditFilterArguments,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Write out every entry, the oldest first, one JSON document a line
    Export(AuditFilterArguments),
}

#[derive(Debug, Clone, Default, Args)]
pub struct AuditFilterArguments {
    /// Only by this actor, for instance key:admin
    #[arg(long)]
    pub actor: Option<String>,
    /// Only this verb, for instance resource.delete
    #[arg(long)]
    pub verb: Option<String>,
    /// Only about things of this kind, for instance resource
    #[arg(long)]
    pub kind: Option<String>,
    /// Only about this thing: its name, its id or the beginning of it; with --kind if things of
    /// several kinds have the name
    #[arg(long)]
    pub id: Option<String>,
    /// Only of this project (name, id or beginning of the id)
    #[arg(long)]
    pub project: Option<String>,
    /// Only from this time on, for instance 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

impl AuditFilterArguments {
    fn apply(self, wanted: Listing) -> Listing {
        let wanted = wanted.with("actor", self.actor).with("verb", self.verb);
        let wanted = wanted.with("kind", self.kind).with("id", self.id);
        wanted.with("project", self.project).with("since", self.since).with("until", self.until)
    }
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway audit list --verb resource.delete --limit 20",
    "slipway audit list --id web-1",
    "slipway audit export --since 2026-01-31T12:00:00Z > audit.jsonl",
];

impl Row for AuditEntry {
    fn cells(&self) -> Cells {
        vec![
            ("AGE", self.at.clone()),
            ("ACTOR", actor(self)),
            ("DID", self.verb.clone()),
            ("TO", self.subject.as_ref().unwrap_or(&self.subject_id).clone()),
            ("PROJECT", or_dash(self.project.as_deref().or(self.project_id.as_deref()))),
            ("WHY", or_dash(self.reason.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("BY", self.actor.clone()),
            ("SUBJECT ID", self.subject_id.clone()),
            ("PROJECT ID", or_dash(self.project_id.as_deref())),
            ("CORRELATION", or_dash(self.correlation_id.as_deref())),
        ]
    }
}

/// `key:admin`, `node:web-1`, `replica:0192f0c1-2b3c`.
fn actor(entry: &AuditEntry) -> String {
    match (&entry.actor_name, entry.actor.split_once(':')) {
        (Some(name), Some((kind, _))) => format!("{kind}:{name}"),
        (None, Some((kind, id))) if id.parse::<NodeId>().is_ok() => {
            format!("{kind}:{}", &id[..SHORT_ID])
        }
        _ => entry.actor.clone(),
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: AuditCommand) -> Result<(), Error> {
    match command {
        AuditCommand::List { filter, page } => {
            session.list_at::<AuditEntry>(&["audit"], filter.apply(page.into())).await
        }
        AuditCommand::Export(filter) => export(session, filter).await,
    }
}

/// Prints complete lines as they arrive, however chunks are cut. An export that
/// breaks off is an error, so that scripts do not take a part for the whole.
async fn export(session: &mut Session<'_>, filter: AuditFilterArguments) -> Result<(), Error> {
    let wanted = filter.apply(Listing::default());
    let mut stream = session.client.stream(&["audit", "export"], wanted).await?;
    let mut rest = Vec::new();
    while let Some(piece) = session.client.next_piece(&mut stream).await? {
        rest.extend_from_slice(piece.as_ref());
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
        let lines: Vec<u8> = rest.drain(..=end).collect();
        session.terminal.print(String::from_utf8_lossy(&lines).trim_end_matches('\n'));
        if session.terminal.is_closed() {
            return Ok(());
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(session.client.unreadable("the export ends within a line".to_owned()))
}
