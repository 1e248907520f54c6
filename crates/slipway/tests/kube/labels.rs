//! Labels become cloud tags on the composite.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::stage::Environment;
use crate::world::{BLUEPRINT, PROJECT, Setup, World};

/// The sweep comes after the test is over, so only a wake can bring a label to a
/// live composite.
const NO_SWEEP: &[&str] = &["--reconcile-interval", "10m"];

async fn wait_for_tags(world: &World, name: &str, tags: Value) {
    let composites = world.composites().await;
    wait::until(TIMEOUT, "the tags", async || {
        let composite = composites.get(name).await.unwrap();
        let seen = &composite.data["spec"]["cloudTags"];
        if *seen == tags { Ok(()) } else { Err(format!("{seen}, not {tags}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_become_tags_and_a_relabel_reaches_a_live_composite_at_once() {
    assert!(TIMEOUT < Duration::from_secs(600));
    let test = "labels_become_tags";
    let setup = Setup { settings: NO_SWEEP, environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    for (key, propagate) in [("team", true), ("cost", true), ("note", false)] {
        let body = json!({ "key": key, "description": "", "propagate": propagate });
        world.make("/api/v1/labels", body).await;
    }
    let declared = world
        .make(
            "/api/v1/resources",
            json!({
                "project": PROJECT, "handle": "web-1", "blueprint": BLUEPRINT,
                "parameters": { "size": 2 },
                "labels": { "team": "blue", "cost": "a lot", "note": "private" },
            }),
        )
        .await;
    let id = declared["id"].as_str().unwrap();
    world.plane.wait_for_phase(id, "Ready").await;
    let name = world.xr_name(id).await;
    wait_for_tags(&world, &name, json!({ "slipway-team": "blue" })).await;
    let explained = world.plane.get(&format!("/api/v1/explain/resource/{id}")).await;
    assert_eq!(explained["facts"]["cloud_tags"], json!({ "slipway-team": "blue" }));
    assert_eq!(
        explained["facts"]["labels_without_tag"],
        json!({ "cost": "the provider does not allow these characters in a value" }),
        "what does not propagate is not meant to become a tag: {explained}"
    );

    let path = format!("/api/v1/resources/{id}");
    for (labels, tags) in [
        (
            json!({ "team": "red", "cost": "low" }),
            json!({ "slipway-team": "red", "slipway-cost": "low" }),
        ),
        (json!({ "cost": "low" }), json!({ "slipway-cost": "low" })),
    ] {
        let body = json!({ "labels": labels });
        let (status, answer) = world.plane.call(Method::PATCH, &path, Some(body)).await;
        assert_eq!(status, 200, "{answer}");
        wait_for_tags(&world, &name, tags).await;
    }
    let walked = world.plane.resource(id).await;
    assert_eq!(walked["phase"], "Ready", "the node stays: {walked}");
    world.plane.assert_goes(id).await;
}
