//! `slipway cloud …`: accounts of providers.

use clap::Subcommand;
use serde_json::{Map, Value};
use slipway_wire::catalog::{Cloud, CreateCloud, UpdateCloud};

use crate::arguments::{
    DeletedListArguments, NamedArguments, NamedDeleteArguments, distinct, parse_parameter,
};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{dash_if_empty, optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum CloudCommand {
    /// Make a cloud: an account of a provider
    Create {
        /// Lowercase letters, digits and hyphens
        name: String,
        /// The provider, as blueprints name it
        #[arg(long)]
        provider: String,
        /// How the provider is reached, for instance region=eu-1; never a secret
        #[arg(long, value_name = "NAME=VALUE", value_parser = parse_parameter)]
        endpoint: Vec<(String, Value)>,
    },
    /// List clouds
    List(DeletedListArguments),
    /// Show one cloud
    Get(NamedArguments),
    /// Replace how the provider is reached
    Update {
        #[command(flatten)]
        cloud: NamedArguments,
        /// How the provider is reached; what is not given is taken away
        #[arg(long, value_name = "NAME=VALUE", value_parser = parse_parameter)]
        endpoint: Vec<(String, Value)>,
    },
    /// Delete a cloud that no credential refers to
    Delete(NamedDeleteArguments),
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway cloud create eu --provider hetzner --endpoint region=eu-central",
    "slipway cloud list",
    "slipway cloud get eu",
    "slipway cloud update eu --endpoint region=eu-north",
    "slipway cloud delete eu --yes",
];

impl Kind for Cloud {
    const PATH: &'static str = "clouds";
}

impl Row for Cloud {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("PROVIDER", self.provider.clone()),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("ENDPOINT", dash_if_empty(endpoint_text(self))),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone())]
    }
}

impl Detail for Cloud {
    const NOUN: &'static str = "cloud";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("provider", Some(self.provider.clone())),
            ("endpoint", Some(endpoint_text(self))),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

fn endpoint_text(cloud: &Cloud) -> String {
    let shown = cloud.endpoint.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

pub(crate) async fn run(session: &mut Session<'_>, command: CloudCommand) -> Result<(), Error> {
    match command {
        CloudCommand::Create { name, provider, endpoint } => {
            let endpoint = endpoint_map(endpoint)?;
            session.create::<Cloud>(&CreateCloud { name, provider, endpoint }).await
        }
        CloudCommand::List(arguments) => session.list::<Cloud>(arguments).await,
        CloudCommand::Get(arguments) => session.get::<Cloud>(&arguments.reference).await,
        CloudCommand::Update { cloud, endpoint } => {
            let body = UpdateCloud { endpoint: endpoint_map(endpoint)? };
            session.update::<Cloud>(&cloud.reference, &body).await
        }
        CloudCommand::Delete(arguments) => session.delete::<Cloud>("cloud", arguments).await,
    }
}

fn endpoint_map(pairs: Vec<(String, Value)>) -> Result<Map<String, Value>, Error> {
    Ok(distinct("--endpoint", pairs)?.into_iter().collect())
}
