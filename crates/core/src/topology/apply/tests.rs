//! Applying workspaces, decided on snapshots.

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::broker::phase::Phase;
use crate::commit::Write;
use crate::fixtures::topology::{mk_group, mk_server, mk_workspace, mk_workspace_snapshot};
use crate::fixtures::{mk_actor, mk_declaration, mk_declare_snapshot};
use crate::topology::server::Leaving;
use crate::topology::workspace::TakenPattern;

/// The group of the snapshot as its declaration has it.
fn spec() -> GroupSpec {
    let declaration = mk_declaration();
    GroupSpec {
        blueprint: declaration.blueprint,
        parameters: declaration.parameters,
        credential: declaration.credential,
        ..mk_group(NodeRole::Worker).spec
    }
}

fn desired(specs: Vec<GroupSpec>) -> Desired {
    let id = |number: usize| GroupId::new(Uuid::from_u128(800 + number as u128));
    Desired {
        id: WorkspaceId::new(Uuid::from_u128(90)),
        group_ids: (0..specs.len()).map(id).collect(),
        project: "default".to_owned(),
        name: mk_workspace().name,
        specs,
    }
}

fn snapshot(servers: u32) -> WorkspaceSnapshot {
    let mut snapshot = mk_workspace_snapshot();
    snapshot.groups[0].spec = spec();
    snapshot.servers = (1..=servers).map(|number| mk_server(number, Phase::Ready)).collect();
    snapshot
}

fn applied(snapshot: &WorkspaceSnapshot, specs: Vec<GroupSpec>) -> Result<Commit, Refusal> {
    let same = Inventory::Compared { age: Duration::ZERO, unknown: vec![], missing: vec![] };
    let inventories = snapshot.groups.iter().map(|group| (group.id, same.clone())).collect();
    applied_with(snapshot, specs, &inventories)
}

fn applied_with(
    snapshot: &WorkspaceSnapshot,
    specs: Vec<GroupSpec>,
    inventories: &BTreeMap<GroupId, Inventory>,
) -> Result<Commit, Refusal> {
    let declared = vec![mk_declare_snapshot(); specs.len()];
    let circumstances = Circumstances { caller: Role::Operator, declared: &declared, inventories };
    apply(snapshot, &desired(specs), &circumstances, &mk_actor())
}

fn groups(commit: &Commit) -> Vec<&Group> {
    commit
        .writes
        .iter()
        .filter_map(|write| match write {
            Write::Topology(write) => match &**write {
                TopologyWrite::GroupInsert(group) | TopologyWrite::GroupUpdate(group) => {
                    Some(group)
                }
                _ => None,
            },
            _ => None,
        })
        .collect()
}

#[test]
fn a_new_workspace_comes_with_its_groups_and_one_event() {
    let new = WorkspaceSnapshot { workspace: None, groups: vec![], ..snapshot(0) };
    let commit = applied(&new, vec![spec()]).unwrap();
    assert_eq!(groups(&commit).len(), 1);
    assert_eq!(commit.events.len(), 1);
    assert_eq!(commit.events[0].event_type, WORKSPACE_CREATED);
    assert_eq!(commit.audit[0].verb, "workspace.create");
}

#[test]
fn what_is_so_already_writes_nothing() {
    assert!(applied(&snapshot(3), vec![spec()]).unwrap().is_empty());
}

#[test]
fn fewer_servers_pass_the_gates_and_too_few_do_not() {
    let fewer = GroupSpec { wanted: 1, ..spec() };
    let commit = applied(&snapshot(3), vec![fewer.clone()]).unwrap();
    assert_eq!(groups(&commit)[0].spec.wanted, 1);
    let mut unhealthy = snapshot(3);
    unhealthy.servers[0].phase = Phase::Provisioning;
    let none_left = GroupSpec { wanted: 1, min: 1, ..spec() };
    assert!(applied(&unhealthy, vec![none_left]).is_ok(), "one Ready server is left");
    let mut locked = snapshot(3);
    locked.groups[0].spec.delete_lock = true;
    let still = GroupSpec { delete_lock: true, ..fewer };
    assert_eq!(applied(&locked, vec![still]).unwrap_err().kind, ErrorKind::DeleteLocked);
}

#[test]
fn a_group_that_shrinks_is_listed_first() {
    let fewer = GroupSpec { wanted: 1, ..spec() };
    let refusal = applied_with(&snapshot(3), vec![fewer], &BTreeMap::new()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::InventoryUnavailable);
}

#[test]
fn a_group_that_is_not_declared_any_more_is_dropped_and_a_control_plane_is_not() {
    let commit = applied(&snapshot(2), vec![]).unwrap();
    assert!(groups(&commit)[0].dropped);
    let mut planes = snapshot(1);
    planes.groups[0].spec.role = NodeRole::ControlPlane;
    assert_eq!(applied(&planes, vec![]).unwrap_err().kind, ErrorKind::ControlPlaneImmutable);
}

#[test]
fn a_higher_minimum_and_a_lower_maximum_are_accepted_and_delete_nothing() {
    for changed in [GroupSpec { min: 5, ..spec() }, GroupSpec { max: 2, ..spec() }] {
        let commit = applied(&snapshot(3), vec![changed]).unwrap();
        assert_eq!(groups(&commit).len(), 1);
    }
}

#[test]
fn a_live_server_keeps_its_role_and_what_it_is_made_of() {
    let other = GroupSpec { role: NodeRole::LoadBalancer, ..spec() };
    let refusal = applied(&snapshot(1), vec![other.clone()]).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::RoleImmutable);
    assert_eq!(refusal.field.as_deref(), Some("spec.groups.workers.role"));
    assert!(refusal.message.contains("declare another group"), "{}", refusal.message);
    assert!(applied(&snapshot(0), vec![other]).is_ok(), "nobody has the role yet");
}

#[test]
fn two_workspaces_of_a_project_do_not_name_their_servers_alike() {
    let mut taken = snapshot(0);
    taken.taken_patterns = vec![TakenPattern {
        workspace: "other".to_owned(),
        group: "nodes".to_owned(),
        pattern: "worker-{n}".to_owned(),
    }];
    let refusal = applied(&taken, vec![spec()]).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::HostnamePatternTaken);
    assert!(refusal.message.contains("workspace `other`"), "{}", refusal.message);
    // A prefix of a name is no name.
    taken.taken_patterns[0].pattern = "worker-eu-{n}".to_owned();
    assert!(applied(&taken, vec![spec()]).is_ok());
}

#[test]
fn a_fault_of_a_blueprint_names_the_group() {
    let snapshot = snapshot(0);
    let inventories = BTreeMap::new();
    let declared = [DeclareSnapshot { blueprint: None, ..mk_declare_snapshot() }];
    let circumstances =
        Circumstances { caller: Role::Operator, declared: &declared, inventories: &inventories };
    let desired = desired(vec![spec()]);
    let refusal = apply(&snapshot, &desired, &circumstances, &mk_actor()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::BlueprintNotFound);
    assert_eq!(refusal.field.as_deref(), Some("spec.groups.workers.blueprint"));
}

#[test]
fn a_server_that_leaves_already_is_not_dropped_again() {
    let mut leaving = snapshot(3);
    leaving.servers[2].leaving = Leaving::Server;
    let spec = GroupSpec { wanted: 2, ..spec() };
    let workspace = mk_workspace();
    let changes = changes(&leaving, &workspace, &desired(vec![spec]));
    assert!(drops(&leaving, &changes[0]).is_empty());
}

#[test]
fn declaring_a_paused_workspace_again_resumes_it() {
    let mut paused = snapshot(3);
    if let Some(workspace) = &mut paused.workspace {
        workspace.paused_at = Some(crate::fixtures::at(900));
    }
    let commit = applied(&paused, vec![spec()]).unwrap();
    assert_eq!((commit.writes.len(), commit.events.len()), (1, 1));
}
