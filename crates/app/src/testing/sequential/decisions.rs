//! Decisions about existing resources: keys, refusals, stale snapshots.

use serde_json::Value;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::delete;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Write};
use slipway_core::deletion::door::Door;
use slipway_core::ids::{NodeId, ProvisionedResourceId, ResourceId};
use slipway_core::{ErrorKind, Phase, Refusal};

use crate::broker::port::ResourceKey;
use crate::ports::store::Error;
use crate::testing::world::{World, operator, refused};

pub(super) async fn unknown_keys_are_not_found(world: &World) {
    let keys = [
        ResourceKey::Resource(ResourceId::new(world.uuid())),
        ResourceKey::Attempt(ProvisionedResourceId::new(world.uuid())),
        ResourceKey::Token(world.hash()),
        ResourceKey::Node(NodeId::new(world.uuid())),
    ];
    for key in keys {
        let outcome =
            world.store.broker.decide(key, &mut |_| panic!("there is nothing to decide")).await;
        assert!(matches!(outcome, Err(Error::NotFound { .. })), "{key:?}: {outcome:?}");
    }
    let absent = ProvisionedResourceId::new(world.uuid());
    let loaded = world.store.broker.attempt_load(&[absent]).await.expect("a load");
    assert!(loaded.is_empty(), "a row that is gone is left out");
}

pub(super) async fn a_refusal_writes_nothing(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let mut refuse = |_: &ResourceSnapshot| -> Result<Commit, Refusal> {
        Err(Refusal::new(ErrorKind::Forbidden, "no"))
    };
    let outcome =
        world.store.broker.decide(ResourceKey::Resource(declared.resource), &mut refuse).await;
    assert_eq!(refused(outcome), ErrorKind::Forbidden);
    world.delete(declared.resource).await.expect("the lock is free again");
}

/// A commit computed from an old snapshot is refused as a whole: its first
/// writes do not stay either.
pub(super) async fn what_was_read_before_another_write_is_refused_whole(world: &World) {
    let mark = world.mark().await;
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let old = world.snapshot(declared.attempt).await;
    world.drive(declared.attempt, Phase::Enrolling).await;

    let ask = world.ask();
    let late = ask.deletion_id;
    let outcome = world
        .store
        .broker
        .decide(ResourceKey::Attempt(declared.attempt), &mut |_| {
            let requested = delete::request(&old, &Door::default(), &ask, &operator());
            requested.map(|requested| requested.commit)
        })
        .await;
    assert_eq!(refused(outcome), ErrorKind::RevisionStale);
    assert_eq!(world.store.deletion.deletion_fetch(late).await.expect("a fetch"), None);
    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.attempt.phase(), Phase::Enrolling);
    assert_eq!(snapshot.resource.deletion_id, None);
    world.check(mark, declared, "an old snapshot").await;
}

pub(super) async fn an_empty_commit_changes_nothing(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let before = world.snapshot(declared.attempt).await;
    world
        .store
        .broker
        .decide(ResourceKey::Attempt(declared.attempt), &mut |_| Ok(Commit::default()))
        .await
        .expect("nothing to do is no error");
    let after = world.snapshot(declared.attempt).await;
    assert_eq!(after.attempt, before.attempt);
    assert_eq!(after.resource, before.resource);
}

pub(super) async fn blockers_keep_their_age_and_go_away(world: &World) {
    let declared = world.enrolling().await;
    let unknown = CompositeReport::Unknown { reason: "no route".to_owned() };
    let claimed = world.claim_now(declared.attempt).await;
    world.tick_seeing(claimed, &unknown).await.expect("a tick");
    let first = world.snapshot(declared.attempt).await;
    let [blocker] = &first.blockers[..] else { panic!("one blocker: {:?}", first.blockers) };
    assert_eq!(blocker.code, BlockerCode::SubstrateUnknown);
    assert_eq!(blocker.evidence["reason"], "no route");
    assert!(blocker.next_retry_at.is_some());
    assert_eq!(first.attempt.phase(), Phase::Enrolling, "not knowing changes no phase");
    let observed = first.observed.as_ref().map(|observed| &observed["reason"]);
    assert_eq!(observed, Some(&Value::from("no route")));

    let elsewhere = CompositeReport::Unknown { reason: "no answer".to_owned() };
    let claimed = world.claim_now(declared.attempt).await;
    world.tick_seeing(claimed, &elsewhere).await.expect("a tick");
    let second = world.snapshot(declared.attempt).await;
    assert_eq!(second.blockers[0].since, first.blockers[0].since);
    assert_eq!(second.blockers[0].evidence["reason"], "no answer");

    let claimed = world.claim_now(declared.attempt).await;
    world.tick(claimed).await.expect("a tick");
    assert!(world.snapshot(declared.attempt).await.blockers.is_empty());

    // Replace the blockers by the same set.
    let again = second.blockers.clone();
    let mut put_back = |_: &ResourceSnapshot| -> Result<Commit, Refusal> {
        let writes = vec![Write::BlockersReplace(declared.attempt.into(), again.clone())];
        Ok(Commit { writes, ..Commit::default() })
    };
    let key = ResourceKey::Attempt(declared.attempt);
    world.store.broker.decide(key, &mut put_back).await.expect("a decision");
    assert_eq!(world.snapshot(declared.attempt).await.blockers, second.blockers);
}
