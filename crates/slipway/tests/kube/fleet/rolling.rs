//! A roll-out over three clusters, each with an API server of its own, whose second wave fails.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::kube::{KubeEnvironment, Options, User, shared};
use slipway_testkit::wait;

use super::{Fleet, Site, text};
use crate::control_plane::TIMEOUT;

const LIMITED: &str = "limited";

/// The account of an agent that may deploy ConfigMaps and nothing else.
async fn limit(client: &Client) {
    let name = json!({ "name": "agent-of-config-maps" });
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({ "apiGroups": groups, "resources": resources, "verbs": verbs });
    let role = json!({ "metadata": name, "rules": [
        rule(&[""], &["configmaps"], &["get", "list", "create", "patch", "delete"]),
        rule(&[""], &["namespaces"], &["get", "create", "patch"]),
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["get"]),
    ] });
    let role: ClusterRole = serde_json::from_value(role).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({
        "metadata": name,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "agent-of-config-maps",
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": LIMITED,
        }],
    });
    let binding: ClusterRoleBinding = serde_json::from_value(binding).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &binding).await.unwrap();
}

impl Site {
    async fn services(&self) -> Vec<String> {
        let services = Api::<Service>::namespaced(self.client.clone(), &self.namespace);
        let listed = services.list(&ListParams::default()).await.unwrap();
        listed.iter().map(kube::ResourceExt::name_any).collect()
    }
}

impl Fleet {
    async fn label(&self, site: &Site, label: &str) {
        let body = json!({ "agent_id": site.agent_id, "label": label });
        self.post(&format!("/agents/{}/labels", site.agent_id), body).await;
    }

    /// Waits until the newest roll-out of the stack is in this state.
    async fn rollout(&self, state: &str) -> Value {
        let path = format!("/rollouts?subject={}", self.stack_id);
        wait::until(TIMEOUT, state, async || {
            let found = self.get(&path).await;
            let newest =
                found.as_array().unwrap().iter().max_by_key(|one| text(&one["requested_at"]));
            let newest = newest.cloned().unwrap_or_default();
            if newest["state"] == state { Ok(newest) } else { Err(newest.to_string()) }
        })
        .await
    }

    /// The states of the agents of these sites in a roll-out.
    async fn members(&self, rollout: &Value, sites: [&Site; 3]) -> [String; 3] {
        let path = format!("/rollouts/{}/members", text(&rollout["id"]));
        let found = self.get(&path).await;
        sites.map(|site| {
            let mut members = found.as_array().unwrap().iter();
            let member = members.find(|member| member["id"] == *site.agent_id);
            text(&member.unwrap()["state"])
        })
    }

    /// The newest object of the stack.
    async fn newest(&self) -> String {
        let found = self.get(&format!("/stacks/{}/deployment-objects", self.stack_id)).await;
        let newest = found.as_array().unwrap().iter().max_by_key(|one| one["sequence_id"].as_i64());
        text(&newest.unwrap()["id"])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_out_that_fails_in_its_second_wave_leaves_every_cluster_exactly_right() {
    let test = "a_roll_out_that_fails_in_its_second_wave";
    let Some(first) = shared(test).await else { return };
    let limited = Options { users: vec![User::named(LIMITED)], ..Options::default() };
    let (second, third) = tokio::join!(
        KubeEnvironment::for_test(test, limited),
        KubeEnvironment::for_test(test, Options::default())
    );
    let (Some(second), Some(third)) = (second, third) else { return };
    let fleet = Fleet::start("rolling").await;
    let one = fleet.join(first, "one").await;
    let two = fleet.join(&second, "two").await;
    let three = fleet.join(&third, "three").await;
    limit(&two.client).await;
    two.reach_by(&second.kubeconfig(LIMITED));
    fleet.label(&one, "early").await;
    fleet.label(&two, "later").await;
    let _agents = [one.run(), two.run(), three.run()];
    let sites = [&one, &two, &three];

    let old = [("a", "1"), ("b", "1")];
    fleet.submit(&old).await;
    for site in sites {
        site.expect(&old).await;
    }
    let strategy = json!({ "waves": ["early", "later"] });
    let path = format!("/stacks/{}/strategy", fleet.stack_id);
    fleet.call(Method::PUT, &path, Some(strategy), 200).await;

    // The new version has a Service, which the account of the second agent may not make.
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "s", "namespace": fleet.namespace },
        "spec": { "ports": [{ "port": 80, "protocol": "TCP" }] },
    });
    let new = [fleet.map("a", "2"), fleet.map("c", "2"), service.to_string()];
    fleet.submit_all(&new).await;
    let rollout = fleet.rollout("paused").await;
    let reason = text(&rollout["message"]);
    assert!(reason.contains("services") && reason.contains("grant"), "{reason}");
    assert_eq!(fleet.members(&rollout, sites).await, ["healthy", "failed", "waiting"]);
    one.expect(&[("a", "2"), ("c", "2")]).await;
    assert_eq!(one.services().await, ["s"]);
    for site in [&two, &three] {
        site.expect(&old).await;
        assert_eq!(site.services().await, [""; 0], "{}", site.log());
    }

    // Back: the first wave gets the old content again, as a new object.
    let submitted = fleet.newest().await;
    let back = format!("/rollouts/{}/roll-back", text(&rollout["id"]));
    fleet.post(&back, json!({ "reason": "test" })).await;
    fleet.rollout("rolled_back").await;
    let newest = fleet.newest().await;
    assert_ne!(newest, submitted, "numbers only rise");
    for site in sites {
        site.expect(&old).await;
        assert_eq!(site.services().await, [""; 0], "{}", site.log());
    }
    // Everybody ends with the object that went back, and says so.
    for site in sites {
        wait::until(TIMEOUT, "a success on the newest object", async || {
            let reports = fleet.reports(site, &newest).await;
            let is_done = reports == [("DEPLOY".to_owned(), "SUCCESS".to_owned())];
            if is_done { Ok(()) } else { Err(format!("{reports:?}\n{}", site.log())) }
        })
        .await;
    }
}
