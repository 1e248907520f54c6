//! Resources: declare, read, delete, and not waiting for a node.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ETAG, LOCATION};
use axum::response::{IntoResponse, Response};
use slipway_app::authorise::Caller;
use slipway_app::ports::broker::{Blocked, ResourceFilter};
use slipway_app::ports::store::Page;
use slipway_app::usecases::catalog::projects;
use slipway_app::usecases::declare::Declare;
use slipway_app::usecases::{declare, delete, force, read, relabel, retry};
use slipway_core::blocker::BlockerCode;
use slipway_core::catalog::label::LabelSelector;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use slipway_core::phase::Phase;
use slipway_core::rules::explain::not_served;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::text::Labels;
use slipway_wire::api::{DeclareResource, ForceDrain, Resource, ResourceDetail, Retry};
use slipway_wire::catalog::Relabel;

use super::convert;
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Id};
use crate::once::{self, Creation};
use crate::precondition::{IfMatch, etag};
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/resources";

pub(super) async fn declare(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<DeclareResource>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let create = |request| async {
        let input = Declare {
            project: body.project,
            handle: body.handle,
            blueprint: body.blueprint,
            version: body.version,
            credential: body.credential,
            parameters: body.parameters,
            labels: body.labels,
            request,
        };
        Ok(declare::declare(&state.context, &caller, input).await?.as_uuid())
    };
    let (server, reader) = (&state, &caller);
    let show = |id| async move {
        let document = document(server, reader, ResourceId::new(id)).await?;
        let location = format!("{PATH}/{}", document.id);
        Ok(once::answer(StatusCode::ACCEPTED, &document, location, document.revision))
    };
    once::once(&state, &caller, claim, create, show).await
}

/// Replaces the labels of the slot.
pub(super) async fn relabel(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ResourceId>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<Relabel>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    relabel::relabel(&state.context, &caller, id, body.labels, expected).await?;
    Ok(answer(document(&state, &caller, id).await?))
}

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<ResourceId> = parameters.take_page()?;
    let (labels, blocked) = (parameters.take_labels(), parameters.take("blocked"));
    let filter = ResourceFilter {
        project: parameters.take("project"),
        handle: parameters.take("handle"),
        phase: parameters.take("phase"),
        labels: labels
            .iter()
            .map(|text| LabelSelector::parse(text).map_err(Refusal::from))
            .collect::<Result<_, _>>()?,
        blocked: blocked.as_deref().map(parse_blocked).transpose()?,
        show_deleted: parameters.take_flag("show_deleted")?,
    };
    parameters.finish()?;
    if let Some(phase) = &filter.phase
        && Phase::parse(phase).is_none()
    {
        let phases = Phase::ALL.map(Phase::as_str).join(", ");
        return Err(Refusal::invalid("phase", format!("must be one of {phases}")).into());
    }
    let found = read::resources(&state.context, &caller, &filter, wanted).await?;
    let now = state.context.clock.now();
    let mut projects: Vec<_> = found.iter().map(|row| row.resource.project_id).collect();
    projects.dedup();
    let project_labels = projects::labels(&state.context, &caller, &projects).await?;
    let none = Labels::default();
    let document = |row: &ResourceSnapshot| {
        let labels = project_labels.get(&row.resource.project_id).unwrap_or(&none);
        convert::resource(row, labels, now)
    };
    let items = found.map(document);
    let mut filters = vec![
        ("project", filter.project.as_deref()),
        ("handle", filter.handle.as_deref()),
        ("phase", filter.phase.as_deref()),
        ("blocked", blocked.as_deref()),
        ("show_deleted", filter.show_deleted.then_some("true")),
    ];
    filters.extend(labels.iter().map(|label| ("label", Some(label.as_str()))));
    Ok(page(items, PATH, wanted.limit, &filters))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ResourceId>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let snapshot = seen(&state, &caller, id).await?;
    let (attempts, history) = read::past(&state.context, &snapshot).await?;
    let document = ResourceDetail {
        resource: shown(&state, &caller, &snapshot).await?,
        observed: snapshot.observed.clone(),
        attempts: attempts.iter().map(convert::attempt).collect(),
        history: history.iter().map(convert::history).collect(),
    };
    let etag = [(ETAG, etag(document.resource.revision))];
    Ok((etag, Json(document)).into_response())
}

/// A second request is answered with the deletion of the first.
pub(super) async fn delete(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ResourceId>,
    IfMatch(expected): IfMatch,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let reason = parameters.take("reason");
    parameters.finish()?;
    let deletion_id =
        delete::delete_expecting(&state.context, &caller, id, reason.as_deref(), expected).await?;
    let deletion = read::deletion(&state.context, &caller, deletion_id).await?;
    let location = [(LOCATION, format!("/api/v1/deletions/{deletion_id}"))];
    Ok((StatusCode::ACCEPTED, location, Json(convert::deletion(&deletion))).into_response())
}

pub(super) async fn force_drain(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ResourceId>,
    parameters: Parameters,
    Body(body): Body<ForceDrain>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    force::force_drain(&state.context, &caller, id, &body.reason).await?;
    Ok(accepted(document(&state, &caller, id).await?))
}

pub(super) async fn retry(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ResourceId>,
    parameters: Parameters,
    Body(body): Body<Retry>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    retry::retry(&state.context, &caller, id, &body.reason).await?;
    Ok(accepted(document(&state, &caller, id).await?))
}

/// What converges later: 202, and where to look.
fn accepted(document: Resource) -> Response {
    let location = [(LOCATION, format!("{PATH}/{}", document.id))];
    (StatusCode::ACCEPTED, location, answer(document)).into_response()
}

/// The document with its ETag: the revision of the declared slot, which the
/// loops' writes to the attempt do not move.
fn answer(document: Resource) -> Response {
    let etag = [(ETAG, etag(document.revision))];
    (etag, Json(document)).into_response()
}

async fn document(
    state: &ServerState,
    caller: &Caller,
    id: ResourceId,
) -> Result<Resource, Rejection> {
    let snapshot = seen(state, caller, id).await?;
    shown(state, caller, &snapshot).await
}

async fn seen(
    state: &ServerState,
    caller: &Caller,
    id: ResourceId,
) -> Result<ResourceSnapshot, Rejection> {
    let mut snapshot = read::resource(&state.context, caller, id).await?;
    // Nobody could have recorded it; whoever waits for the resource sees it here.
    let within = state.context.settings.claimed_within;
    snapshot.blockers.extend(not_served(&snapshot, within));
    Ok(snapshot)
}

async fn shown(
    state: &ServerState,
    caller: &Caller,
    snapshot: &ResourceSnapshot,
) -> Result<Resource, Rejection> {
    let project = snapshot.resource.project_id;
    let labels = projects::labels(&state.context, caller, &[project]).await?;
    let labels = labels.get(&project).cloned().unwrap_or_default();
    Ok(convert::resource(snapshot, &labels, state.context.clock.now()))
}

/// `true`, or the code of a blocker.
fn parse_blocked(text: &str) -> Result<Blocked, Refusal> {
    if text == "true" {
        return Ok(Blocked::ByAny);
    }
    BlockerCode::parse(text).map(Blocked::By).ok_or_else(|| {
        let codes: Vec<_> = BlockerCode::ALL.iter().map(|code| code.as_str()).collect();
        Refusal::invalid("blocked", format!("must be `true` or one of {}", codes.join(", ")))
    })
}
