//! One cluster through the whole life of a stack.

use reqwest::Method;
use serde_json::json;
use slipway_testkit::kube::shared;
use slipway_testkit::wait;

use super::Fleet;
use crate::control_plane::TIMEOUT;

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_has_what_the_control_plane_says_after_each_change() {
    let Some(kubernetes) = shared("fleet").await else { return };
    let fleet = Fleet::start("life").await;
    let site = fleet.join(kubernetes, "east").await;
    let agent = site.run();
    fleet.submit(&[("a", "1"), ("b", "1")]).await;
    site.expect(&[("a", "1"), ("b", "1")]).await;
    fleet.submit(&[("b", "2"), ("c", "2")]).await;
    site.expect(&[("b", "2"), ("c", "2")]).await;
    let deletion = fleet.delete_stack("").await;
    fleet.delivered(&deletion).await;
    site.expect(&[]).await;
    fleet.restore(&deletion).await;
    site.expect(&[("b", "2"), ("c", "2")]).await;

    // Deleted and brought back while nothing runs, then deleted again.
    drop(agent);
    let deletion = fleet.delete_stack("").await;
    site.expect(&[("b", "2"), ("c", "2")]).await;
    site.run_once().await;
    fleet.delivered(&deletion).await;
    site.expect(&[]).await;
    fleet.restore(&deletion).await;
    site.run_once().await;
    site.expect(&[("b", "2"), ("c", "2")]).await;

    // Taken from this agent alone, and given again.
    let target = format!("/agents/{}/targets/{}", site.agent_id, fleet.stack_id);
    fleet.call(Method::DELETE, &target, None, 204).await;
    site.run_once().await;
    site.expect(&[]).await;
    fleet.target(&site).await;
    site.run_once().await;
    site.expect(&[("b", "2"), ("c", "2")]).await;

    // Kept: the objects stay and are nobody's; restored, they are taken again.
    let deletion = fleet.delete_stack("&keep=true").await;
    site.run_once().await;
    fleet.delivered(&deletion).await;
    site.expect(&[("b", "2"), ("c", "2")]).await;
    fleet.restore(&deletion).await;
    fleet.submit(&[("b", "3")]).await;
    site.run_once().await;
    // What was let go and is no part of the stack any more is not ours to delete.
    site.expect(&[("b", "3"), ("c", "2")]).await;
    let deletion = fleet.delete_stack("").await;
    site.run_once().await;
    site.expect(&[("c", "2")]).await;

    // Restored, it is there again, and deleted again it is gone.
    fleet.restore(&deletion).await;
    site.run_once().await;
    site.expect(&[("b", "3"), ("c", "2")]).await;
    let deletion = fleet.delete_stack("").await;
    site.run_once().await;
    fleet.delivered(&deletion).await;
    site.expect(&[("c", "2")]).await;

    // Everybody is done with it, so it can be erased.
    let purge = format!("/deletions/{deletion}/purge");
    fleet.post(&purge, json!({ "reason": "test", "force": true })).await;
    wait::until(TIMEOUT, "the purge", async || {
        let found = fleet.get(&format!("/deletions/{deletion}")).await;
        if found["state"] == "purged" { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
    let stack = format!("/stacks/{}?show_deleted=true", fleet.stack_id);
    fleet.call(Method::GET, &stack, None, 404).await;
    site.run_once().await;
    site.expect(&[("c", "2")]).await;
}
