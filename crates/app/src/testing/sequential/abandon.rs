//! What a person gives up proving gone: the row, its leak records, and how they end.

use std::time::Duration;

use slipway_core::Phase;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::deletion::leak::Leak;
use slipway_core::error::ErrorKind;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::nodes::node::DeregisteredHow;

use crate::access::port::{AuditFilter, AuditOrder};
use crate::deletion::port::LeakFilter;
use crate::ports::store::Page;
use crate::testing::world::{World, refused};

/// In the order of their kinds.
async fn leaks_of(world: &World, attempt: ProvisionedResourceId, open: bool) -> Vec<Leak> {
    let filter = LeakFilter { open: Some(open), kind: None };
    let page = Page { after: None, limit: 10_000 };
    let leaks = world.store.deletion.leak_list(&filter, page).await.expect("a list");
    let mut own: Vec<_> = leaks.into_iter().filter(|leak| leak.subject == attempt.into()).collect();
    own.sort_by(|one, other| one.kind.cmp(&other.kind));
    own
}

pub(super) async fn an_abandoned_resource_is_deleted_with_records_of_what_may_be_left(
    world: &World,
) {
    let mark = world.mark().await;
    let (declared, node) = world.lost().await;
    let before = world.snapshot(declared.attempt).await;
    world.abandon(declared).await.expect("it is abandoned");
    let gone = world.snapshot(declared.attempt).await;
    assert_eq!(gone.attempt.phase(), Phase::Deleted);
    assert_eq!(gone.attempt.abandoned_at().map(|at| at <= gone.now), Some(true));
    assert_eq!(gone.attempt.absence_proven_at(), None);
    assert!(gone.resource.deleted_at.is_some(), "the handle is free");
    assert_eq!(gone.deletion.and_then(|deletion| deletion.done_at), gone.resource.deleted_at);
    assert_eq!((gone.due_at, gone.blockers), (None, Vec::new()));
    let left = gone.node.expect("the node is on record");
    assert_eq!((left.id, left.key_hash), (node, None));
    let how = left.deregistration.map(|left| (left.how, left.reason));
    let why = Some("the suite lost the cluster".to_owned());
    assert_eq!(how, Some((DeregisteredHow::Forced, why)));

    let leaks = leaks_of(world, declared.attempt, true).await;
    let kinds: Vec<_> = leaks.iter().map(|leak| leak.kind.as_str()).collect();
    assert_eq!(kinds, ["abandoned_composite", "abandoned_node"]);
    let composite = &leaks[0];
    assert_eq!(composite.cluster.as_deref(), Some("local"));
    assert_eq!(composite.cluster_id.map(Into::into), Some(world.partition));
    let object_ref = composite.object_ref.as_ref().expect("its place");
    assert_eq!(object_ref.name, before.attempt.xr_name());
    let uid = declared.attempt.to_string();
    assert_eq!(composite.uid.as_deref(), Some(uid.as_str()), "the last that was observed");
    world.check(mark, declared, "abandoned").await;

    // A boot wakes nothing that was given up, and to ask again changes nothing.
    world.store.broker.attempt_wake_all(world.partition).await.expect("a wake");
    assert!(world.claim(declared.attempt).await.is_none());
    world.abandon(declared).await.expect("it was abandoned");
    assert_eq!(world.snapshot(declared.attempt).await.attempt, gone.attempt);
    assert_eq!(leaks_of(world, declared.attempt, true).await.len(), 2);
}

/// The worker that had the row is fenced off, and a cluster that comes back finds an
/// attempt that never converges again.
pub(super) async fn what_comes_back_after_it_was_abandoned_is_a_leak_and_ends(world: &World) {
    let (declared, _) = world.lost().await;
    let late = world.claim_now(declared.attempt).await;
    world.abandon(declared).await.expect("it is abandoned");
    assert_eq!(refused(world.tick(late).await), ErrorKind::ClaimLost);
    assert!(world.claim(declared.attempt).await.is_none(), "nobody has to work on it");

    // A scan found its object and woke it: it is recorded, removed, and proven absent.
    for _ in 0..2 {
        world.wake(declared.attempt).await.expect("a wake");
        let claimed = world.claim(declared.attempt).await.expect("it is due");
        world.tick(claimed).await.expect("a tick");
        let seen = world.snapshot(declared.attempt).await.attempt;
        assert_eq!((seen.phase(), seen.absence_proven_at()), (Phase::Deleted, None));
    }
    let claimed = world.claim_now(declared.attempt).await;
    world.tick_proving(claimed, &CompositeReport::Absent).await.expect("a tick");
    let seen = world.snapshot(declared.attempt).await.attempt;
    assert!(seen.absence_proven_at().is_some() && seen.abandoned_at().is_some());
    assert!(leaks_of(world, declared.attempt, true).await.is_empty(), "all of it is proven gone");
    assert_eq!(leaks_of(world, declared.attempt, false).await.len(), 3);
}

/// Retention keeps the history and the audit of a deleted resource while a record is open.
pub(super) async fn what_may_still_exist_is_not_forgotten(world: &World) {
    let (declared, _) = world.lost().await;
    world.abandon(declared).await.expect("it is abandoned");
    let store = &world.store;
    let kept = async || {
        let about =
            AuditFilter { subject: Some(declared.resource.as_uuid()), ..AuditFilter::default() };
        let page = Page { after: None, limit: 1_000 };
        let entries = store.access.audit_list(&about, AuditOrder::OldestFirst, page).await;
        let page = Page { after: None, limit: 1_000 };
        let history = store.broker.history_list(declared.attempt, page).await.expect("a history");
        (history.len(), entries.expect("a list").items.len())
    };
    let prune = async || {
        store.broker.history_prune(Duration::ZERO, 10_000).await.expect("a count");
        let mut after = None;
        loop {
            let step = store.access.audit_prune(Duration::ZERO, after, 1_000).await;
            after = step.expect("a step").next;
            if after.is_none() {
                return;
            }
        }
    };
    let before = kept().await;
    prune().await;
    assert_eq!(kept().await, before);
    let claimed = world.claim_now(declared.attempt).await;
    world.tick_proving(claimed, &CompositeReport::Absent).await.expect("a tick");
    assert!(leaks_of(world, declared.attempt, true).await.is_empty());
    prune().await;
    assert_eq!(kept().await, (0, 0));
}
