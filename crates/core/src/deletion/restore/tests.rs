//! Every state, every conflict, and what a restore writes.

use super::*;
use crate::access::audit::VERBS;
use crate::broker::phase::Phase;
use crate::broker::{BrokerWrite, event as broker_event};
use crate::deletion::event;
use crate::fixtures::catalog::mk_project;
use crate::fixtures::{at, mk_actor, mk_declare_snapshot, mk_deletion, mk_snapshot};

fn ask() -> Ask {
    let reason = Reason::parse("deleted by mistake").unwrap();
    Ask { reason, renames: Renames::default(), redeclare: false }
}

fn redeclare() -> Ask {
    Ask { redeclare: true, ..ask() }
}

fn deletion(kind: SubjectKind) -> Deletion {
    let id = if kind == SubjectKind::Project { mk_project().id.as_uuid() } else { resource_id() };
    Deletion {
        target: Subject::new(kind, id),
        name: "shop".to_owned(),
        state: DeletionState::Done,
        restorable_until: Some(at(2_000)),
        ..mk_deletion(&mk_snapshot(Phase::Deleted))
    }
}

fn resource_id() -> Uuid {
    mk_snapshot(Phase::Deleted).resource.id.as_uuid()
}

fn row(deletion: &Deletion) -> DeletedRow {
    DeletedRow {
        subject: deletion.target,
        name: deletion.name.clone(),
        holder: None,
        needs: Vec::new(),
        same_identity: None,
    }
}

fn resource() -> DeletedResource {
    DeletedResource {
        snapshot: mk_snapshot(Phase::Deleted),
        declared: mk_declare_snapshot(),
        needs: Vec::new(),
    }
}

fn snapshot(kind: SubjectKind) -> RestoreSnapshot {
    let deletion = deletion(kind);
    let target = Some(row(&deletion));
    RestoreSnapshot { now: at(1_000), deletion, target, resources: vec![], fleet: vec![] }
}

fn of_resource() -> RestoreSnapshot {
    RestoreSnapshot { resources: vec![resource()], ..snapshot(SubjectKind::Resource) }
}

fn run(snapshot: &RestoreSnapshot, ask: &Ask) -> Result<Commit, Refusal> {
    restore(snapshot, ask, &mk_actor())?.agreed(&snapshot.deletion)
}

#[test]
fn only_what_is_done_and_kept_can_be_restored() {
    for &state in DeletionState::ALL {
        let mut found = snapshot(SubjectKind::Project);
        found.deletion.state = state;
        let restored = run(&found, &ask());
        match state {
            DeletionState::Done => assert!(!restored.unwrap().is_empty()),
            DeletionState::Restored => assert_eq!(restored, Ok(Commit::default())),
            _ => assert_eq!(restored.unwrap_err().kind, ErrorKind::NotRestorable, "{state}"),
        }
    }
    let late = RestoreSnapshot { now: at(2_000), ..snapshot(SubjectKind::Project) };
    let purged = RestoreSnapshot { target: None, ..snapshot(SubjectKind::Project) };
    let retry = snapshot(SubjectKind::ProvisionedResource);
    for refused in [late, purged, retry] {
        let refusal = run(&refused, &ask()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::NotRestorable, "{refusal}");
    }
}

#[test]
fn a_restore_writes_the_record_the_marks_and_one_event() {
    let found = snapshot(SubjectKind::Project);
    let commit = run(&found, &ask()).unwrap();
    assert!(commit.writes.iter().any(|write| matches!(
        write,
        Write::Deletion(DeletionWrite::Restore(restored)) if restored.renamed.is_empty()
    )));
    let events: Vec<_> = commit.events.iter().map(|event| event.event_type).collect();
    assert_eq!(events, [event::RESTORED]);
    assert_eq!(commit.audit.len(), 1);
    assert!(VERBS.contains(&commit.audit[0].verb));
    assert_eq!(commit.audit[0].reason.as_deref(), Some("deleted by mistake"));
}

/// A person who reads one answer can remove all of them.
#[test]
fn every_conflict_is_named_at_once_with_its_remedy() {
    let mut found = of_resource();
    let needed = |kind, number, leaving| Needed {
        subject: Subject::new(kind, Uuid::from_u128(number)),
        name: format!("n{number}"),
        deletion_id: Some(DeletionId::new(Uuid::from_u128(number + 1))),
        leaving,
    };
    let target = found.target.as_mut().unwrap();
    target.holder = Some(Uuid::from_u128(1));
    target.needs = vec![needed(SubjectKind::Project, 50, true)];
    let credential = needed(SubjectKind::Credential, 60, false);
    found.resources[0].needs = vec![credential.clone()];
    found.resources[0].declared.credential = None;
    found.resources[0].declared.blueprint_retired = true;
    let mut second = resource();
    second.snapshot.resource.handle = Handle::parse("web-2").unwrap();
    second.needs = vec![credential];
    second.declared.credential = None;
    found.resources.push(second);

    let refusal = run(&found, &redeclare()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::RestoreConflict);
    let details = refusal.details.clone().unwrap();
    let codes: Vec<_> =
        details["conflicts"].as_array().unwrap().iter().map(|c| &c["code"]).collect();
    assert_eq!(
        codes,
        ["name_taken", "leaving", "needed_deleted", "blueprint_version_retired"],
        "each once: {refusal}"
    );
    for remedy in ["--rename", "slipway deletion cancel", "slipway deletion restore"] {
        assert!(refusal.message.contains(remedy), "{remedy}: {refusal}");
    }
}

#[test]
fn a_resource_comes_back_as_a_new_attempt_or_not_at_all() {
    let found = of_resource();
    let refusal = run(&found, &ask()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::SubstrateGone);
    assert!(refusal.message.contains("--redeclare"), "{refusal}");

    let commit = run(&found, &redeclare()).unwrap();
    let next = commit.writes.iter().find_map(|write| match write {
        Write::Broker(BrokerWrite::AttemptInsert(next)) => Some(next),
        _ => None,
    });
    let (next, gone) = (next.unwrap(), &found.resources[0].snapshot.attempt);
    assert_eq!((next.attempt(), next.phase()), (gone.attempt() + 1, Phase::Pending));
    assert_eq!(next.parameter_values(), gone.parameter_values());
    let events: Vec<_> = commit.events.iter().map(|event| event.event_type).collect();
    assert_eq!(events, [broker_event::REQUESTED, event::RESTORED]);
}

#[test]
fn a_cluster_that_was_registered_again_stays_deleted() {
    let mut found = snapshot(SubjectKind::Cluster);
    found.target.as_mut().unwrap().same_identity = Some("east-2".to_owned());
    let refusal = run(&found, &ask()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::RestoreConflict);
    assert!(refusal.message.contains("`east-2`"), "{refusal}");
}

#[test]
fn a_new_name_is_one_of_its_kind() {
    let renamed = |target: &str| {
        let renames = Renames { target: Some(target.to_owned()), ..Renames::default() };
        Ask { renames, ..redeclare() }
    };
    let bad = run(&of_resource(), &renamed("Not a handle")).unwrap_err();
    assert_eq!((bad.kind, bad.field.as_deref()), (ErrorKind::InvalidInput, Some("rename")));
    let bad = run(&snapshot(SubjectKind::Project), &renamed("")).unwrap_err();
    assert_eq!(bad.field.as_deref(), Some("rename"));
    let restoration = restore(&of_resource(), &renamed("web-9"), &mk_actor()).unwrap();
    assert_eq!(restoration.returning[0].name, "web-9");

    let mut found = snapshot(SubjectKind::Project);
    found.resources = vec![resource()];
    let handle = found.resources[0].snapshot.resource.handle.to_string();
    let member = |old: &str, new: &str| {
        let members = [(old.to_owned(), new.to_owned())].into();
        Ask { renames: Renames { target: None, members }, ..redeclare() }
    };
    let unknown = run(&found, &member("nobody", "web-9")).unwrap_err();
    assert_eq!(unknown.field.as_deref(), Some("rename_members"));
    assert!(run(&found, &member(&handle, "web-9")).is_ok());
    let mut other = resource();
    other.snapshot.resource.handle = Handle::parse("web-9").unwrap();
    found.resources.push(other);
    let twice = run(&found, &member(&handle, "web-9")).unwrap_err();
    assert_eq!(twice.kind, ErrorKind::RestoreConflict, "two of one name");
}
