//! Enrolment: a bootstrap token is consumed and a node is registered, in one
//! transaction with the resource row locked. A refusal consumes nothing.

use serde_json::json;

use crate::audit::{Actor, AuditEntry, Subject};
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{NodeId, ProjectId, Revision};
use crate::node::Node;
use crate::phase::Phase;
use crate::snapshot::ResourceSnapshot;
use crate::token::{BootstrapToken, Consumption, SecretHash, TokenKind};

/// What a node presents, with the identity it would get.
#[derive(Debug, Clone)]
pub struct Enrolment {
    pub token_hash: SecretHash,
    pub kind: TokenKind,
    pub public_key: [u8; 32],
    pub hostname: String,
    pub capabilities: Vec<String>,
    pub nonce: Option<String>,
    /// What the node says it belongs to; checked if said.
    pub project_id: Option<ProjectId>,
    pub resource_handle: Option<String>,
    /// The id and the key of the node, if it is a new one.
    pub node_id: NodeId,
    pub key_hash: SecretHash,
}

/// The node that a token led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Enrolled {
    /// The same as before if this answers a register whose answer was lost.
    pub node_id: NodeId,
    pub commit: Commit,
}

/// Consumes the token, or answers the same node again.
///
/// *Expected flow.* Resource waits → token usable → node registered, token
/// consumed, loop woken.
/// *Guarantees.* A token registers at most one node. A register that is
/// repeated with the same key before the first heartbeat gets the same node
/// with a fresh key, since the first answer may have been lost. That holds while
/// the resource is leaving too: without its key the node could never
/// acknowledge its drain.
/// *Assumptions.* `snapshot` was found by the hash of the presented token.
pub fn enrol(snapshot: &ResourceSnapshot, enrolment: &Enrolment) -> Result<Enrolled, Refusal> {
    let now = snapshot.now;
    let phase = snapshot.attempt.phase();
    if phase == Phase::Failed || phase.is_deletion() {
        let token = snapshot.token.as_ref().filter(|token| token.hash == enrolment.token_hash);
        let known = token
            .filter(|token| check_binding(snapshot, token, enrolment).is_ok())
            .and_then(|token| token.consumed.as_ref())
            .and_then(|consumption| answer_again(snapshot, consumption, enrolment).ok());
        return known.ok_or_else(|| {
            Refusal::new(
                ErrorKind::NotEnrolling,
                format!(
                    "resource `{}` is {phase} and takes no node; declare a new one",
                    snapshot.resource.handle
                ),
            )
        });
    }
    let Some(token) = snapshot.token.as_ref().filter(|token| token.hash == enrolment.token_hash)
    else {
        // A token that was replaced: the attempt records another one. Whether
        // it was used before is what its bearer has to know.
        let used = snapshot.presented.as_ref().is_some_and(|token| token.consumed.is_some());
        return Err(if used { consumed() } else { revoked() });
    };
    check_binding(snapshot, token, enrolment)?;
    if let Some(consumption) = &token.consumed {
        return answer_again(snapshot, consumption, enrolment);
    }
    if token.revoked_at.is_some() {
        return Err(revoked());
    }
    if now >= token.expires_at {
        return Err(Refusal::new(
            ErrorKind::TokenExpired,
            format!(
                "the bootstrap token expired at {}; a new one is issued with the next apply",
                token.expires_at
            ),
        ));
    }

    let node = Node {
        id: enrolment.node_id,
        project_id: snapshot.resource.project_id,
        resource_id: snapshot.resource.id,
        provisioned_resource_id: snapshot.attempt.id(),
        bootstrap_token_id: token.id,
        hostname: enrolment.hostname.clone(),
        public_key: enrolment.public_key,
        key_hash: Some(enrolment.key_hash),
        capabilities: enrolment.capabilities.clone(),
        revision: Revision::FIRST,
        registered_at: now,
        last_heartbeat_at: None,
        drain: None,
        deregistration: None,
    };
    let used = BootstrapToken {
        consumed: Some(Consumption {
            at: now,
            nonce: enrolment.nonce.clone(),
            node_id: node.id,
            public_key: enrolment.public_key,
        }),
        ..token.clone()
    };
    let audit = audit("node.enrol", &node, Revision::FIRST, snapshot)
        .with(json!({ "hostname": node.hostname, "resource_id": snapshot.resource.id }));
    Ok(Enrolled {
        node_id: node.id,
        commit: Commit {
            writes: vec![Write::NodeInsert(node), Write::TokenUpdate(used)],
            events: Vec::new(),
            audit: vec![audit],
            wakes: vec![snapshot.attempt.id()],
        },
    })
}

fn check_binding(
    snapshot: &ResourceSnapshot,
    token: &BootstrapToken,
    enrolment: &Enrolment,
) -> Result<(), Refusal> {
    if enrolment.kind != token.kind || token.kind != TokenKind::Node {
        return Err(Refusal::new(ErrorKind::KindMismatch, "the bootstrap token is not for a node"));
    }
    if enrolment.project_id.is_some_and(|project| project != token.project_id) {
        return Err(Refusal::new(
            ErrorKind::ProjectMismatch,
            "the bootstrap token belongs to another project than the one named",
        )
        .at("project_id"));
    }
    if enrolment
        .resource_handle
        .as_ref()
        .is_some_and(|handle| handle != snapshot.resource.handle.as_str())
    {
        return Err(Refusal::new(
            ErrorKind::ResourceNotFound,
            "the bootstrap token belongs to another resource than the one named",
        )
        .at("resource_handle"));
    }
    Ok(())
}

fn answer_again(
    snapshot: &ResourceSnapshot,
    consumption: &Consumption,
    enrolment: &Enrolment,
) -> Result<Enrolled, Refusal> {
    let node = snapshot.node.as_ref().filter(|node| {
        node.id == consumption.node_id
            && node.is_registered()
            && node.last_heartbeat_at.is_none()
            && node.public_key == enrolment.public_key
    });
    let Some(node) = node else {
        return Err(consumed());
    };
    let rekeyed = Node { key_hash: Some(enrolment.key_hash), ..node.clone() };
    let audit = audit("node.enrol_again", &rekeyed, node.revision.next(), snapshot);
    Ok(Enrolled {
        node_id: node.id,
        commit: Commit {
            writes: vec![Write::NodeUpdate(rekeyed)],
            audit: vec![audit],
            ..Commit::default()
        },
    })
}

fn audit(
    verb: &'static str,
    node: &Node,
    revision: Revision,
    snapshot: &ResourceSnapshot,
) -> AuditEntry {
    let actor = Actor::new(format!("node:{}", node.id));
    let subject = Subject {
        kind: NodeId::KIND,
        id: node.id.as_uuid(),
        project_id: node.project_id,
        revision,
    };
    AuditEntry::new(verb, &actor, subject, snapshot.now)
}

fn consumed() -> Refusal {
    Refusal::new(
        ErrorKind::TokenConsumed,
        "the bootstrap token was used already; a token enrols one node once",
    )
}

fn revoked() -> Refusal {
    Refusal::new(ErrorKind::TokenRevoked, "the bootstrap token was revoked; it enrols nobody")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, mk_enrolment, mk_snapshot, mk_token};

    /// Waits to enrol at second 1020, token usable until 1100.
    fn waiting() -> ResourceSnapshot {
        let mut snapshot = mk_snapshot(Phase::Enrolling);
        snapshot.now = at(1_020);
        snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
        snapshot
    }

    fn enrolled() -> ResourceSnapshot {
        let mut snapshot = waiting();
        let commit = enrol(&snapshot, &mk_enrolment()).unwrap().commit;
        for write in commit.writes {
            match write {
                Write::NodeInsert(node) => snapshot.node = Some(node),
                Write::TokenUpdate(token) => snapshot.token = Some(token),
                other => panic!("unexpected write {other:?}"),
            }
        }
        snapshot
    }

    #[test]
    fn a_usable_token_registers_a_node_and_wakes_the_loop() {
        let snapshot = enrolled();
        assert!(snapshot.node.as_ref().unwrap().is_registered());
        assert_eq!(snapshot.token.unwrap().consumed.unwrap().node_id, mk_enrolment().node_id);
    }

    /// Invariant 9.
    #[test]
    fn enrolling_is_refused_in_failed_and_the_deletion_phases() {
        for phase in [Phase::Failed, Phase::Deregistering, Phase::Deprovisioning, Phase::Deleted] {
            let mut snapshot = mk_snapshot(phase);
            snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
            let refusal = enrol(&snapshot, &mk_enrolment()).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::NotEnrolling, "{phase}");
        }
    }

    #[test]
    fn a_token_that_cannot_be_used_says_why() {
        let usable = waiting();
        let token = usable.token.clone().unwrap();
        let with = |token: BootstrapToken| ResourceSnapshot { token: Some(token), ..waiting() };
        let late = ResourceSnapshot { now: at(1_100), ..waiting() };
        let revoked = with(BootstrapToken { revoked_at: Some(at(1_001)), ..token.clone() });
        let bridge = with(BootstrapToken { kind: TokenKind::Bridge, ..token.clone() });
        let replaced = with(BootstrapToken { hash: SecretHash::of(b"newer"), ..token.clone() });
        let used = BootstrapToken { hash: SecretHash::of(b"newer"), ..token };
        let used = ResourceSnapshot { presented: enrolled().token, ..with(used) };
        let table = [
            (late, ErrorKind::TokenExpired),
            (revoked, ErrorKind::TokenRevoked),
            (bridge, ErrorKind::KindMismatch),
            (replaced, ErrorKind::TokenRevoked),
            (used, ErrorKind::TokenConsumed),
        ];
        for (snapshot, kind) in table {
            assert_eq!(enrol(&snapshot, &mk_enrolment()).unwrap_err().kind, kind);
        }
        let foreign = Enrolment {
            project_id: Some(ProjectId::new(uuid::Uuid::from_u128(12_345))),
            ..mk_enrolment()
        };
        assert_eq!(enrol(&usable, &foreign).unwrap_err().kind, ErrorKind::ProjectMismatch);
        let elsewhere = Enrolment { resource_handle: Some("other".to_owned()), ..mk_enrolment() };
        assert_eq!(enrol(&usable, &elsewhere).unwrap_err().kind, ErrorKind::ResourceNotFound);
    }

    /// Invariant 10: a lost answer can be asked for again, until the node was heard of.
    #[test]
    fn the_same_key_is_answered_again_before_the_first_heartbeat() {
        let snapshot = enrolled();
        let fresh_key = SecretHash::of(b"fresh");
        let again = Enrolment {
            node_id: NodeId::new(uuid::Uuid::from_u128(777)),
            key_hash: fresh_key,
            ..mk_enrolment()
        };
        let answer = enrol(&snapshot, &again).unwrap();
        assert_eq!(answer.node_id, snapshot.node.as_ref().unwrap().id, "not a second node");
        assert!(
            matches!(&answer.commit.writes[..], [Write::NodeUpdate(node)] if node.key_hash == Some(fresh_key))
        );

        let other_key = Enrolment { public_key: [8; 32], ..again.clone() };
        assert_eq!(enrol(&snapshot, &other_key).unwrap_err().kind, ErrorKind::TokenConsumed);

        let mut heard = snapshot;
        heard.node.as_mut().unwrap().last_heartbeat_at = Some(at(1_021));
        assert_eq!(enrol(&heard, &again).unwrap_err().kind, ErrorKind::TokenConsumed);
    }

    /// Without its key a registered node could never acknowledge its drain.
    #[test]
    fn a_lost_answer_is_given_again_while_the_resource_is_leaving() {
        let leaving =
            ResourceSnapshot { attempt: mk_snapshot(Phase::Deregistering).attempt, ..enrolled() };
        let answer = enrol(&leaving, &mk_enrolment()).unwrap();
        assert_eq!(answer.node_id, leaving.node.as_ref().unwrap().id);
        let other_key = Enrolment { public_key: [8; 32], ..mk_enrolment() };
        assert_eq!(enrol(&leaving, &other_key).unwrap_err().kind, ErrorKind::NotEnrolling);
        let mut gone = leaving;
        gone.node = None;
        assert_eq!(enrol(&gone, &mk_enrolment()).unwrap_err().kind, ErrorKind::NotEnrolling);
    }
}
