//! One row that breaks an invariant: it is reported and quarantined, nothing
//! decides about it, and its neighbours are not affected.

use slipway_core::blocker::{BlockerCode, DeregistrationSeam};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Recheck};
use slipway_core::ids::{BootstrapTokenId, NodeId, ProvisionedResourceId};

use super::worker::{LEASE, released};
use super::world::World;
use crate::broker::port::AttemptFilter;
use crate::broker::port::{ResourceFilter, ResourceKey};
use crate::ports::Stores;
use crate::ports::store::{Error, Page};

/// `spoil` must make the row of this attempt invalid in the database itself.
pub async fn bad_row(store: Stores, spoil: impl AsyncFnOnce(ProvisionedResourceId)) {
    let world = World::new(store).await;
    let (mut declared, mut handles) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let handle = world.handle();
        handles.push(handle.clone());
        declared.push(world.declare(&handle).await.expect("a declaration"));
    }
    let (bad, good) = (declared[1], [declared[0], declared[2]]);
    spoil(bad.attempt).await;

    let ids: Vec<_> = declared.iter().map(|declared| declared.attempt).collect();
    let loaded = world.store.broker.attempt_load(&ids).await.expect("a bad row stops no load");
    let corrupt: Vec<_> = loaded.iter().filter_map(|row| row.as_ref().err()).collect();
    assert_eq!((loaded.len(), corrupt.len()), (3, 1), "{loaded:?}");
    assert_eq!(corrupt[0].id, bad.attempt.as_uuid());
    let named = format!("resource `{}`: ", handles[1]);
    assert!(corrupt[0].reason.starts_with(&named), "{}", corrupt[0].reason);

    let page = Page { after: None, limit: 100 };
    let listed = world.store.broker.resource_list(&ResourceFilter::default(), page).await;
    let listed = listed.expect("a bad row stops no list");
    assert_eq!(listed.iter().filter(|row| row.is_ok()).count(), 2);
    let held: Vec<_> = listed.iter().filter_map(|row| row.as_ref().err()).collect();
    assert_eq!(held[0].resource_id, Some(bad.resource), "a list goes on behind it");

    let key = ResourceKey::Resource(bad.resource);
    let outcome =
        world.store.broker.decide(key, &mut |_| panic!("nothing is decided on a bad row")).await;
    assert!(
        matches!(&outcome, Err(Error::Corrupt { id, .. }) if *id == bad.attempt.as_uuid()),
        "{outcome:?}"
    );
    let mut wake = |snapshot: &ResourceSnapshot| {
        assert_ne!(snapshot.attempt.id(), bad.attempt, "nothing is decided on a bad row");
        Ok(Commit { wakes: vec![snapshot.attempt.id().into()], ..Commit::default() })
    };
    let decided = world.store.broker.decide_many(&ids, &mut wake).await;
    let decided = decided.expect("a bad row stops no batch");
    for (id, outcome) in decided {
        let corrupt = matches!(outcome, Err(Error::Corrupt { .. }));
        assert_eq!((outcome.is_ok(), corrupt), (id != bad.attempt, id == bad.attempt), "{id}");
    }
    let fetched = world.store.broker.resource_fetch(bad.resource).await;
    assert!(matches!(fetched, Err(Error::Corrupt { .. })), "{fetched:?}");

    let of = AttemptFilter { resource: Some(bad.resource), ..AttemptFilter::default() };
    let lines = world.store.broker.attempt_lines(of, 10).await.expect("a bad row can be shown");
    assert_eq!((lines.len(), lines[0].id), (1, bad.attempt));

    let claimed = world
        .store
        .broker
        .attempt_claim("suite", world.partition, 100, LEASE)
        .await
        .expect("a claim");
    assert_eq!(claimed.len(), 3, "a bad row is claimed like any other");
    for claimed in claimed {
        if claimed.id == bad.attempt {
            world
                .store
                .broker
                .attempt_quarantine(claimed, "it was spoiled", None, LEASE)
                .await
                .expect("a hold");
        } else {
            world
                .store
                .broker
                .attempt_release(&[released(claimed, Recheck::Now)])
                .await
                .expect("given back");
        }
    }
    for good in good {
        let key = ResourceKey::Resource(good.resource);
        let outcome = world.store.broker.decide(key, &mut |_| Ok(Commit::default())).await;
        outcome.expect("the rows beside it are decided about");
    }
}

/// What keeps the node of an attempt from being deregistered.
#[derive(Debug, Clone, Copy)]
pub enum BadSeam {
    /// The row of the token with this id has a kind that nobody knows.
    Token(BootstrapTokenId),
    /// The row of the node with this id has no capabilities that could be read.
    Node(NodeId),
}

/// `spoil` must make this in the database itself. In teardown the row then names the seam,
/// and nothing is decided about it; in any other phase it is a row that breaks an invariant.
pub async fn bad_seams(store: Stores, spoil: impl AsyncFn(BadSeam)) {
    let world = World::new(store).await;
    let token_of = async |attempt| {
        let token = world.snapshot(attempt).await.attempt.bootstrap_token_id();
        token.expect("the attempt has its token")
    };
    let seam_of = async |attempt| {
        let loaded = world.store.broker.attempt_load(&[attempt]).await.expect("a load");
        let [Err(corrupt)] = &loaded[..] else { panic!("it can be read: {loaded:?}") };
        (corrupt.seam, corrupt.reason.clone())
    };
    let waiting = world.enrolling().await;
    spoil(BadSeam::Token(token_of(waiting.attempt).await)).await;
    assert_eq!(seam_of(waiting.attempt).await.0, None, "nothing is taken down");

    let without_token = world.enrolling().await;
    let token = token_of(without_token.attempt).await;
    world.delete(without_token.resource).await.expect("a deletion");
    spoil(BadSeam::Token(token)).await;
    let (draining, node, _) = world.draining().await;
    spoil(BadSeam::Node(node)).await;
    let rows = [format!("token {token}"), format!("node {node}")];
    let broker = &world.store.broker;
    let both = [without_token.attempt, draining.attempt];
    broker.attempt_wake(&both).await.expect("a wake");
    let due = broker.attempt_claim("suite", world.partition, 200, LEASE).await.expect("a claim");
    let seams = [(without_token, DeregistrationSeam::Token), (draining, DeregistrationSeam::Node)];
    for ((declared, seam), row) in seams.into_iter().zip(rows) {
        let (found, reason) = seam_of(declared.attempt).await;
        assert_eq!(found, Some(seam), "{reason}");
        assert!(reason.contains(&row), "it says which row to repair: {reason}");
        let claimed = due.iter().find(|claimed| claimed.id == declared.attempt);
        let claimed = *claimed.expect("it is due");
        broker.attempt_quarantine(claimed, &reason, found, LEASE).await.expect("a hold");
        let of = AttemptFilter { attempt: Some(declared.attempt), ..AttemptFilter::default() };
        let line = broker.attempt_lines(of, 1).await.expect("a line").remove(0);
        assert_eq!(line.phase, "Deregistering", "the substrate is not touched");
        let [blocker] = &line.blockers[..] else { panic!("one blocker: {line:?}") };
        assert_eq!(blocker.code, BlockerCode::NodeDeregistrationFailed);
        assert_eq!(blocker.evidence["seam"], seam.as_str());
    }
}
