//! Projects.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use slipway_app::ports::store::Page;
use slipway_app::usecases::catalog::projects::{self, Change, Draft};
use slipway_core::ids::ProjectId;
use slipway_wire::catalog::{CreateProject, UpdateProject};

use super::documents::{self, deleted, tagged};
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Segments};
use crate::once::{self, Creation};
use crate::precondition::IfMatch;
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/projects";

pub(super) async fn create(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<CreateProject>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let create = |request| async {
        let mesh_cidr = body.mesh_cidr.as_deref();
        let draft = Draft { name: &body.name, labels: body.labels, mesh_cidr };
        let made = projects::create(context, caller, draft, request).await?;
        Ok(made.as_uuid())
    };
    let show = |id: uuid::Uuid| async move {
        let project = projects::fetch(context, caller, &id.to_string(), true).await?;
        let document = documents::project(&project);
        let location = format!("{PATH}/{id}");
        Ok(once::answer(StatusCode::CREATED, &document, location, document.revision))
    };
    once::once(&state, caller, claim, create, show).await
}

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<ProjectId> = parameters.take_page()?;
    let show_deleted = parameters.take_flag("show_deleted")?;
    parameters.finish()?;
    let found = projects::list(&state.context, &caller, wanted, show_deleted).await?;
    let items = found.map(documents::project);
    let filters = [("show_deleted", show_deleted.then_some("true"))];
    Ok(page(items, PATH, wanted.limit, &filters))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let show_deleted = parameters.take_flag("show_deleted")?;
    parameters.finish()?;
    let project = projects::fetch(&state.context, &caller, &reference, show_deleted).await?;
    Ok(tagged(documents::project(&project), project.revision.0))
}

pub(super) async fn update(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<UpdateProject>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let change = Change { labels: body.labels, mesh_cidr: body.mesh_cidr.as_deref() };
    projects::update(&state.context, &caller, &reference, change, expected).await?;
    let project = projects::fetch(&state.context, &caller, &reference, false).await?;
    Ok(tagged(documents::project(&project), project.revision.0))
}

pub(super) async fn delete(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let reason = parameters.take("reason");
    parameters.finish()?;
    let reason = reason.as_deref();
    let id = projects::delete(&state.context, &caller, &reference, reason, expected).await?;
    deleted(&state, &caller, id).await
}
