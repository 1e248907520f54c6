//! One row that breaks an invariant: it is reported and quarantined, nothing
//! decides about it, and its neighbours are not affected.

use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Recheck};
use slipway_core::ids::ProvisionedResourceId;

use super::worker::{LEASE, released};
use super::world::World;
use crate::broker::port::AttemptFilter;
use crate::broker::port::{ResourceFilter, ResourceKey};
use crate::ports::Stores;
use crate::ports::store::{Error, Page};

/// `spoil` must make the row of this attempt invalid in the database itself.
pub async fn bad_row(store: Stores, spoil: impl AsyncFnOnce(ProvisionedResourceId)) {
    let world = World::new(store).await;
    let mut declared = Vec::new();
    for _ in 0..3 {
        let handle = world.handle();
        declared.push(world.declare(&handle).await.expect("a declaration"));
    }
    let (bad, good) = (declared[1], [declared[0], declared[2]]);
    spoil(bad.attempt).await;

    let ids: Vec<_> = declared.iter().map(|declared| declared.attempt).collect();
    let loaded = world.store.broker.attempt_load(&ids).await.expect("a bad row stops no load");
    let corrupt: Vec<_> = loaded.iter().filter_map(|row| row.as_ref().err()).collect();
    assert_eq!((loaded.len(), corrupt.len()), (3, 1), "{loaded:?}");
    assert_eq!(corrupt[0].id, bad.attempt.as_uuid());
    assert!(!corrupt[0].reason.is_empty());

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
                .attempt_quarantine(claimed, "it was spoiled", LEASE)
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
