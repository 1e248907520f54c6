//! Resources: declare, read, delete, retry, force a drain, abandon. `changes.rs` has the
//! rest of what people change.

use std::collections::BTreeMap;
use std::iter;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use slipway_app::broker::declare::Declare;
use slipway_app::broker::port::{Blocked, ResourceFilter};
use slipway_app::broker::{abandon, declare, delete, logs, orphan, read, retry};
use slipway_app::catalog::projects;
use slipway_app::nodes::{force, machine};
use slipway_app::ports::substrate::OutputPart;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::holding::Holder;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::redeclare::Corrections;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::waiting::not_served;
use slipway_core::catalog::label::{self, LabelSelector};
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use slipway_core::nearest::not_one_of;
use slipway_core::operations::explanation::AttemptLine;
use slipway_core::subject::SubjectKind;
use slipway_core::text::Labels;
use slipway_core::time::Timestamp;
use slipway_wire::blocker::Blocker;
use slipway_wire::broker::{
    Abandon, Attempt, AttemptSummary, DeclareResource, KeptObject, Logs, Orphan, Orphaned,
    Resource, ResourceDetail, Retry, SecondAttempt,
};
use slipway_wire::catalog::EffectiveLabel;
use slipway_wire::nodes::{ConfirmGone, ForceDrain};

use super::explain;
use crate::deletion;
use crate::error::Rejection;
use crate::nodes;
use crate::request::{
    Answered, Body, Call, Creation, Id, IfMatch, Made, Referring, Shown, Tagged, Untagged,
    create_once, delete_options, located, text,
};
use crate::state::ServerState;

pub(super) async fn declare(call: Call, new: Creation<DeclareResource>) -> Made {
    let make = async |body: DeclareResource, request| {
        let input = Declare {
            project: call.full_id_if_any(SubjectKind::Project, body.project).await?,
            handle: body.handle,
            blueprint: call.full_id(SubjectKind::Blueprint, body.blueprint).await?,
            version: body.version,
            credential: call.full_id_if_any(SubjectKind::Credential, body.credential).await?,
            parameters: body.parameters,
            labels: body.labels,
            protected: body.protected,
            request,
        };
        declare::declare(&call.context, &call.caller, input).await
    };
    let show = async |id| {
        let made = fetch(&call, ResourceId::new(id)).await?;
        Ok(made.created(call.below(id)).accepted())
    };
    create_once(&call, new, make, show).await
}

pub(super) async fn list(call: Call) -> Answered {
    let (page, query) = (call.query.page()?, &call.query);
    let labels = query.labels().iter();
    let filter = ResourceFilter {
        project: query.text("project"),
        handle: query.text("handle"),
        phase: query.text("phase"),
        blueprint: query.text("blueprint"),
        labels: labels
            .map(|text| LabelSelector::parse(text).map_err(Refusal::from))
            .collect::<Result<_, _>>()?,
        blocked: query.get("blocked").map(parse_blocked).transpose()?,
        unserved_after: Some(call.context.settings.claimed_within),
        show_deleted: query.flag("show_deleted")?,
    };
    if let Some(phase) = &filter.phase {
        Phase::parse_field("phase", phase)?;
    }
    let found = read::resources(&call.context, &call.caller, &filter, page).await?;
    let now = call.now();
    let mut projects: Vec<_> = found.iter().map(|row| row.resource.project_id).collect();
    projects.dedup();
    let project_labels = projects::labels(&call.context, &call.caller, &projects).await?;
    let none = Labels::default();
    let items = found.map(|row| {
        let labels = project_labels.get(&row.resource.project_id).unwrap_or(&none);
        resource_document(&with_unserved(&call, row.clone()), labels, now)
    });
    call.named_page(items, page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<ResourceId>) -> Shown<ResourceDetail> {
    let snapshot = read(&call, id).await?;
    let (attempts, history) = read::past(&call.context, &snapshot).await?;
    let Tagged { revision, document: resource } = document(&call, &snapshot).await?;
    let document = ResourceDetail {
        resource,
        observed_since: text(snapshot.observed_since()),
        observed_stale: snapshot.observed_stale(call.context.settings.claimed_within),
        observed: snapshot.observed_shown(),
        attempts: attempts.iter().map(attempt).collect(),
        history: history.lines.iter().map(explain::history).collect(),
        older_history: history.has_older.then(|| history_path(id, None)),
    };
    Ok(Tagged { revision, document })
}

/// The history of one attempt, newest first.
pub(super) async fn history(call: Call, Id(id): Id<ResourceId>) -> Answered {
    let page = call.query.page()?;
    let invalid = || Refusal::invalid("attempt", "must be the number of an attempt, such as 1");
    let number = call.query.get("attempt").map(|text| text.parse().map_err(|_| invalid()));
    let number = number.transpose()?;
    let found = read::history(&call.context, &call.caller, id, number, page).await?;
    Ok(call.page(found.map(explain::history), page.limit))
}

/// Lines of output that are shown, and the most that may be asked for.
pub(crate) const TAIL_DEFAULT: usize = 200;
pub(crate) const TAIL_MAX: usize = 5_000;

pub(super) async fn logs(
    call: Call,
    State(state): State<ServerState>,
    Id(id): Id<ResourceId>,
) -> Untagged<Logs> {
    let invalid = || Refusal::invalid("tail", format!("must be a number from 0 to {TAIL_MAX}"));
    let tail = call.query.get("tail").map(|text| text.parse().map_err(|_| invalid()));
    let tail = tail.transpose()?.unwrap_or(TAIL_DEFAULT);
    if tail > TAIL_MAX {
        return Err(invalid().into());
    }
    let wrong = || Refusal::invalid("offset", "must be `next_offset` of the answer before");
    let offset = call.query.get("offset").map(|text| text.parse().map_err(|_| wrong()));
    let part = offset.transpose()?.map_or(OutputPart::Last(tail), OutputPart::From);
    let found = logs::logs(&state.finder, &call.caller, id, part).await?;
    Ok(Json(Logs { text: found.text, next_offset: found.next, truncated: found.is_cut }))
}

/// Where [`history`] is, of this attempt or of the current one.
pub(super) fn history_path(id: ResourceId, attempt: Option<i32>) -> String {
    let query = attempt.map(|number| format!("?attempt={number}")).unwrap_or_default();
    format!("/api/v1/resources/{id}/history{query}")
}

/// Every attempt of the resource, newest first.
pub(super) async fn attempts(call: Call, Id(id): Id<ResourceId>) -> Answered {
    let page = call.query.page()?;
    let found = read::attempts(&call.context, &call.caller, id, page).await?;
    Ok(call.page(found.map(attempt), page.limit))
}

/// A repeated request is answered with the deletion of the first.
pub(super) async fn delete(
    call: Call,
    Id(id): Id<ResourceId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let id = delete::delete(&call.context, &call.caller, id, options).await?;
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

pub(super) async fn confirm_gone(
    call: Call,
    Id(id): Id<ResourceId>,
    Body(body): Body<ConfirmGone>,
) -> Answered {
    machine::confirm_gone(&call.context, &call.caller, id, &body.reason).await?;
    Ok(accepted(id, fetch(&call, id).await?))
}

pub(super) async fn retry(call: Call, Id(id): Id<ResourceId>, Body(body): Body<Retry>) -> Answered {
    let Retry { reason, version, parameters } = body;
    let corrections = Corrections { version, parameters };
    retry::retry(&call.context, &call.caller, id, &reason, &corrections).await?;
    Ok(accepted(id, fetch(&call, id).await?))
}

pub(super) async fn abandon(
    call: Call,
    State(state): State<ServerState>,
    Id(id): Id<ResourceId>,
    Body(body): Body<Abandon>,
) -> Shown<Resource> {
    let Abandon { reason, confirm } = body;
    abandon::abandon(&state.finder, &call.caller, id, &reason, &confirm).await?;
    fetch(&call, id).await
}

/// 202: the resource loop tells what is kept; 200 for a dry run.
pub(super) async fn orphan(
    call: Call,
    State(state): State<ServerState>,
    Id(id): Id<ResourceId>,
    Body(Orphan { reason, dry_run }): Body<Orphan>,
) -> Answered {
    let found = orphan::orphan(&state.finder, &call.caller, id, &reason, dry_run).await?;
    let kept = found.kept.iter().map(|kept| KeptObject {
        object: kept.object.shown(),
        external_name: kept.external_name.clone(),
        find: kept.find(),
        leak_id: (!dry_run).then(|| kept.leak_record_id.to_string()),
    });
    let document = Orphaned {
        resource_id: id.to_string(),
        dry_run,
        kept: kept.collect(),
        holding: found.holders.iter().map(Holder::document).collect(),
    };
    let status = if dry_run { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(located(status, format!("/api/v1/resources/{id}"), Json(document)))
}

/// 202: the loops do the rest; `Location` says where to follow it.
pub(super) fn accepted(id: ResourceId, document: Tagged<Resource>) -> Response {
    located(StatusCode::ACCEPTED, format!("/api/v1/resources/{id}"), document)
}

pub(super) async fn fetch(call: &Call, id: ResourceId) -> Shown<Resource> {
    document(call, &read(call, id).await?).await
}

async fn read(call: &Call, id: ResourceId) -> Result<ResourceSnapshot, Rejection> {
    let snapshot = read::resource(&call.context, &call.caller, id).await?;
    Ok(with_unserved(call, snapshot))
}

/// Adds the blocker that no loop can have recorded, because none serves the resource.
fn with_unserved(call: &Call, mut snapshot: ResourceSnapshot) -> ResourceSnapshot {
    let within = call.context.settings.claimed_within;
    snapshot.blockers.extend(not_served(&snapshot, within));
    if let Some(other) = &mut snapshot.other {
        let unserved = not_served(other, within);
        other.blockers.extend(unserved);
    }
    snapshot
}

/// The document with its ETag. The tag is the revision of the declared slot,
/// which does not change when loops write to the attempt.
async fn document(call: &Call, snapshot: &ResourceSnapshot) -> Shown<Resource> {
    let project = snapshot.resource.project_id;
    let labels = projects::labels(&call.context, &call.caller, &[project]).await?;
    let labels = labels.get(&project).cloned().unwrap_or_default();
    let document = call.named(resource_document(snapshot, &labels, call.now())).await?;
    Ok(Tagged { revision: document.revision, document })
}

/// `true`, or the code of a blocker.
fn parse_blocked(text: &str) -> Result<Blocked, Refusal> {
    if text == "true" {
        return Ok(Blocked::ByAny);
    }
    BlockerCode::parse(text).map(Blocked::By).ok_or_else(|| {
        let codes = BlockerCode::ALL.iter().map(|code| code.as_str());
        not_one_of("blocked", text, &iter::once("true").chain(codes).collect::<Vec<_>>())
    })
}

impl Referring for Resource {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(Some(&self.project_id), &mut self.project)]
    }
}

/// Adds nothing that the domain does not know, and leaves out hashes and keys.
fn resource_document(
    snapshot: &ResourceSnapshot,
    project_labels: &Labels,
    now: Timestamp,
) -> Resource {
    let (resource, attempt) = (&snapshot.resource, &snapshot.attempt);
    let id = resource.id.to_string();
    Resource {
        project: None,
        project_id: resource.project_id.to_string(),
        handle: resource.handle.to_string(),
        labels: resource.labels.as_map().clone(),
        effective_labels: effective(project_labels, &resource.labels),
        blueprint: snapshot.blueprint.slug.clone(),
        blueprint_version: snapshot.blueprint.version.clone(),
        engine: snapshot.blueprint.engine.to_string(),
        phase: attempt.phase().to_string(),
        phase_since: attempt.phase_since().to_string(),
        revision: resource.revision.0,
        created_at: resource.created_at.to_string(),
        // The later change of the two rows that make up the document.
        updated_at: resource.updated_at.max(attempt.updated_at()).to_string(),
        deleted_at: text(resource.deleted_at),
        deletion_id: text(resource.deletion_id),
        update_pending_since: text(snapshot.update_pending_since()),
        attempt: Attempt {
            id: attempt.id().to_string(),
            number: attempt.attempt(),
            revision: attempt.revision().0,
            phase: attempt.phase().to_string(),
            xr_name: attempt.xr_name().to_owned(),
            parameters: attempt.parameter_values().as_map().clone(),
            deletion_requested_at: text(attempt.deletion_requested_at()),
            absence_proven_at: text(attempt.absence_proven_at()),
            abandoned_at: text(attempt.abandoned_at()),
            failure_reason: attempt.failure_reason().map(str::to_owned),
            created_at: attempt.created_at().to_string(),
            updated_at: attempt.updated_at().to_string(),
        },
        second_attempt: snapshot.other.as_deref().map(|other| second(other, &id, now)),
        node: snapshot.node.as_ref().map(|node| nodes::document(node, now)),
        blockers: blockers(snapshot, &id),
        id,
    }
}

fn second(snapshot: &ResourceSnapshot, resource: &str, now: Timestamp) -> SecondAttempt {
    let attempt = &snapshot.attempt;
    let leaving = attempt.phase().is_deletion();
    let deletion = snapshot.deletion.as_ref().filter(|_| leaving);
    SecondAttempt {
        id: attempt.id().to_string(),
        number: attempt.attempt(),
        phase: attempt.phase().to_string(),
        phase_since: attempt.phase_since().to_string(),
        comes_in_use: !attempt.is_in_use() && !leaving,
        blueprint_version: snapshot.blueprint.version.clone(),
        parameters: attempt.parameter_values().as_map().clone(),
        failure_reason: attempt.failure_reason().map(str::to_owned),
        deletion_id: text(deletion.map(|deletion| deletion.id)),
        node: snapshot.node.as_ref().map(|node| nodes::document(node, now)),
        blockers: blockers(snapshot, resource),
    }
}

fn blockers(snapshot: &ResourceSnapshot, resource: &str) -> Vec<Blocker> {
    snapshot.blockers_shown().iter().map(|found| explain::blocker(found, resource)).collect()
}

fn effective(project: &Labels, resource: &Labels) -> BTreeMap<String, EffectiveLabel> {
    let found = label::effective(project, resource).into_iter();
    let shown = found.map(|(key, label)| {
        let source = label.source.to_string();
        (key.to_owned(), EffectiveLabel { value: label.value.to_owned(), source })
    });
    shown.collect()
}

fn attempt(line: &AttemptLine) -> AttemptSummary {
    AttemptSummary {
        id: line.id.to_string(),
        number: line.number,
        phase: line.phase.clone(),
        phase_since: line.since.to_string(),
        created_at: line.created_at.to_string(),
        in_use: line.in_use,
        blueprint_version: line.blueprint_version.clone(),
        parameters: line.parameters.clone(),
        failure: line.failure.as_ref().map(explain::failure),
        absence_proven_at: text(line.absence_proven_at),
        abandoned_at: text(line.abandoned_at),
    }
}
