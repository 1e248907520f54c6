//! The invariants of a resource after any round, read through the ports.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use slipway_core::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::{DeletionId, NodeId};

use super::world::{Declared, World};
use crate::broker::port::ResourceFilter;
use crate::deletion::port::DeletionFilter;
use crate::deletion::port::LeakFilter;
use crate::events::port::PositionedEvent;
use crate::ports::store::Page;

/// The moment before a round; whatever is later belongs to the round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    node: NodeId,
    deletion: DeletionId,
    position: i64,
}

impl World {
    /// First numbers events that have no position yet.
    pub(super) async fn mark(&self) -> Mark {
        let seen = self.seen_position.load(Ordering::Relaxed);
        let position = self.relay_all(seen).await.last().map_or(seen, |event| event.position);
        self.seen_position.store(position, Ordering::Relaxed);
        let now = self.uuid();
        Mark { node: NodeId::new(now), deletion: DeletionId::new(now), position }
    }

    /// Gives positions to all events and lists those after `position`, checking
    /// that positions are dense.
    pub(super) async fn relay_all(&self, position: i64) -> Vec<PositionedEvent> {
        while self.store.events.outbox_relay(100).await.expect("a relay") > 0 {}
        let page = Page { after: Some(position), limit: 100_000 };
        let events = self.store.events.event_list(page).await.expect("a list of events");
        for (event, expected) in events.iter().zip(position + 1..) {
            assert_eq!(event.position, expected, "positions are dense");
        }
        events
    }

    /// Checks everything that holds for a resource made after `mark`.
    pub(super) async fn check(&self, mark: Mark, declared: Declared, context: &str) {
        let snapshot = self.snapshot(declared.attempt).await;
        let phase = snapshot.attempt.phase();

        let nodes = self
            .store
            .nodes
            .node_list(Page { after: Some(mark.node), limit: 1_000 })
            .await
            .expect("a list of nodes");
        let nodes: Vec<_> =
            nodes.iter().filter(|node| node.provisioned_resource_id == declared.attempt).collect();
        let registered = nodes.iter().filter(|node| node.is_registered()).count();
        let tokens: BTreeSet<_> = nodes.iter().map(|node| node.bootstrap_token_id).collect();
        assert!(registered <= 1, "{context}: {registered} registered nodes");
        assert_eq!(tokens.len(), nodes.len(), "{context}: a token was consumed twice: {nodes:?}");
        assert!(
            phase != Phase::Deleted || registered == 0,
            "{context}: a node is registered on a Deleted attempt"
        );

        let deletions = self
            .store
            .deletion
            .deletion_list(
                &DeletionFilter::default(),
                Page { after: Some(mark.deletion), limit: 1_000 },
            )
            .await
            .expect("a list of deletions");
        let of_resource =
            deletions.iter().filter(|deletion| deletion.target == declared.resource.into()).count();
        assert_eq!(of_resource, usize::from(phase.is_deletion()), "{context}: deletions");
        assert_eq!(snapshot.resource.deletion_id.is_some(), phase.is_deletion(), "{context}");
        assert_eq!(snapshot.resource.deleted_at.is_some(), phase == Phase::Deleted, "{context}");
        let token_open = snapshot
            .token
            .as_ref()
            .is_some_and(|token| token.consumed.is_none() && token.revoked_at.is_none());
        assert!(!(phase.is_deletion() && token_open), "{context}: a usable token while leaving");

        self.check_abandoned(&snapshot, context).await;
        self.check_history(declared, phase, context).await;
        self.check_events(mark, declared, phase, context).await;
        self.check_handle(snapshot.resource.handle.as_str(), context).await;
    }

    /// What was abandoned is not said to be proven gone, and has its leak records.
    async fn check_abandoned(&self, snapshot: &ResourceSnapshot, context: &str) {
        let attempt = &snapshot.attempt;
        let open = LeakFilter { open: Some(true), kind: None };
        let all = Page { after: None, limit: 10_000 };
        let leaks = self.store.deletion.leak_list(&open, all).await.expect("a list of leaks");
        let own = leaks.iter().filter(|leak| leak.subject == attempt.id().into());
        let own = own.filter(|leak| leak.is_abandoned()).count();
        match attempt.abandoned_at() {
            None => assert_eq!(own, 0, "{context}"),
            Some(_) => {
                assert_eq!(attempt.phase(), Phase::Deleted, "{context}");
                assert_eq!(attempt.absence_proven_at(), None, "{context}");
                assert!((1..=2).contains(&own), "{context}: {own} leak records");
            }
        }
    }

    /// Each line begins with the phase in which the previous one ended: no two
    /// workers left the same phase.
    async fn check_history(&self, declared: Declared, phase: Phase, context: &str) {
        let history = self.history(declared.attempt).await;
        let mut before = None;
        for line in &history {
            assert_eq!(line.from, before, "{context}: {history:?}");
            before = Some(line.to.clone());
        }
        assert_eq!(before.as_deref(), Some(phase.as_str()), "{context}: {history:?}");
    }

    /// No event twice, and none about a transition that did not happen.
    async fn check_events(&self, mark: Mark, declared: Declared, phase: Phase, context: &str) {
        let events = self.relay_all(mark.position).await;
        let own: Vec<_> = events
            .iter()
            .filter(|event| event.aggregate_id == declared.attempt.as_uuid())
            .collect();
        let unique: BTreeSet<_> =
            own.iter().map(|event| (event.revision, event.event_type.clone())).collect();
        assert_eq!(unique.len(), own.len(), "{context}: an event twice: {own:?}");
        let count =
            |name: &str| own.iter().filter(|event| event.event_type.ends_with(name)).count();
        assert_eq!(count("Requested"), 1, "{context}");
        assert_eq!(count("Deleting"), usize::from(phase.is_deletion()), "{context}: {own:?}");
        assert_eq!(count("Deleted"), usize::from(phase == Phase::Deleted), "{context}: {own:?}");
        let marked = own.iter().filter(|event| event.abandoned).count();
        assert!(marked <= count("Deleted"), "{context}: {own:?}");
        let revisions: Vec<_> = own.iter().map(|event| event.revision).collect();
        assert!(revisions.is_sorted(), "{context}: positions are in commit order: {own:?}");
    }

    async fn check_handle(&self, handle: &str, context: &str) {
        let filter =
            ResourceFilter { handle: Some(handle.to_owned()), ..ResourceFilter::default() };
        let live = self.store.broker.resource_list(&filter, Page { after: None, limit: 10 }).await;
        let live = live.expect("a list of resources");
        assert!(live.len() <= 1, "{context}: {} live resources have one handle", live.len());
    }
}
