//! Projects.

use axum::http::StatusCode;
use slipway_app::catalog::projects::{self, Change, Draft};
use slipway_core::catalog::project;
use slipway_wire::catalog::{CreateProject, Project, UpdateProject};

use crate::deletion;
use crate::request::{
    Answered, Body, Call, Creation, IfMatch, Made, Segments, Shown, Tagged, create_once, text,
};

pub(super) async fn create(call: Call, new: Creation<CreateProject>) -> Made {
    let call = &call;
    let make = |body: CreateProject, request| async move {
        let mesh_cidr = body.mesh_cidr.as_deref();
        let draft = Draft { name: &body.name, labels: body.labels, mesh_cidr };
        projects::create(&call.context, &call.caller, draft, request).await
    };
    let show = |id| async move { Ok(fetch(call, &id, true).await?.created(call.below(id))) };
    create_once(call, new, make, show).await
}

pub(super) async fn list(call: Call) -> Answered {
    let (page, show_deleted) = (call.query.page()?, call.query.flag("show_deleted")?);
    let found = projects::list(&call.context, &call.caller, page, show_deleted).await?;
    Ok(call.page(found.map(document), page.limit))
}

pub(super) async fn get(call: Call, Segments([project]): Segments<1>) -> Shown<Project> {
    fetch(&call, &project, call.query.flag("show_deleted")?).await
}

pub(super) async fn update(
    call: Call,
    Segments([project]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateProject>,
) -> Shown<Project> {
    let change = Change { labels: body.labels, mesh_cidr: body.mesh_cidr.as_deref() };
    projects::update(&call.context, &call.caller, &project, change, expected).await?;
    fetch(&call, &project, false).await
}

pub(super) async fn delete(
    call: Call,
    Segments([project]): Segments<1>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let reason = call.query.get("reason");
    let id = projects::delete(&call.context, &call.caller, &project, reason, expected).await?;
    deletion::answer(&call, StatusCode::OK, id).await
}

async fn fetch(call: &Call, reference: impl ToString, show_deleted: bool) -> Shown<Project> {
    let reference = reference.to_string();
    let project = projects::fetch(&call.context, &call.caller, &reference, show_deleted).await?;
    Ok(Tagged { revision: project.revision.0, document: document(&project) })
}

fn document(project: &project::Project) -> Project {
    Project {
        id: project.id.to_string(),
        name: project.name.to_string(),
        labels: project.labels.as_map().clone(),
        mesh_cidr: project.mesh_cidr.to_string(),
        revision: project.revision.0,
        created_at: project.created_at.to_string(),
        updated_at: project.updated_at.to_string(),
        deleted_at: text(project.deleted_at),
        deletion_id: text(project.deletion_id),
    }
}
