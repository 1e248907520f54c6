//! Tests of updates.

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::broker::attempt::ProvisionedResource;
use crate::catalog::blueprint_version::{CompositeScope, MeshRole};
use crate::catalog::parameters::{Parameter, ParameterSchema, ParameterType};
use crate::fixtures::{at, mk_actor, mk_declare_snapshot, mk_deletion, mk_snapshot};
use crate::ids::{BlueprintVersionId, Revision};

fn snapshot(phase: Phase) -> RedeclareSnapshot {
    let (resource, declared) = (mk_snapshot(phase), mk_declare_snapshot());
    RedeclareSnapshot { resource, project: "default".to_owned(), declared }
}

fn changes(asked: Value) -> Changes {
    let mut parameters: BTreeMap<String, Value> = serde_json::from_value(asked).unwrap();
    let version = parameters.remove("version");
    let version = version.and_then(|version| version.as_str().map(str::to_owned));
    Changes { version, parameters, labels: None }
}

fn ask(snapshot: &RedeclareSnapshot, asked: Value) -> Result<Updated, Refusal> {
    update(snapshot, &changes(asked), Expected::Any, &mk_actor())
}

fn written_attempt(commit: &Commit) -> Option<&ProvisionedResource> {
    commit.writes.iter().find_map(|write| match write {
        Write::Broker(BrokerWrite::AttemptUpdate(attempt)) => Some(attempt),
        _ => None,
    })
}

/// Another version, as the store finds it.
fn with_version(mut found: RedeclareSnapshot, version: BlueprintVersion) -> RedeclareSnapshot {
    let id = BlueprintVersionId::new(Uuid::from_u128(99));
    found.declared.blueprint = Some(BlueprintVersion { id, version: "v2".to_owned(), ..version });
    found
}

#[test]
fn an_update_is_one_commit_that_names_what_changed_and_no_value() {
    let found = snapshot(Phase::Ready);
    let given = Changes {
        labels: Some([("tier".to_owned(), "web".to_owned())].into()),
        ..changes(json!({ "busy_seconds": 7 }))
    };
    let updated = update(&found, &given, Expected::Any, &mk_actor()).unwrap();
    let fields: Vec<_> = updated.changes.iter().map(|change| change.field.as_str()).collect();
    assert_eq!(fields, ["parameters.busy_seconds", "labels.tier"]);
    assert_eq!(updated.changes[0].after, Some(json!(7)));
    let commit = &updated.commit;
    let attempt = written_attempt(commit).unwrap();
    assert_eq!(attempt.parameter_values().as_map()["busy_seconds"], 7);
    assert_eq!(attempt.phase(), Phase::Ready, "the loop moves it, as observed");
    let [event] = &commit.events[..] else { panic!("{commit:?}") };
    assert_eq!(event.event_type, event::UPDATED);
    assert_eq!(event.changed, ["parameters.busy_seconds", "labels"]);
    assert_eq!(event.revision, attempt.revision().next());
    let [entry] = &commit.audit[..] else { panic!("{commit:?}") };
    assert_eq!(entry.verb, "resource.update");
    assert_eq!(entry.details["changed"], json!({ "parameters": ["busy_seconds"] }));
    assert!(event.payload.get("Parameters").is_none(), "{event:?}");
    assert_eq!(commit.wakes, [attempt.id().into()]);
}

#[test]
fn nothing_is_written_if_nothing_changes() {
    let mut found = snapshot(Phase::Ready);
    let same = json!({ "version": "v1", "busy_seconds": 7 });
    let updated = ask(&found, same.clone()).unwrap();
    found.resource.attempt = written_attempt(&updated.commit).unwrap().clone();
    let again = ask(&found, same).unwrap();
    assert!(again.commit.is_empty() && again.changes.is_empty(), "{again:?}");
    let taken = ask(&found, json!({ "busy_seconds": null })).unwrap();
    assert_eq!(taken.changes[0].after, None);
    found.resource.attempt = written_attempt(&taken.commit).unwrap().clone();
    assert!(ask(&found, json!({ "busy_seconds": null })).unwrap().commit.is_empty());
    let labels = found.resource.resource.labels.as_map().clone();
    let again = relabel(&found.resource, Some(&labels), Expected::Any, &mk_actor()).unwrap();
    assert!(again.commit.is_empty(), "{again:?}");
}

#[test]
fn labels_alone_need_no_check_and_are_no_event() {
    for phase in [Phase::Ready, Phase::Failed, Phase::Deregistering] {
        let found = mk_snapshot(phase);
        let labels = [("a".to_owned(), "b".to_owned())].into();
        let expected = Expected::Exactly(found.resource.revision);
        let updated = relabel(&found, Some(&labels), expected, &mk_actor()).unwrap();
        assert_eq!((updated.commit.writes.len(), updated.commit.events.len()), (1, 0));
        assert_eq!(updated.commit.wakes, [found.attempt.id().into()]);
        assert_eq!(updated.commit.audit[0].details["after"], json!({ "a": "b" }));
    }
}

/// Where the loop applies nothing any more, an update would only pretend.
#[test]
fn each_phase_takes_an_update_or_says_what_to_do() {
    for &phase in Phase::ALL {
        let same = ask(&snapshot(phase), json!({ "version": "v1" })).unwrap();
        assert!(same.commit.is_empty(), "{phase}");
        let refused = ask(&snapshot(phase), json!({ "busy_seconds": 7 })).map_err(|r| r.kind);
        match phase {
            Phase::Failed => assert_eq!(refused.unwrap_err(), ErrorKind::ResourceFailed),
            phase if phase.is_deletion() => assert_eq!(refused.unwrap_err(), ErrorKind::Leaving),
            _ => assert!(refused.is_ok(), "{phase}"),
        }
    }
    let mut scheduled = snapshot(Phase::Ready);
    let state = DeletionState::Scheduled;
    scheduled.resource.deletion = Some(Deletion { state, ..mk_deletion(&scheduled.resource) });
    assert!(ask(&scheduled, json!({ "busy_seconds": 7 })).is_ok(), "it converges during grace");
    let mut gone = snapshot(Phase::Deleted);
    gone.resource.resource.deleted_at = Some(at(1));
    let refusal = ask(&gone, json!({ "busy_seconds": 7 })).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::ResourceNotFound);
}

#[test]
fn an_update_of_another_revision_is_stale() {
    let stale = Expected::Exactly(Revision(99));
    let given = changes(json!({ "busy_seconds": 7 }));
    let refusal = update(&snapshot(Phase::Ready), &given, stale, &mk_actor()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::RevisionStale);
}

fn immutable(name: &str) -> ParameterSchema {
    let parameter = |name: &str, immutable| Parameter {
        name: name.to_owned(),
        kind: ParameterType::Integer,
        required: false,
        default: None,
        immutable,
    };
    let other = if name == "zone" { "busy_seconds" } else { "zone" };
    ParameterSchema::new(vec![parameter(name, true), parameter(other, false)]).unwrap()
}

/// Both versions have a say: the old one about what exists, the new one about what will.
#[test]
fn an_immutable_parameter_names_the_way_out() {
    let mut found = snapshot(Phase::Ready);
    let old = BlueprintVersion {
        parameter_schema: immutable("zone"),
        ..(*found.resource.blueprint).clone()
    };
    let new = BlueprintVersion { parameter_schema: immutable("busy_seconds"), ..old.clone() };
    found.resource.blueprint = Arc::new(old);
    let found = with_version(found, new);
    let refusal =
        ask(&found, json!({ "zone": 2, "busy_seconds": 9, "version": "v2" })).unwrap_err();
    let fields: Vec<_> = refusal.faults().filter_map(|fault| fault.field.as_deref()).collect();
    assert_eq!(fields, ["parameters.busy_seconds", "parameters.zone"]);
    assert_eq!(refusal.kind, ErrorKind::ParameterImmutable);
    assert!(refusal.message.contains("slipway resource replace web-1 --param"), "{refusal}");
}

/// Its object would be another one, and the old one would stay behind.
#[test]
fn a_version_of_another_type_is_not_applied_in_place() {
    let found = snapshot(Phase::Ready);
    let standalone =
        BlueprintVersion { mesh_role: MeshRole::Standalone, ..(*found.resource.blueprint).clone() };
    let same = (*found.resource.blueprint).clone();
    let refusal = ask(&with_version(found.clone(), standalone), json!({ "version": "v2" }));
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::VersionNeedsReplace);
    assert!(refusal.message.contains("its mesh role"), "{refusal}");
    let of = |group: &str, version: &str| {
        let composite_type = Some(CompositeType {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: "XServer".to_owned(),
            plural: "xservers".to_owned(),
            scope: CompositeScope::Namespaced,
        });
        BlueprintVersion { composite_type, ..same.clone() }
    };
    let mut typed = found.clone();
    typed.resource.blueprint = Arc::new(of("a.example", "v1"));
    let asked = |version| ask(&with_version(typed.clone(), version), json!({ "version": "v2" }));
    let refusal = asked(of("b.example", "v2")).unwrap_err();
    assert!(refusal.message.contains("the type of its composite"), "{refusal}");
    assert!(asked(of("a.example", "v2")).is_ok(), "served in both versions");
    let updated = ask(&with_version(found, same), json!({ "version": "v2" })).unwrap();
    assert_eq!(updated.commit.events[0].changed, ["version"]);
    let changed = &updated.commit.audit[0].details["changed"];
    assert_eq!(*changed, json!({ "version": { "from": "v1", "to": "v2" } }));
}

#[test]
fn what_has_a_retired_version_keeps_it_and_nothing_moves_to_one() {
    let mut found = snapshot(Phase::Ready);
    found.declared.blueprint_retired = true;
    assert!(ask(&found, json!({ "busy_seconds": 7 })).is_ok());
    let version = (*found.resource.blueprint).clone();
    let refusal = ask(&with_version(found, version), json!({ "version": "v2" })).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::BlueprintVersionRetired);
}

#[test]
fn an_update_is_checked_like_a_declaration() {
    for (asked, field) in [
        (json!({ "speed": 1 }), "parameters.speed"),
        (json!({ "busy_seconds": "x" }), "parameters.busy_seconds"),
    ] {
        let refusal = ask(&snapshot(Phase::Ready), asked).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ParameterValuesInvalid);
        assert_eq!(refusal.field.as_deref(), Some(field));
    }
}
