//! What leaves is gone: online, while the agent was down, by absence, kept, and in the
//! middle of something.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_deletion_is_carried_out_online_and_after_a_time_away() {
    let Some(world) = World::new("delete").await else { return };
    let first = world.server.offer(1, &world.map("a", "1"));
    let second = world.server.offer(2, &world.map("b", "1"));
    let agent = world.agent();
    world.server.reported(&first, "DEPLOY", "SUCCESS").await;
    world.server.reported(&second, "DEPLOY", "SUCCESS").await;
    let marker = world.server.mark(1);
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    world.expect(&[("b", "1")]).await;
    agent.stop().await;
    // Deleted while it was down, restored, and deleted again.
    let marker = world.server.mark(2);
    world.run_once().await.unwrap();
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    world.expect(&[]).await;
    world.server.offer(2, &world.map("b", "2"));
    world.run_once().await.unwrap();
    world.expect(&[("b", "2")]).await;
    world.server.mark(2);
    world.run_once().await.unwrap();
    world.expect(&[]).await;
    world.run_once().await.unwrap();
    assert!(world.inventory().await.is_empty());
    let calls = world.server.calls();
    assert!(calls.events.iter().all(|event| event.status == "SUCCESS"), "{:?}", calls.events);
    assert_eq!(calls.events.len(), 6);
}

#[tokio::test]
async fn an_absent_stack_is_pruned_and_a_large_prune_confirmed() {
    let Some(world) = World::new("prune").await else { return };
    let many: String = (0..8).map(|index| world.map(&format!("m{index}"), "1")).collect();
    world.server.offer(1, &many);
    let object = world.server.offer(2, &world.map("a", "1"));
    world.run_once().await.unwrap();
    world.server.withdraw(2);
    world.run_once().await.unwrap();
    world.server.reported(&object, "PRUNE", "SUCCESS").await;
    assert_eq!(world.values().await.len(), 8);
    world.server.withdraw(1);
    world.run_once().await.unwrap_err();
    assert_eq!(world.values().await.len(), 8);
    let digest = world.server.calls().refusals.last().unwrap().digest.clone();
    world.server.script(|calls| calls.confirmed = vec![digest]);
    world.run_once().await.unwrap();
    world.expect(&[]).await;
}

#[tokio::test]
async fn what_is_kept_stays_unmarked_and_can_be_taken_again() {
    let Some(world) = World::new("keep").await else { return };
    world.server.offer(1, &world.map("a", "1"));
    world.run_once().await.unwrap();
    let marker = world.server.mark_kept(1);
    world.run_once().await.unwrap();
    world.server.reported(&marker, "KEEP", "SUCCESS").await;
    let live = world.maps().get("a").await.unwrap();
    assert!(live.labels().is_empty() && live.annotations().is_empty(), "{live:?}");
    world.expect(&[("a", "1")]).await;
    let again = world.server.offer(1, &world.map("a", "2"));
    world.run_once().await.unwrap();
    world.server.reported(&again, "DEPLOY", "SUCCESS").await;
    world.expect(&[("a", "2")]).await;
    world.server.mark(1);
    world.run_once().await.unwrap();
    world.expect(&[]).await;
}

/// A finalizer holds an object: no success is reported before it is gone.
#[tokio::test]
async fn a_removal_is_done_when_everything_is_gone() {
    let Some(world) = World::new("finalizer").await else { return };
    let hold = |finalizers: serde_json::Value| {
        Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }))
    };
    world.server.offer(1, &world.map("a", "1"));
    world.run_once().await.unwrap();
    let parameters = PatchParams::default();
    world.maps().patch("a", &parameters, &hold(json!(["example.org/hold"]))).await.unwrap();
    let marker = world.server.mark(1);
    let agent = world.agent();
    let is_leaving =
        async || world.maps().get("a").await.unwrap().metadata.deletion_timestamp.is_some();
    slipway_testkit::wait::until(crate::stand_in::TIMEOUT, "it is being deleted", is_leaving).await;
    world.server.polled(1).await;
    assert_eq!(world.server.calls().events.len(), 1, "nothing is said before it is gone");
    agent.stop().await;
    let agent = world.agent();
    world.server.polled(1).await;
    world.maps().patch("a", &parameters, &hold(json!(null))).await.unwrap();
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    world.expect(&[]).await;
    agent.stop().await;
}

/// Objects that a controller owns, and those whose marks somebody took off, are left
/// alone.
#[tokio::test]
async fn what_does_not_carry_our_marks_or_has_an_owner_is_left_alone() {
    let Some(world) = World::new("left alone").await else { return };
    let content = world.map("a", "1") + &world.map("b", "1") + &world.map("c", "1");
    world.server.offer(1, &content);
    world.run_once().await.unwrap();
    let owner: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "name": "owner" } })).unwrap();
    let owner = world.maps().create(&PostParams::default(), &owner).await.unwrap();
    let owned = json!({ "metadata": { "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid().unwrap(),
    }] } });
    let unmarked = json!({ "metadata": { "labels": { "fleet.slipway.dev/agent": null } } });
    for (name, patch) in [("a", owned), ("b", unmarked)] {
        world.maps().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
    let marker = world.server.mark(1);
    world.run_once().await.unwrap();
    let message = world.server.reported(&marker, "DELETE", "SUCCESS").await.message.unwrap();
    assert!(message.contains("/a was left alone") && message.contains("/b was left"), "{message}");
    world.expect(&[("a", "1"), ("b", "1"), ("owner", "")]).await;
}

/// An agent that ends anywhere in the middle loses nothing: its successor knows what it
/// holds by the cluster alone.
#[tokio::test]
async fn a_restart_in_the_middle_loses_nothing() {
    let Some(world) = World::new("restart").await else { return };
    for round in 0..4 {
        let content: String =
            (0..12).map(|index| world.map(&format!("m{}", index + round), "1")).collect();
        let object = world.server.offer(1, &content);
        // The report of odd rounds is lost, and so is the process.
        world.server.script(|calls| calls.failing_events = round % 2);
        let agent = world.agent();
        let name = format!("m{}", round + 3);
        let has_begun = async || world.maps().get_opt(&name).await.unwrap().is_some();
        slipway_testkit::wait::until(crate::stand_in::TIMEOUT, "it began", has_begun).await;
        agent.stop().await;
        if round == 3 {
            world.server.script(|calls| calls.failing_events = 0);
            world.run_once().await.unwrap();
            world.server.reported(&object, "DEPLOY", "SUCCESS").await;
        }
    }
    let expected: Vec<String> = (3..15).map(|index| format!("m{index}")).collect();
    let mut found: Vec<_> = world.values().await.into_keys().collect();
    found.sort_by_key(|name| name[1..].parse::<u32>().unwrap());
    assert_eq!(found, expected);
}

/// Two agents with one key on one cluster do the same work and no harm.
#[tokio::test]
async fn two_agents_with_one_key_converge() {
    let Some(world) = World::new("two").await else { return };
    let (one, two) = (world.agent(), world.agent());
    for round in 0..3 {
        let content: String = (0..6)
            .map(|index| world.map(&format!("m{}", index + round), &round.to_string()))
            .collect();
        let object = world.server.offer(1, &content);
        world.server.reported(&object, "DEPLOY", "SUCCESS").await;
    }
    let expected: Vec<_> = (2..8).map(|index| (format!("m{index}"), "2".to_owned())).collect();
    slipway_testkit::wait::until(crate::stand_in::TIMEOUT, "the last object", async || {
        let found: Vec<_> = world.values().await.into_iter().collect();
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    let marker = world.server.mark(1);
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    world.expect(&[]).await;
    world.server.polled(2).await;
    one.stop().await;
    two.stop().await;
    let calls = world.server.calls();
    assert!(calls.events.iter().all(|event| event.status == "SUCCESS"), "{:?}", calls.events);
}

/// The namespace of the inventory is gone, as on a cluster that was made anew.
#[tokio::test]
async fn a_cluster_that_knows_nothing_gets_everything_anew_and_loses_nothing() {
    let Some(world) = World::new("replaced").await else { return };
    world.server.offer(1, &world.map("a", "1"));
    world.server.offer(2, &world.map("b", "1"));
    world.run_once().await.unwrap();
    let inventory = Api::<ConfigMap>::namespaced(world.client.clone(), &world.home);
    let all = inventory.list(&Default::default()).await.unwrap();
    for map in all.items.iter().filter(|map| map.name_any().starts_with("slipway-")) {
        inventory.delete(&map.name_any(), &DeleteParams::default()).await.unwrap();
    }
    world.server.withdraw(2);
    let object = world.server.offer(1, &world.map("a", "2"));
    world.run_once().await.unwrap();
    world.server.reported(&object, "DEPLOY", "SUCCESS").await;
    world.expect(&[("a", "2"), ("b", "1")]).await;
    // The same with the inventory of another cluster, as a backup brings it.
    let root = format!("slipway-agent-{}", crate::stand_in::AGENT);
    let other = inventory.get(&root).await.unwrap().data.unwrap()["slipway"]
        .replace("cluster\":\"", "cluster\":\"x");
    let patch = Patch::Merge(json!({ "data": { "slipway": other } }));
    inventory.patch(&root, &PatchParams::default(), &patch).await.unwrap();
    for map in world.inventory().await {
        let other = map.data.clone().unwrap()["slipway"].replace("cluster\":\"", "cluster\":\"x");
        let patch = Patch::Merge(json!({ "data": { "slipway": other } }));
        inventory.patch(&map.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }
    world.server.withdraw(1);
    world.run_once().await.unwrap();
    world.expect(&[("a", "2"), ("b", "1")]).await;
    let again = world.server.offer(1, &world.map("a", "3"));
    world.run_once().await.unwrap();
    world.server.reported(&again, "DEPLOY", "SUCCESS").await;
    world.expect(&[("a", "3"), ("b", "1")]).await;
}
