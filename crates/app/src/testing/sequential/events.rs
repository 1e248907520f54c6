//! Subscriptions and retention.

use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::broker::event;
use slipway_core::broker::history::{HISTORY_BOUNDS, HistoryBounds};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::Commit;
use slipway_core::event::Event;
use slipway_core::ids::{AuditEntryId, ProjectId, SubscriptionId};
use slipway_core::{ErrorKind, Phase};

use crate::access::port::{AuditFilter, AuditOrder};
use crate::broker::port::ResourceKey;
use crate::events::port::{ClaimedSubscription, Published, Subscription};
use crate::ports::store::Page;
use crate::testing::world::{World, refused};

const LEASE: Duration = Duration::from_secs(30);
const MONTH: Duration = Duration::from_secs(30 * 86_400);

async fn open(world: &World, name: &str) {
    let id = SubscriptionId::new(world.uuid());
    world.store.events.subscription_open(id, name).await.expect("a subscription");
}

async fn claim(world: &World, name: &str, worker: &str) -> Option<ClaimedSubscription> {
    world.store.events.subscription_claim(name, worker, LEASE).await.expect("an answer")
}

async fn find(world: &World, name: &str) -> Subscription {
    let found = world.store.events.subscription_list().await.expect("a list");
    found.into_iter().find(|found| found.name == name).expect("the subscription")
}

async fn remove(world: &World, name: &str) -> bool {
    let audit = AuditEntryId::new(world.uuid());
    world
        .store
        .events
        .subscription_remove(name, audit, &Actor::new("key:suite"))
        .await
        .expect("an answer")
}

/// Commits an event and returns its position.
async fn announce(world: &World) -> i64 {
    world.declare(&world.handle()).await.expect("a declaration");
    world.relay_all(world.store.events.event_span().await.expect("a span").last).await;
    world.store.events.event_span().await.expect("a span").last
}

pub(super) async fn a_subscription_is_opened_once_and_claimed_by_one(world: &World) {
    open(world, "one").await;
    let first = find(world, "one").await;
    assert_eq!((first.position, first.failures, first.claimed_by), (0, 0, None));
    open(world, "one").await;
    assert_eq!(find(world, "one").await.id, first.id, "a second start opens nothing");
    let last = announce(world).await;
    assert_eq!(world.store.events.subscription_due().await.expect("names"), ["one"]);

    let claimed = claim(world, "one", "a").await.expect("it is due");
    assert_eq!((claimed.position, claimed.name.as_str()), (0, "one"));
    assert_eq!(claim(world, "one", "b").await, None, "one has it");
    assert_eq!(world.store.events.subscription_due().await.expect("names"), [""; 0]);
    assert_eq!(find(world, "one").await.claimed_by.as_deref(), Some("a"));
    world.store.events.subscription_advance(&claimed, last).await.expect("the cursor moves");
    world.store.events.subscription_release(&claimed, &Published::Well).await.expect("a release");
    let had = find(world, "one").await;
    assert_eq!((had.position, had.last_position, had.claimed_by), (last, last, None));
    assert!(had.published_at.is_some());
    assert_eq!(claim(world, "one", "b").await, None, "there is nothing to deliver");
    announce(world).await;
    assert!(claim(world, "one", "b").await.is_some(), "and now there is");
    assert_eq!(world.store.events.subscription_reclaim("b").await.expect("a count"), 1);
    assert!(claim(world, "one", "b").await.is_some(), "what a dead worker held is free");
    assert!(remove(world, "one").await);
    assert!(!remove(world, "one").await);
}

pub(super) async fn a_late_worker_does_not_move_the_cursor(world: &World) {
    open(world, "late").await;
    announce(world).await;
    let store = &world.store;
    let late =
        store.events.subscription_claim("late", "a", Duration::ZERO).await.expect("an answer");
    let late = late.expect("it is due");
    let next = claim(world, "late", "b").await.expect("the lease is over");
    assert!(next.claim_token > late.claim_token);
    assert_eq!(refused(store.events.subscription_advance(&late, 1).await), ErrorKind::ClaimLost);
    let failed = Published::Failed { error: "late".to_owned(), retry_after: MONTH };
    store.events.subscription_release(&late, &failed).await.expect("no error");
    let found = find(world, "late").await;
    assert_eq!((found.position, found.claimed_by.as_deref()), (0, Some("b")));
    assert_eq!((found.failures, found.last_error), (0, None));
    store.events.subscription_advance(&next, 1).await.expect("the holder moves it");
    assert_eq!(
        refused(store.events.subscription_advance(&next, 0).await),
        ErrorKind::ClaimLost,
        "never back"
    );
    assert!(remove(world, "late").await);
}

pub(super) async fn a_failure_is_shown_and_waited_out(world: &World) {
    open(world, "failing").await;
    announce(world).await;
    for failures in 1..=2 {
        let claimed = claim(world, "failing", "a").await.expect("it is due");
        assert_eq!(claimed.failures, failures - 1);
        let retry_after = if failures == 1 { Duration::ZERO } else { LEASE };
        let failed = Published::Failed { error: format!("no {failures}"), retry_after };
        world.store.events.subscription_release(&claimed, &failed).await.expect("a release");
        let found = find(world, "failing").await;
        assert_eq!((found.failures, found.last_error), (failures, Some(format!("no {failures}"))));
    }
    assert_eq!(claim(world, "failing", "a").await, None, "not before its time");
    assert!(remove(world, "failing").await);
}

/// A reader of one project does not see an event without a project; a reader of all
/// projects does.
pub(super) async fn an_event_without_a_project_is_for_readers_of_all(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let last = world.relay_all(0).await.last().expect("an event").position;
    let mut rule = |snapshot: &ResourceSnapshot| {
        let attempt = &snapshot.attempt;
        let of_project = event::announce(event::READY, attempt, attempt.revision(), snapshot.now);
        let events = vec![Event { project_id: None, ..of_project }];
        Ok(Commit { events, ..Commit::default() })
    };
    let key = ResourceKey::Attempt(declared.attempt);
    world.store.broker.decide(key, &mut rule).await.expect("decided");
    let announced = world.relay_all(last).await;
    let [event] = &announced[..] else { panic!("{announced:?}") };
    assert_eq!((event.position, event.project_id), (last + 1, None));

    let own = world.snapshot(declared.attempt).await.resource.project_id;
    let page = Page { after: Some(last - 1), limit: 10 };
    let seen = world.store.events.event_list_in(own, page).await.expect("a list");
    let positions: Vec<_> = seen.iter().map(|event| event.position).collect();
    assert_eq!(positions, [last], "its project's own and no other");
    let page = Page { limit: 1, ..page };
    let seen = world.store.events.event_list_in(own, page).await.expect("a list");
    assert_eq!(seen.len(), 1, "nor does it fill a page");
}

pub(super) async fn pruning_stops_at_subscribers_and_is_remembered(world: &World) {
    let store = &world.store;
    let last = announce(world).await;
    let span = store.events.event_span().await.expect("a span");
    assert_eq!((span.pruned, span.last), (0, last));
    assert_eq!(store.events.event_prune(MONTH, 1_000).await.expect("a count"), 0, "all is young");

    open(world, "slow").await;
    let claimed = claim(world, "slow", "a").await.expect("it is due");
    assert_eq!(store.events.event_prune(Duration::ZERO, 1_000).await.expect("a count"), 0);
    store.events.subscription_advance(&claimed, 3).await.expect("the cursor moves");
    assert_eq!(
        store.events.event_prune(Duration::ZERO, 2).await.expect("a count"),
        2,
        "in batches"
    );
    assert_eq!(store.events.event_prune(Duration::ZERO, 1_000).await.expect("a count"), 1);
    assert_eq!(store.events.event_prune(Duration::ZERO, 1_000).await.expect("a count"), 0);
    assert_eq!(store.events.event_span().await.expect("a span").pruned, 3);
    let page = Page { after: None, limit: 1 };
    assert_eq!(store.events.event_list(page).await.expect("a list")[0].position, 4);

    // A reader of one project misses only pruned events of that project.
    let stranger = ProjectId::new(world.uuid());
    let span = store.events.event_span_in(stranger).await.expect("a span");
    assert_eq!((span.pruned, span.last), (0, last), "nothing of its own was pruned");
    let own = store.events.event_list(page).await.expect("a list")[0].project_id;
    let own = own.expect("an event of a resource has its project");
    let pruned = store.events.event_span_in(own).await.expect("a span").pruned;
    assert_eq!(pruned, 3, "all of these are of one project");

    assert!(remove(world, "slow").await);
    assert!(store.events.event_prune(Duration::ZERO, 100_000).await.expect("a count") > 0);
    let span = store.events.event_span().await.expect("a span");
    assert_eq!((span.pruned, span.last), (last, last), "known although nothing is left");
    open(world, "new").await;
    assert_eq!(find(world, "new").await.position, last, "it begins with what is left");
    assert!(remove(world, "new").await);
    let next = announce(world).await;
    assert_eq!(next, last + 1, "positions go on where they were");
}

pub(super) async fn history_and_audit_of_what_is_there_are_kept(world: &World) {
    let store = &world.store;
    let there = world.declare(&world.handle()).await.expect("a declaration");
    let gone = world.declare(&world.handle()).await.expect("a declaration");
    world.delete(gone.resource).await.expect("a deletion");
    world.drive(gone.attempt, Phase::Deleted).await;
    let audit = async |keep| {
        let (mut removed, mut after) = (0, None);
        loop {
            let step = store.access.audit_prune(keep, after, 7).await.expect("a step");
            removed += step.removed;
            if step.next.is_none() {
                return removed;
            }
            after = step.next;
        }
    };
    assert_eq!(
        (store.broker.history_prune(MONTH, 1_000).await.expect("a count"), audit(MONTH).await),
        (0, 0)
    );
    while store.broker.history_prune(Duration::ZERO, 2).await.expect("a count") > 0 {}
    assert!(world.history(gone.attempt).await.is_empty());
    assert!(!world.history(there.attempt).await.is_empty());
    assert!(audit(Duration::ZERO).await > 0);
    assert_eq!(audit(Duration::ZERO).await, 0, "the rest is about what is there");
    world.delete(there.resource).await.expect("a deletion");
    world.drive(there.attempt, Phase::Deleted).await;
    // The audit is pruned first here, and must not take lines out of a history that is kept.
    let history = world.history(there.attempt).await;
    let declared = async || {
        let filter = AuditFilter {
            subject: Some(there.resource.as_uuid()),
            verb: Some("resource.declare".to_owned()),
            ..AuditFilter::default()
        };
        let page = Page { after: None, limit: 10 };
        let entries = store.access.audit_list(&filter, AuditOrder::OldestFirst, page).await;
        entries.expect("a list").items.len()
    };
    audit(Duration::ZERO).await;
    assert_eq!(audit(Duration::ZERO).await, 0, "the rest are lines of a history");
    let kept = world.history(there.attempt).await;
    assert_eq!((kept, declared().await), (history, 1));
    assert!(store.broker.history_prune(Duration::ZERO, 1_000).await.expect("a count") > 0);
    assert_eq!(store.broker.history_prune(Duration::ZERO, 1_000).await.expect("a count"), 0);
    assert!(world.history(there.attempt).await.is_empty());
    assert_eq!(declared().await, 1, "an entry outlives the history");
    assert!(audit(Duration::ZERO).await >= 2, "its declaration is among them");
    assert_eq!(declared().await, 0);
}

/// A resource that flaps would otherwise add lines for as long as it lives.
pub(super) async fn a_history_is_paged_and_keeps_its_first_and_newest_lines(world: &World) {
    let store = &world.store;
    let (declared, ..) = world.draining().await;
    let whole = world.history(declared.attempt).await;
    assert!(whole.len() >= 4, "{whole:?}");
    assert!(whole.is_sorted_by(|one, next| one.number < next.number), "{whole:?}");
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = Page { after, limit: 2 };
        let lines = store.broker.history_list(declared.attempt, page).await.expect("a page");
        let Some(last) = lines.last() else { break };
        after = Some(last.number);
        assert!(lines.len() <= 2);
        paged.extend(lines);
    }
    paged.reverse();
    assert_eq!(paged, whole, "each line once, newest first");

    let trim = async |kept| {
        let (mut removed, mut from) = (Vec::new(), None);
        loop {
            let step = store.broker.history_trim(kept, from, 1).await.expect("a step");
            assert!(step.removed <= 2, "one of each kind at most");
            removed.push(step.removed);
            from = step.next;
            if from.is_none() {
                return removed.iter().sum::<u64>();
            }
        }
    };
    assert_eq!(trim(HISTORY_BOUNDS).await, 0, "nothing here has that many");
    assert_eq!(world.history(declared.attempt).await, whole);
    let kept = HistoryBounds { first: 1, newest: 1 };
    assert!(trim(kept).await >= u64::try_from(whole.len() - 2).expect("few"));
    let ends = [whole[0].clone(), whole[whole.len() - 1].clone()];
    assert_eq!(world.history(declared.attempt).await, ends);
    assert_eq!(trim(kept).await, 0);

    // Ready was announced by the loop, among the lines that went. Its entry is kept as
    // long as any other; what people did is kept while the resource is there.
    let audited = async || {
        let of = async |subject| {
            let filter = AuditFilter { subject: Some(subject), ..AuditFilter::default() };
            let page = Page { after: None, limit: 100 };
            let listed = store.access.audit_list(&filter, AuditOrder::OldestFirst, page).await;
            let items = listed.expect("a list").items;
            items.into_iter().map(|line| line.verb).collect::<Vec<_>>()
        };
        [of(declared.resource.as_uuid()).await, of(declared.attempt.as_uuid()).await].concat()
    };
    let ready = "provisioned_resource.phase".to_owned();
    let before = audited().await;
    assert!(before.contains(&ready), "{before:?}");
    let prune = async |keep| {
        let mut after = None;
        loop {
            let step = store.access.audit_prune(keep, after, 1_000).await.expect("a step");
            after = step.next;
            if after.is_none() {
                return;
            }
        }
    };
    prune(MONTH).await;
    assert_eq!(audited().await, before);
    prune(Duration::ZERO).await;
    let left: Vec<_> = before.into_iter().filter(|verb| *verb != ready).collect();
    assert!(left.contains(&"resource.declare".to_owned()), "{left:?}");
    assert_eq!(audited().await, left);
}
