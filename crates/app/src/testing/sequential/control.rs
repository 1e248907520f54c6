//! The mode, the heartbeat, the effect of a restore on claims, and withheld
//! actions.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::commit::{Commit, Recheck, Write};
use slipway_core::ids::{Partition, ProvisionedResourceId, Revision};
use slipway_core::operations::control::{
    self, Control, LockedControl, Mark, MarkKey, Mode, ReplicaReport,
};
use slipway_core::text::Reason;
use slipway_core::{ErrorKind, Phase, Refusal};

use crate::broker::port::ResourceKey;
use crate::ports::store::{Error, Page};
use crate::testing::worker::{LEASE, released};
use crate::testing::world::{World, refused};

fn actor() -> Actor {
    Actor::new("suite")
}

fn why() -> Reason {
    Reason::parse("the suite").expect("a valid reason")
}

async fn fetch(world: &World) -> Control {
    world.store.operations.control_fetch().await.expect("the mode is read")
}

async fn heartbeat(world: &World, worker: &str, high_water_mark: Option<i64>) -> Control {
    let mut replica_report = ReplicaReport {
        worker: worker.to_owned(),
        outlives: Duration::from_secs(30),
        acknowledged: Revision(0),
    };
    let key = (world.partition, Engine::Local);
    let marks = BTreeMap::from([(key, Mark::Read(high_water_mark))]);
    world
        .store
        .operations
        .control_decide(&mut |locked| {
            replica_report.acknowledged = locked.control.revision;
            Ok(Some(control::heartbeat(locked, &marks, replica_report.clone(), &actor())))
        })
        .await
        .expect("a heartbeat");
    fetch(world).await
}

async fn counters(world: &World) -> BTreeMap<MarkKey, i64> {
    let mut found = BTreeMap::new();
    let mut rule = |locked: &LockedControl| {
        found = locked.counters.clone();
        Ok(None)
    };
    world.store.operations.control_decide(&mut rule).await.expect("the counters are read");
    found
}

/// The counter of a mark is kept by itself: it rests while nobody reads the mark, and
/// the others go on.
pub(super) async fn each_mark_has_a_counter_of_its_own(world: &World) {
    let here = (world.partition, Engine::Local);
    let there = (Partition::new(world.uuid()), Engine::Crossplane);
    let report = ReplicaReport {
        worker: "replica-a".to_owned(),
        outlives: Duration::from_secs(30),
        acknowledged: Revision(0),
    };
    let counted = async |mark: Mark| {
        let marks = BTreeMap::from([(here, Mark::Read(None)), (there, mark)]);
        let mut rule = |locked: &LockedControl| {
            Ok(Some(control::heartbeat(locked, &marks, report.clone(), &actor())))
        };
        world.store.operations.control_decide(&mut rule).await.expect("a heartbeat");
        (fetch(world).await.heartbeat, counters(world).await)
    };
    let before = fetch(world).await.heartbeat;
    let (heartbeat, found) = counted(Mark::Unread).await;
    assert!(heartbeat > before, "{heartbeat}");
    assert_eq!((found[&here], found[&there]), (heartbeat, before));
    let (heartbeat, found) = counted(Mark::Unread).await;
    assert_eq!((found[&here], found[&there]), (heartbeat, before), "it rests");
    let (heartbeat, found) = counted(Mark::Read(Some(before))).await;
    assert_eq!((found[&here], found[&there]), (heartbeat, heartbeat));
    assert_eq!(fetch(world).await.mode(), Mode::Acting, "nothing was ahead");
}

/// A commit that names the mode of its permit is written under that mode only, and
/// takes nothing else of its batch with it.
pub(super) async fn a_registry_write_is_refused_under_another_mode(world: &World) {
    let permitted = fetch(world).await.revision;
    let blocker = |snapshot: &ResourceSnapshot| Blocker {
        code: BlockerCode::ApplyFailed,
        message: "because".to_owned(),
        since: snapshot.now,
        evidence: serde_json::Value::Null,
        next_retry_at: None,
    };
    let under = |snapshot: &ResourceSnapshot, mode: Option<Revision>| {
        let blockers = vec![blocker(snapshot)];
        let write = Write::BlockersReplace(snapshot.attempt.id().into(), blockers);
        Commit { writes: vec![write], mode, ..Commit::default() }
    };
    let shown = async |attempt: ProvisionedResourceId| {
        let mut loaded = world.store.broker.attempt_load(&[attempt]).await.expect("a snapshot");
        loaded.remove(0).expect("a valid row").blockers.len()
    };
    let [one, other, free] = [
        world.declare(&world.handle()).await.expect("a declaration").attempt,
        world.declare(&world.handle()).await.expect("a declaration").attempt,
        world.declare(&world.handle()).await.expect("a declaration").attempt,
    ];
    let key = ResourceKey::Attempt(one);
    let decide = async |mode| {
        world.store.broker.decide(key, &mut |snapshot| Ok(under(snapshot, mode))).await
    };
    decide(Some(permitted)).await.expect("nothing changed since the permit");
    assert_eq!(shown(one).await, 1);

    freeze(world, Duration::from_secs(60)).await.expect("a freeze");
    assert_eq!(refused(decide(Some(permitted)).await), ErrorKind::RevisionStale);
    let mut rule = |snapshot: &ResourceSnapshot| {
        let mode = Some(permitted).filter(|_| snapshot.attempt.id() != free);
        Ok(under(snapshot, mode))
    };
    let decided = world.store.broker.decide_many(&[other, free], &mut rule).await.expect("both");
    for (attempt, outcome) in decided {
        assert_eq!(outcome.is_ok(), attempt == free, "{outcome:?}");
    }
    assert_eq!((shown(other).await, shown(free).await), (0, 1));
    unfreeze(world).await.expect("it is lifted");
    assert_eq!(refused(decide(Some(permitted)).await), ErrorKind::RevisionStale, "of before");
    let present = fetch(world).await.revision;
    decide(Some(present)).await.expect("a permit of the present mode");
}

async fn freeze(world: &World, length: Duration) -> Result<(), Error> {
    world
        .store
        .operations
        .control_decide(&mut |locked| {
            control::freeze(&locked.control, length, &why(), &actor()).map(Some)
        })
        .await
}

async fn unfreeze(world: &World) -> Result<(), Error> {
    world
        .store
        .operations
        .control_decide(&mut |locked| {
            control::unfreeze(&locked.control, &why(), &actor()).map(Some)
        })
        .await
}

async fn resume(world: &World) -> Result<(), Error> {
    world
        .store
        .operations
        .control_decide(&mut |locked| control::resume(&locked.control, &why(), &actor()).map(Some))
        .await
}

pub(super) async fn a_freeze_is_read_back_lifted_and_wakes(world: &World) {
    let before = fetch(world).await;
    assert_eq!(before.mode(), Mode::Acting);
    assert_eq!(before.installation, world.store.operations.installation().await.expect("an id"));
    world.store.operations.control_decide(&mut |_| Ok(None)).await.expect("nothing decided");
    assert_eq!(fetch(world).await.revision, before.revision, "nothing was written");

    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    world
        .store
        .broker
        .attempt_release(&[released(claimed, Recheck::Never)])
        .await
        .expect("a release");
    freeze(world, Duration::from_secs(60)).await.expect("a freeze");
    let frozen = fetch(world).await;
    let Mode::Frozen(found) = frozen.mode() else { panic!("not frozen: {frozen:?}") };
    assert_eq!((found.by.as_str(), found.reason.as_str()), ("suite", "the suite"));
    assert_eq!(found.until.since(found.since), Duration::from_secs(60));
    assert_eq!(frozen.revision, before.revision.next());
    assert!(world.claim(declared.attempt).await.is_some(), "a change of mode wakes");

    unfreeze(world).await.expect("it is lifted");
    assert_eq!(fetch(world).await.mode(), Mode::Acting);
    assert_eq!(refused(unfreeze(world).await), ErrorKind::NothingToLift);
    let mut failing = |_: &LockedControl| Err(Refusal::new(ErrorKind::Internal, "no"));
    assert_eq!(
        refused(world.store.operations.control_decide(&mut failing).await),
        ErrorKind::Internal
    );
}

pub(super) async fn a_heartbeat_counts_and_names_its_replica(world: &World) {
    let before = fetch(world).await;
    let after = heartbeat(world, "replica-a", Some(before.heartbeat)).await;
    assert!(after.heartbeat > before.heartbeat, "{after:?}");
    assert_eq!(after.revision, before.revision);
    heartbeat(world, "replica-b", None).await;
    let again = heartbeat(world, "replica-a", Some(after.heartbeat)).await;
    assert!(again.heartbeat >= after.heartbeat + 2, "{again:?}");
    let replicas = world.store.operations.replica_list().await.expect("a list");
    let names: Vec<_> = replicas.iter().map(|replica| replica.worker.as_str()).collect();
    assert_eq!(names, ["replica-a", "replica-b"]);
    assert!(replicas.iter().all(|replica| replica.acknowledged == before.revision));
    assert_eq!(replicas[0].outlives, Duration::from_secs(30));
    assert!(replicas[0].seen_at >= replicas[1].seen_at, "the second heartbeat moved it");
}

/// A restore: the mode is observing only, claims are ended and fenced, and new
/// claim tokens are above any that was ever issued.
pub(super) async fn a_mark_ahead_lifts_every_claim(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let held = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    let before = fetch(world).await;
    let after = heartbeat(world, "replica-a", Some(before.heartbeat + 1_000)).await;
    assert!(after.heartbeat > before.heartbeat + 1_000, "{after:?}");
    assert!(matches!(after.mode(), Mode::Observing(_)), "{after:?}");

    assert_eq!(refused(world.tick(held).await), ErrorKind::ClaimLost);
    let anew = world.claim(declared.attempt).await.expect("its claim was ended, so it is due");
    assert!(anew.claim_token.0 > (before.heartbeat + 1_000) << 10, "{anew:?}");
    world.tick(anew).await.expect("the new holder commits");

    let later = heartbeat(world, "replica-a", Some(after.heartbeat)).await;
    assert_eq!(later.revision, after.revision, "a restore is detected once");
    resume(world).await.expect("resumed");
    assert_eq!(fetch(world).await.mode(), Mode::Acting);
    assert_eq!(refused(resume(world).await), ErrorKind::NothingToLift);
}

pub(super) async fn withheld_shows_what_is_withheld_and_what_is_unknown(world: &World) {
    // Ids rise, so this is a cursor after everything before.
    let start = ProvisionedResourceId::new(world.uuid());
    let mut expected = Vec::new();
    for (codes, action) in [
        (vec![(BlockerCode::ObserveOnly, Some("apply"))], Some("apply")),
        (
            vec![(BlockerCode::Frozen, Some("delete")), (BlockerCode::SubstrateUnknown, None)],
            Some("delete"),
        ),
        (vec![(BlockerCode::SubstrateUnknown, None)], None),
        (vec![(BlockerCode::ApplyFailed, None)], Some("not in the plan")),
    ] {
        let handle = world.handle();
        let declared = world.declare(&handle).await.expect("a declaration");
        world
            .store
            .broker
            .decide(ResourceKey::Attempt(declared.attempt), &mut |snapshot| {
                let blockers = codes.iter().map(|(code, action)| Blocker {
                    code: *code,
                    message: "because".to_owned(),
                    since: snapshot.now,
                    evidence: action.map_or(
                        serde_json::Value::Null,
                        |action| serde_json::json!({ "action": action }),
                    ),
                    next_retry_at: None,
                });
                let write = Write::BlockersReplace(declared.attempt.into(), blockers.collect());
                Ok(Commit { writes: vec![write], ..Commit::default() })
            })
            .await
            .expect("blockers");
        if action != Some("not in the plan") {
            expected.push((declared.attempt, handle, action.map(str::to_owned)));
        }
    }
    let mut listed: Vec<(ProvisionedResourceId, String, Option<String>)> = Vec::new();
    loop {
        let after = Some(listed.last().map_or(start, |(attempt, ..)| *attempt));
        let page =
            world.store.operations.withheld_list(Page { after, limit: 1 }).await.expect("a page");
        let Some(line) = page.into_iter().next() else { break };
        assert_eq!(
            (line.project.as_str(), line.phase.as_str()),
            ("default", Phase::Pending.as_str())
        );
        listed.push((line.provisioned_resource_id, line.handle, line.action));
    }
    assert_eq!(listed, expected);
    assert!(
        world.store.operations.withheld_unchecked().await.expect("a count") >= 4,
        "they are due"
    );
    world
        .store
        .broker
        .attempt_claim("suite", world.partition, 1_000, LEASE)
        .await
        .expect("a claim");
    assert!(
        world.store.operations.withheld_unchecked().await.expect("a count") >= 4,
        "claimed is not looked at yet"
    );
}
