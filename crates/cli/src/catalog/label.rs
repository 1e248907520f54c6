//! `slipway label …`: what labels mean.

use clap::Subcommand;
use reqwest::Method;
use slipway_wire::catalog::{DefineLabel, LabelDefinition};

use crate::arguments::{NamedArguments, PageArguments};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{dash_if_empty, time, yes_no};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum LabelCommand {
    /// Define a label, and whether it becomes a tag in the cloud
    Define {
        /// The key: letters, digits and - _ . /
        // Not `key`: that is the global option of the API key.
        #[arg(value_name = "KEY")]
        label: String,
        /// What it means
        #[arg(long, default_value = "")]
        description: String,
        /// It becomes a tag in the cloud
        #[arg(long)]
        propagate: bool,
    },
    /// List label definitions
    List(PageArguments),
    /// Show one definition
    Get(NamedArguments),
    /// Delete the definition of a label; labels that have the key stay
    Delete {
        /// The key
        #[arg(value_name = "KEY")]
        label: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Succeed if there is none (any more)
        #[arg(long)]
        ignore_not_found: bool,
    },
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway label define team --description owner --propagate",
    "slipway label list",
    "slipway label get team",
    "slipway label delete team --yes",
];

impl Kind for LabelDefinition {
    const PATH: &'static str = "labels";
}

impl Row for LabelDefinition {
    fn cells(&self) -> Cells {
        vec![
            ("KEY", self.key.clone()),
            ("PROPAGATES", yes_no(self.propagate)),
            ("MEANS", dash_if_empty(self.description.clone())),
        ]
    }
}

impl Detail for LabelDefinition {
    fn facts(&self) -> Facts {
        vec![
            ("key", Some(self.key.clone())),
            ("id", Some(self.id.clone())),
            ("means", Some(self.description.clone())),
            ("propagates", Some(yes_no(self.propagate))),
            ("created", Some(time(&self.created_at))),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: LabelCommand) -> Result<(), Error> {
    match command {
        LabelCommand::Define { label: key, description, propagate } => {
            let body = DefineLabel { key, description, propagate };
            session.create::<LabelDefinition>(&body).await
        }
        LabelCommand::List(page) => session.list::<LabelDefinition>(page).await,
        LabelCommand::Get(arguments) => session.get::<LabelDefinition>(&arguments.reference).await,
        LabelCommand::Delete { label, yes, ignore_not_found } => {
            session.terminal.agree(yes, &format!("Delete the definition of label `{label}`?"))?;
            let done = session.client.silent(Method::DELETE, &["labels", &label]).await;
            session.unless_ignored(done, ignore_not_found).map(|_| ())
        }
    }
}
