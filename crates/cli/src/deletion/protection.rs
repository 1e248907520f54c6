//! `slipway protection …`: what nobody deletes.

use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::Method;
use slipway_core::time::parse_duration;
use slipway_wire::deletion::{LiftProtection, Protect, Protection};

use crate::arguments::{PageArguments, because, whole_seconds};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum ProtectionCommand {
    /// List what is protected from deletion
    List(PageArguments),
    /// Protect something: no deletion takes it, nor what contains it
    Set {
        #[command(flatten)]
        thing: Thing,
        /// Why; shown to whoever tries to delete it
        #[arg(long)]
        reason: String,
    },
    /// Take the protection of something away
    Remove {
        #[command(flatten)]
        thing: Thing,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// Lift the protection of one thing for some minutes; it comes back by itself
    Lift {
        #[command(flatten)]
        thing: Thing,
        /// For how long, an hour at most
        #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
        duration: Duration,
        /// Why; kept in the audit
        #[arg(long)]
        reason: String,
    },
}

/// What is protected.
#[derive(Debug, Clone, Args)]
pub struct Thing {
    /// project, resource, cluster, blueprint, cloud, credential, label, generator, stack,
    /// template or agent
    pub kind: String,
    /// Its name, its id or the beginning of it
    pub name: String,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway protection list",
    "slipway protection set resource web-1 --reason books",
    "slipway protection lift resource web-1 --for 10m --reason moved",
    "slipway protection remove resource web-1 --reason moved",
];

impl Kind for Protection {
    const PATH: &'static str = "protections";
}

impl Row for Protection {
    fn cells(&self) -> Cells {
        vec![
            ("KIND", self.kind.clone()),
            ("NAME", self.name.clone()),
            ("LIFTED UNTIL", or_dash(self.lifted_until.as_deref())),
            ("AGE", self.set_at.clone()),
            ("BY", self.set_by.clone()),
            ("REASON", self.reason.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone())]
    }
}

impl Detail for Protection {
    fn facts(&self) -> Facts {
        vec![
            ("protected", Some(format!("{} {}", self.kind, self.name))),
            ("id", Some(self.id.clone())),
            ("since", Some(time(&self.set_at))),
            ("by", Some(self.set_by.clone())),
            ("reason", Some(self.reason.clone())),
            ("lifted until", optional_time(self.lifted_until.as_ref())),
            ("lifted by", self.lifted_by.clone()),
            ("lifted because", self.lifted_reason.clone()),
        ]
    }
}

pub(crate) async fn run(
    session: &mut Session<'_>,
    command: ProtectionCommand,
) -> Result<(), Error> {
    match command {
        ProtectionCommand::List(page) => session.list::<Protection>(page).await,
        ProtectionCommand::Set { thing, reason } => {
            let path = [Protection::PATH, &thing.kind, &thing.name];
            let set: Protection = session.client.put(&path, &Protect { reason }).await?;
            session.show_details(&set);
            Ok(())
        }
        ProtectionCommand::Remove { thing, reason } => {
            let path = [Protection::PATH, &thing.kind, &thing.name];
            session.client.silent_with(Method::DELETE, &path, &because(reason)).await
        }
        ProtectionCommand::Lift { thing, duration, reason } => {
            let seconds = whole_seconds("--for", duration)?;
            let path = [Protection::PATH, &thing.kind, &thing.name, "lift"];
            session.post::<Protection>(&path, &LiftProtection { reason, seconds }).await
        }
    }
}
