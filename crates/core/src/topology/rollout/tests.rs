//! Roll-outs to the servers of a workspace, decided on snapshots.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::access::role::Role;
use crate::broker::BrokerWrite;
use crate::catalog::Name;
use crate::catalog::parameters::{Parameter, ParameterSchema, ParameterType};
use crate::commit::Write;
use crate::deletion::record::Deletion;
use crate::fixtures::catalog::mk_ask;
use crate::fixtures::topology::{
    mk_group, mk_group_snapshot, mk_owner, mk_server, mk_workspace, mk_workspace_snapshot,
};
use crate::fixtures::{mk_actor, mk_declaration, mk_declare_snapshot, mk_deletion, mk_snapshot};
use crate::ids::GroupId;
use crate::rollouts::RolloutsWrite;
use crate::topology::group::Group;
use crate::topology::inventory::Inventory;
use crate::topology::role::NodeRole;
use crate::topology::scale::Counts;

fn group(number: u128, name: &str, depends_on: &[&str]) -> Group {
    let mut group = mk_group(NodeRole::Worker);
    group.id = GroupId::new(Uuid::from_u128(700 + number));
    group.spec.name = Name::from_stored(name.to_owned());
    group.spec.depends_on = depends_on.iter().map(|name| (*name).to_owned()).collect();
    group
}

fn server(number: u32, group: &Group) -> Server {
    Server { group_id: group.id, ..mk_server(number, Phase::Ready) }
}

/// Each group gets one more parameter if it is among the changed ones.
fn changes(groups: &[Group], changed: &[&str]) -> Vec<GroupChange> {
    let change = |before: &Group| {
        let mut after = before.clone();
        if changed.contains(&after.spec.name.as_str()) {
            after.spec.parameters.insert("size".to_owned(), json!(2));
        }
        GroupChange { before: Some(before.clone()), after }
    };
    groups.iter().map(change).collect()
}

fn begun(snapshot: &WorkspaceSnapshot, changed: &[&str]) -> Commit {
    let changes = changes(&snapshot.groups, changed);
    begin(snapshot, &mk_workspace(), &changes, &mk_actor())
}

fn inserted(commit: &Commit) -> Option<(&Rollout, Vec<(&str, i32)>)> {
    commit.writes.iter().find_map(|write| match write {
        Write::Rollouts(RolloutsWrite::RolloutInsert(rollout, members)) => {
            let members = members.iter().map(|one| (one.name.as_str(), one.wave)).collect();
            Some((rollout, members))
        }
        _ => None,
    })
}

fn three_groups() -> WorkspaceSnapshot {
    let groups = vec![group(1, "workers", &["lb"]), group(2, "lb", &["cp"]), group(3, "cp", &[])];
    let mut servers = vec![server(1, &groups[0]), server(2, &groups[0])];
    servers.extend([server(3, &groups[1]), server(4, &groups[2])]);
    WorkspaceSnapshot { groups, servers, ..mk_workspace_snapshot() }
}

#[test]
fn what_others_depend_on_changes_first_and_one_server_is_the_canary() {
    let commit = begun(&three_groups(), &["workers", "lb", "cp"]);
    let (rollout, members) = inserted(&commit).unwrap();
    assert_eq!(rollout.change, json!({ "groups": ["cp", "lb", "workers"] }));
    let expected = [("worker-4", 0), ("worker-3", 2), ("worker-1", 3), ("worker-2", 3)];
    assert_eq!(members, expected);
}

#[test]
fn each_control_plane_has_a_wave_of_its_own() {
    let mut snapshot = three_groups();
    snapshot.groups[2].spec.role = NodeRole::ControlPlane;
    let cp = snapshot.groups[2].clone();
    snapshot.servers.extend([server(5, &cp), server(6, &cp)]);
    let commit = begun(&snapshot, &["workers", "cp"]);
    let expected =
        [("worker-4", 0), ("worker-5", 2), ("worker-6", 3), ("worker-1", 4), ("worker-2", 4)];
    assert_eq!(inserted(&commit).unwrap().1, expected);
}

#[test]
fn a_server_that_is_being_replaced_is_waited_for() {
    let mut leaving = member(Phase::Deregistering, true, false);
    let resource = &mut leaving.of.of.resource;
    let (all, attempt) = (mk_deletion(resource), resource.attempt.id().into());
    resource.deletion = Some(Deletion { target: attempt, ..all.clone() });
    assert_eq!(changed(&leaving, &spec(7)).unwrap_err().kind, ErrorKind::ReplacementUnderWay);
    let declared = spec(7);
    assert_eq!(health(Some(&leaving.of.of.resource), Some(&declared)), Health::Progressing);
    let resource = &mut leaving.of.of.resource;
    resource.resource.deletion_id = Some(all.id);
    resource.deletion = Some(all);
    assert_eq!(changed(&leaving, &spec(7)).unwrap_err().kind, ErrorKind::Leaving);
    assert!(matches!(health(Some(&leaving.of.of.resource), Some(&declared)), Health::Gone(_)));
}

#[test]
fn a_declaration_that_came_after_the_group_was_read_is_stale() {
    let of = member(Phase::Ready, false, true);
    let newer = GroupSpec { version: Some("v9".to_owned()), ..spec(7) };
    assert_eq!(changed(&of, &newer).unwrap_err().kind, ErrorKind::RevisionStale);
}

#[test]
fn groups_that_stay_alike_and_servers_that_go_are_no_members() {
    let mut snapshot = three_groups();
    assert!(begun(&snapshot, &[]).is_empty());
    snapshot.servers[1].leaving = crate::topology::server::Leaving::Server;
    let commit = begun(&snapshot, &["workers"]);
    assert_eq!(inserted(&commit).unwrap().1, [("worker-1", 0)]);
    snapshot.servers.clear();
    assert!(begun(&snapshot, &["workers"]).is_empty(), "nobody is there");
}

#[test]
fn a_newer_declaration_ends_the_earlier_roll_out_and_takes_its_groups_over() {
    let mut snapshot = three_groups();
    let (earlier, _) =
        inserted(&begun(&snapshot, &["lb"])).map(|(one, _)| (one.clone(), ())).unwrap();
    snapshot.rollouts = vec![earlier];
    let commit = begun(&snapshot, &["workers"]);
    let ends = |write: &Write| matches!(write, Write::Rollouts(RolloutsWrite::RolloutUpdate(one)) if one.state == RolloutState::Aborted);
    assert!(commit.writes.iter().any(ends));
    assert_eq!(inserted(&commit).unwrap().0.change, json!({ "groups": ["lb", "workers"] }));
    assert!(begun(&snapshot, &[]).is_empty(), "another number of servers ends nothing");
}

#[test]
fn a_declaration_without_a_version_leaves_servers_theirs() {
    let with = |version: Option<&str>| GroupSpec {
        version: version.map(str::to_owned),
        ..mk_group(NodeRole::Worker).spec
    };
    assert!(concerns_servers(&with(None), &with(Some("v2"))));
    assert!(concerns_servers(&with(Some("v1")), &with(Some("v2"))));
    assert!(!concerns_servers(&with(Some("v1")), &with(None)));
    let locked = GroupSpec { delete_lock: true, ..with(None) };
    assert!(concerns_servers(&with(None), &locked), "the provider's protection mirrors it");
    let more = GroupSpec { wanted: 9, hostname_pattern: "w-{n}".to_owned(), ..with(None) };
    assert!(!concerns_servers(&with(None), &more));
}

/// A server whose blueprint lets `busy_seconds` change, or not, with or without surge.
fn member(phase: Phase, immutable: bool, surge: bool) -> Doored<OfServer<RedeclareSnapshot>> {
    let (mut resource, mut declared) = (mk_snapshot(phase), mk_declare_snapshot());
    resource.resource.owner = Some(mk_owner(NodeRole::Worker));
    let parameter = Parameter {
        name: "busy_seconds".to_owned(),
        kind: ParameterType::Integer,
        required: false,
        immutable,
        default: None,
    };
    let version = BlueprintVersion {
        parameter_schema: ParameterSchema::new(vec![parameter]).unwrap(),
        surge,
        ..(*resource.blueprint).clone()
    };
    resource.blueprint = Arc::new(version.clone());
    declared.blueprint = Some(version);
    let of = RedeclareSnapshot { resource, project: "default".to_owned(), declared };
    let counts = Counts { others: 2, others_counted: 2, ..Counts::default() };
    let owner = Some(mk_group_snapshot(NodeRole::Worker, counts));
    Doored { of: OfServer { of, owner }, door: DeletionDoor::default() }
}

fn spec(busy_seconds: u32) -> GroupSpec {
    let parameters = [("busy_seconds".to_owned(), json!(busy_seconds))].into();
    GroupSpec {
        parameters,
        blueprint: mk_declaration().blueprint,
        ..mk_group(NodeRole::Worker).spec
    }
}

fn changed(
    snapshot: &Doored<OfServer<RedeclareSnapshot>>,
    spec: &GroupSpec,
) -> Result<Changed, Refusal> {
    let mut snapshot = snapshot.clone();
    if let Some(owner) = &mut snapshot.of.owner {
        owner.group.spec = spec.clone();
    }
    let inventory = Inventory::Compared { age: Duration::ZERO, unknown: vec![], missing: vec![] };
    let ask = mk_ask();
    let asked =
        Asked { door: Door::Apply, caller: Role::Operator, inventory: &inventory, ask: &ask };
    change(&snapshot, &asked, &mk_actor())
}

#[test]
fn a_server_changes_in_place_if_it_can_and_is_replaced_otherwise() {
    let way =
        |phase, immutable, surge| changed(&member(phase, immutable, surge), &spec(7)).unwrap().way;
    assert_eq!(way(Phase::Ready, false, true), Way::InPlace);
    assert_eq!(way(Phase::Ready, true, true), Way::Surge);
    assert_eq!(way(Phase::Ready, true, false), Way::Replace);
    assert_eq!(way(Phase::Failed, false, true), Way::Replace, "nothing to keep in use");
    let as_declared = |snapshot: &Doored<OfServer<RedeclareSnapshot>>| {
        let values = snapshot.of.of.resource.attempt.parameter_values().as_map().clone();
        GroupSpec { parameters: values, ..spec(7) }
    };
    let same = member(Phase::Ready, true, true);
    let unchanged = changed(&same, &as_declared(&same)).unwrap();
    assert_eq!(unchanged.way, Way::Nothing);
    assert!(unchanged.commit.is_empty());
}

#[test]
fn a_replacement_passes_the_gates_and_an_update_in_place_needs_none() {
    let mut few = member(Phase::Ready, true, false);
    let counts = Counts { others: 2, ..Counts::default() };
    few.of.owner = Some(mk_group_snapshot(NodeRole::Worker, counts));
    assert_eq!(changed(&few, &spec(7)).unwrap_err().kind, ErrorKind::ScaleMinViolation);
    let mut in_place = member(Phase::Ready, false, false);
    in_place.of.owner.clone_from(&few.of.owner);
    assert_eq!(changed(&in_place, &spec(7)).unwrap().way, Way::InPlace);
    let mut leaving = member(Phase::Ready, false, false);
    if let Some(owner) = &mut leaving.of.owner {
        owner.workspace.deletion_id = Some(mk_ask().deletion_id);
    }
    assert_eq!(changed(&leaving, &spec(7)).unwrap_err().kind, ErrorKind::Leaving);
}

#[test]
fn a_server_is_healthy_once_it_is_what_its_group_declares_and_works() {
    let found = mk_snapshot(Phase::Ready);
    let declared = |values: &BTreeMap<String, Value>| GroupSpec {
        parameters: values.clone(),
        ..mk_group(NodeRole::Worker).spec
    };
    let same = declared(found.attempt.parameter_values().as_map());
    assert_eq!(health(Some(&found), Some(&same)), Health::Settled);
    assert!(matches!(health(Some(&found), Some(&spec(7))), Health::Failed(_)));
    assert!(matches!(health(None, Some(&same)), Health::Gone(_)));
    assert!(matches!(health(Some(&found), None), Health::Gone(_)));
    let pending = ResourceSnapshot { observed: Some(found.with_update_pending()), ..found };
    assert_eq!(health(Some(&pending), Some(&same)), Health::Progressing);
    let comes = mk_snapshot(Phase::Provisioning);
    let same = declared(comes.attempt.parameter_values().as_map());
    assert_eq!(health(Some(&comes), Some(&same)), Health::Progressing);
    assert!(matches!(health(Some(&mk_snapshot(Phase::Failed)), Some(&same)), Health::Failed(_)));
}

#[test]
fn the_protection_of_the_provider_mirrors_the_lock_where_the_blueprint_has_it() {
    let protected = Parameter {
        name: DELETE_PROTECTION.to_owned(),
        kind: ParameterType::Boolean,
        required: false,
        immutable: false,
        default: None,
    };
    let version = BlueprintVersion {
        engine: Engine::Hetzner,
        parameter_schema: ParameterSchema::new(vec![protected]).unwrap(),
        ..(*mk_snapshot(Phase::Ready).blueprint).clone()
    };
    let locked = mk_group(NodeRole::ControlPlane).spec;
    assert_eq!(values(&locked, Some(&version))[DELETE_PROTECTION], json!(true));
    let uncleared = BlueprintVersion { engine: Engine::Crossplane, ..version.clone() };
    assert!(values(&locked, Some(&uncleared)).is_empty(), "nobody would clear it");
    assert!(values(&locked, None).is_empty());
    let own =
        GroupSpec { parameters: [(DELETE_PROTECTION.to_owned(), json!(false))].into(), ..locked };
    assert_eq!(values(&own, Some(&version))[DELETE_PROTECTION], json!(false), "as declared");
}

/// A change in place writes the attempt, a replacement its teardown, and both the same rows.
#[test]
fn an_update_in_place_is_the_update_of_a_resource() {
    let commit = changed(&member(Phase::Ready, false, false), &spec(7)).unwrap().commit;
    let values = commit.writes.iter().find_map(|write| match write {
        Write::Broker(BrokerWrite::AttemptUpdate(after)) => Some(after.parameter_values().clone()),
        _ => None,
    });
    assert_eq!(values.unwrap().as_map()["busy_seconds"], 7);
    assert_eq!(commit.audit[0].verb, "resource.update");
}
