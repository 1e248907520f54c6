//! One thing, with all that is known of it.

use std::fmt::Display;

use slipway_wire::api::{Deletion, HistoryEntry, Node, Resource, ResourceDetail};

use super::table::{facts, optional_time, time};

/// With what was observed and how it came here. All of it is in `-o yaml`.
pub(crate) fn resource_detail(detail: &ResourceDetail, width: Option<u16>) -> String {
    /// Changes of phase that are shown here.
    const SHOWN: usize = 6;
    let line = |entry: &HistoryEntry| format!("{} at {}", entry.to, time(&entry.at));
    let history: Vec<_> = detail.history.iter().take(SHOWN).map(line).collect();
    let mut shown = resource_facts(&detail.resource);
    shown.push(("observed", detail.observed.as_ref().map(ToString::to_string)));
    shown.push(("attempts", Some(detail.attempts.len().to_string())));
    shown.push(("history", Some(history.join(", "))));
    facts(shown, width)
}

pub(crate) fn resource(resource: &Resource, width: Option<u16>) -> String {
    facts(resource_facts(resource), width)
}

fn resource_facts(resource: &Resource) -> Vec<(&'static str, Option<String>)> {
    let attempt = &resource.attempt;
    let blockers: Vec<_> =
        resource.blockers.iter().map(|b| format!("{}: {}", b.code, b.message)).collect();
    vec![
        ("handle", Some(resource.handle.clone())),
        ("id", Some(resource.id.clone())),
        ("project", Some(resource.project_id.clone())),
        ("phase", Some(format!("{} since {}", resource.phase, time(&resource.phase_since)))),
        ("failure", attempt.failure_reason.clone()),
        ("blockers", Some(blockers.join("; "))),
        ("blueprint", Some(format!("{}@{}", resource.blueprint, resource.blueprint_version))),
        ("engine", Some(resource.engine.clone())),
        ("parameters", Some(pairs(&attempt.parameters))),
        ("labels", Some(pairs(&resource.labels))),
        ("inherited", Some(inherited(resource))),
        ("attempt", Some(format!("{} ({})", attempt.number, attempt.xr_name))),
        ("node", resource.node.as_ref().map(node_in_short)),
        ("deletion", resource.deletion_id.clone()),
        ("created", Some(time(&resource.created_at))),
        ("deleted", optional_time(resource.deleted_at.as_ref())),
        ("gone, proven twice", optional_time(attempt.absence_proven_at.as_ref())),
        ("revision", Some(resource.revision.to_string())),
    ]
}

/// The labels in effect that are the project's.
fn inherited(resource: &Resource) -> String {
    let labels = resource.effective_labels.iter().filter(|(_, label)| label.source == "project");
    labels.map(|(key, label)| format!("{key}={}", label.value)).collect::<Vec<_>>().join(" ")
}

pub(crate) fn node(node: &Node, width: Option<u16>) -> String {
    facts(
        vec![
            ("id", Some(node.id.clone())),
            ("hostname", Some(node.hostname.clone())),
            ("resource", Some(node.resource_id.clone())),
            ("registered", Some(if node.registered { "yes" } else { "no" }.to_owned())),
            ("reachability", Some(node.reachability.clone())),
            ("mesh ip", node.mesh_ip.clone()),
            ("version", node.version.clone()),
            ("checksum", node.checksum.clone()),
            ("status", node.status.clone()),
            ("capabilities", Some(node.capabilities.join(", "))),
            ("enrolled", Some(time(&node.registered_at))),
            ("last heartbeat", optional_time(node.last_heartbeat_at.as_ref())),
            ("drain requested", optional_time(node.drain_requested_at.as_ref())),
            ("deregistered", optional_time(node.deregistered_at.as_ref())),
            ("how", node.deregistered_how.clone()),
            ("by", node.deregistered_by.clone()),
            ("reason", node.deregistered_reason.clone()),
        ],
        width,
    )
}

pub(crate) fn deletion(deletion: &Deletion, width: Option<u16>) -> String {
    let members: Vec<_> =
        deletion.members.iter().map(|member| format!("{} {}", member.kind, member.id)).collect();
    facts(
        vec![
            ("id", Some(deletion.id.clone())),
            ("target", Some(format!("{} {}", deletion.kind, deletion.target_id))),
            ("state", Some(deletion.state.clone())),
            ("requested", Some(time(&deletion.requested_at))),
            ("by", Some(deletion.requested_by.clone())),
            ("reason", Some(deletion.reason.clone())),
            ("members", Some(members.join(", "))),
            ("done", optional_time(deletion.done_at.as_ref())),
            ("restorable until", optional_time(deletion.restorable_until.as_ref())),
        ],
        width,
    )
}

pub(super) fn node_in_short(node: &Node) -> String {
    let state = match &node.deregistered_how {
        None => format!("registered, {}", node.reachability),
        Some(how) => format!("deregistered ({how})"),
    };
    format!("{} {} {state}", node.hostname, node.id)
}

pub(super) fn pairs<'a, V: Display + 'a>(
    map: impl IntoIterator<Item = (&'a String, &'a V)>,
) -> String {
    let pairs: Vec<_> = map.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}
