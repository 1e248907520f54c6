//! `slipway blueprint …`: what resources are made from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use slipway_wire::catalog::{Blueprint, BlueprintVersion, CreateBlueprint};
use slipway_wire::placement::BlueprintDefinitions;

use super::bundle::{self, Bundle};
use super::{import, parameters};
use crate::arguments::{DeletedListArguments, NamedArguments, NamedDeleteArguments, PageArguments};
use crate::client::Listing;
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{dash_if_empty, optional_time, or_dash, time};
use crate::rollouts::rollout::{self, UpgradeArguments};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum BlueprintCommand {
    /// Make a blueprint; versions are published to it
    Create {
        /// Lowercase letters, digits and hyphens
        slug: String,
        /// What people call it
        #[arg(long)]
        display_name: String,
        /// What it makes
        #[arg(long, default_value = "")]
        description: String,
        /// Who makes it: local, crossplane, manual or hetzner
        #[arg(long)]
        engine: String,
        /// Protect it from deletion
        #[arg(long)]
        protected: bool,
    },
    /// Publish a version from a folder with metadata.json, xrd.yaml and composition.yaml
    Publish {
        /// The folder, called as the blueprint's slug
        #[arg(short, long = "folder", value_name = "FOLDER")]
        folder: PathBuf,
        /// Install XRD and Composition on every cluster that has a project
        #[arg(long)]
        install_definitions: bool,
    },
    /// Publish every blueprint of a catalog that is not there yet, for engine crossplane
    Import {
        /// A folder of blueprints, one that holds it as `catalog`, or the folder of one blueprint
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Install XRDs and Compositions on every cluster that has a project
        #[arg(long)]
        install_definitions: bool,
    },
    /// Check folders without a server, as publishing and importing do; names all faults
    Check {
        /// The folder of one blueprint, a folder of blueprints, or one that holds it as `catalog`
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// List blueprints
    List(DeletedListArguments),
    /// Show one blueprint
    Get(NamedArguments),
    /// List the versions of a blueprint
    Versions(VersionsArguments),
    /// Show one version of a blueprint with its parameters
    Version {
        /// Slug or id of the blueprint
        blueprint: String,
        /// The version; the newest that is not retired if not given
        #[arg(value_name = "VERSION")]
        shown: Option<String>,
    },
    /// Retire a version: it takes no new declarations, existing resources stay
    Retire {
        /// Slug or id of the blueprint
        blueprint: String,
        /// The version
        #[arg(value_name = "VERSION")]
        retired: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Give its resources another version of it, in waves and within limits: a roll-out
    Upgrade(Box<UpgradeArguments>),
    /// Delete a blueprint that nothing is made from, with its versions; what is installed on
    /// clusters stays
    Delete(NamedDeleteArguments),
    /// List the clusters that definitions of a blueprint are installed on, and the version found there
    Definitions(VersionsArguments),
    /// Print the role that the control plane needs for the composites, for kubectl apply
    Rbac(NamedArguments),
}

#[derive(Debug, Clone, Args)]
pub struct VersionsArguments {
    /// Slug or id of the blueprint
    pub blueprint: String,
    #[command(flatten)]
    pub page: PageArguments,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway blueprint create server --display-name Server --engine crossplane",
    "slipway blueprint publish --folder blueprints/server",
    "slipway blueprint publish --folder blueprints/server --install-definitions",
    "slipway blueprint check catalog",
    "slipway blueprint import catalog",
    "slipway blueprint import catalog/server -o json",
    "slipway blueprint list",
    "slipway blueprint get local-node",
    "slipway blueprint versions local-node",
    "slipway blueprint version local-node",
    "slipway blueprint version server v1 -o json",
    "slipway blueprint retire server v1 --yes",
    "slipway blueprint upgrade server --to v2 --dry-run",
    "slipway blueprint upgrade server --to v2 --wave env=test --wave env=prod --wait",
    "slipway blueprint delete server --reason replaced --yes",
    "slipway blueprint definitions server",
    "slipway blueprint rbac server | kubectl apply -f -",
];

impl Kind for Blueprint {
    const PATH: &'static str = "blueprints";
}

impl Row for Blueprint {
    fn cells(&self) -> Cells {
        vec![
            ("SLUG", self.slug.clone()),
            ("ENGINE", self.engine.clone()),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("CALLED", self.display_name.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone())]
    }
}

impl Detail for Blueprint {
    const NOUN: &'static str = "blueprint";

    fn facts(&self) -> Facts {
        vec![
            ("slug", Some(self.slug.clone())),
            ("id", Some(self.id.clone())),
            ("called", Some(self.display_name.clone())),
            ("description", Some(self.description.clone())),
            ("engine", Some(self.engine.clone())),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

impl Row for BlueprintVersion {
    fn cells(&self) -> Cells {
        vec![
            ("VERSION", self.version.clone()),
            ("ROLE", self.mesh_role.clone()),
            ("PUBLISHED", self.published_at.clone()),
            ("RETIRED", or_dash(self.retired_at.as_deref())),
            ("PROVIDERS", dash_if_empty(self.provider_kinds.join(", "))),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone())]
    }
}

impl Detail for BlueprintVersion {
    fn facts(&self) -> Facts {
        let parameters = parameters::schema(self).map(|schema| parameters::lines(&schema));
        let composite = self.composite.as_ref();
        vec![
            ("version", Some(format!("{}@{}", self.blueprint, self.version))),
            ("id", Some(self.id.clone())),
            ("providers", Some(self.provider_kinds.join(", "))),
            ("role", Some(self.mesh_role.clone())),
            ("injection", Some(self.injection_strategy.clone())),
            ("parameters", parameters),
            ("composite", composite.map(|kind| format!("{} {}", kind.api_version, kind.kind))),
            (
                "definitions installed",
                self.install_definitions.then(|| "to every cluster of a project".to_owned()),
            ),
            ("composition", self.composition_name.clone()),
            ("surge", self.surge.then(|| "two attempts may stand at once".to_owned())),
            ("published", Some(time(&self.published_at))),
            ("retired", optional_time(self.retired_at.as_ref())),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: BlueprintCommand) -> Result<(), Error> {
    match command {
        BlueprintCommand::Create { slug, display_name, description, engine, protected } => {
            let body = CreateBlueprint { slug, display_name, description, engine, protected };
            session.create::<Blueprint>(&body).await
        }
        BlueprintCommand::Publish { folder, install_definitions } => {
            let read = bundle::read(&folder).map_err(|errors| Error::Faults {
                code: "usage",
                message: format!("{} cannot be published; nothing was sent", folder.display()),
                errors,
                exit: Exit::Usage,
            });
            let Bundle { slug, mut body, .. } = read?;
            body.install_definitions = install_definitions;
            session.post::<BlueprintVersion>(&["blueprints", &slug, "versions"], &body).await
        }
        BlueprintCommand::Import { folder, install_definitions } => {
            import::run(session, &folder, install_definitions).await
        }
        BlueprintCommand::Check { folder } => import::check(session, &folder),
        BlueprintCommand::List(arguments) => session.list::<Blueprint>(arguments).await,
        BlueprintCommand::Get(arguments) => session.get::<Blueprint>(&arguments.reference).await,
        BlueprintCommand::Delete(arguments) => {
            session.delete::<Blueprint>("blueprint", arguments).await
        }
        BlueprintCommand::Versions(VersionsArguments { blueprint, page }) => {
            let path = ["blueprints", &blueprint, "versions"];
            session.list_at::<BlueprintVersion>(&path, page).await
        }
        BlueprintCommand::Version { blueprint, shown } => {
            let path = ["blueprints", &blueprint, "versions"];
            let version = match shown {
                Some(version) => {
                    session.client.get(&[path.as_slice(), &[&version]].concat()).await?
                }
                None => {
                    let all = session.client.list(&path, Listing::default()).await?.items;
                    newest(&all).cloned().ok_or_else(|| {
                        Error::Usage(format!("blueprint `{blueprint}` has no version yet"))
                    })?
                }
            };
            session.show_details::<BlueprintVersion>(&version);
            Ok(())
        }
        BlueprintCommand::Definitions(VersionsArguments { blueprint, page }) => {
            let path = ["blueprints", &blueprint, "definitions"];
            session.list_at::<BlueprintDefinitions>(&path, page).await
        }
        BlueprintCommand::Rbac(arguments) => {
            let path = ["blueprints", &arguments.reference, "versions"];
            let versions = session.client.list(&path, Listing::default()).await?.items;
            let role = role(session, &arguments.reference, &versions)?;
            session.terminal.print(&role);
            Ok(())
        }
        BlueprintCommand::Upgrade(arguments) => {
            Box::pin(rollout::upgrade(session, *arguments)).await
        }
        BlueprintCommand::Retire { blueprint: slug, retired: version, yes } => {
            let question = format!("Take no new declarations from `{slug}` version `{version}`?");
            session.terminal.agree(yes, &question)?;
            let path = ["blueprints", &slug, "versions", &version, "retire"];
            let retired: BlueprintVersion = session.client.invoke(&path).await?;
            session.show_details(&retired);
            Ok(())
        }
    }
}

/// The newest version that is not retired, else the newest.
pub(crate) fn newest<'a>(
    versions: impl IntoIterator<Item = &'a BlueprintVersion>,
) -> Option<&'a BlueprintVersion> {
    let age =
        |version: &&BlueprintVersion| (version.retired_at.is_none(), version.published_at.clone());
    versions.into_iter().max_by_key(age)
}

fn role(session: &Session<'_>, slug: &str, versions: &[BlueprintVersion]) -> Result<String, Error> {
    let newest = newest(versions.iter().filter(|version| version.composite.is_some()));
    let Some((version, composite)) =
        newest.and_then(|version| Some((version, version.composite.as_ref()?)))
    else {
        return Err(Error::Usage(format!(
            "blueprint `{slug}` has no version with composites; only engine crossplane makes any"
        )));
    };
    (session.renderers.role)(&version.blueprint, composite).map_err(|reason| Error::Unreadable {
        server: session.server.clone(),
        reason: format!("the role for `{slug}` cannot be written out: {reason}"),
    })
}
