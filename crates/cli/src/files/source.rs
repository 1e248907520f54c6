//! `slipway source …`: who declares what from files.

use clap::Subcommand;
use slipway_wire::files::{ApplySource, DeclaredObject};

use crate::arguments::PageArguments;
use crate::error::Error;
use crate::kind::{Cells, Row};
use crate::output::dash_if_empty;
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum SourceCommand {
    /// List the sources that declared something
    List(PageArguments),
    /// List what a source declared
    Get {
        /// Its name
        #[arg(value_name = "NAME")]
        source: String,
        #[command(flatten)]
        page: PageArguments,
    },
}

pub(crate) const EXAMPLES: &[&str] = &["slipway source list", "slipway source get shop"];

impl Row for ApplySource {
    fn cells(&self) -> Cells {
        vec![
            ("SOURCE", self.name.clone()),
            ("OBJECTS", self.objects.to_string()),
            ("CHANGED", self.updated_at.clone()),
        ]
    }
}

impl Row for DeclaredObject {
    fn cells(&self) -> Cells {
        vec![
            ("OBJECT", self.object.to_string()),
            ("ORIGIN", dash_if_empty(self.origin.clone())),
            ("SHARED WITH", dash_if_empty(self.shared_with.join(", "))),
            ("FIELDS", self.fields.len().to_string()),
            ("CHANGED", self.updated_at.clone()),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: SourceCommand) -> Result<(), Error> {
    match command {
        SourceCommand::List(page) => session.list_at::<ApplySource>(&["apply-sources"], page).await,
        SourceCommand::Get { source, page } => {
            session.list_at::<DeclaredObject>(&["apply-sources", &source, "objects"], page).await
        }
    }
}
