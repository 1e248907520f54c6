//! Resources: declare, read, delete, retry, force a drain.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use slipway_app::broker::declare::Declare;
use slipway_app::broker::port::{Blocked, ResourceFilter};
use slipway_app::broker::{declare, delete, read, relabel, retry};
use slipway_app::catalog::projects;
use slipway_app::nodes::force;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::waiting::not_served;
use slipway_core::catalog::label::LabelSelector;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use slipway_core::text::Labels;
use slipway_wire::broker::{DeclareResource, Resource, ResourceDetail, Retry};
use slipway_wire::catalog::Relabel;
use slipway_wire::nodes::ForceDrain;

use super::documents;
use crate::deletion;
use crate::error::Rejection;
use crate::request::{
    Answered, Body, Call, Creation, Id, IfMatch, Made, Shown, Tagged, create_once,
};

pub(super) async fn declare(call: Call, new: Creation<DeclareResource>) -> Made {
    let call = &call;
    let make = |body: DeclareResource, request| async move {
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
        declare::declare(&call.context, &call.caller, input).await
    };
    let show = |id| async move {
        let made = fetch(call, ResourceId::new(id)).await?;
        Ok(made.created(call.below(id)).accepted())
    };
    create_once(call, new, make, show).await
}

pub(super) async fn list(call: Call) -> Answered {
    let (page, query) = (call.query.page()?, &call.query);
    let labels = query.labels().iter();
    let filter = ResourceFilter {
        project: query.text("project"),
        handle: query.text("handle"),
        phase: query.text("phase"),
        labels: labels
            .map(|text| LabelSelector::parse(text).map_err(Refusal::from))
            .collect::<Result<_, _>>()?,
        blocked: query.get("blocked").map(parse_blocked).transpose()?,
        show_deleted: query.flag("show_deleted")?,
    };
    if let Some(phase) = &filter.phase
        && Phase::parse(phase).is_none()
    {
        let phases = Phase::ALL.map(Phase::as_str).join(", ");
        return Err(Refusal::invalid("phase", format!("must be one of {phases}")).into());
    }
    let found = read::resources(&call.context, &call.caller, &filter, page).await?;
    let now = call.now();
    let mut projects: Vec<_> = found.iter().map(|row| row.resource.project_id).collect();
    projects.dedup();
    let project_labels = projects::labels(&call.context, &call.caller, &projects).await?;
    let none = Labels::default();
    let items = found.map(|row| {
        let labels = project_labels.get(&row.resource.project_id).unwrap_or(&none);
        documents::resource(row, labels, now)
    });
    Ok(call.page(items, page.limit))
}

pub(super) async fn get(call: Call, Id(id): Id<ResourceId>) -> Shown<ResourceDetail> {
    let snapshot = read(&call, id).await?;
    let (attempts, history) = read::past(&call.context, &snapshot).await?;
    let Tagged { revision, document: resource } = document(&call, &snapshot).await?;
    let document = ResourceDetail {
        resource,
        observed: snapshot.observed.clone(),
        attempts: attempts.iter().map(documents::attempt).collect(),
        history: history.iter().map(documents::history).collect(),
    };
    Ok(Tagged { revision, document })
}

/// Replaces the labels of the slot.
pub(super) async fn relabel(
    call: Call,
    Id(id): Id<ResourceId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<Relabel>,
) -> Shown<Resource> {
    relabel::relabel(&call.context, &call.caller, id, body.labels, expected).await?;
    fetch(&call, id).await
}

/// A repeated request is answered with the deletion of the first.
pub(super) async fn delete(
    call: Call,
    Id(id): Id<ResourceId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let reason = call.query.get("reason");
    let id = delete::delete_expecting(&call.context, &call.caller, id, reason, expected).await?;
    deletion::answer(&call, StatusCode::ACCEPTED, id).await
}

pub(super) async fn force_drain(
    call: Call,
    Id(id): Id<ResourceId>,
    Body(body): Body<ForceDrain>,
) -> Answered {
    force::force_drain(&call.context, &call.caller, id, &body.reason).await?;
    Ok(accepted(id, fetch(&call, id).await?))
}

pub(super) async fn retry(call: Call, Id(id): Id<ResourceId>, Body(body): Body<Retry>) -> Answered {
    retry::retry(&call.context, &call.caller, id, &body.reason).await?;
    Ok(accepted(id, fetch(&call, id).await?))
}

/// 202: the loops do the rest; `Location` says where to follow it.
fn accepted(id: ResourceId, document: Tagged<Resource>) -> Response {
    let location = [(LOCATION, format!("/api/v1/resources/{id}"))];
    (StatusCode::ACCEPTED, location, document).into_response()
}

async fn fetch(call: &Call, id: ResourceId) -> Shown<Resource> {
    document(call, &read(call, id).await?).await
}

async fn read(call: &Call, id: ResourceId) -> Result<ResourceSnapshot, Rejection> {
    let mut snapshot = read::resource(&call.context, &call.caller, id).await?;
    // No loop can have recorded this blocker: none serves the resource.
    let within = call.context.settings.claimed_within;
    snapshot.blockers.extend(not_served(&snapshot, within));
    Ok(snapshot)
}

/// The document with its ETag. The tag is the revision of the declared slot,
/// which does not change when loops write to the attempt.
async fn document(call: &Call, snapshot: &ResourceSnapshot) -> Shown<Resource> {
    let project = snapshot.resource.project_id;
    let labels = projects::labels(&call.context, &call.caller, &[project]).await?;
    let labels = labels.get(&project).cloned().unwrap_or_default();
    let document = documents::resource(snapshot, &labels, call.now());
    Ok(Tagged { revision: document.revision, document })
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
