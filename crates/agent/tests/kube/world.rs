//! One test's part of the cluster: a namespace for what is deployed, one for the
//! inventory, and a control plane.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams,
};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize as _;
use serde_json::json;
use slipway_agent::fleet::{Access, Error, Target};
use slipway_testkit::kube::{ADMIN, FaultProxy, KubeEnvironment, shared};

use crate::stand_in::{self, Agent, StandIn};

/// Unique within this process, which is enough: each process starts new servers.
fn number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

pub(crate) struct World {
    pub(crate) kubernetes: &'static KubeEnvironment,
    pub(crate) server: StandIn,
    /// The test's own, with all rights.
    pub(crate) client: Client,
    /// Where stacks go.
    pub(crate) namespace: String,
    /// Where the agent keeps its inventory.
    pub(crate) home: String,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new(test: &str) -> Option<Self> {
        let kubernetes = shared(test).await?;
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, kubernetes.kubeconfig(ADMIN)).unwrap();
        let number = number();
        let world = Self {
            kubernetes,
            server: StandIn::start().await,
            client: kubernetes.client(ADMIN).await.unwrap(),
            namespace: format!("apps-{number}"),
            home: format!("home-{number}"),
            kubeconfig,
            _folder: folder,
        };
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": world.namespace } });
        let namespace = serde_json::from_value(namespace).unwrap();
        let namespaces = Api::<Namespace>::all(world.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        Some(world)
    }

    /// Lets the agent reach the API server through a proxy.
    pub(crate) fn reach_through(&mut self, proxy: &FaultProxy) {
        let kubeconfig = proxy.redirect(&self.kubernetes.kubeconfig(ADMIN));
        std::fs::write(&self.kubeconfig, kubeconfig).unwrap();
    }

    /// Lets the agent use the account that is shipped, and its namespace.
    pub(crate) async fn use_shipped_account(&mut self) {
        self.use_shipped_account_beside("slipway-agent").await;
    }

    /// The same in another namespace, with roles of its own: tests run at the same time.
    pub(crate) async fn use_shipped_account_beside(&mut self, home: &str) {
        self.home = home.to_owned();
        let namespace =
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", self.home);
        let shipped = std::fs::read_to_string("../../deploy/manifests/agent.yaml").unwrap();
        let shipped = shipped.replace("namespace: slipway-agent", &format!("namespace: {home}"));
        let shipped = shipped.replace("name: slipway-agent-", &format!("name: {home}-"));
        let shipped = shipped.replace(
            "resourceNames: [kube-system, slipway-agent]",
            &format!("resourceNames: [kube-system, {home}]"),
        );
        for document in serde_yaml_ng::Deserializer::from_str(&format!("{namespace}---\n{shipped}"))
        {
            let object = serde_json::Value::deserialize(document).unwrap();
            if object.is_null() {
                continue;
            }
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let (group, version) = match text(&object["apiVersion"]).split_once('/') {
                Some((group, version)) => (group.to_owned(), version.to_owned()),
                None => (String::new(), text(&object["apiVersion"])),
            };
            let kind = GroupVersionKind::gvk(&group, &version, &text(&object["kind"]));
            let resource = ApiResource::from_gvk(&kind);
            let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
                Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
                None => Api::all_with(self.client.clone(), &resource),
            };
            let installer = PatchParams::apply("installer").force();
            let name = text(&object["metadata"]["name"]);
            api.patch(&name, &installer, &Patch::Apply(&object)).await.unwrap();
        }
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), &self.home);
        let request = json!({ "spec": {
            "audiences": [self.kubernetes.url()], "expirationSeconds": 600,
        } });
        let request: TokenRequest = serde_json::from_value(request).unwrap();
        let parameters = PostParams::default();
        let answer = accounts.create_token_request("slipway-agent", &parameters, &request).await;
        let token = answer.unwrap().status.unwrap().token;
        let kubeconfig = self.kubernetes.kubeconfig_with_token("slipway-agent", &token);
        std::fs::write(&self.kubeconfig, kubeconfig).unwrap();
    }

    /// Lets the agent use this kubeconfig.
    pub(crate) fn reach_by(&self, kubeconfig: &str) {
        std::fs::write(&self.kubeconfig, kubeconfig).unwrap();
    }

    /// The same namespaces on another cluster, for agents of this world's control plane.
    pub(crate) async fn elsewhere(&self, client: Client, kubeconfig: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig).unwrap();
        Self {
            kubernetes: self.kubernetes,
            server: StandIn::start().await,
            client,
            namespace: self.namespace.clone(),
            home: self.home.clone(),
            kubeconfig: path,
            _folder: folder,
        }
    }

    /// Runs the agent of another world's control plane here.
    pub(crate) async fn run_once_by(&self, server: &StandIn) -> Result<(), Error> {
        stand_in::run_once(server, self.target()).await
    }

    pub(crate) fn target(&self) -> Target {
        Target::Cluster {
            access: Access::Kubeconfig(self.kubeconfig.clone()),
            namespace: Some(self.home.clone()),
        }
    }

    pub(crate) async fn run_once(&self) -> Result<(), Error> {
        stand_in::run_once(&self.server, self.target()).await
    }

    pub(crate) fn agent(&self) -> Agent {
        Agent::start(self.server.options(self.target()))
    }

    /// A ConfigMap of the test's namespace.
    pub(crate) fn map(&self, name: &str, value: &str) -> String {
        stand_in::config_map(&self.namespace, name, value)
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Names and values of the ConfigMaps in the test's namespace.
    pub(crate) async fn values(&self) -> BTreeMap<String, String> {
        let listed = self.maps().list(&ListParams::default()).await.unwrap();
        let values = listed.items.into_iter().map(|map| {
            let value = map.data.as_ref().and_then(|data| data.get("value")).cloned();
            (map.name_any(), value.unwrap_or_default())
        });
        // Every namespace gets this one by the controller manager of newer clusters.
        values.filter(|(name, _)| name != "kube-root-ca.crt").collect()
    }

    pub(crate) async fn expect(&self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(self.values().await, expected);
    }

    /// The ConfigMaps of the inventory, without that of the owner.
    pub(crate) async fn inventory(&self) -> Vec<ConfigMap> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.home);
        let selector = ListParams::default().labels("fleet.slipway.dev/inventory=true");
        maps.list(&selector).await.unwrap().items
    }

    /// Writes a field as somebody at a terminal would.
    pub(crate) async fn edit(&self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({ "data": { "value": value } }));
        let parameters =
            PatchParams { field_manager: Some("hand".to_owned()), ..Default::default() };
        self.maps().patch(name, &parameters, &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.maps().delete(name, &DeleteParams::default()).await.unwrap();
    }
}
