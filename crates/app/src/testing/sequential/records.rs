//! Records without a lock: written as a whole if nothing changed that the tick
//! was decided on, and not at all otherwise.

use serde_json::json;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Recheck, Recorded};
use slipway_core::ids::Revision;
use slipway_core::{ErrorKind, Phase};
use uuid::Uuid;

use crate::access::port::{AuditFilter, AuditLine, AuditOrder};
use crate::broker::port::{Claimed, ResourceKey};
use crate::ports::store::Page;
use crate::testing::worker::released;
use crate::testing::world::{Declared, World, refused};

/// The record of a tick that makes a resource with its node Ready.
async fn about_to_be_ready(world: &World) -> (Declared, Claimed, Recorded) {
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    world.enrol(token, world.public_key()).await.expect("an enrolment");
    let claimed = world.claim_now(declared.attempt).await;
    let record = world.record_of(claimed).await;
    (declared, claimed, record)
}

async fn is_written(world: &World, record: &Recorded) -> bool {
    let written = world.store.broker.attempt_record(std::slice::from_ref(record)).await;
    written.expect("an answer").contains(&record.attempt())
}

/// Asserts that the record's condition fails, and that nothing of it was written.
async fn misses(world: &World, record: &Recorded, why: &str) {
    let lines = world.history(record.attempt()).await;
    let phase = world.snapshot(record.attempt()).await.attempt.phase();
    assert!(!is_written(world, record).await, "written although {why}");
    let after = world.history(record.attempt()).await;
    assert_eq!(after, lines, "{why}");
    assert_eq!(world.snapshot(record.attempt()).await.attempt.phase(), phase, "{why}");
}

pub(super) async fn a_record_is_written_whole_and_gives_the_claim_back(world: &World) {
    let nothing = world.store.broker.attempt_record(&[]).await.expect("an answer");
    assert!(nothing.is_empty());
    let (declared, claimed, record) = about_to_be_ready(world).await;
    let before = world.snapshot(declared.attempt).await;
    let lines = world.history(declared.attempt).await.len();
    while world.store.events.outbox_relay(1_000).await.expect("a relay") > 0 {}
    let page = Page { after: None, limit: 100_000 };
    let events = world.store.events.event_list(page).await.expect("events").len();

    assert!(is_written(world, &record).await);
    let ready = world.snapshot(declared.attempt).await;
    assert_eq!(ready.attempt.phase(), Phase::Ready);
    assert_eq!(ready.attempt.revision(), before.attempt.revision().next());
    assert!(ready.observed.is_some());
    assert!(ready.due_at.is_some_and(|due| due > ready.now), "settled until the next sweep");
    let history = world.history(declared.attempt).await;
    assert_eq!(history.len(), lines + 1);
    assert_eq!(history.last().map(|line| line.to.as_str()), Some("Ready"));
    world.store.events.outbox_relay(1_000).await.expect("a relay");
    let said = world.store.events.event_list(page).await.expect("events");
    assert_eq!(said.len(), events + 1);
    assert_eq!(said.last().map(|event| event.aggregate_id), Some(declared.attempt.as_uuid()));

    misses(world, &record, "it was written before").await;
    let again = world.claim_now(declared.attempt).await;
    assert_eq!(again.claim_token.0, claimed.claim_token.0 + 1, "the claim was given back");
    // The history line of a locked decision follows those of lockless records.
    world.store.broker.attempt_release(&[released(again, Recheck::Now)]).await.expect("a release");
    world.delete(declared.resource).await.expect("a deletion");
    let history = world.history(declared.attempt).await;
    assert_eq!(history.last().map(|line| line.to.as_str()), Some("Deregistering"));
}

/// The history is one list of quiet and announced changes in the order of revisions,
/// and only the announced ones are in the audit.
pub(super) async fn a_history_has_quiet_and_announced_changes_in_order(world: &World) {
    let (declared, ..) = world.draining().await;
    world.force(declared.resource).await.expect("a forced drain");
    world.drive(declared.attempt, Phase::Deleted).await;
    let history = world.history(declared.attempt).await;
    let mut before = None;
    for line in &history {
        assert_eq!(line.from, before, "{history:?}");
        assert!(!line.why.is_empty(), "{line:?}");
        before = Some(line.to.clone());
    }
    assert!(history.is_sorted_by_key(|line| line.at), "{history:?}");
    assert_eq!((&*history[0].to, before.as_deref()), ("Pending", Some("Deleted")));

    let audited = async |subject: Uuid| {
        let filter = AuditFilter { subject: Some(subject), ..AuditFilter::default() };
        let page = Page { after: None, limit: 100 };
        let listed = world.store.access.audit_list(&filter, AuditOrder::OldestFirst, page).await;
        let changed = |line: &AuditLine| !line.details["to"].is_null();
        let entries = listed.expect("a list").items.into_iter().filter(changed);
        entries.map(|line| (line.verb, line.details, line.at)).collect::<Vec<_>>()
    };
    let mut entries = audited(declared.resource.as_uuid()).await;
    entries.extend(audited(declared.attempt.as_uuid()).await);
    entries.sort_by_key(|(.., at)| *at);
    let verbs: Vec<_> = entries.iter().map(|(verb, ..)| verb.as_str()).collect();
    let phase = "provisioned_resource.phase";
    assert_eq!(verbs, ["resource.declare", phase, "resource.delete", phase]);
    let announced = ["Pending", "Ready", "Deregistering", "Deleted"];
    let lines: Vec<_> = history.iter().filter(|line| announced.contains(&&*line.to)).collect();
    assert_eq!(lines.len(), entries.len(), "{history:?}");
    assert!(history.len() > lines.len(), "some of them are quiet: {history:?}");
    for (line, (_, details, at)) in lines.iter().zip(&entries) {
        assert_eq!((&details["to"], *at), (&json!(line.to), line.at), "{details}");
        assert_eq!(details["from"].as_str(), line.from.as_deref(), "{details}");
    }
}

/// Whatever may change a decision fails a condition of its record.
pub(super) async fn a_record_misses_whatever_it_did_not_see(world: &World) {
    let (declared, _, record) = about_to_be_ready(world).await;
    world.delete(declared.resource).await.expect("a deletion");
    misses(world, &record, "the resource is being deleted").await;

    let (declared, _, record) = about_to_be_ready(world).await;
    let node = world.snapshot(declared.attempt).await.node.expect("a node");
    world.leave(node.id).await.expect("a node that leaves");
    misses(world, &record, "the node left").await;

    let declared = world.enrolling().await;
    let claimed = world.claim_now(declared.attempt).await;
    let record = world.record_of(claimed).await;
    let token = world.token(declared.attempt).await;
    world.enrol(token, world.public_key()).await.expect("an enrolment");
    misses(world, &record, "a node enrolled").await;

    let (declared, node, drain) = world.draining().await;
    let claimed = world.claim_now(declared.attempt).await;
    let record = world.record_of(claimed).await;
    world.acknowledge(node, drain).await.expect("an acknowledgement");
    misses(world, &record, "the drain ended").await;

    let (declared, ..) = world.draining().await;
    let claimed = world.claim_now(declared.attempt).await;
    let record = world.record_of(claimed).await;
    world.force(declared.resource).await.expect("a forced drain");
    misses(world, &record, "the drain was forced").await;

    let (declared, claimed, record) = about_to_be_ready(world).await;
    world
        .store
        .broker
        .attempt_release(&[released(claimed, Recheck::Now)])
        .await
        .expect("a release");
    // A release leaves the token as it is: the record must also name that the claim is
    // not released.
    misses(world, &record, "the claim was released").await;
    let commit: Commit = record.commit().clone();
    let mut rule = |_: &ResourceSnapshot| Ok(commit.clone());
    let decided = world.store.broker.decide(ResourceKey::Attempt(declared.attempt), &mut rule);
    assert_eq!(refused(decided.await), ErrorKind::ClaimLost, "and so must a locked one");
    world.claim_now(declared.attempt).await;
    misses(world, &record, "another worker has the claim").await;
}

pub(super) async fn a_record_that_misses_takes_no_other_with_it(world: &World) {
    let (good, _, first) = about_to_be_ready(world).await;
    let (stale, _, second) = about_to_be_ready(world).await;
    let commit: Commit = second.commit().clone();
    let older = Revision(second.revision().0 - 1);
    let second = Recorded::new(stale.attempt, older, commit).expect("a record");
    let written = world.store.broker.attempt_record(&[second, first]).await.expect("an answer");
    assert_eq!(written.into_iter().collect::<Vec<_>>(), [good.attempt]);
    assert_eq!(world.snapshot(good.attempt).await.attempt.phase(), Phase::Ready);
    assert_eq!(world.snapshot(stale.attempt).await.attempt.phase(), Phase::Enrolling);
}

/// Invariant 6: nobody claims a row between the read and the write of a decision.
pub(super) async fn nobody_claims_what_is_being_decided(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    world.wake(declared.attempt).await.expect("a wake");
    let (store, partition) = (world.store.clone(), world.partition);
    let mut claimed = None;
    let mut rule = |_: &ResourceSnapshot| {
        // The rule runs inside the transaction; meanwhile another connection claims.
        let store = store.clone();
        let claim = async move {
            let lease = crate::testing::worker::LEASE;
            let limit = std::time::Duration::from_millis(300);
            tokio::time::timeout(
                limit,
                store.broker.attempt_claim("other", partition, 1_000, lease),
            )
            .await
        };
        let handle = tokio::runtime::Handle::current();
        claimed = Some(tokio::task::block_in_place(|| handle.block_on(claim)));
        Ok(Commit::default())
    };
    world
        .store
        .broker
        .decide(ResourceKey::Attempt(declared.attempt), &mut rule)
        .await
        .expect("decided");
    // On SQLite the claim waits for the only writer and times out; on
    // PostgreSQL it skips the row.
    if let Some(Ok(Ok(claimed))) = claimed {
        assert!(claimed.iter().all(|claimed| claimed.id != declared.attempt), "{claimed:?}");
        let back: Vec<_> = claimed.into_iter().map(|c| released(c, Recheck::Never)).collect();
        world.store.broker.attempt_release(&back).await.expect("a release");
    }
}
