//! `slipway brake …`: keys that deleted too much in too short a time.

use std::time::Duration;

use clap::Subcommand;
use slipway_core::time::parse_duration;
use slipway_wire::deletion::{Brake, ReleaseBrake};

use crate::arguments::{PageArguments, whole_seconds};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum BrakeCommand {
    /// List the keys that the deletion brake stopped
    List(PageArguments),
    /// Let a key delete again: for a while uncounted, then counted anew
    Release {
        /// Name, id or beginning of the id of the key
        #[arg(value_name = "KEY")]
        id: String,
        /// For how long it is not counted, an hour at most; 10m if not given
        #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
        duration: Option<Duration>,
        /// Why; kept in the audit
        #[arg(long)]
        reason: String,
    },
}

pub(crate) const EXAMPLES: &[&str] =
    &["slipway brake list", "slipway brake release ci --for 10m --reason meant"];

impl Kind for Brake {
    const PATH: &'static str = "brakes";
}

impl Row for Brake {
    fn cells(&self) -> Cells {
        vec![
            ("KEY", self.key.clone()),
            ("AGE", or_dash(self.since.as_deref())),
            ("WHY", or_dash(self.why.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("KEY ID", self.key_id.clone())]
    }
}

impl Detail for Brake {
    fn facts(&self) -> Facts {
        vec![
            ("key", Some(self.key.clone())),
            ("on since", optional_time(self.since.as_ref())),
            ("why", self.why.clone()),
            ("deletes uncounted until", optional_time(self.released_until.as_ref())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: BrakeCommand) -> Result<(), Error> {
    match command {
        BrakeCommand::List(page) => session.list::<Brake>(page).await,
        BrakeCommand::Release { id, duration, reason } => {
            let seconds = duration.map(|time| whole_seconds("--for", time)).transpose()?;
            let path = [Brake::PATH, &id, "release"];
            let body = ReleaseBrake { reason, seconds };
            session.post::<Brake>(&path, &body).await
        }
    }
}
