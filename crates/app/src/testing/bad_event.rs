//! Rows of the outbox that cannot be read: each keeps its position, and no page
//! and no later event is affected.

use std::time::Duration;

use slipway_core::events::unreadable;
use slipway_core::ids::EventId;
use uuid::Uuid;

use super::world::World;
use crate::deletion::port::LeakFilter;
use crate::ports::Stores;
use crate::ports::store::Page;

/// What the adapter's test does to the outbox, in the database itself.
#[derive(Debug, Clone, Copy)]
pub enum Spoil {
    /// Make the payload of this event unreadable.
    Payload(EventId),
    /// Remove the row of this event.
    Remove(EventId),
    /// Remove the row of the oldest event that has no position yet.
    RemoveUnpublished,
}

pub async fn bad_event(store: Stores, spoil: impl AsyncFn(Spoil)) {
    let world = World::new(store).await;
    let declare = async || world.declare(&world.handle()).await.expect("a declaration");
    for _ in 0..5 {
        declare().await;
    }
    let before = world.relay_all(0).await;
    spoil(Spoil::Payload(before[1].id)).await;
    spoil(Spoil::Remove(before[3].id)).await;
    let after = world.relay_all(0).await;
    let reasons: Vec<_> = after.iter().map(|event| event.unreadable().is_some()).collect();
    assert_eq!(reasons, [false, true, false, true, false], "{after:?}");
    assert_eq!((after[0].clone(), after[4].clone()), (before[0].clone(), before[4].clone()));
    let (broken, removed) = (&after[1], &after[3]);
    assert_eq!((broken.id, broken.aggregate_id), (before[1].id, before[1].aggregate_id));
    assert!(broken.unreadable().is_some_and(|reason| reason.contains("`payload`")), "{broken:?}");
    assert_eq!(removed.id.as_uuid(), unreadable::message_id(4), "the same in every delivery");
    let own = before[0].project_id.expect("a project");
    let page = Page { after: None, limit: 100 };
    let listed = world.store.events.event_list_in(own, page).await.expect("a list");
    assert_eq!(listed, after, "the positions say whose they are");

    // One is removed before it has its position; what follows gets the next one.
    declare().await;
    let kept = declare().await;
    spoil(Spoil::RemoveUnpublished).await;
    let after = world.relay_all(5).await;
    let shown: Vec<_> =
        after.iter().map(|event| (event.unreadable().is_some(), event.aggregate_id)).collect();
    assert_eq!(shown, [(true, Uuid::nil()), (false, kept.attempt.as_uuid())], "{after:?}");

    let now = world.store.operations.database_now().await.expect("a time");
    for _ in 0..2 {
        let leak = unreadable::leak(2, "bad", now);
        world.store.deletion.leak_record(&leak).await.expect("a record");
    }
    let filter = LeakFilter { open: Some(true), kind: Some(unreadable::LEAK_KIND.to_owned()) };
    let page = Page { after: None, limit: 10 };
    let leaks = world.store.deletion.leak_list(&filter, page).await.expect("a list");
    assert_eq!(leaks.len(), 1, "{leaks:?}");

    while world.store.events.event_prune(Duration::ZERO, 3).await.expect("a count") > 0 {}
    let span = world.store.events.event_span().await.expect("a span");
    assert_eq!((span.pruned, span.last), (7, 7), "retention passes them too");
}
