//! Resources as documents, with their attempts, history and blockers. Pure;
//! adds nothing that the domain does not know, and leaves out hashes and keys.

use std::collections::BTreeMap;

use slipway_core::blocker;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::label;
use slipway_core::operations::explanation::AttemptLine;
use slipway_core::operations::explanation::HistoryLine;
use slipway_core::text::Labels;
use slipway_core::time::Timestamp;
use slipway_wire::blocker::{Blocker, Remedy};
use slipway_wire::broker::{Attempt, AttemptSummary, HistoryEntry, Resource};
use slipway_wire::catalog::EffectiveLabel;

use crate::nodes;
use crate::request::text;

pub(super) fn resource(
    snapshot: &ResourceSnapshot,
    project_labels: &Labels,
    now: Timestamp,
) -> Resource {
    let (resource, attempt) = (&snapshot.resource, &snapshot.attempt);
    let id = resource.id.to_string();
    Resource {
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
        attempt: Attempt {
            id: attempt.id().to_string(),
            number: attempt.attempt(),
            revision: attempt.revision().0,
            phase: attempt.phase().to_string(),
            xr_name: attempt.xr_name().to_owned(),
            parameters: attempt.parameter_values().as_map().clone(),
            deletion_requested_at: text(attempt.deletion_requested_at()),
            absence_proven_at: text(attempt.absence_proven_at()),
            failure_reason: attempt.failure_reason().map(str::to_owned),
            created_at: attempt.created_at().to_string(),
            updated_at: attempt.updated_at().to_string(),
        },
        node: snapshot.node.as_ref().map(|node| nodes::document(node, now)),
        blockers: snapshot.blockers_shown().iter().map(|found| blocker(found, &id)).collect(),
        id,
    }
}

fn effective(project: &Labels, resource: &Labels) -> BTreeMap<String, EffectiveLabel> {
    let found = label::effective(project, resource).into_iter();
    let shown = found.map(|(key, label)| {
        let source = label.source.to_string();
        (key.to_owned(), EffectiveLabel { value: label.value.to_owned(), source })
    });
    shown.collect()
}

pub(super) fn attempt(line: &AttemptLine) -> AttemptSummary {
    AttemptSummary {
        id: line.id.to_string(),
        number: line.number,
        phase: line.phase.clone(),
        phase_since: line.since.to_string(),
        absence_proven_at: text(line.absence_proven_at),
    }
}

pub(super) fn history(line: &HistoryLine) -> HistoryEntry {
    HistoryEntry {
        at: line.at.to_string(),
        from: line.from.clone(),
        to: line.to.clone(),
        why: line.why.clone(),
    }
}

/// Remedies are the same per code; this fills the id into their commands.
pub(super) fn blocker(blocker: &blocker::Blocker, resource_id: &str) -> Blocker {
    let remedies = blocker.code.remedies().iter();
    Blocker {
        code: blocker.code.to_string(),
        message: blocker.message.clone(),
        since: blocker.since.to_string(),
        owner: blocker.code.owner().to_owned(),
        evidence: blocker.evidence.clone(),
        next_retry_at: text(blocker.next_retry_at),
        remedies: remedies
            .map(|remedy| Remedy {
                action: remedy.action.to_owned(),
                command: remedy.command.map(|command| command.replace("{id}", resource_id)),
                role: remedy.role.to_owned(),
            })
            .collect(),
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
