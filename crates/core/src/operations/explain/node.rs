//! A node: its registration, its reachability by heartbeats, and the drain
//! requested of it.

use serde_json::json;

use super::resource::part;
use crate::blocker::BlockerCode;
use crate::nodes::node::{Node, Reachability};
use crate::operations::explanation::{AttemptLine, ExplainedKind, Explanation};
use crate::time::Timestamp;

/// `attempts` are those of its resource; `resource` is the explanation of that,
/// if the node belongs to the current attempt.
pub fn node(
    node: &Node,
    now: Timestamp,
    attempts: &[AttemptLine],
    resource: Option<&Explanation>,
) -> Explanation {
    let (state, since) = match (&node.deregistration, node.drain) {
        (Some(gone), _) => ("deregistered", gone.at),
        (None, Some(drain)) => ("draining", drain.requested_at),
        (None, None) => ("registered", node.registered_at),
    };
    let mut found =
        Explanation::new(ExplainedKind::Node, node.id.as_uuid(), &node.hostname, state, since);
    let reachability = node.reachability(now);
    let silent = matches!(reachability, Reachability::Stale | Reachability::Unreachable);
    // Only once it is late: every node is silent at first.
    let late =
        |found: &Explanation| found.blockers.iter().any(|b| b.code == BlockerCode::NodeSilent);
    let never_reported = node.is_silent() && resource.is_some_and(late);
    match (&node.deregistration, node.drain) {
        (Some(gone), _) => {
            let how = gone.how;
            found.next = format!("nothing: it is deregistered ({how}), by {}", gone.by);
        }
        (None, Some(_)) if node.can_drain() => {
            found.waiting_for = Some("its agent to finish and to acknowledge the drain".to_owned());
            found.deadline = resource.and_then(|resource| resource.deadline);
            found.overdue = found.deadline.is_some_and(|deadline| deadline <= now);
            found.next =
                "its agent learns of the drain with its next heartbeat; the substrate stays until the node is deregistered"
                    .to_owned();
        }
        (None, Some(_)) => {
            found.waiting_for = Some("the loop to deregister it: it cannot drain".to_owned());
            found.next = "it is deregistered with the next tick of its resource".to_owned();
        }
        (None, None) if silent => {
            found.waiting_for =
                Some("a heartbeat; missing heartbeats never deregister a node".to_owned());
            found.next = "it stays registered until it is drained, leaves, or its substrate is \
                          proven absent"
                .to_owned();
        }
        (None, None) if never_reported => {
            found.waiting_for = Some("its first heartbeat".to_owned());
            found.next = "if its machine did not store its identity, let it enrol again with \
                          `slipway resource reenrol`"
                .to_owned();
        }
        (None, None) => {
            found.next = "it sends heartbeats until its resource is deleted".to_owned();
        }
    }
    found.next_check_at = resource.and_then(|resource| resource.next_check_at);
    found.resource_id = Some(node.resource_id);
    // Blockers of the resource block a drain, and nothing else of the node.
    if node.is_registered()
        && node.drain.is_some()
        && let Some(resource) = resource
    {
        found.blockers = resource.blockers.clone();
    }
    found.facts.insert("reachability", json!(reachability));
    found.facts.insert("last_heartbeat_at", json!(node.last_heartbeat_at));
    found.facts.insert("registered_at", json!(node.registered_at));
    found.facts.insert("capabilities", json!(node.capabilities));
    if let Some(reason) = node.deregistration.as_ref().and_then(|gone| gone.reason.as_ref()) {
        found.facts.insert("deregistered_reason", json!(reason));
    }
    found.node = Some(node.clone());
    found.parts = attempts
        .iter()
        .filter(|line| line.id == node.provisioned_resource_id)
        .map(|line| part(line, "what it is the node of".to_owned()))
        .collect();
    for part in &mut found.parts {
        part.blockers.retain(|blocker| !found.blockers.iter().any(|own| own.code == blocker.code));
    }
    found
}
