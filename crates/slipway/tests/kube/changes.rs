//! Changes of what is declared reach the composite, in place or as another one.

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::definitions::second;
use crate::stage::Environment;
use crate::world::{BLUEPRINT, PROJECT, Setup, World, resource};

/// The sweep comes after the test is over, so only a wake can bring an update.
const NO_SWEEP: &[&str] = &["--reconcile-interval", "10m"];

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_changes_in_place_and_an_immutable_one_by_a_replacement() {
    let test = "a_parameter_changes";
    let setup = Setup { settings: NO_SWEEP, environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let zone = json!({ "name": "zone", "type": "string", "immutable": true });
    world.make_blueprint("zoned", setup, &[zone]).await;
    let body = json!({
        "project": PROJECT, "handle": "web-1", "blueprint": "zoned",
        "parameters": { "size": 2, "zone": "a" },
    });
    let declared = world.make("/api/v1/resources", body).await;
    let id = declared["id"].as_str().unwrap();
    let ready = world.plane.wait_for_phase(id, "Ready").await;
    let first = world.xr_name(id).await;
    let composites = world.composites().await;
    let before = composites.get(&first).await.unwrap();

    let update = ["resource", "update", "web-1", "--param", "size=3", "--yes", "--wait"];
    world.plane.says(&update);
    let after = composites.get(&first).await.unwrap();
    assert_eq!(after.data["spec"]["parameters"], json!({ "size": 3, "zone": "a" }));
    assert_eq!(after.metadata.uid, before.metadata.uid, "in place");
    assert_eq!(after.data["spec"]["userData"], before.data["spec"]["userData"]);
    let updated = world.plane.resource(id).await;
    assert_eq!(
        (&updated["phase"], &updated["node"]["id"]),
        (&json!("Ready"), &ready["node"]["id"])
    );

    let path = format!("/api/v1/resources/{id}");
    let body = json!({ "parameters": { "zone": "b" } });
    let (status, refused) = world.plane.call(Method::PATCH, &path, Some(body)).await;
    assert_eq!((status, &refused["code"]), (422, &json!("parameter_immutable")), "{refused}");
    let replace = ["resource", "replace", "web-1", "--param", "zone=b", "--reason", "moved"];
    world.plane.says(&[&replace[..], &["--yes", "--wait"]].concat());
    let second = world.xr_name(id).await;
    assert_ne!(second, first);
    let made = composites.get(&second).await.unwrap();
    assert_eq!(made.data["spec"]["parameters"], json!({ "size": 3, "zone": "b" }));
    assert!(composites.get_opt(&first).await.unwrap().is_none(), "the old one went first");
    world.plane.assert_goes(id).await;
}

/// Two composites at once: the old one is deleted only after the new one's node enrolled.
#[tokio::test(flavor = "multi_thread")]
async fn a_surge_makes_the_new_composite_before_the_old_one_goes() {
    let test = "a_surge_makes_the_new_composite";
    let setup = Setup { environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let zone = json!({ "name": "zone", "type": "string", "immutable": true });
    world.make_blueprint("twice", setup, &[zone]).await;
    let body = json!({
        "project": PROJECT, "handle": "web-1", "blueprint": "twice",
        "parameters": { "size": 2, "zone": "a" },
    });
    let declared = world.make("/api/v1/resources", body).await;
    let id = declared["id"].as_str().unwrap();
    world.plane.wait_for_phase(id, "Ready").await;
    let first = world.xr_name(id).await;
    let composites = world.composites().await;

    // What fails beside it leaves the one in use alone, and is taken away.
    let replace = ["resource", "replace", "web-1", "--surge", "--yes"];
    let failing = [&replace[..], &["--param", "zone=b", "--param", "standin=fail=quota"]];
    world.plane.says(&failing.concat());
    let failed = wait::until(TIMEOUT, "the second attempt to fail", async || {
        let seen = world.plane.resource(id).await;
        if seen["second_attempt"]["phase"] == "Failed" { Ok(seen) } else { Err(seen.to_string()) }
    })
    .await;
    assert_eq!((&failed["phase"], &failed["attempt"]["number"]), (&json!("Ready"), &json!(1)));
    assert_eq!(composites.list(&ListParams::default()).await.unwrap().items.len(), 2);
    world.plane.says(&["resource", "replace", "web-1", "--abort", "--yes", "--wait"]);
    assert_eq!(composites.list(&ListParams::default()).await.unwrap().items.len(), 1);

    world.plane.says(&[&replace[..], &["--param", "zone=b", "--wait"]].concat());
    let seen = world.plane.resource(id).await;
    assert_eq!((&seen["phase"], &seen["attempt"]["number"]), (&json!("Ready"), &json!(3)));
    assert_eq!(seen["node"]["hostname"], "web-1-3");
    let second = world.xr_name(id).await;
    let made = composites.get(&second).await.unwrap();
    assert_eq!(made.data["spec"]["parameters"]["zone"], "b");
    wait::until(TIMEOUT, "the old composite to go", async || {
        match composites.get_opt(&first).await.unwrap() {
            None => Ok(()),
            Some(old) => Err(format!("{:?}", old.metadata)),
        }
    })
    .await;
    world.plane.assert_goes(id).await;
}

impl World {
    async fn versions(&self, ids: &[String]) -> Vec<String> {
        let mut versions = Vec::new();
        for id in ids {
            let seen = self.plane.resource(id).await;
            assert_eq!(seen["phase"], "Ready", "{seen}");
            versions.push(seen["blueprint_version"].as_str().unwrap().to_owned());
        }
        versions
    }

    /// The Composition that a composite names.
    async fn composition(&self, id: &str) -> Option<String> {
        let composite = self.composites().await.get(&self.xr_name(id).await).await.unwrap();
        let name = &composite.data["spec"]["crossplane"]["compositionRef"]["name"];
        name.as_str().map(str::to_owned)
    }

    /// Waits until each resource is composed by the Composition of this version, and no version
    /// else: the composed resource says by which steps.
    async fn wait_for_composed(&self, ids: &[String], version: &str) {
        let step = if version == "v1" { "compose" } else { "compose-in-another-way" };
        let servers = resource("standin.slipway.dev/v1alpha1", "Server", "servers");
        let namespace = self.namespace().await;
        let servers =
            Api::<DynamicObject>::namespaced_with(self.client.clone(), &namespace, &servers);
        for id in ids {
            let name = self.xr_name(id).await;
            wait::until(TIMEOUT, &format!("{name} to be composed as {version}"), async || {
                let composite = self.composites().await.get(&name).await.unwrap();
                let conditions = &composite.data["status"]["conditions"];
                let synced = conditions.as_array().into_iter().flatten().any(|condition| {
                    condition["type"] == "Synced" && condition["status"] == "True"
                });
                let server = servers.get(&name).await.unwrap();
                let by = &server.data["spec"]["composedBy"];
                let named = &composite.data["spec"]["crossplane"]["compositionRef"]["name"];
                let done = synced && by["name"] == *named && by["steps"] == json!([step]);
                if done { Ok(()) } else { Err(format!("{by} {}", composite.data)) }
            })
            .await;
        }
    }

    async fn wait_for_rollout(&self, state: &str) -> Value {
        wait::until(TIMEOUT, &format!("the roll-out to be {state}"), async || {
            let found = self.plane.get("/api/v1/rollouts/server").await;
            if found["state"] == state { Ok(found) } else { Err(found.to_string()) }
        })
        .await
    }
}

/// One of ten gets the second version, and only that one is composed in another way. Then the
/// third is broken: the upgrade stops there, and everybody who was changed gets back what they
/// had.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_stops_at_the_third_and_is_rolled_back() {
    let test = "an_upgrade_stops_at_the_third_and_is_rolled_back";
    let setup = Setup { install_definitions: true, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(world.declare(&format!("web-{number}"), "").await);
    }
    for id in &ids {
        world.plane.wait_for_phase(id, "Ready").await;
    }
    world.wait_for_composed(&ids, "v1").await;
    let path = "/api/v1/blueprints/server/versions/v1";
    let own = world.plane.get(path).await["composition_name"].as_str().unwrap().to_owned();
    assert_eq!(world.composition(&ids[0]).await.as_ref(), Some(&own));

    // All are read in the API version of the new XRD from now on, and composed as before.
    let (xrd, composition) = second();
    world.publish(BLUEPRINT, "v2", &xrd, &composition).await;
    world
        .wait_for_definitions(BLUEPRINT, "v2 to be Established", |found| {
            found["phase"] == "Established" && found["found_version"] == "v2"
        })
        .await;
    let read_as = format!("{own}.v2");
    wait::until(TIMEOUT, "all composites to name it in the new API version", async || {
        for id in &ids {
            let named = world.composition(id).await;
            if named.as_ref() != Some(&read_as) {
                return Err(format!("{id}: {named:?}"));
            }
        }
        Ok(())
    })
    .await;
    world.wait_for_composed(&ids, "v1").await;
    let (canary, rest) = ids.split_last().unwrap();
    world.plane.says(&["resource", "update", "web-9", "--version", "v2", "--yes", "--wait"]);
    world.wait_for_composed(std::slice::from_ref(canary), "v2").await;
    world.wait_for_composed(rest, "v1").await;
    // Whoever points a composite elsewhere is taken back.
    let newer = world.composition(canary).await;
    assert_ne!(newer.as_ref(), Some(&read_as));
    let theirs = json!({ "spec": { "crossplane": { "compositionRef": { "name": newer } } } });
    let first = world.xr_name(&ids[0]).await;
    let parameters = PatchParams::default();
    world.composites().await.patch(&first, &parameters, &Patch::Merge(&theirs)).await.unwrap();
    wait::until(TIMEOUT, "the composite to name its own again", async || {
        let named = world.composition(&ids[0]).await;
        if named.as_ref() == Some(&read_as) { Ok(()) } else { Err(format!("{named:?}")) }
    })
    .await;
    world.plane.says(&["resource", "update", "web-9", "--version", "v1", "--yes", "--wait"]);
    world.wait_for_composed(&ids, "v1").await;

    let third = world.xr_name(&ids[2]).await;
    let broken =
        json!({ "metadata": { "annotations": { "standin.slipway.dev/fail": "no quota" } } });
    let composites = world.composites().await;
    composites.patch(&third, &PatchParams::default(), &Patch::Merge(&broken)).await.unwrap();
    world.plane.wait_for_phase(&ids[2], "Failed").await;

    let planned = world.plane.says(&["blueprint", "upgrade", "server", "--to", "v2", "--dry-run"]);
    assert!(planned.contains("10 (10 waiting)"), "{planned}");
    world.plane.says(&["blueprint", "upgrade", "server", "--to", "v2", "--parallel", "1"]);
    let paused = world.wait_for_rollout("paused").await;
    let message = paused["message"].as_str().unwrap();
    assert!(message.contains("`web-2` failed"), "{paused}");
    assert_eq!(paused["progress"], json!({ "failed": 1, "healthy": 2, "waiting": 7 }));
    let explained = world.plane.says(&["explain", "rollout", "server"]);
    assert!(explained.contains("web-2") && explained.contains("Failed"), "{explained}");
    assert_eq!(world.versions(&ids[..2]).await, ["v2", "v2"]);
    world.wait_for_composed(&ids[..2], "v2").await;
    world.wait_for_composed(&ids[3..], "v1").await;

    world.plane.says(&["rollout", "abort", "server", "--roll-back", "--reason", "broken"]);
    let back = world.wait_for_rollout("rolled_back").await;
    assert_eq!(back["progress"], json!({ "failed": 1, "reverted": 2, "waiting": 7 }), "{back}");
    let untouched = world.plane.resource(&ids[2]).await;
    assert_eq!(
        (&untouched["phase"], &untouched["blueprint_version"]),
        (&json!("Failed"), &json!("v1"))
    );
    assert_eq!(world.xr_name(&ids[2]).await, third, "what was never changed is left alone");
    ids.remove(2);
    assert_eq!(world.versions(&ids).await, ["v1"; 9]);
    world.wait_for_composed(&ids, "v1").await;
}
