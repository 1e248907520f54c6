//! Deletion verification, and the record of its result.

use std::time::Duration;

use serde_json::Value;
use slipway_core::Phase;
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::broker::retry;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::Recheck;
use slipway_core::ids::{DeletionId, ProvisionedResourceId};
use slipway_core::nodes::token::Carried;
use slipway_core::text::Reason;

use crate::broker::port::AttemptFilter;
use crate::broker::port::ResourceKey;
use crate::testing::worker::{LEASE, released};
use crate::testing::world::{World, operator};

fn present(failure: Option<&str>) -> CompositeReport {
    CompositeReport::Present(Box::new(LiveComposite {
        uid: "made anew".to_owned(),
        ready: true,
        failure: failure.map(str::to_owned),
        terminating: false,
        owned_hash: "same".to_owned(),
        carried: Carried::Nothing,
        injected: None,
        evidence: Value::Null,
    }))
}

async fn deleted(world: &World) -> ProvisionedResourceId {
    let declared = world.enrolling().await;
    world.delete(declared.resource).await.expect("a deletion");
    world.drive(declared.attempt, Phase::Deleted).await;
    declared.attempt
}

fn waits(snapshot: &ResourceSnapshot) -> Option<Duration> {
    snapshot.due_at.map(|due| due.since(snapshot.now))
}

pub(super) async fn absence_is_proven_again_one_lease_after_deleted(world: &World) {
    let attempt = deleted(world).await;
    let gone = world.snapshot(attempt).await;
    assert_eq!(gone.attempt.absence_proven_at(), None);
    let due = gone.due_at;
    assert!(waits(&gone).is_some_and(|wait| wait > LEASE / 2 && wait <= LEASE), "{due:?}");
    world.store.broker.attempt_wake_all(world.partition).await.expect("a wake");
    assert_eq!(world.snapshot(attempt).await.due_at, due, "it keeps its own time");

    // Deleted, never due again, never verified.
    let claimed = world.claim_now(attempt).await;
    world
        .store
        .broker
        .attempt_release(&[released(claimed, Recheck::Never)])
        .await
        .expect("a release");
    world.store.broker.attempt_wake_all(world.partition).await.expect("a wake");
    let claimed = world.claim(attempt).await.expect("it gets a time if it has none");

    world.tick_proving(claimed, &CompositeReport::Absent).await.expect("a tick");
    let proven = world.snapshot(attempt).await;
    assert!(proven.attempt.absence_proven_at().is_some_and(|at| at <= proven.now));
    assert_eq!(proven.attempt.revision(), gone.attempt.revision().next());
    assert_eq!(proven.due_at, None, "there is nothing left to look for");
    world.store.broker.attempt_wake_all(world.partition).await.expect("a wake");
    assert!(world.claim(attempt).await.is_none());

    let claimed = world.claim_now(attempt).await;
    world.tick_proving(claimed, &present(None)).await.expect("a tick");
    let doubted = world.snapshot(attempt).await;
    assert_eq!(doubted.attempt.absence_proven_at(), None);
    assert_eq!(doubted.attempt.phase(), Phase::Deleted);
    assert_eq!(waits(&doubted), Some(Duration::ZERO), "what was found is removed at once");
}

pub(super) async fn absence_is_proven_in_batches(world: &World) {
    let mut claims = Vec::new();
    for _ in 0..3 {
        let attempt = deleted(world).await;
        claims.push(world.claim_now(attempt).await);
    }
    let found = claims[1].id;
    world.substrate.apply(found, Carried::Nothing);
    for (id, outcome) in world.tick_many_proving(&claims).await {
        outcome.expect("an undisturbed tick");
        let snapshot = world.snapshot(id).await;
        assert_eq!(snapshot.attempt.absence_proven_at().is_some(), id != found);
        assert_eq!(snapshot.due_at.is_some(), id == found);
    }
    // The object is on record now, so the loop removes it and verifies its absence.
    for _ in 0..2 {
        let claimed = world.claim_now(found).await;
        let ticked = world.tick_many_proving(&[claimed]).await.pop().expect("an answer");
        ticked.1.expect("an undisturbed tick");
    }
    assert!(world.snapshot(found).await.attempt.absence_proven_at().is_some());
}

/// The resource continues with its next attempt during the verification of the last.
pub(super) async fn an_old_attempt_is_proven_gone_while_its_successor_lives(world: &World) {
    let declared = world.enrolling().await;
    let claimed = world.claim_now(declared.attempt).await;
    world.tick_seeing(claimed, &present(Some("quota"))).await.expect("a tick");
    let reason = Reason::parse("the quota was raised").expect("a valid reason");
    let id = DeletionId::new(world.uuid());
    let mut rule = |snapshot: &ResourceSnapshot| {
        retry::request(snapshot, id, Duration::ZERO, &reason, &operator())
    };
    world
        .store
        .broker
        .decide(ResourceKey::Resource(declared.resource), &mut rule)
        .await
        .expect("a retry");
    world.drive(declared.attempt, Phase::Deleted).await;
    let fetch = || async {
        let fetched = world.store.broker.resource_fetch(declared.resource).await;
        fetched.expect("a fetch").expect("the resource")
    };
    let successor = fetch().await.attempt;
    assert_eq!((successor.attempt(), successor.phase()), (2, Phase::Pending));
    let of = AttemptFilter { resource: Some(declared.resource), ..AttemptFilter::default() };
    let lines = world.store.broker.attempt_lines(of, 10).await.expect("lines");
    let shown: Vec<_> = lines.iter().map(|line| (line.number, line.phase.as_str())).collect();
    assert_eq!(shown, [(2, "Pending"), (1, "Deleted")], "the older one is not forgotten");
    assert_eq!(lines[1].absence_proven_at, None);

    let claimed = world.claim_now(declared.attempt).await;
    world.tick_proving(claimed, &CompositeReport::Absent).await.expect("a tick");
    assert!(world.snapshot(declared.attempt).await.attempt.absence_proven_at().is_some());
    let after = fetch().await;
    assert_eq!(after.attempt, successor, "its successor is left alone");
    assert_eq!(after.resource.deleted_at, None);
    world.drive(successor.id(), Phase::Enrolling).await;
}

/// A flapping window begins when a resource is set back, and outlasts the phases.
pub(super) async fn a_flapping_window_has_one_start(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    world.drive_many(&[declared.attempt], Phase::Enrolling).await;
    let waiting = world.snapshot(declared.attempt).await.attempt;
    assert_eq!(waiting.unsettled_since(), waiting.created_at());
    let token = world.token(declared.attempt).await;
    world.enrol(token, world.public_key()).await.expect("an enrolment");
    world.drive(declared.attempt, Phase::Ready).await;
    world.substrate.remove(declared.attempt);
    let claimed = world.claim_now(declared.attempt).await;
    world.tick(claimed).await.expect("a tick");
    let lost = world.snapshot(declared.attempt).await.attempt;
    assert_eq!((lost.phase(), lost.unsettled_since()), (Phase::Pending, lost.phase_since()));
    world.drive(declared.attempt, Phase::Enrolling).await;
    let again = world.snapshot(declared.attempt).await.attempt;
    assert_eq!(again.unsettled_since(), lost.unsettled_since());
}
