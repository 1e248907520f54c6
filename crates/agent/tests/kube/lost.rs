//! Somebody deleted the inventory by hand: a marker finds what carries the marks of its stack, or
//! fails with the kind named that could not be listed.

use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Service};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use slipway_testkit::kube::FaultProxy;

use crate::stand_in::{AGENT, stack};
use crate::world::World;

impl World {
    /// Deletes the inventory of a stack.
    async fn lose(&self, number: u32) {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.home);
        let name = format!("slipway-stack-{}-{AGENT}", stack(number));
        maps.delete(&name, &DeleteParams::default()).await.unwrap();
    }

    fn service(&self, name: &str) -> String {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {}}}\nspec: {{ports: [{{port: 80, protocol: TCP}}]}}\n",
            self.namespace
        )
    }

    fn limits(&self, name: &str) -> String {
        format!(
            "---\napiVersion: v1\nkind: LimitRange\nmetadata: {{name: {name}, namespace: {}}}\nspec: {{limits: [{{type: Container}}]}}\n",
            self.namespace
        )
    }

    async fn limit_ranges(&self) -> Vec<String> {
        let limits = Api::<LimitRange>::namespaced(self.client.clone(), &self.namespace);
        let listed = limits.list(&ListParams::default()).await.unwrap();
        listed.iter().map(ResourceExt::name_any).collect()
    }

    async fn services(&self) -> Vec<String> {
        let services = Api::<Service>::namespaced(self.client.clone(), &self.namespace);
        let listed = services.list(&ListParams::default()).await.unwrap();
        listed.iter().map(ResourceExt::name_any).collect()
    }
}

#[tokio::test]
async fn a_marker_finds_what_a_lost_inventory_does_not_know() {
    let Some(mut world) = World::new("lost").await else { return };
    let own = format!("{}-own", world.namespace);
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {own}}}\n");
    let inside = crate::stand_in::config_map(&own, "inside", "1");
    let role = format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {own}}}\nrules: []\n"
    );
    let content = world.map("a", "1") + &world.service("s") + &role + &namespace + &inside;
    world.server.offer(1, &content);
    world.server.offer(2, &world.map("b", "1"));
    world.run_once().await.unwrap();
    world.lose(1).await;
    let marker = world.server.mark(1);
    world.run_once().await.unwrap();
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    world.expect(&[("b", "1")]).await;
    assert_eq!(world.services().await, [""; 0]);
    let roles = Api::<ClusterRole>::all(world.client.clone());
    assert!(roles.get_opt(&own).await.unwrap().is_none());
    let namespaces = Api::<Namespace>::all(world.client.clone());
    assert!(namespaces.get_opt(&own).await.unwrap().is_none());

    // Kept: the marks go, the objects stay.
    world.server.offer(1, &world.map("a", "2"));
    world.run_once().await.unwrap();
    world.lose(1).await;
    let marker = world.server.mark_kept(1);
    world.run_once().await.unwrap();
    world.server.reported(&marker, "KEEP", "SUCCESS").await;
    let live = world.maps().get("a").await.unwrap();
    assert!(live.labels().is_empty() && live.annotations().is_empty(), "{live:?}");

    // A marker of a stack that the inventory has lists nothing.
    let proxy = FaultProxy::before(world.kubernetes).await;
    world.reach_through(&proxy);
    world.run_once().await.unwrap();
    let before = proxy.exchanges().len();
    let marker = world.server.mark(2);
    world.run_once().await.unwrap();
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    let made = proxy.exchanges().split_off(before);
    let lists: Vec<_> = made.iter().filter(|one| one.path.contains("labelSelector")).collect();
    // Its own inventory, when it begins.
    assert!(lists.iter().all(|one| one.path.contains("inventory%3Dtrue")), "{lists:?}");
}

/// An account that may make LimitRanges and may not list them cannot say that none is left.
#[tokio::test]
async fn a_marker_fails_with_the_kind_that_could_not_be_listed() {
    let Some(mut world) = World::new("unlisted").await else { return };
    let name = json!({ "name": "agent-of-limits" });
    let of_role = |verbs: &[&str]| -> ClusterRole {
        let rule = json!({ "apiGroups": [""], "resources": ["limitranges"], "verbs": verbs });
        serde_json::from_value(json!({ "metadata": name, "rules": [rule] })).unwrap()
    };
    let roles = Api::<ClusterRole>::all(world.client.clone());
    let role = of_role(&["get", "create", "patch", "delete"]);
    roles.create(&PostParams::default(), &role).await.unwrap();
    world.use_shipped_account_beside("slipway-agent-unlisted").await;
    let binding = json!({
        "metadata": name,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "agent-of-limits",
        },
        "subjects": [{
            "kind": "ServiceAccount", "name": "slipway-agent", "namespace": world.home,
        }],
    });
    let binding: ClusterRoleBinding = serde_json::from_value(binding).unwrap();
    Api::all(world.client.clone()).create(&PostParams::default(), &binding).await.unwrap();
    world.server.offer(1, &(world.map("a", "1") + &world.limits("s")));
    world.run_once().await.unwrap();
    world.lose(1).await;

    // What can be found is removed; the rest is named. Kinds that the account may not make,
    // such as nodes, cannot be ours.
    let marker = world.server.mark(1);
    let refused = world.run_once().await.unwrap_err();
    assert!(refused.to_string().contains("list limitranges"), "{refused}");
    let message = world.server.reported(&marker, "DELETE", "FAILURE").await.message.unwrap();
    assert!(message.contains("list limitranges") && !message.contains("nodes"), "{message}");
    world.expect(&[]).await;
    assert_eq!(world.limit_ranges().await, ["s"]);
    // Another process does not believe its inventory either.
    world.run_once().await.unwrap_err();
    assert_eq!(world.limit_ranges().await, ["s"]);

    // With the right, it is found, and success is reported.
    let right = of_role(&["get", "list", "create", "patch", "delete"]);
    let forced = kube::api::PatchParams::apply("test").force();
    let mut body = json!(right);
    body["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
    body["kind"] = json!("ClusterRole");
    roles.patch("agent-of-limits", &forced, &kube::api::Patch::Apply(&body)).await.unwrap();
    slipway_testkit::wait::until(crate::stand_in::TIMEOUT, "the right", async || {
        world.run_once().await.map_err(|error| error.to_string())
    })
    .await;
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    assert_eq!(world.limit_ranges().await, [""; 0]);
}
