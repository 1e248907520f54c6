//! Machines that people boot by hand (engine manual). Slipway cannot see them: one exists
//! from its declaration until somebody says that it is gone.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::catalog::blueprint_version::Engine;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ClaimToken, ProvisionedResourceId};
use crate::nodes::NodesWrite;
use crate::text::Reason;
use crate::time::Timestamp;

/// The audit verb.
pub const CONFIRM_GONE: &str = "resource.confirm_gone";

/// The machine of an attempt, as far as the loop was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub provisioned_resource_id: ProvisionedResourceId,
    pub namespace: String,
    pub name: String,
    /// Hash over what was declared.
    pub owned_hash: String,
    /// The claim of its last writer.
    pub claim_token: ClaimToken,
    /// Whether a person has to say that it is gone.
    pub confirm_gone: bool,
    /// Since when it is to be gone.
    pub terminating_at: Option<Timestamp>,
}

/// A person says that the machine is gone. From then on its substrate is absent, and the
/// loop ends the deletion, also that of a node which never finished its drain. Repeated, it
/// changes nothing.
pub fn confirm_gone(
    snapshot: &ResourceSnapshot,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let (resource, attempt) = (&snapshot.resource, &snapshot.attempt);
    let refuse = |problem: String| {
        let message = format!("resource `{}` {problem}", resource.handle);
        Err(Refusal::new(ErrorKind::NothingToConfirm, message))
    };
    if snapshot.blueprint.engine != Engine::Manual {
        return refuse(format!(
            "is of engine {}, which proves by itself that it is gone",
            snapshot.blueprint.engine
        ));
    }
    if !attempt.phase().is_deletion() {
        return refuse(format!(
            "is {}, and nobody requested its deletion; first `slipway resource delete {}`",
            attempt.phase(),
            resource.handle
        ));
    }
    // It was absent when it became Deleted, unless somebody abandoned it.
    if attempt.phase() == Phase::Deleted && attempt.abandoned_at().is_none() {
        return Ok(Commit::default());
    }
    let about = About::new(resource.id).of(resource.project_id);
    let audit = AuditEntry::new(CONFIRM_GONE, actor, about, snapshot.now)
        .because(reason.as_str())
        .with(json!({ "provisioned_resource_id": attempt.id() }));
    Ok(Commit {
        writes: vec![Write::Nodes(NodesWrite::MachineRemove(attempt.id()))],
        audit: vec![audit],
        wakes: vec![attempt.id().into()],
        ..Commit::default()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fixtures::{mk_actor, mk_snapshot};

    fn by_hand(phase: Phase) -> ResourceSnapshot {
        let mut snapshot = mk_snapshot(phase);
        Arc::make_mut(&mut snapshot.blueprint).engine = Engine::Manual;
        snapshot
    }

    fn ask(snapshot: &ResourceSnapshot) -> Result<Commit, Refusal> {
        confirm_gone(snapshot, &Reason::parse("switched off").unwrap(), &mk_actor())
    }

    #[test]
    fn a_machine_is_gone_once_its_deletion_was_requested_and_somebody_says_so() {
        for &phase in Phase::ALL {
            let asked = ask(&by_hand(phase));
            match phase {
                Phase::Deregistering | Phase::Deprovisioning => {
                    let commit = asked.unwrap();
                    let id = by_hand(phase).attempt.id();
                    assert_eq!(commit.writes, [Write::Nodes(NodesWrite::MachineRemove(id))]);
                    assert_eq!((commit.audit[0].verb, commit.wakes.len()), (CONFIRM_GONE, 1));
                }
                Phase::Deleted => assert_eq!(asked.unwrap(), Commit::default()),
                _ => assert_eq!(asked.unwrap_err().kind, ErrorKind::NothingToConfirm, "{phase}"),
            }
            let other = ask(&mk_snapshot(phase)).unwrap_err();
            assert_eq!(other.kind, ErrorKind::NothingToConfirm, "{phase}");
        }
    }
}
