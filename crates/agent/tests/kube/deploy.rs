//! What is offered arrives: order, trials, upgrades, drift, health.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::stand_in::{AGENT, stack};
use crate::world::World;

#[tokio::test]
async fn a_stack_is_deployed_upgraded_and_pruned() {
    let Some(world) = World::new("deploy").await else { return };
    let first = world.server.offer(1, &(world.map("a", "1") + &world.map("b", "1")));
    world.run_once().await.unwrap();
    world.server.reported(&first, "DEPLOY", "SUCCESS").await;
    world.expect(&[("a", "1"), ("b", "1")]).await;
    let live = world.maps().get("a").await.unwrap();
    let label = |key: &str| live.labels()[&format!("fleet.slipway.dev/{key}")].clone();
    assert_eq!(
        (label("installation"), label("agent"), label("stack")),
        (world.server.calls().installation, AGENT.to_owned(), stack(1))
    );
    assert_eq!(live.annotations()["fleet.slipway.dev/deployment-object"], first);
    world.server.offer(1, &(world.map("b", "2") + &world.map("c", "1")));
    world.run_once().await.unwrap();
    world.expect(&[("b", "2"), ("c", "1")]).await;
    // Nothing new: nothing is written and nothing said.
    let version = world.maps().get("b").await.unwrap().resource_version();
    world.run_once().await.unwrap();
    assert_eq!(world.maps().get("b").await.unwrap().resource_version(), version);
    assert_eq!(world.server.calls().events.len(), 2);
    // The inventory has references and no content.
    let [held] = &world.inventory().await[..] else { panic!() };
    let text = json!(held.data).to_string();
    assert!(text.contains("configmaps") && !text.contains("value"), "{text}");
}

/// Kinds with allocators and defaults, a namespace, and a kind that the stack defines
/// itself, in the worst order.
#[tokio::test]
async fn namespaces_and_definitions_come_first() {
    let Some(world) = World::new("order").await else { return };
    let (own, group) =
        (format!("{}-own", world.namespace), format!("{}.example.org", world.namespace));
    let content = format!(
        "
apiVersion: {group}/v1
kind: Thing
metadata: {{name: t, namespace: {own}}}
spec: {{size: 3}}
---
apiVersion: v1
kind: Service
metadata: {{name: s, namespace: {own}}}
spec: {{ports: [{{port: 80, protocol: TCP}}], selector: {{app: x}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: d, namespace: {own}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: x}}}}
  template:
    metadata: {{labels: {{app: x}}}}
    spec: {{containers: [{{name: c, image: i, ports: [{{containerPort: 80, protocol: TCP}}]}}]}}
---
apiVersion: v1
kind: Secret
metadata: {{name: p, namespace: {own}}}
stringData: {{password: hidden}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: a, namespace: {own}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: {own}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: Thing, plural: things, singular: thing}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}}
"
    );
    let object = world.server.offer(1, &content);
    let agent = world.agent();
    world.server.reported(&object, "DEPLOY", "SUCCESS").await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Thing"));
    let things = Api::<DynamicObject>::namespaced_with(world.client.clone(), &own, &resource);
    assert_eq!(things.get("t").await.unwrap().data["spec"]["size"], 3);
    let services = Api::<Service>::namespaced(world.client.clone(), &own);
    let address = services.get("s").await.unwrap().spec.unwrap().cluster_ip;
    assert!(Api::<Secret>::namespaced(world.client.clone(), &own).get("p").await.is_ok());
    let [held] = &world.inventory().await[..] else { panic!() };
    assert!(!json!(held.data).to_string().contains("hidden"));

    // Without ready pods it is degraded; ready, healthy.
    let deployments = Api::<Deployment>::namespaced(world.client.clone(), &own);
    let health = |status: &'static str| {
        let object = object.clone();
        move |calls: &crate::stand_in::Calls| {
            let last = calls.healths.iter().flat_map(|one| &one.deployment_objects).next_back();
            last.is_some_and(|one| one.id == object && one.status == status)
        }
    };
    world.server.until("degraded", health("degraded")).await;
    let status =
        json!({ "status": { "observedGeneration": 1, "replicas": 2, "readyReplicas": 2 } });
    let parameters = PatchParams::default();
    deployments.patch_status("d", &parameters, &Patch::Merge(status)).await.unwrap();
    world.server.until("healthy", health("healthy")).await;

    // Upgraded: what the server allocated stays.
    let upgraded = content.replace("port: 80, ", "port: 81, ").replace("size: 3", "size: 4");
    let second = world.server.offer(1, &upgraded);
    world.server.reported(&second, "DEPLOY", "SUCCESS").await;
    assert_eq!(things.get("t").await.unwrap().data["spec"]["size"], 4);
    let spec = services.get("s").await.unwrap().spec.unwrap();
    assert_eq!((spec.cluster_ip, spec.ports.unwrap()[0].port), (address, 81));

    // Everything goes, what holds the rest last.
    let marker = world.server.mark(1);
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    assert!(Api::<Namespace>::all(world.client.clone()).get_opt(&own).await.unwrap().is_none());
    let definitions = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let definitions = Api::<DynamicObject>::all_with(world.client.clone(), &definitions);
    assert!(definitions.get_opt(&format!("things.{group}")).await.unwrap().is_none());
    agent.stop().await;
}

#[tokio::test]
async fn one_refused_object_of_twenty_keeps_all_of_them_out() {
    let Some(world) = World::new("refused").await else { return };
    let first = world.server.offer(1, &world.map("m0", "1"));
    world.run_once().await.unwrap();
    world.server.reported(&first, "DEPLOY", "SUCCESS").await;
    let mut content: String = (0..19).map(|index| world.map(&format!("m{index}"), "2")).collect();
    // The API server wants texts there.
    content.push_str(&world.map("m19", "2").replace("'2'", "[1]"));
    let wrong = world.server.offer(1, &content);
    let refused = world.run_once().await.unwrap_err();
    assert!(refused.to_string().contains("m19"), "{refused}");
    let report = world.server.reported(&wrong, "DEPLOY", "FAILURE").await;
    let message = report.message.unwrap();
    assert!(
        message.contains("m19") && message.contains("nothing of the stack was changed"),
        "{message}"
    );
    world.expect(&[("m0", "1")]).await;
    // A refusal quotes no content of a Secret.
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {}}}\nstringData: {{p: [hunter2]}}\n",
        world.namespace
    );
    let quoted = world.server.offer(2, &secret);
    world.run_once().await.unwrap_err();
    let message = world.server.reported(&quoted, "DEPLOY", "FAILURE").await.message.unwrap();
    assert!(message.contains("Secret") && !message.contains("hunter2"), "{message}");
    world.server.mark(2);
    let right = world.server.offer(1, &content.replace("[1]", "'2'"));
    world.run_once().await.unwrap();
    world.server.reported(&right, "DEPLOY", "SUCCESS").await;
    assert_eq!(world.values().await.len(), 20);
    // A kind that nobody knows is refused as a whole too.
    let unknown = "---\napiVersion: none.example.org/v1\nkind: None\nmetadata: {name: x}\n";
    let wrong = world.server.offer(1, &(world.map("m0", "3") + unknown));
    world.run_once().await.unwrap_err();
    let report = world.server.reported(&wrong, "DEPLOY", "FAILURE").await;
    assert!(report.message.unwrap().contains("none.example.org"));
    assert_eq!(world.values().await["m0"], "2");
}

#[tokio::test]
async fn drift_is_repaired_and_reported() {
    let Some(world) = World::new("drift").await else { return };
    let object = world.server.offer(1, &(world.map("a", "1") + &world.map("b", "1")));
    let agent = world.agent();
    world.server.reported(&object, "DEPLOY", "SUCCESS").await;
    let drifts = |number: usize| {
        move |calls: &crate::stand_in::Calls| {
            let drifts = calls.events.iter().filter(|event| event.event_type == "DRIFT");
            drifts.filter(|event| event.status == "SUCCESS").count() == number
        }
    };
    world.edit("a", "2").await;
    world.server.until("a repair", drifts(1)).await;
    world.expect(&[("a", "1"), ("b", "1")]).await;
    world.delete("b").await;
    world.server.until("another repair", drifts(2)).await;
    world.expect(&[("a", "1"), ("b", "1")]).await;
    // What others add is none of ours.
    let patch =
        Patch::Merge(json!({ "metadata": { "labels": { "team": "x" } }, "data": { "more": "y" } }));
    world.maps().patch("a", &PatchParams::default(), &patch).await.unwrap();
    world.server.polled(3).await;
    assert_eq!(world.maps().get("a").await.unwrap().data.unwrap()["more"], "y");
    assert!(drifts(2)(&world.server.calls()));
    assert_eq!(world.maps().list(&ListParams::default()).await.unwrap().items.len(), 2);
    agent.stop().await;
}
