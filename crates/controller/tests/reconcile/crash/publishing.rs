//! The way of an event to a subscriber, with a crash at every point of it: the
//! numbering, the delivery, the cursor. Whatever strikes, the subscriber gets
//! every event, in order, and can recognise duplicates by message id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::context::Wakes;
use slipway_app::events::port::PositionedEvent;
use slipway_app::events::sink::Error;
use slipway_app::ports::EventSink;
use slipway_app::ports::Stores;
use slipway_app::ports::store::Page;
use slipway_controller::driver::Loop;
use slipway_controller::relay::Relay;
use slipway_controller::subscribers::Subscribers;
use slipway_core::ids::EventId;
use slipway_durable::{Lease, Moment};

use super::fate::{Fate, Fault, Point};
use super::journal::Journal;
use super::store::FatedStore;
use crate::world::World;

const LEASE: Duration = Duration::from_secs(30);
/// The lease in the database, in runs that wait for its end.
const SHORT_LEASE: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(20);
const SINK: &str = "under-test";

/// What a subscriber outside has received, over all lives.
#[derive(Debug, Default)]
struct Received(Mutex<Vec<(usize, PositionedEvent)>>);

impl Received {
    fn all(&self) -> Vec<(usize, PositionedEvent)> {
        self.0.lock().unwrap().clone()
    }
}

/// The sink of one life: a delivery is an outside action, with a point before
/// and one after.
#[derive(Debug)]
struct FatedSink {
    fate: Arc<Fate>,
    received: Arc<Received>,
    /// Refuses this many deliveries first.
    refusals: Mutex<u32>,
    name: &'static str,
}

#[async_trait]
impl EventSink for FatedSink {
    fn name(&self) -> &str {
        self.name
    }

    async fn publish(&self, events: &[PositionedEvent]) -> Result<(), Error> {
        self.fate.alive().await;
        if self.fate.survive("action:publish/before".to_owned()).await {
            return Err(Error("a fault struck before the events were published".to_owned()));
        }
        {
            let mut refusals = self.refusals.lock().unwrap();
            if *refusals > 0 {
                *refusals -= 1;
                return Err(Error("not today".to_owned()));
            }
        }
        let received = events.iter().map(|event| (self.fate.life, event.clone()));
        self.received.0.lock().unwrap().extend(received);
        if self.fate.survive("action:publish/after".to_owned()).await {
            return Err(Error("the answer was lost".to_owned()));
        }
        Ok(())
    }
}

/// A replica: a relay and the subscriber loop.
struct Life {
    relay: Relay,
    subscribers: Subscribers,
    fate: Arc<Fate>,
}

fn mk_life(
    world: &World,
    received: &Arc<Received>,
    number: usize,
    planned: Option<(Point, Fault)>,
    lease: Duration,
) -> Life {
    let journal: Arc<Journal> = Arc::default();
    let fate = Arc::new(Fate::new(number, planned, true, Arc::clone(&journal)));
    let store = Stores::of(Arc::new(FatedStore {
        inner: world.context.stores.clone(),
        fate: Arc::clone(&fate),
        journal,
        lease,
    }));
    let sink = FatedSink {
        fate: Arc::clone(&fate),
        received: Arc::clone(received),
        refusals: Mutex::new(0),
        name: SINK,
    };
    let context =
        Context { stores: store.clone(), wakes: Wakes::default(), ..world.context.clone() };
    let worker = format!("worker-{number}");
    Life {
        relay: Relay::new(store),
        subscribers: Subscribers::new(context, vec![Arc::new(sink)], worker, lease),
        fate,
    }
}

impl Life {
    /// Numbers and delivers once; returns whether there was anything to do.
    async fn round(&self) -> bool {
        let _ = self.relay.claim(1).await;
        let asked_at = Moment::now();
        let Ok(claimed) = self.subscribers.claim(1).await else { return true };
        let busy = !claimed.is_empty();
        // The loop assumes a long lease, so that its time limits do not depend
        // on the load of this machine; lives do not overlap here.
        self.subscribers.work(claimed, Lease::new(asked_at, LEASE)).await;
        busy
    }

    /// Runs until there is nothing to do, or it dies.
    async fn live(&self) {
        let living = async { while self.round().await {} };
        tokio::select! {
            () = living => {}
            () = self.fate.died() => {}
        }
    }
}

async fn expected(world: &World) -> Vec<PositionedEvent> {
    let page = Page { after: None, limit: 10_000 };
    world.context.stores.events.event_list(page).await.unwrap()
}

/// Every event arrived; repeated deliveries are the same message; nothing is
/// skipped within a life or across lives.
async fn check(world: &World, received: &Received, title: &str) {
    let expected = expected(world).await;
    let received = received.all();
    let mut by_id: BTreeMap<EventId, &PositionedEvent> = BTreeMap::new();
    let mut last = 0;
    for (life, event) in &received {
        assert!(event.position <= last + 1, "{title}: life {life} skipped {}", last + 1);
        last = last.max(event.position);
        if let Some(first) = by_id.insert(event.id, event) {
            assert_eq!(first, event, "{title}: the same id, another message");
        }
    }
    let mut unique: Vec<_> = by_id.into_values().cloned().collect();
    unique.sort_by_key(|event| event.position);
    assert_eq!(unique, expected, "{title}: exactly once by message id");
    let found = &world.context.stores.events.subscription_list().await.unwrap()[0];
    assert_eq!((found.position, found.claimed_by.as_deref()), (last, None), "{title}");
}

async fn declare(world: &World, round: usize) {
    for number in 0..2 {
        world.declare(&format!("e-{round}-{number}")).await;
    }
}

/// One run after the other on the same database: each point of the run without
/// faults, as a crash and as a failure.
async fn a_crash_at_every_point(world: World) {
    let received = Arc::new(Received::default());
    let mut number = 0;
    let mut round = 0;
    let mut next = |planned| {
        number += 1;
        mk_life(&world, &received, number, planned, SHORT_LEASE)
    };
    declare(&world, round).await;
    let first = next(None);
    first.live().await;
    check(&world, &received, "no fault").await;
    let points = first.fate.passed();
    let names: Vec<_> = points.iter().map(|point| point.name.as_str()).collect();
    for name in ["commit:relay/after", "action:publish/after", "commit:cursor/before"] {
        assert!(names.contains(&name), "{name} is no point any more: {names:?}");
    }
    for point in points {
        for fault in [Fault::Crash, Fault::Fail] {
            round += 1;
            declare(&world, round).await;
            let title = format!("{fault:?} at {point}");
            let struck = next(Some((point.clone(), fault)));
            struck.live().await;
            assert!(struck.fate.struck(), "{title}: it was not passed");
            let begun = Instant::now();
            let total = i64::try_from(2 * (round + 1)).unwrap();
            loop {
                next(None).live().await;
                let found = &world.context.stores.events.subscription_list().await.unwrap()[0];
                if found.position == total && found.claimed_by.is_none() {
                    break;
                }
                assert!(begun.elapsed() < TIMEOUT, "{title}: left at {found:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            check(&world, &received, &title).await;
        }
    }
    let published = received.all().len();
    let unique = expected(&world).await.len();
    assert!(published > unique, "a crash between publishing and cursor publishes again");
    assert!(published <= unique + 2 * 2 * 4, "only what was under way: {published} of {unique}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_publishes_every_event_whatever_crashes() {
    a_crash_at_every_point(World::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_publishes_every_event_whatever_crashes() {
    if let Some(world) = World::postgres("delivers_whatever_crashes").await {
        a_crash_at_every_point(world).await;
    }
}

/// Concurrent replicas: only one at a time has the subscription, so the
/// subscriber receives one sequence, without a step back.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_never_interleave() {
    for world in World::each("replicas_never_interleave").await {
        let received = Arc::new(Received::default());
        let lives: Vec<_> =
            (1..=3).map(|number| mk_life(&world, &received, number, None, LEASE)).collect();
        let declaring = async {
            for round in 0..10 {
                declare(&world, round).await;
            }
        };
        let delivering = futures::future::join_all(lives.iter().map(async |life| {
            let begun = Instant::now();
            while received.all().len() < 20 {
                assert!(begun.elapsed() < TIMEOUT, "{} events", received.all().len());
                life.round().await;
                tokio::task::yield_now().await;
            }
        }));
        futures::join!(declaring, delivering);
        let positions: Vec<_> = received.all().iter().map(|(_, event)| event.position).collect();
        assert_eq!(positions, (1..=20).collect::<Vec<_>>());
    }
}

/// A refusing sink is reported and gets a pause; another sink gets its events all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_fails_holds_up_nobody() {
    let world = World::sqlite().await;
    let (good, bad) = (Arc::new(Received::default()), Arc::new(Received::default()));
    let fate = Arc::new(Fate::new(0, None, true, Arc::default()));
    let mk_sink = |name, received: &Arc<Received>, refusals| {
        Arc::new(FatedSink {
            fate: Arc::clone(&fate),
            received: Arc::clone(received),
            refusals: Mutex::new(refusals),
            name,
        }) as Arc<dyn EventSink>
    };
    let sinks = vec![mk_sink("a-bad", &bad, 1), mk_sink("b-good", &good, 0)];
    let context = world.context.clone();
    let subscribers = Subscribers::new(context.clone(), sinks, "worker".to_owned(), LEASE);
    declare(&world, 0).await;
    while context.stores.events.outbox_relay(100).await.unwrap() > 0 {}
    let round = async || {
        let asked_at = Moment::now();
        let claimed = subscribers.claim(1).await.unwrap();
        subscribers.work(claimed, Lease::new(asked_at, LEASE)).await
    };
    assert_eq!(round().await, ["a-bad: not today"]);
    assert_eq!(round().await, [""; 0]);
    assert_eq!((good.all().len(), bad.all().len()), (2, 0));
    let shown = context.stores.events.subscription_list().await.unwrap();
    assert_eq!((shown[0].failures, shown[0].last_error.as_deref()), (1, Some("not today")));
    assert_eq!((shown[0].position, shown[1].position, shown[1].failures), (0, 2, 0));

    let begun = Instant::now();
    while bad.all().len() < 2 {
        assert!(begun.elapsed() < TIMEOUT, "it is tried again: {shown:?}");
        assert_eq!(round().await, [""; 0]);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let shown = context.stores.events.subscription_list().await.unwrap();
    assert_eq!((shown[0].failures, shown[0].last_error.as_deref()), (0, None), "and forgiven");
}
