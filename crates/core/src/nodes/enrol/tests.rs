//! Who may enrol, and what each refusal says.

use super::*;
use crate::fixtures::{at, mk_enrol_snapshot, mk_enrolment, mk_snapshot, mk_token};
use crate::nodes::NodesWrite;
use crate::nodes::mesh::{MeshCidr, MeshPool};

/// In an empty mesh.
fn enrol(snapshot: &ResourceSnapshot, enrolment: &Enrolment) -> Result<Enrolled, Refusal> {
    super::enrol(&mk_enrol_snapshot(snapshot.clone()), enrolment)
}

/// Waits for a node at second 1020; the token is usable until 1100.
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
            Write::Nodes(NodesWrite::NodeInsert(node)) => snapshot.node = Some(node),
            Write::Nodes(NodesWrite::TokenUpdate(token)) => snapshot.token = Some(token),
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
    let id = ResourceId::new(uuid::Uuid::from_u128(12_345));
    let requested = Enrolment { requested_resource_id: Some(id), ..mk_enrolment() };
    assert_eq!(enrol(&usable, &requested).unwrap_err().kind, ErrorKind::ResourceNotFound);
    let right = Enrolment { requested_resource_id: Some(usable.resource.id), ..mk_enrolment() };
    assert!(enrol(&usable, &right).is_ok());
}

/// Invariant 10: a node can ask for a lost answer again until its first heartbeat.
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
        matches!(&answer.commit.writes[..], [Write::Nodes(NodesWrite::NodeUpdate(node))] if node.key_hash == Some(fresh_key))
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

#[test]
fn the_node_gets_the_next_address_of_the_mesh() {
    let cidr = MeshCidr::parse("mesh_cidr", "10.42.0.0/29").unwrap();
    for (free, expected) in [(2, "10.42.0.2"), (5, "10.42.0.5"), (3, "10.42.0.3")] {
        let pool = MeshPool { cidr, free: Some(free) };
        let known = EnrolSnapshot { pool, ..mk_enrol_snapshot(waiting()) };
        let commit = super::enrol(&known, &mk_enrolment()).unwrap().commit;
        let Write::Nodes(NodesWrite::NodeInsert(node)) = &commit.writes[0] else {
            panic!("{commit:?}")
        };
        assert_eq!(node.mesh.ip.to_string(), expected);
        assert_eq!(commit.audit[0].details["mesh_ip"], expected);
    }
}

/// The order of the refusals of a usable token; and that repeating a lost
/// answer needs no fresh nonce, no other key and no other address.
#[test]
fn a_taken_nonce_a_taken_key_and_a_full_mesh_refuse_a_usable_token() {
    let cidr = MeshCidr::parse("mesh_cidr", "10.42.0.0/30").unwrap();
    let full = MeshPool { cidr, free: None };
    let mut known = EnrolSnapshot { pool: full, nonce_taken: true, ..mk_enrol_snapshot(waiting()) };
    let kind = |known: &EnrolSnapshot| super::enrol(known, &mk_enrolment()).unwrap_err().kind;
    assert_eq!(kind(&known), ErrorKind::NonceCollision);
    known.nonce_taken = false;
    known.public_key_taken = true;
    assert_eq!(kind(&known), ErrorKind::PublicKeyTaken);
    known.public_key_taken = false;
    assert_eq!(kind(&known), ErrorKind::PoolExhausted);
    let again =
        EnrolSnapshot { resource: enrolled(), nonce_taken: true, public_key_taken: true, ..known };
    assert!(super::enrol(&again, &mk_enrolment()).is_ok());
}
