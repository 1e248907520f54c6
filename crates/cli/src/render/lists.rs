//! Lists, a line each.

use slipway_wire::api::{Deletion, Event, Node, Resource, Subscription};

use super::table::{or_dash, rows, time};
use crate::terminal::clean;

pub(crate) fn resources(resources: &[Resource], width: Option<u16>) -> String {
    let line = |resource: &Resource| {
        let blockers: Vec<_> = resource.blockers.iter().map(|b| b.code.as_str()).collect();
        vec![
            resource.handle.clone(),
            resource.phase.clone(),
            time(&resource.phase_since),
            format!("{}@{}", resource.blueprint, resource.blueprint_version),
            if blockers.is_empty() { "-".to_owned() } else { blockers.join(", ") },
            resource.id.clone(),
        ]
    };
    let headings = ["HANDLE", "PHASE", "SINCE", "BLUEPRINT", "BLOCKERS", "ID"];
    rows(&headings, resources.iter().map(line).collect(), width)
}

pub(crate) fn nodes(nodes: &[Node], width: Option<u16>) -> String {
    let line = |node: &Node| {
        let state = match &node.deregistered_how {
            None => "registered".to_owned(),
            Some(how) => format!("gone ({how})"),
        };
        let heard = node.last_heartbeat_at.as_deref().map(time);
        vec![
            node.hostname.clone(),
            state,
            node.reachability.clone(),
            or_dash(node.mesh_ip.as_deref()),
            or_dash(node.version.as_deref()),
            or_dash(heard.as_deref()),
            node.id.clone(),
        ]
    };
    let headings =
        ["HOSTNAME", "STATE", "REACHABILITY", "MESH IP", "VERSION", "LAST HEARTBEAT", "ID"];
    rows(&headings, nodes.iter().map(line).collect(), width)
}

pub(crate) fn deletions(deletions: &[Deletion], width: Option<u16>) -> String {
    let line = |deletion: &Deletion| {
        vec![
            format!("{} {}", deletion.kind, deletion.target_id),
            deletion.state.clone(),
            time(&deletion.requested_at),
            deletion.requested_by.clone(),
            deletion.reason.clone(),
            deletion.id.clone(),
        ]
    };
    let headings = ["TARGET", "STATE", "REQUESTED", "BY", "REASON", "ID"];
    rows(&headings, deletions.iter().map(line).collect(), width)
}

pub(crate) fn events(events: &[Event], width: Option<u16>) -> String {
    let line = |event: &Event| {
        vec![
            event.position.to_string(),
            time(&event.occurred_at),
            event.event_type.clone(),
            event.revision.to_string(),
            event.aggregate_id.clone(),
        ]
    };
    let headings = ["POSITION", "AT", "TYPE", "REVISION", "AGGREGATE"];
    rows(&headings, events.iter().map(line).collect(), width)
}

/// One event as one line, for a list that has no end to align to.
pub(crate) fn event_line(event: &Event) -> String {
    let Event { position, revision, .. } = event;
    let at = time(&event.occurred_at);
    clean(&format!("{position:>6}  {at}  {}  {}  {revision}", event.event_type, event.aggregate_id))
}

pub(crate) fn subscriptions(subscriptions: &[Subscription], width: Option<u16>) -> String {
    let line = |found: &Subscription| {
        let delivered = found.delivered_at.as_deref().map(time);
        vec![
            found.name.clone(),
            found.position.to_string(),
            (found.last_position - found.position).to_string(),
            or_dash(delivered.as_deref()),
            found.failures.to_string(),
            or_dash(found.last_error.as_deref()),
        ]
    };
    let headings = ["NAME", "POSITION", "BEHIND", "LAST DELIVERY", "FAILURES", "LAST ERROR"];
    rows(&headings, subscriptions.iter().map(line).collect(), width)
}
