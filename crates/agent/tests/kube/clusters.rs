//! One key, and more than one cluster: a second process elsewhere, and a process whose kubeconfig
//! leads to another cluster. Each cluster has an inventory of its own, so nothing is deleted on
//! one because of what another has.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use slipway_testkit::kube::{ADMIN, KubeEnvironment, Options};
use slipway_testkit::wait;

use crate::stand_in::{Agent, TIMEOUT};
use crate::world::World;

/// Another cluster with the same namespace.
async fn second(world: &World, test: &str) -> Option<(KubeEnvironment, World)> {
    let other = KubeEnvironment::for_test(test, Options::default()).await?;
    let client = other.client(ADMIN).await.unwrap();
    let namespace = json!({ "metadata": { "name": world.namespace } });
    let namespace: Namespace = serde_json::from_value(namespace).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let there = world.elsewhere(client, &other.kubeconfig(ADMIN)).await;
    Some((other, there))
}

async fn until_has(world: &World, expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    wait::until(TIMEOUT, "the content", async || {
        let found: Vec<_> = world.values().await.into_iter().collect();
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Both deploy. A marker ends with the first success, so the other one sees the stack absent: it
/// is many of its objects, and a person decides.
#[tokio::test]
async fn two_processes_with_one_key_on_two_clusters_keep_to_their_own() {
    let Some(here) = World::new("two clusters").await else { return };
    let Some((_other, there)) = second(&here, "two clusters").await else { return };
    // Somebody's own object there has the name of one of ours here.
    let theirs = json!({ "metadata": { "name": "c" }, "data": { "value": "theirs" } });
    let theirs = serde_json::from_value(theirs).unwrap();
    there.maps().create(&PostParams::default(), &theirs).await.unwrap();
    here.server.offer(1, &(here.map("a", "1") + &here.map("c", "1")));
    here.run_once().await.unwrap();
    let refused = there.run_once_by(&here.server).await.unwrap_err();
    assert!(refused.to_string().contains("ConfigMap"), "{refused}");
    there.expect(&[("c", "theirs")]).await;
    here.server.offer(1, &(here.map("a", "2") + &here.map("b", "2")));
    for world in [&here, &there] {
        world.run_once_by(&here.server).await.unwrap();
    }
    here.expect(&[("a", "2"), ("b", "2")]).await;
    there.expect(&[("a", "2"), ("b", "2"), ("c", "theirs")]).await;

    let marker = here.server.mark(1);
    here.run_once().await.unwrap();
    here.server.reported(&marker, "DELETE", "SUCCESS").await;
    here.expect(&[]).await;
    there.run_once_by(&here.server).await.unwrap_err();
    there.expect(&[("a", "2"), ("b", "2"), ("c", "theirs")]).await;
    let refusal = here.server.calls().refusals.pop().unwrap();
    assert_eq!((refusal.objects, refusal.total), (2, 2));
    here.server.script(|calls| calls.confirmed = vec![refusal.digest]);
    there.run_once_by(&here.server).await.unwrap();
    there.expect(&[("c", "theirs")]).await;
}

/// The kubeconfig of a process that runs leads to another cluster, and back.
#[tokio::test]
async fn an_agent_whose_cluster_is_replaced_deploys_anew_and_deletes_nothing() {
    let Some(here) = World::new("replaced cluster").await else { return };
    let Some((other, there)) = second(&here, "replaced cluster").await else { return };
    let agent = Agent::start(here.server.options(here.target()));
    let first = here.server.offer(1, &(here.map("a", "1") + &here.map("b", "1")));
    here.server.reported(&first, "DEPLOY", "SUCCESS").await;
    here.expect(&[("a", "1"), ("b", "1")]).await;

    here.reach_by(&other.kubeconfig(ADMIN));
    until_has(&there, &[("a", "1"), ("b", "1")]).await;
    let second = here.server.offer(1, &here.map("b", "2"));
    here.server.reported(&second, "DEPLOY", "SUCCESS").await;
    there.expect(&[("b", "2")]).await;
    here.expect(&[("a", "1"), ("b", "1")]).await;

    // Back: the inventory here knows what is stale here.
    here.reach_by(&here.kubernetes.kubeconfig(ADMIN));
    until_has(&here, &[("b", "2")]).await;
    there.expect(&[("b", "2")]).await;
    agent.stop().await;
}
