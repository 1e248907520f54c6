//! `slipway label …`: what labels mean.

use clap::Subcommand;
use slipway_wire::catalog::{DefineLabel, LabelDefinition};

use crate::arguments::{DeletedListArguments, NamedArguments, NamedDeleteArguments};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{dash_if_empty, optional_time, or_dash, time, yes_no};
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
    List(DeletedListArguments),
    /// Show one definition
    Get(NamedArguments),
    /// Delete the definition of a label; labels that have the key stay
    Delete(NamedDeleteArguments),
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway label define team --description owner --propagate",
    "slipway label list",
    "slipway label get team",
    "slipway label delete team --reason unused --yes",
];

impl Kind for LabelDefinition {
    const PATH: &'static str = "labels";
}

impl Row for LabelDefinition {
    fn cells(&self) -> Cells {
        vec![
            ("KEY", self.key.clone()),
            ("PROPAGATES", yes_no(self.propagate)),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("MEANS", dash_if_empty(self.description.clone())),
        ]
    }
}

impl Detail for LabelDefinition {
    const NOUN: &'static str = "label";

    fn facts(&self) -> Facts {
        vec![
            ("key", Some(self.key.clone())),
            ("id", Some(self.id.clone())),
            ("means", Some(self.description.clone())),
            ("propagates", Some(yes_no(self.propagate))),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
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
        LabelCommand::List(arguments) => session.list::<LabelDefinition>(arguments).await,
        LabelCommand::Get(arguments) => session.get::<LabelDefinition>(&arguments.reference).await,
        LabelCommand::Delete(arguments) => {
            session.delete::<LabelDefinition>("the definition of label", arguments).await
        }
    }
}
