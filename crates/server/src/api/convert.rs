//! From the domain to documents. Pure; adds nothing that the domain does not
//! know and leaves out hashes and keys, which are nobody's business.

use std::collections::BTreeMap;

use slipway_app::ports::broker::HistoryLine;
use slipway_app::ports::events::{self, PositionedEvent};
use slipway_app::usecases::control;
use slipway_app::usecases::leaks::LookReport;
use slipway_core::catalog::label;
use slipway_core::explanation::AttemptLine;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::text::Labels;
use slipway_core::time::Timestamp;
use slipway_core::{blocker, deletion as domain, leak, node as registry};
use slipway_wire::api::{
    Attempt, AttemptSummary, Blocker, Control, Deletion, DeletionMember, Event, Freeze,
    HistoryEntry, Node, Observing, PlanLine, Remedy, Replica, Resource, Subscription,
};
use slipway_wire::catalog::EffectiveLabel;
use slipway_wire::leaks::{Leak, LeakLook, LeakSuspicion};

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
        // The document is as young as the younger of its two rows.
        updated_at: resource.updated_at.max(attempt.updated_at()).to_string(),
        deleted_at: text(resource.deleted_at),
        deletion_id: resource.deletion_id.map(|id| id.to_string()),
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
        node: snapshot.node.as_ref().map(|found| node(found, now)),
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

pub(super) fn node(node: &registry::Node, now: Timestamp) -> Node {
    let gone = node.deregistration.as_ref();
    Node {
        id: node.id.to_string(),
        project_id: node.project_id.to_string(),
        resource_id: node.resource_id.to_string(),
        provisioned_resource_id: node.provisioned_resource_id.to_string(),
        hostname: node.hostname.clone(),
        capabilities: node.capabilities.clone(),
        mesh_ip: node.mesh.map(|mesh| mesh.ip.to_string()),
        version: node.reported.version.clone(),
        checksum: node.reported.checksum.clone(),
        status: node.reported.status.clone(),
        registered: node.is_registered(),
        reachability: node.reachability(now).to_string(),
        registered_at: node.registered_at.to_string(),
        last_heartbeat_at: text(node.last_heartbeat_at),
        drain_requested_at: text(node.drain.map(|drain| drain.requested_at)),
        deregistered_at: text(gone.map(|gone| gone.at)),
        deregistered_how: gone.map(|gone| gone.how.to_string()),
        deregistered_by: gone.map(|gone| gone.by.clone()),
        deregistered_reason: gone.and_then(|gone| gone.reason.clone()),
    }
}

pub(super) fn deletion(deletion: &domain::Deletion) -> Deletion {
    let members = deletion.members.iter();
    Deletion {
        id: deletion.id.to_string(),
        kind: deletion.kind.clone(),
        target_id: deletion.target_id.to_string(),
        state: deletion.state.to_string(),
        requested_by: deletion.requested_by.clone(),
        reason: deletion.reason.clone(),
        members: members
            .map(|member| DeletionMember { kind: member.kind.clone(), id: member.id.to_string() })
            .collect(),
        requested_at: deletion.requested_at.to_string(),
        done_at: text(deletion.done_at),
        restorable_until: text(deletion.restorable_until),
    }
}

/// An event as everybody gets it: lists, streams and sinks.
pub fn event(event: &PositionedEvent) -> Event {
    Event {
        id: event.id.to_string(),
        position: event.position,
        event_type: event.event_type.clone(),
        aggregate_id: event.aggregate_id.to_string(),
        revision: event.revision.0,
        occurred_at: event.occurred_at.to_string(),
        payload: event.payload.clone(),
    }
}

pub(super) fn subscription(found: &events::Subscription) -> Subscription {
    Subscription {
        id: found.id.to_string(),
        name: found.name.clone(),
        position: found.position,
        last_position: found.last_position,
        failures: found.failures,
        last_error: found.last_error.clone(),
        delivered_at: text(found.delivered_at),
        due_at: found.due_at.to_string(),
        claimed_by: found.claimed_by.clone(),
    }
}

pub(super) fn control(status: control::Status) -> Control {
    let control = status.control;
    let mode = control.mode().name().to_owned();
    // A freeze that is over is kept until a beat has noticed; it is none.
    let freeze = control.freeze.filter(|freeze| control.now < freeze.until);
    Control {
        installation_id: control.installation.to_string(),
        mode,
        revision: control.revision.0,
        freeze: freeze.map(|freeze| Freeze {
            since: freeze.since.to_string(),
            until: freeze.until.to_string(),
            by: freeze.by,
            reason: freeze.reason,
        }),
        observing: control.observing.map(|observing| Observing {
            since: observing.since.to_string(),
            by: observing.by,
            reason: observing.reason,
        }),
        settled: status.settled,
        replicas: status
            .replicas
            .into_iter()
            .map(|status| Replica {
                worker: status.replica.worker,
                seen_at: status.replica.seen_at.to_string(),
                obeys: status.obeys,
                lapsed: status.lapsed,
            })
            .collect(),
        public_url: control.public_url,
    }
}

pub(super) fn plan_line(line: &slipway_app::ports::operations::PlanLine) -> PlanLine {
    PlanLine {
        resource_id: line.resource_id.to_string(),
        provisioned_resource_id: line.provisioned_resource_id.to_string(),
        project: line.project.clone(),
        handle: line.handle.clone(),
        phase: line.phase.clone(),
        action: line.action.clone().unwrap_or_else(|| "unknown".to_owned()),
        since: line.since.to_string(),
        message: line.message.clone(),
    }
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

/// Remedies are said once per code; here their commands get the id.
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

pub(super) fn leak(leak: &leak::Leak) -> Leak {
    let (removal, resolved) = (leak.removal.as_ref(), leak.resolved.as_ref());
    Leak {
        id: leak.id.to_string(),
        kind: leak.kind.clone(),
        state: if leak.is_open() { "open" } else { "resolved" }.to_owned(),
        provisioned_resource_id: leak.provisioned_resource_id().map(|id| id.to_string()),
        cluster: leak.cluster.clone(),
        namespace: leak.place.as_ref().map(|place| place.namespace.clone()),
        name: leak.place.as_ref().map(|place| place.name.clone()),
        uid: leak.uid.clone(),
        found_at: leak.found_at.to_string(),
        last_seen_at: text(leak.last_seen_at),
        evidence: leak.evidence.clone(),
        remedy: leak.remedy().to_owned(),
        removal_requested_at: removal.map(|removal| removal.at.to_string()),
        removal_requested_by: removal.map(|removal| removal.by.clone()),
        removal_reason: removal.map(|removal| removal.reason.clone()),
        resolved_at: resolved.map(|resolved| resolved.at.to_string()),
        resolved_by: resolved.and_then(|resolved| resolved.by.clone()),
        resolution: resolved.and_then(|resolved| resolved.resolution.clone()),
    }
}

pub(super) fn look(report: &LookReport) -> LeakLook {
    let suspected = report.suspected.iter().map(|suspected| LeakSuspicion {
        kind: suspected.kind.to_string(),
        namespace: suspected.place.namespace.clone(),
        name: suspected.place.name.clone(),
        first_seen_at: suspected.first_seen_at.to_string(),
        counts_from: suspected.counts_from.to_string(),
    });
    LeakLook {
        cluster: report.cluster.clone(),
        error: report.error.clone(),
        objects: report.objects,
        foreign: report.foreign,
        unreadable: report.unreadable.clone(),
        leaks: report.leaks.iter().map(leak).collect(),
        suspected: suspected.collect(),
        woken: report.woken,
        resolved: report.resolved,
    }
}

pub(super) fn text(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
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
