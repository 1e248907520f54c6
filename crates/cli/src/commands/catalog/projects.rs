//! `slipway project …`.

use slipway_wire::catalog::{CreateProject, Project, Relabel, UpdateProject};

use crate::arguments::ProjectCommand;
use crate::commands::run::{Session, distinct};
use crate::error::Error;
use crate::render;

pub(in crate::commands) async fn run(
    session: &mut Session<'_>,
    command: ProjectCommand,
) -> Result<(), Error> {
    match command {
        ProjectCommand::Create(arguments) => {
            let labels = distinct("--label", arguments.labels)?;
            let mesh_cidr = arguments.mesh_cidr;
            let body = CreateProject { name: arguments.name, labels, mesh_cidr };
            let project: Project = session.client.create(&["projects"], &body).await?;
            session.show(&project, render::project);
        }
        ProjectCommand::List(arguments) => {
            let (deleted, limit) = (arguments.show_deleted, arguments.page.limit);
            let listed = session.client.list_all(&["projects"], deleted, limit).await?;
            session.show_list(&listed, render::projects);
        }
        ProjectCommand::Get(arguments) => {
            let path = ["projects", &arguments.reference];
            let project: Project = session.client.fetch(&path).await?;
            session.show(&project, render::project);
        }
        ProjectCommand::Relabel(arguments) => {
            let body = Relabel { labels: distinct("--label", arguments.labels)? };
            let path = ["projects", &arguments.reference];
            let project: Project = session.client.update(&path, &body).await?;
            session.show(&project, render::project);
        }
        ProjectCommand::Mesh(arguments) => {
            let mesh_cidr = Some(arguments.mesh_cidr);
            let body = UpdateProject { mesh_cidr, ..UpdateProject::default() };
            let path = ["projects", &arguments.reference];
            let project: Project = session.client.update(&path, &body).await?;
            session.show(&project, render::project);
        }
        ProjectCommand::Delete(arguments) => {
            let name = &arguments.reference;
            session.agree(arguments.yes, &format!("Delete project `{name}`?"))?;
            let reason = arguments.reason.as_deref();
            let deletion = session.client.delete(&["projects", name], reason).await?;
            session.show(&deletion, render::deletion);
        }
    }
    Ok(())
}
