//! Whose an object is: other stacks, other agents, other tools, and nobody.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn what_belongs_to_somebody_else_is_refused_with_the_owner_named() {
    let Some(world) = World::new("owners").await else { return };
    world.server.offer(1, &world.map("a", "1"));
    world.run_once().await.unwrap();
    // Another stack of the same agent.
    let second = world.server.offer(2, &(world.map("b", "2") + &world.map("a", "2")));
    world.run_once().await.unwrap_err();
    let message = world.server.reported(&second, "DEPLOY", "FAILURE").await.message.unwrap();
    assert!(
        message.contains("of this agent") && message.contains("nothing was applied"),
        "{message}"
    );
    world.expect(&[("a", "1")]).await;
    // Another agent, and a release of Helm.
    let label = json!({ "metadata": { "labels": { "fleet.slipway.dev/agent": "another" } } });
    world.maps().patch("a", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    let upgraded = world.server.offer(1, &world.map("a", "3"));
    world.server.mark(2);
    world.run_once().await.unwrap_err();
    let message = world.server.reported(&upgraded, "DEPLOY", "FAILURE").await.message.unwrap();
    assert!(message.contains("the agent another"), "{message}");
    let helm =
        json!({ "metadata": { "name": "h", "annotations": { "meta.helm.sh/release-name": "x" } } });
    let helm: ConfigMap = serde_json::from_value(helm).unwrap();
    world.maps().create(&PostParams::default(), &helm).await.unwrap();
    let third = world.server.offer(3, &world.map("h", "1"));
    world.run_once().await.unwrap_err();
    let message = world.server.reported(&third, "DEPLOY", "FAILURE").await.message.unwrap();
    assert!(message.contains("Helm"), "{message}");
    // A removal leaves it where it is.
    world.server.mark(1);
    world.server.mark(3);
    world.run_once().await.unwrap();
    world.expect(&[("a", "1"), ("h", "")]).await;
}

/// An object that nobody marked is taken if nobody else wants its fields otherwise. A
/// namespace that was there before is let go, and not deleted.
#[tokio::test]
async fn what_is_nobodys_is_adopted() {
    let Some(world) = World::new("adopt").await else { return };
    let mine = |value: &str| {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" },
            "data": { "value": value } });
        (map, PatchParams::apply("somebody").force())
    };
    let (map, parameters) = mine("1");
    world.maps().patch("a", &parameters, &Patch::Apply(&map)).await.unwrap();
    let conflicting = world.server.offer(1, &world.map("a", "2"));
    world.run_once().await.unwrap_err();
    let message = world.server.reported(&conflicting, "DEPLOY", "FAILURE").await.message.unwrap();
    assert!(message.contains("somebody"), "{message}");
    world.expect(&[("a", "1")]).await;
    let namespace =
        format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", world.namespace);
    let equal = world.server.offer(1, &(world.map("a", "1") + &namespace));
    world.run_once().await.unwrap();
    world.server.reported(&equal, "DEPLOY", "SUCCESS").await;
    let marker = world.server.mark(1);
    world.run_once().await.unwrap();
    let message = world.server.reported(&marker, "DELETE", "SUCCESS").await.message.unwrap();
    assert!(message.contains("was there before"), "{message}");
    world.expect(&[]).await;
    let namespaces = Api::<Namespace>::all(world.client.clone());
    let live = namespaces.get(&world.namespace).await.unwrap();
    assert!(live.metadata.deletion_timestamp.is_none());
    let marks =
        json!(live.metadata.labels).to_string() + &json!(live.metadata.annotations).to_string();
    assert!(!marks.contains("fleet.slipway.dev"), "{marks}");
}

#[tokio::test]
async fn a_stack_does_not_write_the_inventory() {
    let Some(world) = World::new("inventory").await else { return };
    let name = format!("slipway-stack-{}-{}", crate::stand_in::stack(1), crate::stand_in::AGENT);
    let object = world.server.offer(1, &crate::stand_in::config_map(&world.home, &name, "1"));
    world.run_once().await.unwrap_err();
    let message = world.server.reported(&object, "DEPLOY", "FAILURE").await.message.unwrap();
    assert!(message.contains("inventory"), "{message}");
}

/// With the account of `deploy/manifests/agent.yaml`: what it may deploy is deployed and
/// removed, and what it may not is refused with the right that is missing.
#[tokio::test]
async fn the_shipped_account_suffices_and_a_missing_right_is_named() {
    let Some(mut world) = World::new("account").await else { return };
    world.use_shipped_account().await;
    let object = world.server.offer(1, &world.map("a", "1"));
    world.run_once().await.unwrap();
    world.server.reported(&object, "DEPLOY", "SUCCESS").await;
    let role = format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: r, namespace: {}}}\nrules: []\n",
        world.namespace
    );
    let wrong = world.server.offer(1, &(world.map("a", "2") + &role));
    world.run_once().await.unwrap_err();
    let message = world.server.reported(&wrong, "DEPLOY", "FAILURE").await.message.unwrap();
    assert!(message.contains("roles") && message.contains("grant it"), "{message}");
    world.expect(&[("a", "1")]).await;
    world.server.mark(1);
    world.run_once().await.unwrap();
    world.expect(&[]).await;
}
