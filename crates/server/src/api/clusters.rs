//! Clusters, and which project lives on which.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use slipway_app::ports::store::Page;
use slipway_app::usecases::catalog::clusters;
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_wire::catalog::{AssignCluster, CreateCluster};

use super::documents::{self, tagged};
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Segments};
use crate::once::{self, Creation};
use crate::precondition::IfMatch;
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/clusters";
const ASSIGNMENTS: &str = "/api/v1/cluster-assignments";

pub(super) async fn create(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<CreateCluster>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let create = |request| async {
        let wanted = clusters::Wanted {
            name: &body.name,
            engine: &body.engine,
            namespace_prefix: body.namespace_prefix.as_deref(),
            region: body.region.as_deref(),
            access: body.access.as_deref(),
        };
        let made = clusters::create(context, caller, wanted, request);
        Ok(made.await?.as_uuid())
    };
    let show = |id: uuid::Uuid| async move {
        let cluster = clusters::fetch(context, caller, &id.to_string()).await?;
        let document = documents::cluster(&cluster);
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
    let wanted: Page<ClusterId> = parameters.take_page()?;
    parameters.finish()?;
    let found = clusters::list(&state.context, &caller, wanted).await?;
    let items = found.map(documents::cluster);
    Ok(page(items, PATH, wanted.limit, &[]))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let cluster = clusters::fetch(&state.context, &caller, &reference).await?;
    Ok(tagged(documents::cluster(&cluster), cluster.revision.0))
}

/// Puts the project there, or finds it there.
pub(super) async fn assign(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([project]): Segments<1>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<AssignCluster>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (cluster, region) = (body.cluster.as_deref(), body.region.as_deref());
    clusters::assign(&state.context, &caller, &project, cluster, region, expected).await?;
    let place = clusters::assignment(&state.context, &caller, &project).await?;
    Ok(tagged(documents::cluster_assignment(&place), place.revision.0))
}

pub(super) async fn assignment(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([project]): Segments<1>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let place = clusters::assignment(&state.context, &caller, &project).await?;
    Ok(tagged(documents::cluster_assignment(&place), place.revision.0))
}

/// 202 while what was made there for the project is still to be taken down.
pub(super) async fn withdraw(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([project]): Segments<1>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let leaving = clusters::withdraw(&state.context, &caller, &project, expected).await?;
    Ok(match leaving {
        Some(place) => {
            let location = [(LOCATION, format!("/api/v1/projects/{}/cluster", place.project_id))];
            let answer = tagged(documents::cluster_assignment(&place), place.revision.0);
            (StatusCode::ACCEPTED, location, answer).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

pub(super) async fn assignments(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<ProjectId> = parameters.take_page()?;
    parameters.finish()?;
    let found = clusters::assignments(&state.context, &caller, wanted).await?;
    let items = found.map(documents::cluster_assignment);
    Ok(page(items, ASSIGNMENTS, wanted.limit, &[]))
}
