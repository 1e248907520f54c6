//! Explanations: why a subject of any kind is in its state.

use axum::Json;
use serde_json::Value;
use slipway_app::operations::explain as usecase;
use slipway_core::blocker;
use slipway_core::ids::ResourceId;
use slipway_core::operations::explanation as domain;
use slipway_core::time::Timestamp;
use slipway_wire::blocker::Blocker;
use slipway_wire::operations::{ExplainedPart, Explanation, Holder};

use super::documents;
use crate::error::Rejection;
use crate::nodes;
use crate::request::{Call, Id, Segments, text};

pub(super) async fn explain(
    call: Call,
    Segments([kind, id]): Segments<2>,
) -> Result<Json<Explanation>, Rejection> {
    let found = usecase::explain(&call.context, &call.caller, &kind, &id).await?;
    Ok(Json(document(found, call.now())))
}

/// The explanation of a resource, under the resource's own path.
pub(super) async fn resource(
    call: Call,
    Id(id): Id<ResourceId>,
) -> Result<Json<Explanation>, Rejection> {
    let found = usecase::resource(&call.context, &call.caller, id).await?;
    Ok(Json(document(found, call.now())))
}

fn document(found: domain::Explanation, now: Timestamp) -> Explanation {
    Explanation {
        kind: found.kind.to_string(),
        id: found.id.to_string(),
        name: found.name,
        state: found.state,
        since: found.since.to_string(),
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
        node: found.node.as_ref().map(|node| nodes::document(node, now)),
        blockers: blockers(&found.blockers, found.resource_id),
        parts: found.parts.into_iter().map(part).collect(),
        history: found.history.iter().map(documents::history).collect(),
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
    found.iter().map(|found| documents::blocker(found, &id)).collect()
}
