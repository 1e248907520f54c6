//! Plans of workspaces, computed on snapshots.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::access::role::Role;
use crate::broker::phase::Phase;
use crate::fixtures::topology::{mk_group, mk_server, mk_workspace, mk_workspace_snapshot};
use crate::ids::{GroupId, WorkspaceId};
use crate::topology::group::GroupSpec;
use crate::topology::inventory::Inventory;

fn planned(snapshot: &WorkspaceSnapshot, specs: Vec<GroupSpec>) -> Plan {
    let same = Inventory::Compared { age: Duration::ZERO, unknown: vec![], missing: vec![] };
    let inventories: BTreeMap<_, _> =
        snapshot.groups.iter().map(|group| (group.id, same.clone())).collect();
    let id = |number: usize| GroupId::new(Uuid::from_u128(800 + number as u128));
    let desired = Desired {
        id: WorkspaceId::new(Uuid::from_u128(90)),
        group_ids: (0..specs.len()).map(id).collect(),
        project: "default".to_owned(),
        name: mk_workspace().name,
        specs,
    };
    let (caller, declared) = (Role::Operator, &[][..]);
    let circumstances = Circumstances { caller, declared, inventories: &inventories };
    plan(snapshot, mk_workspace().project_id, &desired, &circumstances)
}

fn snapshot(servers: u32) -> WorkspaceSnapshot {
    let servers = (1..=servers).map(|number| mk_server(number, Phase::Ready)).collect();
    WorkspaceSnapshot { servers, ..mk_workspace_snapshot() }
}

fn spec(wanted: u32, min: u32) -> GroupSpec {
    GroupSpec { wanted, min, ..mk_group(NodeRole::Worker).spec }
}

#[test]
fn it_says_how_many_come_which_change_and_which_go() {
    let plan_of = |servers, spec| planned(&snapshot(servers), vec![spec]);
    let came = plan_of(1, spec(3, 1));
    let expected = Created { group: "workers".to_owned(), role: NodeRole::Worker, count: 2 };
    assert_eq!((came.created, came.changed.len(), came.deleted.len()), (vec![expected], 0, 0));

    let mut other = spec(2, 1);
    other.parameters.insert("size".to_owned(), json!(9));
    let changed = plan_of(2, other.clone());
    let names: Vec<_> = changed.changed.iter().map(|(server, _)| server.name.as_str()).collect();
    assert_eq!(names, ["worker-1", "worker-2"]);
    assert_eq!(changed.changed[0].1.spec, other, "with the group as it will be");

    let gone = plan_of(3, spec(1, 0)).deleted;
    let names: Vec<_> = gone.iter().map(|one| one.server.as_str()).collect();
    assert_eq!(names, ["worker-3", "worker-2"]);
    assert!(gone.iter().all(|one| one.refusal.is_none()));
}

/// Every server that would go has its own answer, also behind one that is refused.
#[test]
fn each_server_that_would_go_has_the_gate_in_its_way() {
    let mut snapshot = snapshot(3);
    snapshot.groups[0].spec.delete_lock = true;
    let gone = planned(&snapshot, vec![spec(1, 0)]).deleted;
    let kinds: Vec<_> = gone.iter().map(|one| one.refusal.as_ref().map(|one| one.kind)).collect();
    assert_eq!(kinds, [Some(ErrorKind::DeleteLocked); 2]);
}

#[test]
fn a_plan_holds_for_as_long_as_the_same_would_happen() {
    let before = planned(&snapshot(3), vec![spec(1, 0)]);
    assert!(planned(&snapshot(3), vec![spec(1, 0)]).check(&before.digest).is_ok());
    let mut revised = snapshot(3);
    if let Some(workspace) = &mut revised.workspace {
        workspace.revision = workspace.revision.next();
    }
    let others = [
        ("another document", planned(&snapshot(3), vec![spec(2, 0)])),
        ("another server", planned(&snapshot(4), vec![spec(1, 0)])),
        ("another revision", planned(&revised, vec![spec(1, 0)])),
    ];
    for (what, other) in others {
        assert_eq!(other.check(&before.digest).unwrap_err().kind, ErrorKind::PlanStale, "{what}");
    }
}
