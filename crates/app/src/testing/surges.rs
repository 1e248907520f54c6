//! Replacements that make the new attempt first: what is stored, and races with deletions,
//! with each other and with the tick that brings the new attempt in use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_core::broker::redeclare::{Corrections, RedeclareSnapshot};
use slipway_core::broker::retry;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::surge;
use slipway_core::deletion::door::{Defaults, Doored};
use slipway_core::deletion::record::DeletionState;
use slipway_core::ids::{DeletionId, NodeId, ProvisionedResourceId, ResourceId};
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;
use slipway_core::{ErrorKind, Phase};

use super::races::at_once;
use super::world::{Declared, World, apart, operator, refused};
use crate::broker::port::{
    AttemptFilter, Blocked, RedeclareKey, Redeclared, ResourceFilter, ResourceKey,
};
use crate::ports::store::{Error, Page};

impl World {
    async fn surge(&self, resource: ResourceId) -> Result<(), Error> {
        let parameters = BTreeMap::from([("zone".to_owned(), json!(2))]);
        let corrections = Corrections { version: None, parameters };
        let key = RedeclareKey { resource, version: None, of: Redeclared::WithSurge };
        let ask = self.ask();
        let mut rule = |snapshot: &Doored<RedeclareSnapshot>| {
            Ok(surge::request(snapshot, &corrections, &ask, &operator())?.commit)
        };
        let input = ask.input(Defaults::default());
        self.store.broker.decide_replacement(&key, input, &mut rule).await
    }

    async fn abort(&self, resource: ResourceId) -> Result<(), Error> {
        let id = DeletionId::new(self.uuid());
        let reason = Reason::parse("not now").expect("a valid reason");
        let mut rule = |snapshot: &ResourceSnapshot| {
            surge::abort(snapshot, Expected::Any, id, Duration::ZERO, &reason, &operator())
        };
        self.store.broker.decide(ResourceKey::Resource(resource), &mut rule).await
    }

    async fn retry_beside(&self, resource: ResourceId) -> Result<(), Error> {
        let id = DeletionId::new(self.uuid());
        let reason = Reason::parse("the quota was raised").expect("a valid reason");
        let mut rule = |snapshot: &ResourceSnapshot| {
            retry::request(snapshot, id, Duration::ZERO, &reason, &operator())
        };
        self.store.broker.decide(ResourceKey::Resource(resource), &mut rule).await
    }

    async fn of_resource(&self, resource: ResourceId) -> ResourceSnapshot {
        let found = self.store.broker.resource_fetch(resource).await.expect("a read");
        found.expect("the resource")
    }

    /// A Ready resource with an attempt beside the one in use.
    async fn surging(&self) -> (Declared, NodeId, ProvisionedResourceId) {
        let (declared, node) = self.ready().await;
        self.surge(declared.resource).await.expect("a surge");
        let beside = self.of_resource(declared.resource).await;
        let beside = beside.beside().expect("a second attempt").attempt.id();
        (declared, node, beside)
    }

    /// Enrols the node of this attempt, and leaves the tick that finds it Ready to the caller.
    async fn enrolled(&self, attempt: ProvisionedResourceId) -> NodeId {
        self.drive(attempt, Phase::Enrolling).await;
        let token = self.token(attempt).await;
        self.enrol(token, self.public_key()).await.expect("an enrolment")
    }

    /// Takes this attempt down to its end, with its node if it has one.
    async fn drained(&self, attempt: ProvisionedResourceId, node: Option<NodeId>) {
        if let Some(node) = node {
            let claimed = self.claim_now(attempt).await;
            self.tick(claimed).await.expect("the tick that asks for the drain");
            let asked = self.snapshot(attempt).await.node.and_then(|node| node.drain);
            self.acknowledge(node, asked.expect("a drain").id).await.expect("it drained");
        }
        self.drive(attempt, Phase::Deleted).await;
    }

    /// Of the attempts that are not Deleted exactly one is in use, unless they all go.
    async fn check_pair(&self, resource: ResourceId, context: &str) {
        let of = AttemptFilter { resource: Some(resource), ..AttemptFilter::default() };
        let lines = self.store.broker.attempt_lines(of, 100).await.expect("lines");
        let live: Vec<_> = lines.iter().filter(|line| line.phase != "Deleted").collect();
        let current = self.of_resource(resource).await;
        let goes = current.resource.deletion_id.is_some();
        let fits = match &current.resource.surge {
            Some(_) => live.len() == 2 || (goes && live.len() == 1),
            None => live.len() <= 1,
        };
        assert!(fits, "{context}: {lines:?}");
        let gone = current.resource.deleted_at.is_some();
        assert_eq!(gone, live.is_empty(), "{context}: {lines:?}");
        assert!(gone || live.iter().any(|line| line.id == current.attempt.id()), "{context}");
    }
}

pub(super) async fn conformance(world: &World) {
    apart(|| a_surge_replaces_when_the_new_attempt_is_ready(world)).await;
    apart(|| what_fails_beside_is_retried_or_aborted(world)).await;
    apart(|| a_deletion_takes_both_down(world)).await;
    apart(|| the_name_of_a_node_is_nobody_elses(world)).await;
}

async fn a_surge_replaces_when_the_new_attempt_is_ready(world: &World) {
    let (declared, node, beside) = world.surging().await;
    let seen = world.of_resource(declared.resource).await;
    assert_eq!(seen.attempt.id(), declared.attempt, "the old one is in use");
    assert_eq!((seen.latest, seen.attempt.phase()), (2, Phase::Ready));
    let surge = seen.resource.surge.clone().expect("it is recorded");
    assert_eq!((surge.from, surge.to), (declared.attempt, beside));
    assert_eq!(surge.requested_by, operator().name);
    let other = seen.other.expect("both are read");
    assert_eq!((other.attempt.attempt(), other.attempt.is_in_use()), (2, false));
    assert_eq!(other.hostname(), format!("{}-2", seen.resource.handle));
    assert_eq!(other.attempt.parameter_values().as_map()["zone"], 2);
    for again in [world.surge(declared.resource).await, world.retry_beside(declared.resource).await]
    {
        let kind = refused(again);
        assert!(matches!(kind, ErrorKind::SurgeUnderWay | ErrorKind::NothingToRetry), "{kind}");
    }

    let second = world.enrolled(beside).await;
    assert_eq!(world.snapshot(beside).await.node.expect("its own node").id, second);
    let old = world.snapshot(declared.attempt).await;
    assert_eq!((old.attempt.phase(), old.node.expect("its node").id), (Phase::Ready, node));
    world.drive(beside, Phase::Ready).await;
    let seen = world.of_resource(declared.resource).await;
    assert_eq!((seen.attempt.id(), seen.attempt.is_in_use()), (beside, true));
    assert_eq!(seen.resource.deletion_id, None, "the resource stays");
    let old = world.snapshot(declared.attempt).await;
    assert_eq!(old.attempt.phase(), Phase::Deregistering);
    let deletion = old.deletion.expect("the record of its teardown");
    assert_eq!(deletion.target, declared.attempt.into());
    assert_eq!((&*deletion.requested_by, deletion.resources), (&*operator().name, 1));
    assert_eq!(refused(world.abort(declared.resource).await), ErrorKind::NothingToAbort);

    world.drained(declared.attempt, Some(node)).await;
    let seen = world.of_resource(declared.resource).await;
    assert_eq!((seen.attempt.id(), seen.resource.surge), (beside, None));
    assert_eq!((seen.resource.deleted_at, seen.latest), (None, 2), "no other one follows");
    assert_eq!(world.deletion(deletion.id).await.state, DeletionState::Done);
    world.check_pair(declared.resource, "after a surge").await;
}

async fn what_fails_beside_is_retried_or_aborted(world: &World) {
    let (declared, _, beside) = world.surging().await;
    world.drive(beside, Phase::Enrolling).await;
    world.fail(beside, "quota").await;
    let blocked = world.of_resource(declared.resource).await;
    assert_eq!(blocked.attempt.phase(), Phase::Ready);
    assert_eq!(blocked.beside().expect("it stays").attempt.phase(), Phase::Failed);
    world.retry_beside(declared.resource).await.expect("a retry");
    world.drained(beside, None).await;
    let seen = world.of_resource(declared.resource).await;
    let third = seen.beside().expect("the next one").attempt.clone();
    assert_eq!((third.attempt(), third.is_in_use()), (3, false));
    assert_eq!(third.parameter_values().as_map()["zone"], 2);

    world.abort(declared.resource).await.expect("an abort");
    world.abort(declared.resource).await.expect("the same once more");
    world.drained(third.id(), None).await;
    let seen = world.of_resource(declared.resource).await;
    assert_eq!((seen.attempt.id(), seen.resource.surge), (declared.attempt, None));
    assert_eq!((seen.attempt.phase(), seen.latest), (Phase::Ready, 3));
    world.check_pair(declared.resource, "after an abort").await;
    // What is blocked beside the one in use is found by its resource.
    let (declared, _, beside) = world.surging().await;
    let unknown = slipway_core::broker::observation::CompositeReport::Unknown {
        reason: "the cluster is away".to_owned(),
    };
    let claimed = world.claim_now(beside).await;
    world.tick_seeing(claimed, &unknown).await.expect("a tick");
    let handle = world.of_resource(declared.resource).await.resource.handle.to_string();
    for handle in [None, Some(handle)] {
        let blocked = Some(Blocked::By(slipway_core::blocker::BlockerCode::SubstrateUnknown));
        let filter = ResourceFilter { handle, blocked, ..ResourceFilter::default() };
        let page = Page { after: None, limit: 1_000 };
        let listed = world.store.broker.resource_list(&filter, page).await.expect("a list");
        let mut ids = listed.iter().flatten().map(|one| one.resource.id);
        assert!(ids.any(|id| id == declared.resource), "{filter:?}");
    }
    world.delete(declared.resource).await.expect("a deletion");
}

/// At each stage of a surge, and with whichever of the two gone first.
async fn a_deletion_takes_both_down(world: &World) {
    for (stage, old_first) in (0..3).flat_map(|stage| [(stage, true), (stage, false)]) {
        let (declared, node, beside) = world.surging().await;
        let mut second = None;
        match stage {
            0 => {}
            1 => {
                second = Some(world.enrolled(beside).await);
                world.drive(beside, Phase::Ready).await;
            }
            _ => world.abort(declared.resource).await.expect("an abort"),
        }
        let under_way = world.of_resource(declared.resource).await;
        let under_way = under_way.torn_down().deletion.as_ref().map(|deletion| deletion.id);
        let deletion = world.delete(declared.resource).await.expect("a deletion");
        let context = format!("stage {stage}, old first: {old_first}");
        if let Some(under_way) = under_way {
            let state = world.deletion(under_way).await.state;
            assert_eq!(state, DeletionState::Cancelled, "{context}");
        }
        for attempt in [declared.attempt, beside] {
            let seen = world.snapshot(attempt).await;
            assert_eq!(seen.attempt.phase(), Phase::Deregistering, "{context}");
            assert_eq!(seen.deletion.expect("the one deletion").id, deletion, "{context}");
        }
        let mut order = [(declared.attempt, Some(node)), (beside, second)];
        if !old_first {
            order.reverse();
        }
        let [first, last] = order;
        world.drained(first.0, first.1).await;
        assert_eq!(world.deletion(deletion).await.state, DeletionState::Running, "{context}");
        let seen = world.of_resource(declared.resource).await;
        assert_eq!((seen.attempt.id(), seen.resource.deleted_at), (last.0, None), "{context}");
        world.check_pair(declared.resource, &context).await;
        world.drained(last.0, last.1).await;
        assert_eq!(world.deletion(deletion).await.state, DeletionState::Done, "{context}");
        world.check_pair(declared.resource, &context).await;
    }
}

async fn the_name_of_a_node_is_nobody_elses(world: &World) {
    let (declared, _, beside) = world.surging().await;
    let name = world.snapshot(beside).await.hostname().to_owned();
    assert_eq!(refused(world.declare(&name).await), ErrorKind::HandleTaken);
    // And the other way about.
    let (taken, _) = world.ready().await;
    let handle = world.of_resource(taken.resource).await.resource.handle;
    world.declare(&surge::hostname(&handle, 2)).await.expect("it is free");
    world.surge(taken.resource).await.expect("a surge");
    let seen = world.of_resource(taken.resource).await;
    let beside = seen.beside().expect("a second attempt");
    assert_ne!(beside.hostname(), surge::hostname(&handle, 2));
    assert!(beside.hostname().starts_with(&surge::hostname(&handle, 2)));
    world.delete(declared.resource).await.expect("a deletion");
    world.delete(taken.resource).await.expect("a deletion");
}

pub(super) async fn races(world: &Arc<World>) {
    apart(|| surge_with_surge(world)).await;
    apart(|| surge_with_delete(world)).await;
    apart(|| ready_with_delete(world)).await;
    apart(|| ready_with_abort(world)).await;
    apart(|| both_gone_at_once(world)).await;
}

async fn surge_with_surge(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let surge = || {
        let world = Arc::clone(world);
        async move { world.surge(declared.resource).await }
    };
    let (one, other) = at_once(surge(), surge()).await;
    let lost = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    let [lost] = <[_; 1]>::try_from(lost).expect("one of them wins");
    assert_eq!(refused::<()>(Err(lost)), ErrorKind::SurgeUnderWay);
    world.check_pair(declared.resource, "two surges").await;
    world.delete(declared.resource).await.expect("a deletion");
}

/// Both go, or the surge never began.
async fn surge_with_delete(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (surged, deleted) = at_once(async move { a.surge(declared.resource).await }, async move {
        b.delete(declared.resource).await
    })
    .await;
    let deletion = deleted.expect("a deletion");
    if surged.is_err() {
        assert_eq!(refused(surged), ErrorKind::Leaving);
    }
    let seen = world.of_resource(declared.resource).await;
    for one in [Some(&seen), seen.other.as_deref()].into_iter().flatten() {
        assert_eq!(one.attempt.phase(), Phase::Deregistering);
        assert_eq!(one.deletion.as_ref().map(|one| one.id), Some(deletion));
    }
    world.check_pair(declared.resource, "a surge and a deletion").await;
}

/// The tick that finds the new attempt Ready, and a deletion: both attempts go.
async fn ready_with_delete(world: &Arc<World>) {
    let (declared, _, beside) = world.surging().await;
    world.enrolled(beside).await;
    let claimed = world.claim_now(beside).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (ticked, deleted) =
        at_once(
            async move { a.tick(claimed).await },
            async move { b.delete(declared.resource).await },
        )
        .await;
    let deletion = deleted.expect("a deletion");
    if ticked.is_err() {
        assert_eq!(refused(ticked), ErrorKind::RevisionStale);
    }
    for attempt in [declared.attempt, beside] {
        let seen = world.snapshot(attempt).await;
        assert_eq!(seen.attempt.phase(), Phase::Deregistering);
        assert_eq!(seen.deletion.map(|one| one.id), Some(deletion));
    }
    world.check_pair(declared.resource, "Ready and a deletion").await;
}

/// Either the new attempt is in use and the old one goes, or the other way about.
async fn ready_with_abort(world: &Arc<World>) {
    let (declared, _, beside) = world.surging().await;
    world.enrolled(beside).await;
    let claimed = world.claim_now(beside).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (ticked, aborted) =
        at_once(
            async move { a.tick(claimed).await },
            async move { b.abort(declared.resource).await },
        )
        .await;
    let (stays, goes) = match aborted {
        Ok(()) => {
            assert_eq!(refused(ticked), ErrorKind::RevisionStale);
            (declared.attempt, beside)
        }
        Err(error) => {
            assert_eq!(refused::<()>(Err(error)), ErrorKind::NothingToAbort);
            ticked.expect("a tick");
            (beside, declared.attempt)
        }
    };
    assert_eq!(world.of_resource(declared.resource).await.attempt.id(), stays);
    assert_eq!(world.snapshot(stays).await.attempt.phase(), Phase::Ready);
    assert_eq!(world.snapshot(goes).await.attempt.phase(), Phase::Deregistering);
    world.check_pair(declared.resource, "Ready and an abort").await;
    world.delete(declared.resource).await.expect("a deletion");
}

/// Two ticks that each find one of the two gone: the deletion is done once, by the later.
async fn both_gone_at_once(world: &Arc<World>) {
    let (declared, node, beside) = world.surging().await;
    world.drive(beside, Phase::Enrolling).await;
    let deletion = world.delete(declared.resource).await.expect("a deletion");
    world.drive(beside, Phase::Deprovisioning).await;
    let claimed = world.claim_now(declared.attempt).await;
    world.tick(claimed).await.expect("the tick that asks for the drain");
    let asked = world.snapshot(declared.attempt).await.node.and_then(|node| node.drain);
    world.acknowledge(node, asked.expect("a drain").id).await.expect("it drained");
    world.drive(declared.attempt, Phase::Deprovisioning).await;
    // Removed, but not seen so.
    for attempt in [declared.attempt, beside] {
        world.substrate.remove(attempt);
    }
    let one = world.claim_now(declared.attempt).await;
    let two = world.claim_now(beside).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (first, second) =
        Box::pin(at_once(async move { a.tick(one).await }, async move { b.tick(two).await })).await;
    for outcome in [first, second] {
        if outcome.is_err() {
            assert_eq!(refused(outcome), ErrorKind::RevisionStale);
        }
    }
    for attempt in [declared.attempt, beside] {
        world.drive(attempt, Phase::Deleted).await;
    }
    assert_eq!(world.deletion(deletion).await.state, DeletionState::Done);
    world.check_pair(declared.resource, "both gone").await;
}
