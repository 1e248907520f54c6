//! Explanations: why a subject of any kind is in its state.

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use slipway_app::deletion::holding;
use slipway_app::operations::explain as usecase;
use slipway_core::blocker::{self, OF_FAILED};
use slipway_core::broker::phase::Phase;
use slipway_core::ids::ResourceId;
use slipway_core::operations::explanation as domain;
use slipway_core::time::Timestamp;
use slipway_wire::blocker::{Blocker, Remedy};
use slipway_wire::broker::{Failure, HistoryEntry};
use slipway_wire::operations::{ExplainedPart, Explanation, Holder};

use super::resources;
use crate::nodes;
use crate::request::{Call, Id, Segments, Untagged, text};
use crate::state::ServerState;

pub(super) async fn explain(
    call: Call,
    State(state): State<ServerState>,
    Segments([kind, id]): Segments<2>,
) -> Untagged<Explanation> {
    let mut found = usecase::explain(&call.context, &call.caller, &kind, &id).await?;
    holding::add(&state.finder, &mut found).await?;
    Ok(Json(document(found, call.now())))
}

/// Of something that no engine holds.
pub(crate) async fn explanation(call: &Call, kind: &str, id: &str) -> Untagged<Explanation> {
    let found = usecase::explain(&call.context, &call.caller, kind, id).await?;
    Ok(Json(document(found, call.now())))
}

/// Whatever the reference names.
pub(super) async fn any(
    call: Call,
    State(state): State<ServerState>,
    Segments([reference]): Segments<1>,
) -> Untagged<Explanation> {
    let project = call.query.get("project");
    let mut found = usecase::any(&call.context, &call.caller, &reference, project).await?;
    holding::add(&state.finder, &mut found).await?;
    Ok(Json(document(found, call.now())))
}

/// The explanation of a resource, under the resource's own path.
pub(super) async fn resource(
    call: Call,
    State(state): State<ServerState>,
    Id(id): Id<ResourceId>,
) -> Untagged<Explanation> {
    let mut found = usecase::resource(&call.context, &call.caller, id).await?;
    holding::add(&state.finder, &mut found).await?;
    Ok(Json(document(found, call.now())))
}

fn document(found: domain::Explanation, now: Timestamp) -> Explanation {
    let failed = found.resource_id.filter(|_| found.state == Phase::Failed.as_str());
    Explanation {
        remedies: failed.map(|id| remedies(OF_FAILED, &id.to_string())).unwrap_or_default(),
        failure: found.failure.as_ref().map(failure),
        kind: found.kind.to_string(),
        id: found.id.to_string(),
        name: found.name,
        state: found.state,
        since: found.since.to_string(),
        notice: found.notice,
        waiting_for: found.waiting_for,
        deadline: text(found.deadline),
        overdue: found.overdue,
        next: found.next,
        next_check_at: text(found.next_check_at),
        held_by: found
            .holder
            .map(|holder| Holder { worker: holder.worker, until: holder.until.to_string() }),
        facts: found.facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        observed: found.observed.unwrap_or(Value::Null),
        observed_since: text(found.observed_since),
        observed_stale: found.observed_stale,
        node: found.node.as_ref().map(|node| nodes::document(node, now)),
        blockers: blockers(&found.blockers, found.resource_id),
        parts: found.parts.into_iter().map(part).collect(),
        history: found.history.iter().map(history).collect(),
        older_history: found
            .resource_id
            .filter(|_| found.has_older_history)
            .map(|id| resources::history_path(id, found.attempt)),
    }
}

fn part(part: domain::Part) -> ExplainedPart {
    ExplainedPart {
        blockers: blockers(&part.blockers, part.resource_id),
        kind: part.kind,
        id: part.id.to_string(),
        name: part.name,
        state: part.state,
        since: text(part.since),
        about: part.about,
    }
}

/// If the subject is no resource, the commands of remedies keep the placeholder
/// `<resource>`.
fn blockers(found: &[blocker::Blocker], resource: Option<ResourceId>) -> Vec<Blocker> {
    let id = resource.map_or_else(|| "<resource>".to_owned(), |id| id.to_string());
    found.iter().map(|found| blocker(found, &id)).collect()
}

/// Remedies are the same per code; this fills the id into their commands.
pub(crate) fn blocker(blocker: &blocker::Blocker, resource_id: &str) -> Blocker {
    Blocker {
        code: blocker.code.to_string(),
        message: blocker.message.clone(),
        since: blocker.since.to_string(),
        owner: blocker.code.owner().to_owned(),
        evidence: blocker.evidence.clone(),
        next_retry_at: text(blocker.next_retry_at),
        remedies: remedies(blocker.code.remedies(), resource_id),
    }
}

fn remedies(found: &[blocker::Remedy], resource_id: &str) -> Vec<Remedy> {
    let shown = |remedy: &blocker::Remedy| Remedy {
        action: remedy.action.to_owned(),
        command: remedy.command.map(|command| command.replace("{id}", resource_id)),
        role: remedy.role.to_owned(),
    };
    found.iter().map(shown).collect()
}

pub(super) fn failure(found: &domain::FailureLine) -> Failure {
    Failure {
        at: found.at.to_string(),
        reason: found.reason.clone(),
        observed: found.observed.clone(),
    }
}

pub(super) fn history(line: &domain::HistoryLine) -> HistoryEntry {
    HistoryEntry {
        at: line.at.to_string(),
        from: line.from.clone(),
        to: line.to.clone(),
        why: line.why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use slipway_core::blocker::BlockerCode;

    use super::*;

    #[test]
    fn the_commands_of_a_blocker_name_the_resource() {
        let found = blocker::Blocker {
            code: BlockerCode::NodeNotDraining,
            message: "node n has not acknowledged its drain".to_owned(),
            since: Timestamp::from_micros(1_000_000),
            evidence: json!({ "node_id": "n" }),
            next_retry_at: None,
        };
        let shown = blocker(&found, "r-1");
        assert_eq!(shown.code, "node_not_draining");
        assert_eq!(shown.since, "1970-01-01T00:00:01.000000Z");
        let commands: Vec<_> = shown.remedies.iter().flat_map(|remedy| &remedy.command).collect();
        assert!(commands.iter().any(|command| command.contains("force-drain r-1")), "{commands:?}");
        assert!(commands.iter().all(|command| !command.contains("{id}")), "{commands:?}");
    }
}
