//! Scaling, decided on snapshots.

use std::time::Duration;

use super::*;
use crate::broker::phase::Phase;
use crate::deletion::record::DeletionState;
use crate::fixtures::catalog::mk_ask;
use crate::fixtures::topology::{mk_group_snapshot, mk_owner};
use crate::fixtures::{mk_actor, mk_deletion, mk_snapshot};
use crate::ids::DeletionId;
use crate::topology::role::NodeRole;

const fn same() -> Inventory {
    Inventory::Compared { age: Duration::ZERO, unknown: Vec::new(), missing: Vec::new() }
}

fn server(phase: Phase, counts: Counts) -> OfServer<ResourceSnapshot> {
    let mut of = mk_snapshot(phase);
    of.resource.owner = Some(mk_owner(NodeRole::Worker));
    OfServer { of, owner: Some(mk_group_snapshot(NodeRole::Worker, counts)) }
}

fn three() -> Counts {
    Counts { others: 2, others_counted: 2, ..Counts::default() }
}

fn asked<'a>(inventory: &'a Inventory, ask: &'a Ask) -> Asked<'a> {
    Asked { door: Door::ScaleDown, caller: Role::Operator, inventory, ask }
}

fn group_after(commit: &Commit) -> Option<&Group> {
    commit.writes.iter().find_map(|write| match write {
        Write::Topology(write) => match &**write {
            TopologyWrite::GroupScale(group) => Some(group),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn a_server_that_goes_is_wanted_no_more() {
    let (inventory, ask) = (same(), mk_ask());
    let door = DeletionDoor::default();
    let snapshot = server(Phase::Ready, three());
    let requested = leave(&snapshot, &door, &asked(&inventory, &ask), &mk_actor()).unwrap();
    let group = group_after(&requested.commit).unwrap();
    assert_eq!(group.spec.wanted, 2);
    let verbs: Vec<_> = requested.commit.audit.iter().map(|entry| entry.verb).collect();
    assert_eq!(verbs, ["resource.delete", "server.scale_down"]);
    assert!(requested.commit.events.iter().any(|event| event.event_type == GROUP_SCALED_DOWN));
}

#[test]
fn one_beyond_what_is_wanted_goes_without_changing_that() {
    let (inventory, ask) = (same(), mk_ask());
    let counts = Counts { others: 3, others_counted: 3, ..Counts::default() };
    let snapshot = server(Phase::Ready, counts);
    let door = DeletionDoor::default();
    let requested = leave(&snapshot, &door, &asked(&inventory, &ask), &mk_actor()).unwrap();
    assert_eq!(group_after(&requested.commit).unwrap().spec.wanted, 3);
}

#[test]
fn a_refused_gate_writes_nothing() {
    let (inventory, ask) = (same(), mk_ask());
    let counts = Counts { others: 2, others_counted: 0, ..Counts::default() };
    let snapshot = server(Phase::Ready, counts);
    let door = DeletionDoor::default();
    let refusal = leave(&snapshot, &door, &asked(&inventory, &ask), &mk_actor()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::ScaleMinViolation);
}

#[test]
fn asking_again_is_answered_with_the_same_deletion() {
    let (inventory, ask) = (same(), mk_ask());
    let mut snapshot = server(Phase::Deregistering, Counts::default());
    let under_way = Deletion {
        id: DeletionId::new(uuid::Uuid::from_u128(77)),
        state: DeletionState::Running,
        ..mk_deletion(&snapshot.of)
    };
    snapshot.of.resource.deletion_id = Some(under_way.id);
    snapshot.of.deletion = Some(under_way.clone());
    let door = DeletionDoor { under_way: Some(under_way.clone()), ..DeletionDoor::default() };
    let requested = leave(&snapshot, &door, &asked(&inventory, &ask), &mk_actor()).unwrap();
    assert_eq!(requested.deletion_id, under_way.id);
    assert!(group_after(&requested.commit).is_none(), "it was counted when it began");
}

#[test]
fn what_no_workspace_owns_is_no_server() {
    let (inventory, ask) = (same(), mk_ask());
    let snapshot = OfServer { of: mk_snapshot(Phase::Ready), owner: None };
    let door = DeletionDoor::default();
    let refusal = leave(&snapshot, &door, &asked(&inventory, &ask), &mk_actor()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::ServerNotFound);
}

#[test]
fn scaling_up_stops_at_the_maximum_and_counts_from_the_minimum() {
    let mut snapshot = mk_group_snapshot(NodeRole::Worker, three());
    let commit = up(&snapshot, 2, &mk_actor()).unwrap();
    assert_eq!(group_after(&commit).unwrap().spec.wanted, 5);
    let refusal = up(&snapshot, 3, &mk_actor()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::ScaleMaxViolation);
    assert_eq!(refusal.details.unwrap()["max"], 5);
    snapshot.group.spec.min = 4;
    let commit = up(&snapshot, 1, &mk_actor()).unwrap();
    assert_eq!(group_after(&commit).unwrap().spec.wanted, 5, "4 are there or come anyway");
    assert_eq!(up(&snapshot, 0, &mk_actor()).unwrap_err().field.as_deref(), Some("by"));
}

#[test]
fn a_workspace_on_its_way_out_is_not_scaled() {
    let mut snapshot = mk_group_snapshot(NodeRole::Worker, three());
    snapshot.workspace.deletion_id = Some(DeletionId::new(uuid::Uuid::from_u128(78)));
    assert_eq!(up(&snapshot, 1, &mk_actor()).unwrap_err().kind, ErrorKind::Leaving);
}

#[test]
fn a_mark_is_set_once_and_taken_away() {
    let mut snapshot = mk_group_snapshot(NodeRole::Worker, three());
    let id = ResourceId::new(uuid::Uuid::from_u128(79));
    let commit = mark(&snapshot, id, "worker-9", true, &mk_actor()).unwrap();
    snapshot.group = group_after(&commit).unwrap().clone();
    assert_eq!(snapshot.group.marked, [id]);
    assert!(mark(&snapshot, id, "worker-9", true, &mk_actor()).unwrap().is_empty());
    let commit = mark(&snapshot, id, "worker-9", false, &mk_actor()).unwrap();
    assert!(group_after(&commit).unwrap().marked.is_empty());
}
