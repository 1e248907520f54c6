//! Deletions of resources: at once, with grace, protected, and as members.

use std::time::Duration;

use super::*;
use crate::broker::event;
use crate::broker::phase::Phase;
use crate::deletion::DeletionWrite;
use crate::deletion::event as announced;
use crate::deletion::protection::{Lifted, Protection};
use crate::error::ErrorKind;
use crate::fixtures::catalog::mk_ask;
use crate::fixtures::{at, mk_actor, mk_deletion, mk_snapshot, mk_token};
use crate::nodes::NodesWrite;

const GRACE: Duration = Duration::from_secs(600);

fn ask(snapshot: &ResourceSnapshot) -> Requested {
    request(snapshot, &Door::default(), &mk_ask(), &mk_actor()).unwrap()
}

fn with_grace(grace: Duration) -> Ask {
    Ask { grace: Some(grace), ..mk_ask() }
}

fn deletions(commit: &Commit) -> Vec<&Deletion> {
    let written = |write| match write {
        &Write::Deletion(
            DeletionWrite::DeletionInsert(ref deletion)
            | DeletionWrite::DeletionUpdate(ref deletion),
        ) => Some(deletion),
        _ => None,
    };
    commit.writes.iter().filter_map(written).collect()
}

/// The snapshot as it is read after a request with grace.
fn scheduled_snapshot(phase: Phase) -> ResourceSnapshot {
    let mut snapshot = mk_snapshot(phase);
    snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
    let requested = request(&snapshot, &Door::default(), &with_grace(GRACE), &mk_actor()).unwrap();
    snapshot.deletion = deletions(&requested.commit).first().map(|deletion| (*deletion).clone());
    snapshot.resource.deletion_id = Some(requested.deletion_id);
    snapshot
}

fn protection(snapshot: &ResourceSnapshot, lifted: Option<Lifted>) -> Door {
    let protection = Protection {
        subject: snapshot.resource.id.into(),
        project_id: Some(snapshot.resource.project_id),
        name: "web-1".to_owned(),
        set_by: "key:test".to_owned(),
        reason: "holds the books".to_owned(),
        set_at: at(1),
        lifted,
    };
    Door { protections: vec![protection], ..Door::default() }
}

/// Invariant 9: the request revokes the unconsumed token.
#[test]
fn asking_for_deletion_revokes_the_unconsumed_token() {
    let mut snapshot = mk_snapshot(Phase::Enrolling);
    snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
    let requested = ask(&snapshot);
    let revoked = requested.commit.writes.iter().any(
        |write| matches!(write, Write::Nodes(NodesWrite::TokenUpdate(token)) if token.revoked_at == Some(snapshot.now)),
    );
    assert!(revoked);
    let types: Vec<_> = requested.commit.events.iter().map(|event| event.event_type).collect();
    assert_eq!(types, [announced::STARTED, event::DELETING]);
}

#[test]
fn a_second_request_answers_with_the_first_deletion_and_writes_nothing() {
    for phase in [Phase::Deregistering, Phase::Deprovisioning, Phase::Deleted] {
        let mut snapshot = mk_snapshot(phase);
        let first = mk_deletion(&snapshot);
        snapshot.resource.deletion_id = Some(first.id);
        snapshot.deletion = Some(first.clone());
        let requested = ask(&snapshot);
        assert_eq!(requested.deletion_id, first.id);
        assert!(requested.commit.is_empty());
    }
}

#[test]
fn a_failed_resource_can_be_deleted() {
    let requested = ask(&mk_snapshot(Phase::Failed));
    assert!(requested.commit.writes.iter().any(
        |write| matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(attempt)) if attempt.phase() == Phase::Deregistering)
    ));
}

#[test]
fn deleting_what_is_being_retried_takes_the_whole_resource() {
    let mut snapshot = mk_snapshot(Phase::Deprovisioning);
    let retrying = Deletion { target: snapshot.attempt.id().into(), ..mk_deletion(&snapshot) };
    snapshot.resource.deletion_id = Some(retrying.id);
    snapshot.deletion = Some(retrying.clone());
    let other =
        Ask { deletion_id: crate::ids::DeletionId::new(uuid::Uuid::from_u128(500)), ..mk_ask() };
    let requested = request(&snapshot, &Door::default(), &other, &mk_actor()).unwrap();
    assert_ne!(requested.deletion_id, retrying.id);
    let [new, old] = deletions(&requested.commit)[..] else { panic!("{:?}", requested.commit) };
    assert_eq!(Scope::of(new), Scope::Resource);
    assert_eq!((old.id, old.state), (retrying.id, DeletionState::Cancelled));
    let told: Vec<_> = requested.commit.events.iter().map(|event| event.event_type).collect();
    assert_eq!(
        told,
        [announced::STARTED, announced::CANCELLED],
        "the attempt was announced already"
    );
}

/// Grace touches nothing: not the attempt, not its token, and nothing of it is announced.
#[test]
fn a_deletion_with_grace_changes_only_the_mark_of_its_resource() {
    for phase in [Phase::Pending, Phase::Enrolling, Phase::Ready, Phase::Failed] {
        let mut snapshot = mk_snapshot(phase);
        snapshot.token = Some(mk_token(1_000, 1_100, 2_000));
        let requested =
            request(&snapshot, &Door::default(), &with_grace(GRACE), &mk_actor()).unwrap();
        let commit = requested.commit;
        let [
            Write::Broker(BrokerWrite::ResourceUpdate(marked)),
            Write::Deletion(DeletionWrite::DeletionInsert(scheduled)),
        ] = &commit.writes[..]
        else {
            panic!("{commit:?}")
        };
        assert_eq!((marked.deletion_id, marked.deleted_at), (Some(scheduled.id), None));
        assert_eq!(scheduled.state, DeletionState::Scheduled);
        assert_eq!(scheduled.scheduled_for, Some(snapshot.now.plus(GRACE)));
        assert_eq!(commit.events.len(), 1);
        assert_eq!(commit.events[0].event_type, announced::SCHEDULED);
        assert!(commit.wakes.is_empty(), "the loop has nothing to do");
    }
}

#[test]
fn the_end_of_grace_begins_what_a_request_without_grace_begins() {
    for phase in [Phase::Pending, Phase::Enrolling, Phase::Ready, Phase::Failed] {
        let snapshot = scheduled_snapshot(phase);
        let commit = start(&snapshot, &Door::default(), &mk_actor()).unwrap();
        let [running] = deletions(&commit)[..] else { panic!("{commit:?}") };
        assert_eq!(running.state, DeletionState::Running);
        let mut fresh = snapshot.clone();
        fresh.deletion = None;
        let at_once = ask(&fresh).commit;
        let told = |commit: &Commit| {
            let mut types: Vec<_> = commit.events.iter().map(|event| event.event_type).collect();
            types.sort_unstable();
            types
        };
        assert_eq!(told(&commit), told(&at_once));
        let of_attempt = |commit: &Commit| {
            let attempt = |write: &&Write| {
                matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(_)) | Write::Nodes(_))
            };
            commit.writes.iter().filter(attempt).cloned().collect::<Vec<_>>()
        };
        assert_eq!(of_attempt(&commit), of_attempt(&at_once), "{phase}");
        let mut running_one = snapshot.clone();
        running_one.deletion = Some(running.clone());
        assert!(start(&running_one, &Door::default(), &mk_actor()).unwrap().is_empty());
    }
}

#[test]
fn an_earlier_end_of_grace_brings_the_deletion_forward_and_a_later_one_does_not() {
    let snapshot = scheduled_snapshot(Phase::Ready);
    let door = Door { under_way: snapshot.deletion.clone(), ..Door::default() };
    for (grace, moved) in [(None, false), (Some(GRACE * 2), false), (Some(Duration::ZERO), true)] {
        let requested = request(&snapshot, &door, &Ask { grace, ..mk_ask() }, &mk_actor()).unwrap();
        let times: Vec<_> =
            deletions(&requested.commit).iter().map(|deletion| deletion.scheduled_for).collect();
        assert_eq!(times, if moved { vec![Some(snapshot.now)] } else { vec![] }, "{grace:?}");
        assert!(requested.commit.events.is_empty(), "its state is the same");
    }
}

/// Whoever may delete a resource may not be allowed to delete its project.
#[test]
fn a_member_does_not_bring_the_deletion_of_its_project_forward() {
    let mut snapshot = scheduled_snapshot(Phase::Ready);
    let project = snapshot.resource.project_id;
    let own = snapshot.deletion.take().unwrap();
    snapshot.deletion = Some(Deletion { target: project.into(), ..own.clone() });
    let requested = request(&snapshot, &Door::default(), &with_grace(Duration::ZERO), &mk_actor());
    assert_eq!(requested, Ok(Requested::new(own.id, Commit::default())));
}

#[test]
fn protection_refuses_the_request_and_the_end_of_grace() {
    let snapshot = mk_snapshot(Phase::Ready);
    let door = protection(&snapshot, None);
    let refusal = request(&snapshot, &door, &mk_ask(), &mk_actor()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Protected);
    assert!(refusal.message.contains("resource `web-1`"), "{refusal}");
    let scheduled = scheduled_snapshot(Phase::Ready);
    let refusal = start(&scheduled, &protection(&scheduled, None), &mk_actor()).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Protected);
    let until =
        |until| Some(Lifted { by: "key:root".to_owned(), reason: "moved".to_owned(), until });
    let lifted = protection(&snapshot, until(snapshot.now.plus(GRACE)));
    assert!(request(&snapshot, &lifted, &mk_ask(), &mk_actor()).is_ok());
    let over = protection(&snapshot, until(snapshot.now));
    assert!(request(&snapshot, &over, &mk_ask(), &mk_actor()).is_err(), "it ended");
}

#[test]
fn a_member_is_taken_down_under_the_deletion_of_its_project() {
    let container = |snapshot: &ResourceSnapshot| Deletion {
        id: crate::ids::DeletionId::new(uuid::Uuid::from_u128(600)),
        target: snapshot.resource.project_id.into(),
        ..mk_deletion(snapshot)
    };
    let snapshot = mk_snapshot(Phase::Ready);
    let project = container(&snapshot);
    let commit = start_member(&snapshot, &project, &mk_actor());
    assert!(deletions(&commit).is_empty(), "the project's deletion is the record");
    assert!(commit.writes.iter().any(|write| matches!(
        write,
        Write::Broker(BrokerWrite::ResourceUpdate(resource)) if resource.deletion_id == Some(project.id)
    )));
    assert_eq!(commit.events[0].event_type, event::DELETING);

    let mut own = scheduled_snapshot(Phase::Ready);
    assert!(start_member(&own, &project, &mk_actor()).is_empty(), "it has one of its own");
    let retrying = Deletion { target: own.attempt.id().into(), ..mk_deletion(&own) };
    own.deletion = Some(retrying.clone());
    let commit = start_member(&own, &project, &mk_actor());
    assert_eq!(deletions(&commit)[0].state, DeletionState::Cancelled, "its retry is over");
}
