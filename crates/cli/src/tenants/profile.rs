//! `slipway tenant-profile …`: where tenants live, and how they are made.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::Value;
use slipway_wire::tenants::{CreateTenantProfile, TenantProfile, UpdateTenantProfile};

use crate::arguments::{DeletedListArguments, NamedArguments, NamedDeleteArguments};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{dash_if_empty, optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum ProfileCommand {
    /// Create a profile from a file with its settings
    Create {
        /// The name: a DNS label
        name: String,
        /// A YAML or JSON file: engine, target, prefix, migrations, seeds, secrets, steps
        #[arg(long, value_name = "FILE")]
        settings: PathBuf,
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
    },
    /// Change a profile; one with tenants keeps its engine and prefix
    Update {
        /// Its name or id
        name: String,
        /// A YAML or JSON file with all settings
        #[arg(long, value_name = "FILE")]
        settings: Option<PathBuf>,
        /// What it is for
        #[arg(long)]
        description: Option<String>,
    },
    /// List profiles
    List(DeletedListArguments),
    /// Show one profile; admins see its settings
    Get(NamedArguments),
    /// Delete a profile that has no tenants
    Delete(NamedDeleteArguments),
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway tenant-profile create files --settings profile.yaml",
    "slipway tenant-profile update files --settings profile.yaml",
    "slipway tenant-profile list",
    "slipway tenant-profile get files",
    "slipway tenant-profile delete files --reason unused --yes",
];

impl Kind for TenantProfile {
    const PATH: &'static str = "tenant-profiles";
}

impl Row for TenantProfile {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("ENGINE", self.engine.clone()),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("ABOUT", dash_if_empty(self.description.clone())),
        ]
    }
}

impl Detail for TenantProfile {
    const NOUN: &'static str = "tenant-profile";

    fn facts(&self) -> Facts {
        let shown = |settings: &Value| serde_json::to_string_pretty(settings).unwrap_or_default();
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("engine", Some(self.engine.clone())),
            ("about", Some(self.description.clone()).filter(|about| !about.is_empty())),
            ("settings", self.settings.as_ref().map(shown)),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

fn read(path: &Path) -> Result<Value, Error> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::Usage(format!("cannot read {shown}: {error}")))?;
    // JSON is YAML.
    serde_yaml_ng::from_str(&text)
        .map_err(|error| Error::Usage(format!("{shown} is no YAML or JSON: {error}")))
}

pub(crate) async fn run(session: &mut Session<'_>, command: ProfileCommand) -> Result<(), Error> {
    match command {
        ProfileCommand::Create { name, settings, description } => {
            let body = CreateTenantProfile { name, description, settings: read(&settings)? };
            session.create::<TenantProfile>(&body).await
        }
        ProfileCommand::Update { name, settings, description } => {
            let settings = settings.as_deref().map(read).transpose()?;
            let body = UpdateTenantProfile { description, settings };
            session.update::<TenantProfile>(&name, &body).await
        }
        ProfileCommand::List(arguments) => session.list::<TenantProfile>(arguments).await,
        ProfileCommand::Get(arguments) => session.get::<TenantProfile>(&arguments.reference).await,
        ProfileCommand::Delete(arguments) => {
            session.delete::<TenantProfile>("the tenant profile", arguments).await
        }
    }
}
