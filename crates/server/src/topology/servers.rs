//! Servers.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_app::topology::port::{ServerFilter, ServerRow};
use slipway_app::topology::{servers, workspaces};
use slipway_core::ids::ResourceId;
use slipway_core::precondition::Expected;
use slipway_wire::topology::{Because, MarkServer, ReplaceServer, ScaleGroup, ScaledGroup, Server};

use crate::deletion;
use crate::request::{
    Answered, Body, Call, Referring, Segments, Untagged, delete_options, located,
};

pub(super) async fn list(call: Call) -> Answered {
    let page: Page<ResourceId> = call.query.page()?;
    let workspace = match call.query.get("workspace") {
        Some(text) => Some(workspaces::find(&call.context, &call.caller, text).await?),
        None => None,
    };
    let project = call.query.get("project");
    let project = workspaces::filter(&call.context, &call.caller, project, false).await?.project;
    let filter = ServerFilter { workspace, project, after: page.after, limit: page.limit };
    let found = servers::list(&call.context, &call.caller, &filter).await?;
    let listed = Listed::complete(found, page.limit, |row| row.id);
    call.named_page(listed.map(document), page.limit).await
}

fn document(row: &ServerRow) -> Server {
    Server {
        id: row.id.to_string(),
        name: row.name.clone(),
        workspace: row.workspace.clone(),
        workspace_id: row.workspace_id.to_string(),
        group: row.group.clone(),
        role: row.role.clone(),
        phase: row.phase.clone(),
    }
}

pub(super) async fn get(
    call: Call,
    Segments([workspace, server]): Segments<2>,
) -> Untagged<Server> {
    let found = servers::find(&call.context, &call.caller, &workspace, &server).await?;
    Ok(Json(shown(&found)))
}

fn shown(found: &servers::Found) -> Server {
    let servers::Found { workspace, group, server } = found;
    Server {
        id: server.id.to_string(),
        name: server.name.clone(),
        workspace: workspace.name.to_string(),
        workspace_id: workspace.id.to_string(),
        group: group.spec.name.to_string(),
        role: group.spec.role.as_str().to_owned(),
        phase: server.phase.as_str().to_owned(),
    }
}

pub(super) async fn scale_up(
    call: Call,
    Segments([workspace, group]): Segments<2>,
    Body(body): Body<ScaleGroup>,
) -> Untagged<ScaledGroup> {
    let found = servers::find_group(&call.context, &call.caller, &workspace, &group).await?;
    let wanted = servers::scale_up(&call.context, &call.caller, found.id, body.by).await?;
    Ok(Json(ScaledGroup { group: found.spec.name.to_string(), wanted, leaving: Vec::new() }))
}

pub(super) async fn scale_down_by(
    call: Call,
    Segments([workspace, group]): Segments<2>,
    Body(body): Body<ScaleGroup>,
) -> Untagged<ScaledGroup> {
    let found = servers::find_group(&call.context, &call.caller, &workspace, &group).await?;
    let options = DeleteOptions { reason: body.reason.as_deref(), ..DeleteOptions::default() };
    let gone =
        servers::scale_down_by(&call.context, &call.caller, &found, body.by, options).await?;
    let found = servers::find_group(&call.context, &call.caller, &workspace, &group).await?;
    let group = found.spec.name.to_string();
    Ok(Json(ScaledGroup { group, wanted: found.target(), leaving: gone }))
}

pub(super) async fn scale_down(
    call: Call,
    Segments([workspace, server]): Segments<2>,
    Body(body): Body<Because>,
) -> Answered {
    let reason = body.reason.as_deref();
    leave(&call, (&workspace, &server), reason, StatusCode::ACCEPTED).await
}

/// The one way down for a server of a person who is no admin.
pub(super) async fn leave(
    call: &Call,
    (workspace, server): (&str, &str),
    reason: Option<&str>,
    status: StatusCode,
) -> Answered {
    let found = servers::find(&call.context, &call.caller, workspace, server).await?;
    let options = DeleteOptions { reason, ..DeleteOptions::default() };
    let of = (found.group.id, found.server.id);
    let deletion = servers::scale_down(&call.context, &call.caller, of, options).await?;
    deletion::answer(call, status, deletion).await
}

pub(super) async fn delete(call: Call, Segments([workspace, server]): Segments<2>) -> Answered {
    let options = delete_options(&call.query, Expected::Any)?;
    let found = servers::find(&call.context, &call.caller, &workspace, &server).await?;
    let of = (found.group.id, found.server.id);
    let deletion = servers::delete(&call.context, &call.caller, of, options).await?;
    deletion::answer(&call, StatusCode::ACCEPTED, deletion).await
}

pub(super) async fn mark(
    call: Call,
    Segments([workspace, server]): Segments<2>,
    Body(body): Body<MarkServer>,
) -> Untagged<Server> {
    let found = servers::find(&call.context, &call.caller, &workspace, &server).await?;
    servers::mark(&call.context, &call.caller, &found, body.marked).await?;
    Ok(Json(shown(&found)))
}

pub(super) async fn replace(
    call: Call,
    Segments([workspace, server]): Segments<2>,
    Body(body): Body<ReplaceServer>,
) -> Answered {
    let found = servers::find(&call.context, &call.caller, &workspace, &server).await?;
    let reason = body.reason.as_deref();
    servers::replace(&call.context, &call.caller, &found, body.surge, reason).await?;
    let location = format!("/api/v1/resources/{}", found.server.id);
    Ok(located(StatusCode::ACCEPTED, location, Json(shown(&found))))
}

impl Referring for Server {}
