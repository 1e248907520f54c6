//! `slipway source …`: who declares what from files.

use clap::Subcommand;
use slipway_wire::files::{ApplySource, DeclaredObject, FileFault};

use crate::arguments::PageArguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::{Cells, Row};
use crate::output::{dash_if_empty, or_dash};
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Subcommand)]
pub enum SourceCommand {
    /// List the sources that declared something
    List(PageArguments),
    /// List what a source declared, and say what its last apply could not apply
    Get {
        /// Its name
        #[arg(value_name = "NAME")]
        source: String,
        #[command(flatten)]
        page: PageArguments,
    },
    /// List what the last apply of a source could not apply: file, line and reason
    Faults {
        /// Its name
        #[arg(value_name = "NAME")]
        source: String,
    },
}

pub(crate) const EXAMPLES: &[&str] =
    &["slipway source list", "slipway source get shop", "slipway source faults shop"];

impl Row for ApplySource {
    fn cells(&self) -> Cells {
        vec![
            ("SOURCE", self.name.clone()),
            ("OBJECTS", self.objects.to_string()),
            ("FAULTS", self.faults.to_string()),
            ("CHANGED", self.updated_at.clone()),
        ]
    }
}

impl Row for FileFault {
    fn cells(&self) -> Cells {
        vec![
            ("FILE", self.file.clone()),
            ("LINE", or_dash(self.line.map(|line| line.to_string()).as_deref())),
            ("CODE", self.code.clone()),
            ("MESSAGE", self.message.clone()),
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
            let path = ["apply-sources", &source, "objects"];
            session.list_at::<DeclaredObject>(&path, page).await?;
            let faults = faults(session, &source).await?;
            if !faults.is_empty() {
                session.terminal.say(&format!("not applied:\n  {}", faults.join("\n  ")));
            }
            Ok(())
        }
        SourceCommand::Faults { source } => {
            let found: Vec<FileFault> =
                session.client.get(&["apply-sources", &source, "faults"]).await?;
            session.show_all(&found, "faults");
            Ok(())
        }
    }
}

/// A line for each fault; none on a server that is older than this command.
async fn faults(session: &Session<'_>, source: &str) -> Result<Vec<String>, Error> {
    let found: Vec<FileFault> = match session.client.get(&["apply-sources", source, "faults"]).await
    {
        Err(error) if error.exit() == Exit::NotFound => Vec::new(),
        found => found?,
    };
    let line = |fault: &FileFault| {
        let line = fault.line.map(|line| format!(":{line}")).unwrap_or_default();
        clean(&format!("{}{line}: {}", fault.file, fault.message))
    };
    Ok(found.iter().map(line).collect())
}
