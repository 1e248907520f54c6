//! `slipway project …`: what resources belong to.

use clap::Subcommand;
use slipway_wire::catalog::{CreateProject, Project, UpdateProject};

use crate::arguments::{
    DeletedListArguments, NamedArguments, NamedDeleteArguments, distinct, parse_pair,
};
use crate::catalog::relabel::RelabelArguments;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{dash_if_empty, optional_time, or_dash, pairs, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum ProjectCommand {
    /// Make a project
    Create {
        /// Lowercase letters, digits and hyphens
        name: String,
        /// A label, which resources in the project inherit
        #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
        labels: Vec<(String, String)>,
        /// The network that its nodes get their addresses from, for instance
        /// 10.42.0.0/16 or fd00:42::/64; 100.64.0.0/10 if not given
        #[arg(long, value_name = "CIDR")]
        mesh_cidr: Option<String>,
        /// Protect it from deletion
        #[arg(long)]
        protected: bool,
    },
    /// List projects
    List(DeletedListArguments),
    /// Show one project
    Get(NamedArguments),
    /// Replace all labels of a project, or change some; resources in it inherit them
    Relabel {
        #[command(flatten)]
        project: NamedArguments,
        #[command(flatten)]
        labels: RelabelArguments,
    },
    /// Change the mesh of a project while no node has an address of it
    Mesh {
        #[command(flatten)]
        project: NamedArguments,
        /// The network that its nodes get their addresses from
        #[arg(value_name = "CIDR")]
        mesh_cidr: String,
    },
    /// Delete a project, and with --cascade what is in it
    Delete {
        #[command(flatten)]
        project: NamedDeleteArguments,
        /// Take its resources down first, in order
        #[arg(long)]
        cascade: bool,
    },
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway project create shop -l team=blue",
    "slipway project list",
    "slipway project list --show-deleted",
    "slipway project get shop",
    "slipway project relabel shop -l team=red",
    "slipway project relabel shop --add tier=web --remove team",
    "slipway project mesh shop 10.42.0.0/16",
    "slipway project delete shop --reason closed --yes",
    "slipway project delete shop --cascade --grace 24h --reason closed --yes",
];

impl Kind for Project {
    const PATH: &'static str = "projects";
}

impl Row for Project {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("LABELS", dash_if_empty(pairs(&self.labels))),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("MESH", self.mesh_cidr.clone()), ("ID", self.id.clone())]
    }
}

impl Detail for Project {
    const NOUN: &'static str = "project";

    fn open_deletion(&self) -> Option<&str> {
        self.deletion_id.as_deref().filter(|_| self.deleted_at.is_none())
    }

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("labels", Some(pairs(&self.labels))),
            ("mesh", Some(self.mesh_cidr.clone())),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: ProjectCommand) -> Result<(), Error> {
    match command {
        ProjectCommand::Create { name, labels, mesh_cidr, protected } => {
            let labels = distinct("--label", labels)?;
            let body = CreateProject { name, labels, mesh_cidr, protected };
            session.create::<Project>(&body).await
        }
        ProjectCommand::List(arguments) => session.list::<Project>(arguments).await,
        ProjectCommand::Get(arguments) => session.get::<Project>(&arguments.reference).await,
        ProjectCommand::Relabel { project, labels } => {
            labels.check(session.terminal)?;
            let found: Project = session.client.get(&[Project::PATH, &project.reference]).await?;
            let now = (&found.labels, found.revision);
            let relabelling = labels.apply(session.terminal, &found.name, now)?;
            session.relabel::<Project>(&found.id, relabelling).await
        }
        ProjectCommand::Mesh { project, mesh_cidr } => {
            let body = UpdateProject { mesh_cidr: Some(mesh_cidr), ..UpdateProject::default() };
            session.update::<Project>(&project.reference, &body).await
        }
        ProjectCommand::Delete { project, cascade } => {
            let mut query = project.deletion.query();
            query.extend(cascade.then(|| ("cascade", true.to_string())));
            session.delete_with::<Project>("project", project, query).await
        }
    }
}
