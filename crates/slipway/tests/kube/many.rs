//! A thousand composites, every tenth of which fails permanently.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use slipway_testkit::kube::ADMIN;
use slipway_testkit::wait;

use crate::blueprint::GROUP;
use crate::world::{Setup, World};

const MANY: usize = 1000;
const FAILING: usize = MANY / 10;

/// Concurrent declarations and deletions.
const AT_ONCE: usize = 16;

/// Under a minute on an idle machine, and CI is not one.
const TIMEOUT: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_come_up_or_fail_and_all_of_them_go() {
    let test = "a_thousand_come_up_or_fail_and_all_of_them_go";
    let setup = Setup {
        // As in production: the test measures the work for a thousand, not that
        // of polling them all the time.
        heartbeat: Duration::from_secs(10),
        settings: &["--reconcile-interval", "30s", "--lease", "12s"],
        ..Setup::default()
    };
    let Some(world) = World::start(test, setup).await else { return };
    let ids: Vec<String> = stream::iter(0..MANY)
        .map(|number| {
            let world = &world;
            async move {
                let fails = number % (MANY / FAILING) == 0;
                let script =
                    if fails { format!("fail=no room for {number}") } else { String::new() };
                world.declare(&format!("web-{number}"), &script).await
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut log = Log::default();
    log.until(&world, &[("Ready", MANY - FAILING), ("Failed", FAILING)]).await;

    let failed = world.plane.get("/api/v1/resources?phase=Failed&limit=500").await;
    let failed = failed.as_array().unwrap();
    assert_eq!(failed.len(), FAILING);
    for resource in failed {
        let number = resource["handle"].as_str().unwrap().replace("web-", "");
        let reason = &resource["attempt"]["failure_reason"];
        assert_eq!(*reason, format!("no room for {number}"), "{resource}");
    }
    let blocked = world.plane.get("/api/v1/resources?blocked=true&limit=500").await;
    let stuck = blocked.as_array().unwrap().iter().filter(|one| one["phase"] != "Failed");
    assert_eq!(stuck.count(), 0, "{blocked}");

    stream::iter(&ids).for_each_concurrent(AT_ONCE, |id| world.plane.delete(id)).await;
    log.until(&world, &[("Deleted", MANY)]).await;

    // Nothing is left on the cluster, and nothing was made or deleted twice.
    assert_eq!(world.names_of(&format!("{GROUP}/v1"), "XServer", "xservers").await, [""; 0]);
    assert_eq!(world.names_of("standin.slipway.dev/v1alpha1", "Server", "servers").await, [""; 0]);
    for verb in ["patch", "delete"] {
        let counts = world.counted(verb);
        assert_eq!(counts.len(), MANY, "{verb}");
        // An abandoned request may have been carried out all the same: then it
        // has no success in the log, and the next request finds the work done.
        let once = |count: &Count| count.done == 1 || (count.done == 0 && count.given_up > 0);
        let odd: Vec<_> = counts.iter().filter(|(_, count)| !once(count)).collect();
        assert!(odd.is_empty(), "{verb}: {odd:?}");
    }
    // The next pass of the placement loop releases it, up to an interval later.
    wait::until(TIMEOUT, "the provider to be released", async || {
        let assignment = world.assignment().await;
        if assignment["providers"] == json!([]) { Ok(()) } else { Err(assignment.to_string()) }
    })
    .await;
    wait::until(TIMEOUT, "the secret to be gone", async || {
        let left = world.names_of("external-secrets.io/v1", "ExternalSecret", "externalsecrets");
        left.await.is_empty()
    })
    .await;
}

/// How many requests made or deleted a composite, and how many were abandoned:
/// by the client, or by a server that was too busy.
#[derive(Debug, Default)]
struct Count {
    done: usize,
    given_up: usize,
}

impl World {
    /// Counts per composite, by the audit log. A patch that creates one is an apply.
    fn counted(&self, verb: &str) -> BTreeMap<String, Count> {
        let mut counts: BTreeMap<String, Count> = BTreeMap::new();
        let records = self.kubernetes.audit().unwrap();
        let ours = records.iter().filter(|record| record.user == ADMIN && record.verb == verb);
        for record in ours.filter(|record| record.is_about("xservers")) {
            let Some(object) = &record.object else { continue };
            let count = counts.entry(object.name.clone()).or_default();
            let done = if verb == "delete" { 200 } else { 201 };
            count.done += usize::from(record.code == Some(done));
            count.given_up += usize::from(record.code.is_none_or(|code| code >= 500));
        }
        counts
    }
}

/// The events, counted as they are read.
#[derive(Default)]
struct Log {
    position: u64,
    counts: BTreeMap<String, usize>,
}

impl Log {
    async fn until(&mut self, world: &World, wanted: &[(&str, usize)]) {
        wait::until(TIMEOUT, &format!("{wanted:?}"), async || {
            self.read(world).await;
            let has = |(kind, count): &(&str, usize)| self.counts.get(*kind) == Some(count);
            if wanted.iter().all(has) {
                return Ok(());
            }
            // Reading is itself a load.
            tokio::time::sleep(Duration::from_millis(250)).await;
            Err(format!("{:?}\n{}", self.counts, world.plane.log_tail()))
        })
        .await;
    }

    async fn read(&mut self, world: &World) {
        loop {
            let path = format!("/api/v1/events?limit=500&cursor={}", self.position);
            let page = world.plane.get(&path).await;
            let page = page.as_array().unwrap();
            for event in page {
                self.position = event["position"].as_u64().unwrap();
                let kind = text(&event["type"]).replace("broker.ProvisionedResource", "");
                *self.counts.entry(kind).or_default() += 1;
            }
            if page.is_empty() {
                return;
            }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
