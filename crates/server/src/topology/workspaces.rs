//! Workspaces.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_app::topology::workspaces;
use slipway_core::error::Refusal;
use slipway_core::ids::{PlanId, WorkspaceId};
use slipway_core::topology::group::Group;
use slipway_core::topology::server::Server;
use slipway_core::topology::{teardown, workspace};
use slipway_wire::topology::{
    self as wire, Because, CancelledTeardown, TeardownOrder, TeardownWorkspace, Workspace,
};

use crate::broker::blocker;
use crate::deletion;
use crate::error::Rejection;
use crate::request::{
    Answered, Body, Call, IfMatch, Referring, Segments, Untagged, delete_options, text,
};

pub(super) async fn list(call: Call) -> Answered {
    let page: Page<WorkspaceId> = call.query.page()?;
    let show_deleted = call.query.flag("show_deleted")?;
    let project = call.query.get("project");
    let filter = workspaces::filter(&call.context, &call.caller, project, show_deleted).await?;
    let found =
        slipway_app::kind::list::<workspace::Workspace>(&call.context, &call.caller, &filter, page)
            .await?;
    let mut documents = Vec::with_capacity(found.items.len());
    for workspace in &found.items {
        documents.push(document(&call, workspace).await?);
    }
    let listed =
        Listed { items: documents, next: found.next, quarantined: found.quarantined.clone() };
    call.named_page(listed, page.limit).await
}

pub(super) async fn get(call: Call, Segments([workspace]): Segments<1>) -> Untagged<Workspace> {
    let id = workspaces::find(&call.context, &call.caller, &workspace).await?;
    Ok(Json(shown(&call, id).await?))
}

pub(super) async fn delete(
    call: Call,
    Segments([workspace]): Segments<1>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let id = workspaces::find(&call.context, &call.caller, &workspace).await?;
    let deletion = workspaces::delete(&call.context, &call.caller, id, options).await?;
    deletion::answer(&call, StatusCode::OK, deletion).await
}

pub(super) async fn teardown(
    call: Call,
    Segments([workspace]): Segments<1>,
    Body(body): Body<TeardownWorkspace>,
) -> Answered {
    let id = workspaces::find(&call.context, &call.caller, &workspace).await?;
    if body.dry_run {
        let observed = workspaces::observed(&call.context, id).await?;
        let order = order(observed.workspace.name.as_str(), &observed.groups, &observed.servers);
        return Ok(Json(order).into_response());
    }
    let plan = body.plan.as_deref().map(str::parse::<PlanId>).transpose();
    let options = DeleteOptions {
        reason: body.reason.as_deref(),
        plan: plan.map_err(|error| Refusal::from(error).at("plan"))?,
        break_glass: body.break_glass,
        ..DeleteOptions::default()
    };
    let deletion =
        workspaces::teardown(&call.context, &call.caller, id, &body.confirm, options).await?;
    deletion::answer(&call, StatusCode::ACCEPTED, deletion).await
}

/// The servers in the order in which they would go.
fn order(name: &str, groups: &[Group], servers: &[Server]) -> TeardownOrder {
    let of = |group: &Group| {
        let mut of: Vec<&Server> =
            servers.iter().filter(|server| server.group_id == group.id).collect();
        of.sort_by_key(|server| std::cmp::Reverse((server.created_at, server.id)));
        of.into_iter().map(|server| server.name.clone()).collect()
    };
    let stage = |groups: Vec<&Group>| wire::TeardownStage {
        groups: groups
            .into_iter()
            .map(|group| wire::TeardownGroup {
                group: group.spec.name.to_string(),
                role: group.spec.role.as_str().to_owned(),
                servers: of(group),
            })
            .collect(),
    };
    let stages = teardown::order(groups).into_iter().map(stage).collect();
    TeardownOrder { workspace: name.to_owned(), stages }
}

pub(super) async fn cancel(
    call: Call,
    Segments([workspace]): Segments<1>,
    Body(body): Body<Because>,
) -> Untagged<CancelledTeardown> {
    let id = workspaces::find(&call.context, &call.caller, &workspace).await?;
    let reason = body.reason.as_deref();
    let left = workspaces::cancel(&call.context, &call.caller, id, reason).await?;
    let workspaces::Left { workspace, gone, leaving, staying } = left;
    Ok(Json(CancelledTeardown { workspace, gone, leaving, staying }))
}

pub(super) async fn pause(
    call: Call,
    Segments([workspace]): Segments<1>,
    Body(body): Body<Because>,
) -> Untagged<Workspace> {
    let id = workspaces::find(&call.context, &call.caller, &workspace).await?;
    workspaces::pause(&call.context, &call.caller, id, body.reason.as_deref()).await?;
    Ok(Json(shown(&call, id).await?))
}

pub(super) async fn resume(
    call: Call,
    Segments([workspace]): Segments<1>,
    Body(body): Body<Because>,
) -> Untagged<Workspace> {
    let id = workspaces::find(&call.context, &call.caller, &workspace).await?;
    workspaces::resume(&call.context, &call.caller, id, body.reason.as_deref()).await?;
    Ok(Json(shown(&call, id).await?))
}

async fn shown(call: &Call, id: WorkspaceId) -> Result<Workspace, Rejection> {
    let found = slipway_app::kind::fetch::<workspace::Workspace>(
        &call.context,
        &call.caller,
        &id.to_string(),
        true,
    )
    .await?;
    let document = document(call, &found).await?;
    call.named(document).await
}

async fn document(call: &Call, workspace: &workspace::Workspace) -> Result<Workspace, Rejection> {
    let observed = workspaces::groups(&call.context, workspace).await?;
    let mut groups = observed.groups;
    // What the graph puts first comes first.
    let position: BTreeMap<String, usize> = teardown::order(&groups)
        .into_iter()
        .rev()
        .flatten()
        .enumerate()
        .map(|(position, group)| (group.spec.name.to_string(), position))
        .collect();
    groups.sort_by_key(|group| position.get(group.spec.name.as_str()).copied());
    let groups = groups.iter().map(|group| group_document(group, &observed.servers)).collect();
    Ok(Workspace {
        id: workspace.id.to_string(),
        name: workspace.name.to_string(),
        project: None,
        project_id: workspace.project_id.to_string(),
        groups,
        paused_at: text(workspace.paused_at),
        blockers: observed.blockers.iter().map(|one| blocker(one, "<resource>")).collect(),
        revision: workspace.revision.0,
        created_at: workspace.created_at.to_string(),
        updated_at: workspace.updated_at.to_string(),
        deleted_at: text(workspace.deleted_at),
        deletion_id: text(workspace.deletion_id),
    })
}

fn group_document(group: &Group, servers: &[Server]) -> wire::Group {
    let of = || servers.iter().filter(|server| server.group_id == group.id);
    let count = |found: usize| u32::try_from(found).unwrap_or(u32::MAX);
    let spec = &group.spec;
    wire::Group {
        name: spec.name.to_string(),
        single: spec.single,
        role: spec.role.as_str().to_owned(),
        wanted: group.target(),
        min: spec.min,
        max: spec.max,
        servers: count(of().count()),
        ready: count(of().filter(|server| server.is_counted()).count()),
        hostname_pattern: spec.hostname_pattern.clone(),
        blueprint: spec.blueprint.clone(),
        depends_on: spec.depends_on.clone(),
        delete_lock: spec.delete_lock,
        dropped: group.dropped,
    }
}

impl Referring for Workspace {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(Some(&self.project_id), &mut self.project)]
    }
}
