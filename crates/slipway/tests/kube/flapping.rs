//! A composite whose Ready changes many times a second.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_testkit::kube::{ADMIN, AuditRecord};
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::world::{Setup, World};

/// Changes of Ready before the test goes on.
const FLAPS: usize = 150;

/// The stand-in writes every change of Ready; we make far fewer transitions:
/// the first ten at once, then one a second, and a sweep every two.
fn most_changes(took: Duration) -> usize {
    let seconds = usize::try_from(took.as_secs()).unwrap() + 1;
    10 + seconds + seconds / 2 + 5
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flapping_composite_makes_no_storm_and_ends_ready() {
    let test = "a_flapping_composite_makes_no_storm_and_ends_ready";
    let Some(world) = World::start(test, Setup::default()).await else { return };
    let begun = Instant::now();
    let id = world.declare("web-1", "flap=25ms").await;
    let name = world.xr_name(&id).await;
    let turns = || {
        let of_status = |record: &AuditRecord| {
            let object = record.object.as_ref();
            object.is_some_and(|about| about.name == name && about.subresource == "status")
        };
        world.kubernetes.audit().unwrap().iter().filter(|record| of_status(record)).count()
    };
    wait::until(TIMEOUT, "it to have turned often", async || {
        let turns = turns();
        // Reading the log is itself a load.
        tokio::time::sleep(Duration::from_millis(200)).await;
        if turns >= FLAPS { Ok(()) } else { Err(format!("{turns} turns")) }
    })
    .await;
    let uid = world.composites().await.get(&name).await.unwrap().metadata.uid;
    let calm = json!({ "metadata": { "annotations": { "standin.slipway.dev/flap": "0ms" } } });
    let patch = kube::api::Patch::Merge(&calm);
    world.composites().await.patch(&name, &Default::default(), &patch).await.unwrap();
    wait::until(TIMEOUT, "it to be calm", async || {
        let before = turns();
        tokio::time::sleep(Duration::from_millis(500)).await;
        turns() == before
    })
    .await;
    let ready = world.plane.wait_for_phase(&id, "Ready").await;
    let took = begun.elapsed();

    // It never counted as absent or failed, and its node was left alone.
    assert_eq!(ready["blockers"], json!([]), "{ready}");
    assert_eq!(world.composites().await.get(&name).await.unwrap().metadata.uid, uid);
    assert_eq!(ready["node"]["deregistered_at"], Value::Null, "{ready}");
    let explained = world.plane.get(&format!("/api/v1/explain/resource/{id}")).await;
    let history = explained["history"].as_array().unwrap();
    for change in history {
        let allowed = [
            (Value::Null, json!("Pending")),
            (json!("Pending"), json!("Provisioning")),
            (json!("Pending"), json!("Enrolling")),
            (json!("Provisioning"), json!("Enrolling")),
            (json!("Provisioning"), json!("Ready")),
            (json!("Enrolling"), json!("Provisioning")),
            (json!("Enrolling"), json!("Ready")),
            (json!("Ready"), json!("Provisioning")),
        ];
        assert!(allowed.contains(&(change["from"].clone(), change["to"].clone())), "{change}");
    }
    let changes = world.transitions().await;
    assert!(changes <= most_changes(took), "{changes} changes of phase in {took:?}");

    // The control plane reads its changes from the watch, and writes nothing to it.
    let records = world.kubernetes.audit().unwrap();
    let asked = records.iter().filter(|record| {
        record.user == ADMIN && record.uri.contains(&name) && record.code < Some(300)
    });
    let (writes, reads): (Vec<_>, Vec<_>) = asked.partition(|record| record.verb != "get");
    // One creates it, one is by this test.
    assert_eq!(writes.len(), 2, "{writes:#?}");
    // Two are by this test; some more if the watch restarted meanwhile.
    assert!(reads.len() <= 2 + 5, "{reads:#?}");

    world.plane.delete(&id).await;
    world.plane.wait_for_phase(&id, "Deleted").await;
}

impl World {
    /// Every transition that the control plane committed.
    async fn transitions(&self) -> usize {
        let response = self.plane.send(reqwest::Method::GET, "/metrics", None).await;
        let text = response.text().await.unwrap();
        let lines = text.lines().filter(|line| line.starts_with("slipway_transitions_total{"));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
    }
}
