//! Leaks: findings that become records, scans that resolve them, decisions, lists.

use std::time::Duration;

use serde_json::json;
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::commit::{Recheck, Release};
use slipway_core::deletion::leak::{Finding, FindingKind, Leak, ObjectRef};
use slipway_core::deletion::orphans::{self, Presence};
use slipway_core::ids::{LeakRecordId, ProvisionedResourceId};
use slipway_core::text::Reason;
use slipway_core::time::Timestamp;
use slipway_core::{ErrorKind, Phase};
use uuid::Uuid;

use crate::deletion::port::{LeakFilter, RecordedFindings, ReportedFinding};
use crate::placement::port::ClusterIdentity;
use crate::ports::store::{Error, Page};
use crate::testing::world::{Declared, World, operator, refused};

const HOUR: Duration = Duration::from_secs(3_600);
const ALL: Page<LeakRecordId> = Page { after: None, limit: 10_000 };

async fn cluster(world: &World) -> ClusterIdentity {
    let clusters = world.store.placement.cluster_list().await.expect("the clusters");
    clusters.into_iter().find(|cluster| cluster.name == "local").expect("the seeded one")
}

/// A cluster without rows: only this test has findings there.
async fn quiet_cluster(world: &World) -> ClusterIdentity {
    ClusterIdentity { id: slipway_core::ids::ClusterId::new(world.uuid()), ..cluster(world).await }
}

fn mk_reported(world: &World, kind: FindingKind, subject: Uuid) -> ReportedFinding {
    let key = world.uuid();
    ReportedFinding {
        finding: Finding {
            key,
            kind,
            subject: ProvisionedResourceId::new(subject).into(),
            object_ref: ObjectRef { namespace: "ünïcode".to_owned(), name: format!("pr-{key}") },
            uid: Some("uid-1".to_owned()),
            evidence: json!({ "pid": 7, "text": "ünïcode" }),
        },
        fresh_id: LeakRecordId::new(world.uuid()),
    }
}

async fn see(
    world: &World,
    cluster: &ClusterIdentity,
    one: &ReportedFinding,
    apart: Duration,
) -> RecordedFindings {
    let again = ReportedFinding { fresh_id: LeakRecordId::new(world.uuid()), ..one.clone() };
    world.store.deletion.leak_findings_record(cluster, &[again], apart).await.expect("a sighting")
}

/// A fresh open leak.
async fn leaked(
    world: &World,
    cluster: &ClusterIdentity,
    kind: FindingKind,
) -> (ReportedFinding, Leak) {
    let one = mk_reported(world, kind, world.uuid());
    let mut seen = see(world, cluster, &one, Duration::ZERO).await;
    (one, seen.leaks.pop().expect("it is recorded"))
}

async fn fetch(world: &World, id: LeakRecordId) -> Leak {
    world.store.deletion.leak_fetch(id).await.expect("an answer").expect("the leak is there")
}

async fn list(world: &World, open: Option<bool>) -> Vec<LeakRecordId> {
    let filter = LeakFilter { open, kind: None };
    let found = world.store.deletion.leak_list(&filter, ALL).await.expect("a list");
    found.iter().map(|leak| leak.id).collect()
}

async fn end(world: &World, cluster: &ClusterIdentity, begun_at: Timestamp) -> u64 {
    let actor = Actor::new("loop:suite");
    world.store.deletion.leak_scan_end(cluster.id, begun_at, &actor).await.expect("an end")
}

async fn now(world: &World) -> Timestamp {
    world.store.deletion.leak_scan_begin().await.expect("the time")
}

/// A time after everything written so far, even with a coarse clock.
async fn later(world: &World) -> Timestamp {
    let before = now(world).await;
    loop {
        let after = now(world).await;
        if after > before {
            return after;
        }
    }
}

fn why() -> Reason {
    Reason::parse("the suite says so").expect("a valid reason")
}

pub(super) async fn rows_say_where_their_objects_belong(world: &World) {
    let (ready, _) = world.ready().await;
    let fresh = world.declare(&world.handle()).await.expect("a declaration");
    let unknown = ProvisionedResourceId::new(world.uuid());
    let asked = [ready.attempt, unknown, fresh.attempt];
    let mut rows = world.store.deletion.claimant_load(&asked).await.expect("the rows");
    rows.sort_by_key(|row| row.id);
    let phases: Vec<_> = rows.iter().map(|row| (row.id, row.phase)).collect();
    let expected = [(ready.attempt, Some(Phase::Ready)), (fresh.attempt, Some(Phase::Pending))];
    assert_eq!(phases, expected);
    let snapshot = world.snapshot(ready.attempt).await;
    let placement = snapshot.placement.expect("a placement");
    let (home, object_ref) = rows[0].home.clone().expect("a home");
    assert_eq!(home, placement.cluster_id);
    assert_eq!(object_ref.namespace, placement.namespace);
    assert_eq!(object_ref.name, snapshot.attempt.xr_name());
    assert!(world.store.deletion.claimant_load(&[]).await.expect("an answer").is_empty());

    let cluster = cluster(world).await;
    let mut expecting = Vec::new();
    loop {
        let page = Page { after: expecting.last().copied(), limit: 2 };
        let found =
            world.store.deletion.claimant_expecting(cluster.id, page).await.expect("a page");
        if found.is_empty() {
            break;
        }
        assert!(found.iter().all(|row| row.home.as_ref().is_some_and(|(id, _)| *id == cluster.id)));
        expecting.extend(found.iter().map(|row| row.id));
    }
    assert!(expecting.is_sorted() && expecting.contains(&ready.attempt));
    assert!(!expecting.contains(&fresh.attempt), "nothing was made for it yet");
    let elsewhere = quiet_cluster(world).await.id;
    let nobody =
        world.store.deletion.claimant_expecting(elsewhere, Page { after: None, limit: 9 }).await;
    assert!(nobody.expect("an answer").is_empty());
}

pub(super) async fn a_woken_attempt_is_due(world: &World) {
    let (Declared { attempt, .. }, _) = world.ready().await;
    let claimed = world.claim_now(attempt).await;
    let release = Release {
        subject: attempt.into(),
        claim_token: claimed.claim_token,
        recheck: Recheck::Never,
        failures: 0,
    };
    world.store.broker.attempt_release(&[release]).await.expect("a release");
    assert!(world.claim(attempt).await.is_none(), "it is settled");
    world.store.broker.attempt_wake(&[attempt]).await.expect("a doubt");
    assert!(world.claim(attempt).await.is_some(), "it is looked at");
    world.store.broker.attempt_wake(&[]).await.expect("nobody is doubted");
}

pub(super) async fn a_finding_counts_when_it_lasts_and_is_one_leak(world: &World) {
    let cluster = quiet_cluster(world).await;
    let subject = world.uuid();
    let one = mk_reported(world, FindingKind::UnclaimedObject, subject);
    let first = see(world, &cluster, &one, HOUR).await;
    assert!(first.leaks.is_empty());
    let [(key, first_seen)] = first.suspected[..] else { panic!("{first:?}") };
    assert_eq!(key, one.finding.key);
    let again = see(world, &cluster, &one, HOUR).await;
    assert_eq!(again.suspected, [(key, first_seen)], "the first sighting is kept");

    let counted = see(world, &cluster, &one, Duration::ZERO).await;
    assert!(counted.suspected.is_empty());
    let [leak] = &counted.leaks[..] else { panic!("{counted:?}") };
    assert_eq!(fetch(world, leak.id).await, *leak);
    assert_eq!((leak.kind.as_str(), leak.subject), ("unclaimed_object", one.finding.subject));
    assert_eq!((leak.finding, leak.found_at), (Some(key), first_seen));
    assert_eq!(leak.object_ref.as_ref(), Some(&one.finding.object_ref));
    assert_eq!(leak.evidence, one.finding.evidence);
    assert_eq!((leak.cluster_id, leak.cluster.as_deref()), (Some(cluster.id), Some("local")));
    assert!(leak.is_open() && leak.last_seen_at >= Some(first_seen));

    let mut moved = one.clone();
    moved.finding.evidence = json!({ "pid": 8 });
    let seen = see(world, &cluster, &moved, HOUR).await;
    assert!(seen.suspected.is_empty(), "it is no suspicion any more");
    assert_eq!(seen.leaks.len(), 1);
    assert_eq!((seen.leaks[0].id, seen.leaks[0].found_at), (leak.id, first_seen));
    assert_eq!(seen.leaks[0].evidence, moved.finding.evidence, "as it was seen last");
    let none =
        world.store.deletion.leak_findings_record(&cluster, &[], HOUR).await.expect("an answer");
    assert_eq!(none, RecordedFindings::default());
}

pub(super) async fn a_scan_ends_what_it_did_not_find_and_nothing_else(world: &World) {
    let here = quiet_cluster(world).await;
    let elsewhere = quiet_cluster(world).await;
    let kind = FindingKind::UnclaimedObject;
    let (_, gone) = leaked(world, &here, kind).await;
    let (_, of_another) = leaked(world, &elsewhere, kind).await;
    let suspect = mk_reported(world, kind, world.uuid());
    let first = see(world, &here, &suspect, HOUR).await.suspected;
    let (stays, stay) = leaked(world, &here, kind).await;

    let begun_at = later(world).await;
    see(world, &here, &stays, HOUR).await;
    assert_eq!(end(world, &here, begun_at).await, 1);
    let gone = fetch(world, gone.id).await;
    let resolved = gone.resolved.expect("it is over");
    assert_eq!(resolved.by.as_deref(), Some("loop:suite"));
    assert!(resolved.resolution.is_some() && resolved.at >= begun_at);
    assert!(fetch(world, stay.id).await.is_open(), "it was seen");
    assert!(fetch(world, of_another.id).await.is_open(), "nobody looked there");
    assert_eq!(end(world, &here, begun_at).await, 0, "once");
    later(world).await;
    let anew = see(world, &here, &suspect, HOUR).await.suspected;
    assert!(anew[0].1 > first[0].1, "a suspicion that was not seen again begins anew");
}

pub(super) async fn a_leak_that_ended_and_is_seen_again_is_another(world: &World) {
    let cluster = quiet_cluster(world).await;
    let (one, leak) = leaked(world, &cluster, FindingKind::DuplicateObject).await;
    let resolve = async |observed: Presence| {
        let mut rule = |snapshot: &_| orphans::resolve(snapshot, &observed, &why(), &operator());
        world.store.deletion.leak_decide(leak.id, &mut rule).await
    };
    assert_eq!(refused(resolve(Presence::There).await), ErrorKind::LeakNotGone);
    assert!(fetch(world, leak.id).await.is_open(), "a refusal writes nothing");
    resolve(Presence::Gone).await.expect("it is gone");
    let ended = fetch(world, leak.id).await;
    let resolved = ended.resolved.expect("it is over");
    assert_eq!(resolved.by.as_deref(), Some("key:suite"));
    assert_eq!(resolved.resolution.as_deref(), Some("the suite says so"));
    assert_eq!(refused(resolve(Presence::Gone).await), ErrorKind::LeakResolved);

    let seen = see(world, &cluster, &one, HOUR).await;
    assert_eq!((seen.leaks.len(), seen.suspected.len()), (0, 1), "two sightings once more");
    let counted = see(world, &cluster, &one, Duration::ZERO).await;
    assert_ne!(counted.leaks[0].id, leak.id);
    assert!(!fetch(world, leak.id).await.is_open(), "what ended stays ended");
}

pub(super) async fn a_removal_is_kept_until_it_is_done(world: &World) {
    let cluster = quiet_cluster(world).await;
    let (one, leak) = leaked(world, &cluster, FindingKind::UnclaimedObject).await;
    let removals =
        async || world.store.deletion.leak_removals(cluster.id, 10).await.expect("a list");
    assert!(removals().await.is_empty());
    world
        .store
        .deletion
        .leak_decide(leak.id, &mut |snapshot| {
            assert!(snapshot.claimant.is_none(), "nobody claims it");
            orphans::request_removal(snapshot, Role::Operator, &why(), &operator())
        })
        .await
        .expect("a removal");
    let asked = removals().await;
    assert_eq!(asked.len(), 1);
    let removal = asked[0].removal.clone().expect("it was asked for");
    assert_eq!((removal.by.as_str(), removal.reason.as_str()), ("key:suite", "the suite says so"));
    let seen = see(world, &cluster, &one, HOUR).await;
    assert_eq!(seen.leaks[0].removal, Some(removal), "a sighting does not undo it");
    assert_eq!(end(world, &cluster, later(world).await).await, 1);
    assert!(removals().await.is_empty());
    let resolution = fetch(world, leak.id).await.resolved.and_then(|resolved| resolved.resolution);
    assert_eq!(resolution.as_deref(), Some("removed for key:suite: the suite says so"));
}

/// The decision reads the row that claims the object.
pub(super) async fn a_claimed_object_is_not_removed(world: &World) {
    let (ready, _) = world.ready().await;
    let cluster = cluster(world).await;
    let row = world.store.deletion.claimant_load(&[ready.attempt]).await.expect("a row").remove(0);
    let mut one = mk_reported(world, FindingKind::DuplicateObject, ready.attempt.as_uuid());
    one.finding.object_ref = row.home.expect("a home").1;
    let leak = see(world, &cluster, &one, Duration::ZERO).await.leaks.remove(0);
    let mut rule =
        |snapshot: &_| orphans::request_removal(snapshot, Role::Operator, &why(), &operator());
    let answer = world.store.deletion.leak_decide(leak.id, &mut rule).await;
    assert_eq!(refused(answer), ErrorKind::LeakNotRemovable);
    let unknown =
        world.store.deletion.leak_decide(LeakRecordId::new(world.uuid()), &mut rule).await;
    assert!(matches!(unknown, Err(Error::NotFound { kind: LeakRecordId::KIND })), "{unknown:?}");
    end(world, &cluster, later(world).await).await;
}

pub(super) async fn leaks_are_listed_and_counted(world: &World) {
    let cluster = quiet_cluster(world).await;
    let before = world.store.deletion.leak_open_counts().await.expect("counts");
    let (_, open) = leaked(world, &cluster, FindingKind::MissingObject).await;
    let (_, over) = leaked(world, &cluster, FindingKind::UnclaimedObject).await;
    let mut rule = |snapshot: &_| orphans::resolve(snapshot, &Presence::Gone, &why(), &operator());
    world.store.deletion.leak_decide(over.id, &mut rule).await.expect("it is gone");
    let after = world.store.deletion.leak_open_counts().await.expect("counts");
    let count = |counts: &std::collections::BTreeMap<String, u64>, kind: FindingKind| {
        counts.get(kind.as_str()).copied().unwrap_or(0)
    };
    for (kind, more) in [(FindingKind::MissingObject, 1), (FindingKind::UnclaimedObject, 0)] {
        assert_eq!(count(&after, kind), count(&before, kind) + more, "{kind}");
    }

    let (opened, resolved, all) =
        (list(world, Some(true)).await, list(world, Some(false)).await, list(world, None).await);
    assert!(opened.contains(&open.id) && !opened.contains(&over.id));
    assert!(resolved.contains(&over.id) && !resolved.contains(&open.id));
    assert_eq!(all.len(), opened.len() + resolved.len());
    let kind = Some(FindingKind::MissingObject.as_str().to_owned());
    let filter = LeakFilter { open: None, kind };
    let missing = world.store.deletion.leak_list(&filter, ALL).await.expect("a list");
    assert!(missing.iter().all(|leak| leak.kind == "missing_object"));
    assert!(missing.iter().any(|leak| leak.id == open.id));
    let mut paged: Vec<LeakRecordId> = Vec::new();
    loop {
        let page = Page { after: paged.last().copied(), limit: 3 };
        let filter = LeakFilter::default();
        let next = world.store.deletion.leak_list(&filter, page).await.expect("a page");
        if next.is_empty() {
            break;
        }
        paged.extend(next.iter().map(|leak| leak.id));
    }
    assert_eq!(paged, all);
    let nobody = world.store.deletion.leak_fetch(LeakRecordId::new(world.uuid())).await;
    assert_eq!(nobody.expect("an answer"), None);
}

/// Concurrent scans record a finding as one open leak, and none resolves what
/// another one saw.
pub(super) async fn concurrent_scans_agree(world: &World) {
    let cluster = quiet_cluster(world).await;
    for _ in 0..20 {
        let reported: Vec<_> = (0..5)
            .map(|_| mk_reported(world, FindingKind::UnclaimedObject, world.uuid()))
            .collect();
        let backwards: Vec<_> = reported
            .iter()
            .rev()
            .map(|one| ReportedFinding { fresh_id: LeakRecordId::new(world.uuid()), ..one.clone() })
            .collect();
        let begun_at = now(world).await;
        let actor = Actor::new("loop:suite");
        let (first, second, ended) = tokio::join!(
            world.store.deletion.leak_findings_record(&cluster, &reported, Duration::ZERO),
            world.store.deletion.leak_findings_record(&cluster, &backwards, Duration::ZERO),
            world.store.deletion.leak_scan_end(cluster.id, begun_at, &actor),
        );
        first.expect("a look");
        second.expect("a look");
        ended.expect("an end");
        for one in &reported {
            let seen = see(world, &cluster, one, Duration::ZERO).await;
            assert_eq!(seen.leaks.len(), 1, "{seen:?}");
        }
    }
    let mut ids = list(world, Some(true)).await;
    ids.dedup();
    assert!(ids.len() >= 5);
    end(world, &cluster, later(world).await).await;
}
