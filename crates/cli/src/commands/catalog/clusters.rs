//! `slipway cluster …`.

use reqwest::Method;
use slipway_wire::catalog::{AssignCluster, Cluster, ClusterAssignment, CreateCluster};

use crate::arguments::ClusterCommand;
use crate::commands::run::Session;
use crate::error::Error;
use crate::render;

pub(in crate::commands) async fn run(
    session: &mut Session<'_>,
    command: ClusterCommand,
) -> Result<(), Error> {
    match command {
        ClusterCommand::Create(arguments) => {
            let body = CreateCluster {
                name: arguments.name,
                engine: arguments.engine,
                namespace_prefix: arguments.namespace_prefix,
                region: arguments.region,
                access: arguments.access,
            };
            let cluster: Cluster = session.client.create(&["clusters"], &body).await?;
            session.show(&cluster, render::cluster);
        }
        ClusterCommand::List(page) => {
            let listed = session.client.list_all(&["clusters"], false, page.limit).await?;
            session.show_list(&listed, render::clusters);
        }
        ClusterCommand::Get(arguments) => {
            let path = ["clusters", &arguments.reference];
            let cluster: Cluster = session.client.fetch(&path).await?;
            session.show(&cluster, render::cluster);
        }
        ClusterCommand::Assign(arguments) => {
            let body = AssignCluster { cluster: arguments.cluster, region: arguments.region };
            let path = ["projects", &arguments.project, "cluster"];
            let place: ClusterAssignment = session.client.replace(&path, &body).await?;
            session.show(&place, render::cluster_assignment);
        }
        ClusterCommand::Unassign(arguments) => {
            let project = &arguments.project;
            session.agree(arguments.yes, &format!("Take project `{project}` from its cluster?"))?;
            let path = ["projects", project, "cluster"];
            let leaving = session.client.accepted::<ClusterAssignment>(Method::DELETE, &path);
            if let Some(place) = leaving.await? {
                session.show(&place, render::cluster_assignment);
            }
        }
        ClusterCommand::Assignments(page) => {
            let path = ["cluster-assignments"];
            let listed = session.client.list_all(&path, false, page.limit).await?;
            session.show_list(&listed, render::cluster_assignments);
        }
    }
    Ok(())
}
