//! `slipway cluster …`: where projects are placed.

use clap::Subcommand;
use slipway_wire::placement::{
    AbandonCluster, AssignCluster, Cluster, ClusterAssignment, CreateCluster, ProviderStatus,
    UpdateCluster,
};

use crate::arguments::{DeletedListArguments, NamedArguments, NamedDeleteArguments, PageArguments};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{dash_if_empty, lines_of, name_and_id, optional_time, or_dash, time};
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Subcommand)]
pub enum ClusterCommand {
    /// Register a cluster; it is ready once a control plane serves it
    Create {
        /// Lowercase letters, digits and hyphens
        name: String,
        /// local, crossplane, manual or hetzner
        #[arg(long)]
        engine: String,
        /// What the namespaces of projects begin with
        #[arg(long)]
        namespace_prefix: Option<String>,
        /// Where it is, for placing projects by region
        #[arg(long)]
        region: Option<String>,
        /// How it is reached: in-cluster, kubeconfig/<name of a file in kubeconfig_dir>, or
        /// hetzner/<name of a file in provider_token_dir>
        #[arg(long)]
        access: Option<String>,
        /// Protect it from deletion
        #[arg(long)]
        protected: bool,
    },
    /// List clusters
    List(DeletedListArguments),
    /// Show one cluster
    Get(NamedArguments),
    /// Change how a cluster is reached, where it is, or the prefix of new namespaces
    #[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
    Update {
        #[command(flatten)]
        cluster: NamedArguments,
        /// How it is reached: in-cluster, kubeconfig/<name of a file in kubeconfig_dir>, or
        /// hetzner/<name of a file in provider_token_dir>
        #[arg(long, group = "change")]
        access: Option<String>,
        /// Where it is; empty for nowhere
        #[arg(long, group = "change")]
        region: Option<String>,
        /// What the namespaces of projects that are placed later begin with
        #[arg(long, group = "change")]
        namespace_prefix: Option<String>,
    },
    /// Delete a cluster on which nothing is placed
    Delete(NamedDeleteArguments),
    /// Place a project on a cluster; fixed while the project owns resources
    Assign {
        /// Cluster: name, id or beginning of the id
        #[arg(required_unless_present = "region", conflicts_with = "region")]
        cluster: Option<String>,
        /// Any usable cluster of this region, the one with the fewest projects
        #[arg(long)]
        region: Option<String>,
        /// Project: name, id or beginning of the id
        #[arg(long)]
        project: String,
    },
    /// Withdraw a project without resources from its cluster
    Unassign {
        /// Project: name, id or beginning of the id
        #[arg(long)]
        project: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Take a project from a cluster that is lost for good
    ///
    /// Only after `slipway cluster unassign` (or the deletion of the project), and only if
    /// the cluster cannot be used any more or its namespace is not gone in time. `slipway
    /// leaks` lists what may still be there.
    Abandon {
        /// Project: name, id or beginning of the id
        #[arg(long)]
        project: String,
        /// Why nobody can prove the namespace gone any more
        #[arg(long)]
        reason: String,
        /// The project once more, where nobody can be asked to type it
        #[arg(long, value_name = "PROJECT")]
        confirm: Option<String>,
    },
    /// List the cluster of each project
    Assignments(PageArguments),
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway cluster create eu-1 --engine crossplane --access kubeconfig/eu-1 --region eu",
    "slipway cluster list",
    "slipway cluster get local",
    "slipway cluster update eu-1 --access kubeconfig/eu-1-new",
    "slipway cluster delete eu-1 --reason moved --yes",
    "slipway cluster assign eu-1 --project shop",
    "slipway cluster unassign --project shop --yes",
    "slipway cluster abandon --project shop --reason cluster-is-lost --confirm shop",
    "slipway cluster assignments",
];

impl Kind for Cluster {
    const PATH: &'static str = "clusters";
}

impl Row for Cluster {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("ENGINE", self.engine.clone()),
            ("REGION", or_dash(self.region.as_deref())),
            ("USABLE", usable(self)),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ACCESS", or_dash(self.access.as_deref())), ("ID", self.id.clone())]
    }
}

impl Detail for Cluster {
    const NOUN: &'static str = "cluster";

    fn facts(&self) -> Facts {
        let found = self.verification.as_ref();
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("engine", Some(self.engine.clone())),
            ("identity", self.substrate_uid.clone()),
            ("namespaces", Some(format!("{}<project id>", self.namespace_prefix))),
            ("region", self.region.clone()),
            ("access", self.access.clone()),
            ("usable", Some(usable(self))),
            ("problem", found.and_then(|found| found.problem.clone())),
            ("found", found.map(|found| lines_of(&found.facts))),
            ("looked", found.map(|found| time(&found.verified_at))),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

/// Whether projects can be placed there now.
fn usable(cluster: &Cluster) -> String {
    let usable = match &cluster.verification {
        _ if cluster.substrate_uid.is_none() => "not yet",
        Some(found) if found.problem.is_some() => "no",
        _ => "yes",
    };
    usable.to_owned()
}

impl Row for ClusterAssignment {
    fn cells(&self) -> Cells {
        vec![
            ("PROJECT", self.project.as_ref().unwrap_or(&self.project_id).clone()),
            ("CLUSTER", self.cluster.as_ref().unwrap_or(&self.cluster_id).clone()),
            ("PHASE", self.namespace_phase.clone()),
            ("AGE", self.created_at.clone()),
            ("PROBLEMS", dash_if_empty(self.problems.join("; "))),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("NAMESPACE", self.namespace.clone()),
            ("PROJECT ID", self.project_id.clone()),
            ("CLUSTER ID", self.cluster_id.clone()),
        ]
    }
}

impl Detail for ClusterAssignment {
    fn facts(&self) -> Facts {
        let providers: Vec<_> = self.providers.iter().map(provider).collect();
        vec![
            ("project", Some(name_and_id(self.project.as_deref(), &self.project_id))),
            ("cluster", Some(name_and_id(self.cluster.as_deref(), &self.cluster_id))),
            ("namespace", Some(self.namespace.clone())),
            ("phase", Some(self.namespace_phase.clone())),
            ("leaving since", optional_time(self.withdrawn_at.as_ref())),
            ("providers", Some(providers.join(", "))),
            ("problems", Some(self.problems.join("; "))),
            ("since", Some(time(&self.updated_at))),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

fn provider(found: &ProviderStatus) -> String {
    let problem = found.problem.as_ref().map(|problem| format!(" ({problem})"));
    let credential = found.credential.as_ref().filter(|_| found.provider_config != found.provider);
    let credential = credential.map(|name| format!(" of credential {name}")).unwrap_or_default();
    format!("{}{credential} {}{}", found.provider_config, found.phase, problem.unwrap_or_default())
}

pub(crate) async fn run(session: &mut Session<'_>, command: ClusterCommand) -> Result<(), Error> {
    match command {
        ClusterCommand::Create { name, engine, namespace_prefix, region, access, protected } => {
            let body = CreateCluster { name, engine, namespace_prefix, region, access, protected };
            session.create::<Cluster>(&body).await
        }
        ClusterCommand::List(arguments) => session.list::<Cluster>(arguments).await,
        ClusterCommand::Get(arguments) => session.get::<Cluster>(&arguments.reference).await,
        ClusterCommand::Update { cluster, access, region, namespace_prefix } => {
            let body = UpdateCluster { namespace_prefix, region, access };
            session.update::<Cluster>(&cluster.reference, &body).await
        }
        ClusterCommand::Delete(arguments) => session.delete::<Cluster>("cluster", arguments).await,
        ClusterCommand::Assign { cluster, region, project } => {
            let body = AssignCluster { cluster, region };
            let path = ["projects", &project, "cluster"];
            let assigned: ClusterAssignment = session.client.put(&path, &body).await?;
            session.show_details(&assigned);
            Ok(())
        }
        ClusterCommand::Unassign { project, yes } => {
            let question = format!("Take project `{project}` from its cluster?");
            session.terminal.agree(yes, &question)?;
            let path = ["projects", &project, "cluster"];
            // The server answers the assignment while its namespace terminates.
            let leaving: Option<ClusterAssignment> = session.client.delete(&path, &[]).await?;
            if let Some(leaving) = leaving {
                session.show_details(&leaving);
            }
            Ok(())
        }
        ClusterCommand::Abandon { project, reason, confirm } => {
            let harm = "What is left on the cluster may run on and cost";
            let confirm = session.terminal.typed(confirm, &project, harm)?;
            let path = ["projects", &project, "cluster", "abandon"];
            let body = AbandonCluster { reason, confirm };
            let left: ClusterAssignment = session.client.post(&path, &body).await?;
            // The answer has the placement as it was, so a table of it would mislead.
            session.show(&left, |left, _| {
                let cluster = left.cluster.as_ref().unwrap_or(&left.cluster_id);
                clean(&format!(
                    "project `{project}` is no longer on cluster `{cluster}`: its namespace {} was abandoned, and a leak record has what may be left (`slipway leaks`)",
                    left.namespace
                ))
            });
            Ok(())
        }
        ClusterCommand::Assignments(page) => {
            session.list_at::<ClusterAssignment>(&["cluster-assignments"], page).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_shown_by_its_config_and_one_of_a_credential_with_it() {
        let status = |config: &str, problem: Option<&str>| ProviderStatus {
            provider: "hetzner".to_owned(),
            provider_config: config.to_owned(),
            credential: Some("second".to_owned()),
            credential_id: "0192f0c1-0000-7000-8000-000000000001".to_owned(),
            phase: "Ready".to_owned(),
            problem: problem.map(str::to_owned),
        };
        assert_eq!(provider(&status("hetzner", Some("why"))), "hetzner Ready (why)");
        let own = status("hetzner-000000000001", None);
        assert_eq!(provider(&own), "hetzner-000000000001 of credential second Ready");
    }
}
