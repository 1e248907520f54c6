//! `slipway deletion restore …`: brings back what was deleted.

use std::collections::BTreeMap;

use clap::Args;
use slipway_wire::deletion::{Deletion, Restore, RestoreDeletion};

use crate::deletion::which::{Found, Which};
use crate::error::Error;
use crate::kind::{Detail, Facts, Kind as _};
use crate::output::time;
use crate::session::Session;

#[derive(Debug, Clone, Args)]
pub struct RestoreArguments {
    #[command(flatten)]
    pub which: Which,
    /// Bring it back under this name; OLD=NEW renames a resource of a project
    #[arg(long, value_name = "[OLD=]NEW")]
    pub rename: Vec<String>,
    /// Make resources anew with their old parameters; what they were is gone
    #[arg(long)]
    pub redeclare: bool,
    /// Only show what would come back and what is in its way
    #[arg(long)]
    pub dry_run: bool,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: Option<String>,
}

impl RestoreArguments {
    fn body(&self) -> Result<RestoreDeletion, Error> {
        let (mut rename, mut rename_members) = (None, BTreeMap::new());
        for given in &self.rename {
            let twice = match given.split_once('=') {
                Some((old, new)) => rename_members.insert(old.to_owned(), new.to_owned()).is_some(),
                None => rename.replace(given.clone()).is_some(),
            };
            if twice {
                let message = format!("--rename `{given}` gives a second name to the same thing");
                return Err(Error::Usage(message));
            }
        }
        let (reason, redeclare, dry_run) = (self.reason.clone(), self.redeclare, self.dry_run);
        Ok(RestoreDeletion { reason, rename, rename_members, redeclare, dry_run })
    }
}

pub(crate) async fn run(
    session: &mut Session<'_>,
    arguments: RestoreArguments,
) -> Result<(), Error> {
    let body = arguments.body()?;
    let id = arguments.which.find(session, Found::Restorable).await?;
    session.post::<Restore>(&[Deletion::PATH, &id, "restore"], &body).await
}

impl Detail for Restore {
    fn facts(&self) -> Facts {
        let came: Vec<_> = self
            .restored
            .iter()
            .map(|found| match found.attempt {
                Some(attempt) => format!("{} {} (attempt {attempt})", found.kind, found.name),
                None => format!("{} {}", found.kind, found.name),
            })
            .collect();
        let listed = |mut lines: Vec<String>, count: u64| {
            if let Some(more @ 1..) = count.checked_sub(lines.len() as u64) {
                lines.push(format!("{more} more"));
            }
            Some(lines.join("\n"))
        };
        let conflicts = self.conflicts.iter().map(|found| found.message.clone()).collect();
        let heading = if self.dry_run { "would come back" } else { "came back" };
        vec![
            ("deletion", Some(self.deletion.id.clone())),
            ("state", Some(self.deletion.state.clone())),
            (heading, listed(came, self.restored_count)),
            ("in its way", listed(conflicts, self.conflict_count)),
        ]
    }
}

/// Says first that what is shown will be deleted, or is being deleted.
pub(crate) async fn lead<D: Detail>(session: &mut Session<'_>, shown: &D) -> Result<(), Error> {
    let Some(id) = shown.open_deletion() else { return Ok(()) };
    if !session.output.is_for_people() {
        return Ok(());
    }
    let found: Deletion = session.client.get(&[Deletion::PATH, id]).await?;
    let by = format!("asked for by {}: {}", found.requested_by, found.reason);
    let text = match (found.state.as_str(), found.scheduled_for.as_deref()) {
        ("scheduled", Some(at)) => {
            format!(
                "will be deleted at {}, {by}; to keep it: slipway deletion cancel {id}",
                time(at)
            )
        }
        ("running", _) => format!("is being deleted, {by}; see: slipway explain deletion {id}"),
        _ => return Ok(()),
    };
    session.terminal.say(&text);
    Ok(())
}
