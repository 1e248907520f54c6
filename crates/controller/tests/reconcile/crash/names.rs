//! Names commits by what they change, so that a point keeps its name when
//! something else is done before it.

use slipway_core::broker::BrokerWrite;
use slipway_core::commit::{Commit, StateChange, Write};
use slipway_core::deletion::DeletionWrite;
use slipway_core::nodes::NodesWrite;
use uuid::Uuid;

/// The audit verb of a transition, which is named by its phases instead.
const PHASE_VERB: &str = "provisioned_resource.phase";

/// The name without its side; `/before` or `/after` follows.
pub(super) fn of_commit(commit: &Commit) -> String {
    let mut parts: Vec<String> = Vec::new();
    for StateChange { from, to, .. } in commit.state_changes() {
        parts.extend(from.map(|from| format!("{from}→{to}")));
    }
    for entry in &commit.audit {
        if entry.verb != PHASE_VERB {
            parts.push(entry.verb.to_owned());
        }
    }
    if parts.is_empty() {
        parts.extend(commit.writes.iter().filter_map(unaudited).map(str::to_owned));
    }
    if parts.is_empty() {
        parts.push("release".to_owned());
    }
    format!("commit:{}", parts.join("+"))
}

/// The resources and attempts that a commit is about. None of one that changes no state: how
/// often a row is observed meanwhile is a matter of timing.
pub(super) fn subjects(commit: &Commit) -> Vec<Uuid> {
    if commit.audit.is_empty() && commit.state_changes().next().is_none() {
        return Vec::new();
    }
    let changed = commit.state_changes().map(|change| change.subject.id);
    let audited = commit.audit.iter().map(|entry| entry.subject.id);
    let written = commit.writes.iter().filter_map(|write| match write {
        Write::Broker(BrokerWrite::ResourceInsert(resource)) => Some(resource.id.as_uuid()),
        Write::Broker(
            BrokerWrite::AttemptInsert(attempt) | BrokerWrite::AttemptUpdate(attempt),
        ) => Some(attempt.id().as_uuid()),
        Write::Nodes(NodesWrite::TokenInsert(token) | NodesWrite::TokenUpdate(token)) => {
            Some(token.provisioned_resource_id.as_uuid())
        }
        Write::Nodes(NodesWrite::NodeInsert(node) | NodesWrite::NodeUpdate(node)) => {
            Some(node.provisioned_resource_id.as_uuid())
        }
        _ => None,
    });
    changed.chain(audited).chain(written).collect()
}

/// Writes that change no state and therefore have no audit entry.
fn unaudited(write: &Write) -> Option<&'static str> {
    match write {
        Write::BlockersReplace(..) => Some("blockers"),
        Write::Broker(BrokerWrite::ObservedReplace(..)) => Some("observed"),
        Write::Nodes(NodesWrite::TokenUpdate(_)) => Some("token.prolong"),
        Write::Deletion(DeletionWrite::LeakInsert(_)) => Some("leak"),
        Write::Deletion(DeletionWrite::PlanInsert(_)) => Some("plan"),
        Write::Rollouts(_) => Some("rollout members"),
        Write::Fleet(_) => Some("offer"),
        _ => None,
    }
}
