//! Scans for leaks, on both databases.

use std::sync::Arc;
use std::time::Duration;

use slipway_app::Error;
use slipway_app::broker::converge::Engines;
use slipway_app::deletion::leaks::{self, Finder, ScanReport};
use slipway_app::deletion::port::LeakFilter;
use slipway_app::operations::control;
use slipway_app::placement::port::ClusterIdentity;
use slipway_app::ports::store::Page;
use slipway_controller::driver::Loop;
use slipway_controller::orphans::OrphanLoop;
use slipway_core::ErrorKind;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::leak::{FindingKind, Leak};
use slipway_durable::{Lease, Moment};
use slipway_render::composite::LABEL_PROVISIONED_RESOURCE;
use uuid::Uuid;

use crate::simulated::Behaviour;
use crate::world::World;

/// The least time between two scans before a suspicion counts as a leak.
const APART: Duration = Duration::from_millis(60);
const TIMEOUT: Duration = Duration::from_secs(30);
const STRAY: &str = "stray";

fn mk_finder(world: &World) -> Finder {
    let substrate = Arc::clone(&world.substrate) as _;
    let engines =
        Engines::new(world.node_settings.clone()).serving(world.partition, "local", substrate);
    Finder::new(world.context.clone(), engines, world.resources.permits(), APART)
}

async fn cluster(finder: &Finder) -> ClusterIdentity {
    let served = finder.served().await.unwrap();
    assert_eq!(served.len(), 1, "{served:?}");
    served.into_iter().next().unwrap()
}

async fn scan(finder: &Finder) -> ScanReport {
    finder.scan(&cluster(finder).await).await.unwrap()
}

/// Scans until every suspicion counts.
async fn scan_twice(finder: &Finder) -> ScanReport {
    let looking = async {
        loop {
            let report = scan(finder).await;
            if report.suspected.is_empty() {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, looking).await.expect("what is suspected counts in time")
}

/// An object that names an attempt without a row.
async fn stray(world: &World) {
    let id = world.ready("web").await;
    let mut object = world.substrate.object(&world.name(id).await).unwrap();
    let unknown = Uuid::from_u128(77).to_string();
    object.object["metadata"]["labels"][LABEL_PROVISIONED_RESOURCE] = unknown.into();
    object.uid = "uid-stray".to_owned();
    world.substrate.put(STRAY, object);
}

async fn fetch(world: &World, leak: &Leak) -> Leak {
    leaks::leak(&world.context, &world.caller, leak.id).await.unwrap()
}

fn kinds(report: &ScanReport) -> Vec<FindingKind> {
    report.suspected.iter().map(|suspected| suspected.kind).collect()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

const CALM: Behaviour = Behaviour {
    unreadable: false,
    apply_fails: false,
    delete_fails: false,
    twice: false,
    comes_up: true,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_no_row_claims_is_found_twice_and_removed_on_request() {
    for world in World::each("what_no_row_claims_is_found").await {
        stray(&world).await;
        let finder = mk_finder(&world);
        let first = scan(&finder).await;
        assert_eq!((first.objects, first.leaks.len()), (2, 0), "{first:?}");
        assert_eq!(kinds(&first), [FindingKind::UnclaimedObject], "seen once is no leak");
        assert_eq!(first.suspected[0].object_ref.name, STRAY);

        let found = scan_twice(&finder).await;
        let [leak] = &found.leaks[..] else { panic!("{found:?}") };
        assert_eq!(
            (leak.kind.as_str(), leak.uid.as_deref()),
            ("unclaimed_object", Some("uid-stray"))
        );
        assert_eq!(scan(&finder).await.leaks[0].id, leak.id, "one leak, however often it is seen");

        let by_hand = leaks::resolve(&finder, &world.caller, leak.id, "gone").await;
        assert_eq!(refused(by_hand), ErrorKind::LeakNotGone);
        let removed = leaks::remove(&finder, &world.caller, leak.id, "left behind").await.unwrap();
        assert!(world.substrate.object(STRAY).is_none());
        let resolution = removed.resolved.unwrap().resolution.unwrap();
        assert_eq!(resolution, "removed for key:test: left behind");
        let again = leaks::remove(&finder, &world.caller, leak.id, "again").await;
        assert_eq!(refused(again), ErrorKind::LeakResolved);
        assert_eq!(scan(&finder).await.leaks, []);
        let deleted = world.substrate.journal();
        assert_eq!(deleted.iter().filter(|line| line.starts_with("delete")).count(), 1);
    }
}

/// Invariant 3, for a scan.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_cannot_read_ends_no_leak_and_misses_nothing() {
    for world in World::each("a_look_that_cannot_read").await {
        stray(&world).await;
        let finder = mk_finder(&world);
        scan(&finder).await;
        let leak = scan_twice(&finder).await.leaks.remove(0);
        world.substrate.behave(Behaviour { unreadable: true, ..CALM });
        let blind = scan(&finder).await;
        assert_eq!(blind.error.as_deref(), Some("connection refused"));
        assert_eq!((blind.resolved, blind.woken, blind.suspected.len()), (0, 0, 0), "{blind:?}");
        assert!(fetch(&world, &leak).await.is_open());
        let by_hand = leaks::resolve(&finder, &world.caller, leak.id, "I am sure").await;
        assert_eq!(refused(by_hand), ErrorKind::LeakNotGone);

        world.substrate.behave(CALM);
        world.substrate.remove(STRAY);
        assert_eq!(scan(&finder).await.resolved, 1, "gone by itself");
        assert!(!fetch(&world, &leak).await.is_open());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_object_wakes_its_resource_which_heals() {
    for world in World::each("a_missing_object_wakes").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        // Settles: nothing is due before the sweep.
        while world.round().await > 0 {}
        world.substrate.remove(&name);
        let finder = mk_finder(&world);
        let seen = scan(&finder).await;
        assert_eq!((kinds(&seen), seen.woken), (vec![FindingKind::MissingObject], 1));
        world.run_until_phase(id, Phase::Enrolling).await;
        assert!(world.substrate.object(&name).is_some());
        let healed = scan_twice(&finder).await;
        assert_eq!((healed.leaks.len(), healed.suspected.len()), (0, 0), "{healed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_a_leak_and_the_object_of_a_deleted_attempt_is_the_loops() {
    for world in World::each("a_copy_is_a_leak").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        let object = world.substrate.object(&name).unwrap();
        world.substrate.put("copy", object.clone());
        let finder = mk_finder(&world);
        assert_eq!(kinds(&scan(&finder).await), [FindingKind::DuplicateObject]);
        let leak = scan_twice(&finder).await.leaks.remove(0);
        leaks::remove(&finder, &world.caller, leak.id, "a copy").await.unwrap();
        assert!(world.substrate.object(&name).is_some(), "the right one is left alone");

        world.delete(id).await;
        world.acknowledge(id).await;
        world.run_until_phase(id, Phase::Deleted).await;
        world.substrate.put(&name, object);
        let seen = scan(&finder).await;
        assert_eq!(seen.woken, 1, "{seen:?}");
        assert_eq!((seen.leaks.len(), seen.suspected.len()), (0, 0), "recorded in one place");
        let removed = |_: &ResourceSnapshot| world.substrate.object(&name).is_none();
        let gone = world.run_until(id, "the resource loop to remove it", removed).await;
        assert_eq!(gone.attempt.phase(), Phase::Deleted);
        let page = Page { after: None, limit: 10 };
        let filter = LeakFilter { open: Some(true), kind: None };
        let open = world.context.stores.deletion.leak_list(&filter, page).await.unwrap();
        let open: Vec<_> = open.iter().map(|leak| (leak.kind.as_str(), leak.subject)).collect();
        assert_eq!(open, [("composite", gone.attempt.id().into())], "until absence is proven");
    }
}

/// After a crash or a refusal between the request and the action, the loop performs it.
#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_did_not_happen_is_done_by_the_loop() {
    for world in World::each("a_removal_that_did_not_happen").await {
        stray(&world).await;
        let finder = mk_finder(&world);
        scan(&finder).await;
        let leak = scan_twice(&finder).await.leaks.remove(0);
        let orphans = OrphanLoop::new(finder.clone(), "one".to_owned(), TIMEOUT);
        let first = async {
            while !pass(&orphans).await.0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, first).await.expect("a first look soon after a start");

        world.substrate.behave(Behaviour { delete_fails: true, ..CALM });
        let refusal = leaks::remove(&finder, &world.caller, leak.id, "left behind").await;
        assert_eq!(refused(refusal), ErrorKind::LeakNotRemovable);
        let (woken, errors) = pass(&orphans).await;
        assert!(woken, "the request woke the loop");
        assert!(errors.iter().any(|error| error.contains("forbidden")), "{errors:?}");
        assert!(fetch(&world, &leak).await.is_open());

        world.substrate.behave(CALM);
        world
            .context
            .stores
            .operations
            .task_wake(&Finder::task(cluster(&finder).await.id))
            .await
            .unwrap();
        assert_eq!(pass(&orphans).await, (true, Vec::new()));
        assert!(world.substrate.object(STRAY).is_none());
        let resolution = fetch(&world, &leak).await.resolved.unwrap().resolution.unwrap();
        assert_eq!(resolution, "removed for key:test: left behind");
    }
}

/// A removal needs a permit like every action. One that a freeze withholds is not
/// tried every second; the end of the freeze wakes the loop.
#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_a_freeze_withholds_waits_for_its_end() {
    for world in World::each("a_removal_that_a_freeze_withholds").await {
        stray(&world).await;
        let finder = mk_finder(&world);
        scan(&finder).await;
        let leak = scan_twice(&finder).await.leaks.remove(0);
        let orphans = OrphanLoop::new(finder.clone(), "one".to_owned(), TIMEOUT);
        control::freeze(&world.context, &world.caller, TIMEOUT, "test").await.unwrap();
        let permits = world.resources.permits();
        permits.read(&world.context.stores).await.unwrap();
        let refusal = leaks::remove(&finder, &world.caller, leak.id, "left behind").await;
        assert_eq!(refused(refusal), ErrorKind::LeakNotRemovable);
        let before = permits.activity();
        let first = async {
            while !pass(&orphans).await.0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, first).await.expect("the request woke the loop");
        let task = async || {
            let tasks = world.context.stores.operations.task_list().await.unwrap();
            let name = Finder::task(cluster(&finder).await.id);
            tasks.into_iter().find(|task| task.name == name).unwrap()
        };
        let waits = task().await;
        let now = world.context.stores.operations.database_now().await.unwrap();
        assert!(waits.due_at.since(now) > TIMEOUT / 2, "{waits:?}");
        assert_eq!(waits.last_error, None, "it waits, and did not fail");
        assert!(world.substrate.object(STRAY).is_some());
        assert_eq!(permits.activity(), before);

        control::unfreeze(&world.context, &world.caller, "test").await.unwrap();
        permits.read(&world.context.stores).await.unwrap();
        assert_eq!(pass(&orphans).await, (true, Vec::new()), "the end of the freeze woke it");
        assert!(world.substrate.object(STRAY).is_none());
        assert!(permits.activity() > before, "it is counted, and raises the high-water marks");
    }
}

/// Claims once and works on it; returns whether there was a pass, and its errors.
async fn pass(orphans: &OrphanLoop) -> (bool, Vec<String>) {
    let asked_at = Moment::now();
    let passes = orphans.claim(4).await.unwrap();
    let had = !passes.is_empty();
    let lease = Lease::new(asked_at, orphans.lease());
    (had, orphans.work(passes, lease).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_at_a_time_scans_a_cluster() {
    for world in World::each("one_replica_at_a_time_looks").await {
        let finder = mk_finder(&world);
        let mk_loop = |worker: &str| OrphanLoop::new(finder.clone(), worker.to_owned(), TIMEOUT);
        let (one, other) = (mk_loop("one"), mk_loop("other"));
        let held = async {
            loop {
                let passes = one.claim(4).await.unwrap();
                if !passes.is_empty() {
                    return passes;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let held = tokio::time::timeout(TIMEOUT, held).await.expect("soon after a start");
        assert!(other.claim(4).await.unwrap().is_empty(), "somebody is looking");
        // That replica dies and restarts under the same name.
        drop(held);
        let again = mk_loop("one");
        assert_eq!(again.claim(4).await.unwrap().len(), 1, "it knows that it was dead");
        drop(mk_loop("one").claim(4).await.unwrap());
        let last = mk_loop("one");
        assert_eq!(pass(&last).await, (true, Vec::new()));
        assert!(!pass(&other).await.0, "not before the interval has passed");
    }
}

/// The first activation of this loop may come long after the other loops of the
/// process began: their claims are of this life.
#[tokio::test(flavor = "multi_thread")]
async fn the_orphans_loop_ends_no_claim_of_another_loop() {
    for world in World::each("the_orphans_loop_ends_no_claim").await {
        let tasks = &world.context.stores.operations;
        tasks.task_ensure("retention", Duration::ZERO).await.unwrap();
        let claim = tasks.task_claim("retention", "one", TIMEOUT).await.unwrap().unwrap();
        let orphans = OrphanLoop::new(mk_finder(&world), "one".to_owned(), TIMEOUT);
        orphans.claim(4).await.unwrap();
        let released = tasks.task_release("retention", claim, TIMEOUT, None).await.unwrap();
        assert!(released, "the retention loop still has its task");
    }
}
