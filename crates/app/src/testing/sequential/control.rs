//! The mode, the heartbeat, the effect of a restore on claims, and withheld
//! actions.

use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::commit::{Commit, Recheck, Write};
use slipway_core::ids::{ProvisionedResourceId, Revision};
use slipway_core::operations::control::{self, Control, Mode, ReplicaReport};
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
        lease: Duration::from_secs(30),
        acknowledged: Revision(0),
    };
    let marks = control::Marks { highest: high_water_mark, all_read: true };
    world
        .store
        .operations
        .control_decide(&mut |control| {
            replica_report.acknowledged = control.revision;
            Ok(Some(control::heartbeat(control, marks, replica_report.clone(), &actor())))
        })
        .await
        .expect("a heartbeat");
    fetch(world).await
}

async fn freeze(world: &World, length: Duration) -> Result<(), Error> {
    world
        .store
        .operations
        .control_decide(&mut |control| control::freeze(control, length, &why(), &actor()).map(Some))
        .await
}

async fn unfreeze(world: &World) -> Result<(), Error> {
    world
        .store
        .operations
        .control_decide(&mut |control| control::unfreeze(control, &why(), &actor()).map(Some))
        .await
}

async fn resume(world: &World) -> Result<(), Error> {
    world
        .store
        .operations
        .control_decide(&mut |control| control::resume(control, &why(), &actor()).map(Some))
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
    let mut failing = |_: &Control| Err(Refusal::new(ErrorKind::Internal, "no"));
    assert_eq!(
        refused(world.store.operations.control_decide(&mut failing).await),
        ErrorKind::Internal
    );
}

pub(super) async fn a_heartbeat_counts_and_names_its_replica(world: &World) {
    let before = fetch(world).await;
    let after = heartbeat(world, "replica-a", Some(before.heartbeat)).await;
    assert_eq!((after.heartbeat, after.revision), (before.heartbeat + 1, before.revision));
    heartbeat(world, "replica-b", None).await;
    let again = heartbeat(world, "replica-a", Some(after.heartbeat)).await;
    assert_eq!(again.heartbeat, after.heartbeat + 2);
    let replicas = world.store.operations.replica_list().await.expect("a list");
    let names: Vec<_> = replicas.iter().map(|replica| replica.worker.as_str()).collect();
    assert_eq!(names, ["replica-a", "replica-b"]);
    assert!(replicas.iter().all(|replica| replica.acknowledged == before.revision));
    assert_eq!(replicas[0].lease, Duration::from_secs(30));
    assert!(replicas[0].seen_at >= replicas[1].seen_at, "the second heartbeat moved it");
}

/// A restore: the mode is observing only, claims are ended and fenced, and new
/// claim tokens are above any that was ever issued.
pub(super) async fn a_mark_ahead_lifts_every_claim(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let held = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    let before = fetch(world).await;
    let after = heartbeat(world, "replica-a", Some(before.heartbeat + 1_000)).await;
    assert_eq!(after.heartbeat, before.heartbeat + 1_001);
    assert!(matches!(after.mode(), Mode::Observing(_)), "{after:?}");

    assert_eq!(refused(world.tick(held).await), ErrorKind::ClaimLost);
    let anew = world.claim(declared.attempt).await.expect("its claim was ended, so it is due");
    assert!(anew.claim_token.0 > (before.heartbeat + 1_000) << 24, "{anew:?}");
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
