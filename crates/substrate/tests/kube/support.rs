//! An engine on an API server, composites as the renderer makes them, and the
//! server's audit records of the requests.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use slipway_app::ports::substrate::{Address, Substrate};
use slipway_core::broker::attempt::{ProvisionedResource, StoredAttempt, derive_xr_name};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::{
    BlueprintVersion, CompositeScope, CompositeType, Engine, InjectionStrategy,
};
use slipway_core::catalog::parameters::ParameterValues;
use slipway_core::fixtures::{mk_blueprint, mk_placement, mk_snapshot, mk_stored_attempt};
use slipway_core::ids::{BootstrapTokenId, ClaimToken, InstallationId, ProvisionedResourceId};
use slipway_core::placement::namespace::Placement;
use slipway_core::secret::Secret;
use slipway_render::injection::Injection;
use slipway_render::{NodeSettings, RenderedComposite, composite_of};
use slipway_substrate::crossplane::{Access, CrossplaneConfig, CrossplaneSubstrate};
use slipway_testkit::kube::{ADMIN, AuditRecord, KubeEnvironment, shared};
use slipway_testkit::wait::until;
use tokio::sync::OnceCell;
use uuid::Uuid;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// Long enough that no sweep disturbs a test that counts requests.
pub(crate) const NO_SWEEP: Duration = Duration::from_secs(600);

pub(crate) const TOKEN: &str = "psb_live_aaaaaaaaaaaaaaaaaaaaaaaaaa_node_bbbbbbbbbbbbbbbbbbbbbbbb";
pub(crate) const TOKEN_ID: Uuid = Uuid::from_u128(20);

/// Unique within this process, which is enough: each process starts new servers.
fn number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(1_000);
    LAST.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn mk_kind(kind: &str, scope: CompositeScope) -> CompositeType {
    CompositeType {
        group: "nodes.example.org".to_owned(),
        version: "v1alpha1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        scope,
    }
}

/// A kind that accepts any parameters.
pub(crate) fn loose() -> CompositeType {
    mk_kind("XServer", CompositeScope::Namespaced)
}

/// A kind that declares its parameters, one of them with a default.
pub(crate) fn typed() -> CompositeType {
    mk_kind("XTyped", CompositeScope::Namespaced)
}

pub(crate) fn global() -> CompositeType {
    mk_kind("XGlobal", CompositeScope::Cluster)
}

fn definition(kind: &CompositeType) -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let mut parameters = any.clone();
    if kind.kind == "XTyped" {
        parameters = json!({ "type": "object", "properties": {
            "busy_seconds": { "type": "integer" },
            "size": { "type": "string", "default": "small" },
            "helmValues": any,
            "providerSecret": any,
        } });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", kind.plural, kind.group),
            // Kubernetes wants it in groups that end in k8s.io.
            "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" },
        },
        "spec": {
            "group": kind.group,
            "scope": kind.scope.as_str(),
            "names": { "kind": kind.kind, "plural": kind.plural, "singular": kind.kind.to_lowercase() },
            "versions": [{
                "name": kind.version, "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": {
                        "parameters": parameters,
                        "userData": { "type": "string" },
                        "zone": { "type": "string", "default": "somewhere" },
                        "resourceRefs": { "type": "array", "items": any },
                        "endpoint": any,
                        "credentials": any,
                    } },
                    "status": any,
                } } },
            }],
        },
    })
}

/// Defines a kind and waits until it is served.
pub(crate) async fn define(client: &Client, kind: &CompositeType) {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let body = definition(kind);
    let name = body["metadata"]["name"].as_str().unwrap().to_owned();
    let parameters = PatchParams::apply("test");
    definitions.patch(&name, &parameters, &Patch::Apply(&body)).await.unwrap();
    let objects = Api::<DynamicObject>::all_with(client.clone(), &resource(kind));
    until(TIMEOUT, "the kind is served", async || objects.list(&Default::default()).await).await;
}

pub(crate) fn resource(kind: &CompositeType) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    }
}

/// Engine, namespace and installation of one test on an environment.
pub(crate) struct Bench {
    pub(crate) kubernetes: &'static KubeEnvironment,
    /// The test's own client, with all rights.
    pub(crate) client: Client,
    pub(crate) engine: CrossplaneSubstrate,
    pub(crate) installation: InstallationId,
    pub(crate) namespace: String,
    /// The engine's kubeconfig, for tests that replace it.
    pub(crate) kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn new(test: &str) -> Option<Self> {
        let kubeconfig = shared(test).await?.kubeconfig(ADMIN);
        Self::through(test, &kubeconfig, None).await
    }

    /// A bench on the shared environment, with this kubeconfig.
    pub(crate) async fn through(
        test: &str,
        kubeconfig: &str,
        sweep: Option<Duration>,
    ) -> Option<Self> {
        static DEFINED: OnceCell<()> = OnceCell::const_new();
        let kubernetes = shared(test).await?;
        Some(Self::on(kubernetes, kubeconfig, sweep.unwrap_or(NO_SWEEP), &DEFINED).await)
    }

    pub(crate) async fn on(
        kubernetes: &'static KubeEnvironment,
        kubeconfig_text: &str,
        sweep: Duration,
        defined: &OnceCell<()>,
    ) -> Self {
        let client = kubernetes.client(ADMIN).await.unwrap();
        defined
            .get_or_init(|| async {
                for kind in [loose(), typed(), global()] {
                    define(&client, &kind).await;
                }
            })
            .await;
        let namespace = format!("slipway-project-{}", number());
        make_namespace(&client, &namespace).await;
        let installation = InstallationId::new(Uuid::from_u128(number().into()));
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_text).unwrap();
        let engine = mk_engine(&kubeconfig, installation, sweep);
        compare_mark(&engine).await;
        Self { kubernetes, client, engine, installation, namespace, kubeconfig, _folder: folder }
    }

    /// Another replica.
    pub(crate) async fn another_engine(&self) -> CrossplaneSubstrate {
        let engine = mk_engine(&self.kubeconfig, self.installation, NO_SWEEP);
        compare_mark(&engine).await;
        engine
    }

    /// A composite of this test, which the test may change.
    pub(crate) fn composite(&self, kind: CompositeType) -> Composite {
        Composite {
            id: ProvisionedResourceId::new(Uuid::from_u128(number().into())),
            installation: self.installation,
            namespace: self.namespace.clone(),
            kind,
            strategy: InjectionStrategy::CloudInitUserData,
            busy_seconds: 3,
            claim_token: 3,
            injection: fresh(TOKEN),
        }
    }

    pub(crate) fn objects(&self, composite: &Composite) -> Api<DynamicObject> {
        let (client, resource) = (self.client.clone(), resource(&composite.kind));
        match composite.kind.scope {
            CompositeScope::Namespaced => Api::namespaced_with(client, &self.namespace, &resource),
            CompositeScope::Cluster => Api::all_with(client, &resource),
        }
    }

    /// The object as the server has it.
    pub(crate) async fn object(&self, composite: &Composite) -> Value {
        let object = self.objects(composite).get(&composite.name()).await.unwrap();
        serde_json::to_value(object).unwrap()
    }

    pub(crate) async fn object_exists(&self, composite: &Composite) -> bool {
        self.objects(composite).get_opt(&composite.name()).await.unwrap().is_some()
    }

    /// Writes as somebody else does, without server-side apply.
    pub(crate) async fn write(&self, composite: &Composite, change: Value) {
        let parameters =
            PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        let objects = self.objects(composite);
        objects.patch(&composite.name(), &parameters, &Patch::Merge(&change)).await.unwrap();
    }

    pub(crate) async fn conditions(&self, composite: &Composite, conditions: Value) {
        let body = json!({ "status": { "conditions": conditions } });
        let (objects, parameters) = (self.objects(composite), PatchParams::default());
        objects.patch_status(&composite.name(), &parameters, &Patch::Merge(&body)).await.unwrap();
    }

    /// Sets the conditions of a composition that is ready.
    pub(crate) async fn make_ready(&self, composite: &Composite) {
        self.conditions(composite, json!([{ "type": "Ready", "status": "True" }])).await;
    }

    pub(crate) async fn report(&self, composite: &Composite) -> CompositeReport {
        report(&self.engine, &composite.address()).await
    }

    pub(crate) async fn live(&self, composite: &Composite) -> LiveComposite {
        match self.report(composite).await {
            CompositeReport::Present(live) => *live,
            other => panic!("expected a live composite: {other:?}"),
        }
    }

    pub(crate) async fn until(
        &self,
        composite: &Composite,
        what: &str,
        condition: impl Fn(&CompositeReport) -> bool,
    ) -> CompositeReport {
        until(TIMEOUT, what, async || {
            let report = self.report(composite).await;
            if condition(&report) { Ok(report) } else { Err(format!("{report:?}")) }
        })
        .await
    }

    /// Applies, and waits until the index has what the server has, so that the
    /// index answers the next observation.
    pub(crate) async fn apply(&self, composite: &Composite) -> LiveComposite {
        self.engine.apply(&composite.rendered()).await.unwrap();
        self.live(composite).await
    }

    /// All requests so far about this test's namespace or installation, except
    /// those on subresources, which only the tests send. Includes every request
    /// that was answered before the call.
    pub(crate) fn requests(&self) -> Vec<AuditRecord> {
        let records = self.kubernetes.received().unwrap();
        let installation = self.installation.to_string();
        let mine = |record: &&AuditRecord| {
            let object = record.object.clone().unwrap_or_default();
            object.subresource.is_empty()
                && object.group == "nodes.example.org"
                && (object.namespace == self.namespace || record.uri.contains(&installation))
        };
        records.iter().filter(mine).cloned().collect()
    }

    /// The verbs of the requests that `action` sends, without watches, which
    /// begin at any time.
    pub(crate) async fn verbs_of<T>(&self, action: impl Future<Output = T>) -> (T, Vec<String>) {
        let before = self.requests().len();
        let answer = action.await;
        let after = self.requests();
        let verbs = after[before..].iter().map(|record| record.verb.clone());
        (answer, verbs.filter(|verb| verb != "watch").collect())
    }
}

/// Compares the mark as the first heartbeat does, without which an engine does
/// not act. The mark cannot be raised, because its namespace does not exist; the
/// comparison is enough.
pub(crate) async fn compare_mark(engine: &CrossplaneSubstrate) {
    let read = async || engine.high_water_mark_read(true).await;
    let mark = until(TIMEOUT, "the mark is read", read).await;
    assert_eq!(mark.value, None);
    engine.high_water_mark_compared().await;
}

pub(crate) fn mk_engine(
    kubeconfig: &std::path::Path,
    installation: InstallationId,
    sweep: Duration,
) -> CrossplaneSubstrate {
    CrossplaneSubstrate::new(CrossplaneConfig {
        cluster: "test".to_owned(),
        access: Access::Kubeconfig(kubeconfig.to_owned()),
        installation,
        sweep,
    })
}

pub(crate) async fn report(engine: &CrossplaneSubstrate, address: &Address) -> CompositeReport {
    let mut reports = engine.observe(std::slice::from_ref(address)).await;
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// Waits until the engine reports a change of this attempt, maybe among others.
pub(crate) async fn until_named(engine: &CrossplaneSubstrate, id: ProvisionedResourceId) {
    let named = async { while !engine.changed().await.contains(&id) {} };
    let waited = tokio::time::timeout(TIMEOUT, named).await;
    assert!(waited.is_ok(), "nobody was told that the composite of {id} changed");
}

async fn make_namespace(client: &Client, name: &str) {
    let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.patch(name, &PatchParams::apply("test"), &Patch::Apply(&body)).await.unwrap();
}

pub(crate) fn fresh(token: &str) -> Injection {
    Injection::Fresh { id: BootstrapTokenId::new(TOKEN_ID), token: Secret::new(token) }
}

pub(crate) fn is_unknown(report: &CompositeReport) -> bool {
    matches!(report, CompositeReport::Unknown { .. })
}

pub(crate) fn is_absent(report: &CompositeReport) -> bool {
    matches!(report, CompositeReport::Absent)
}

pub(crate) fn is_ready(report: &CompositeReport) -> bool {
    report.live().is_some_and(|live| live.ready)
}

/// The reason of a report that is Unknown or Foreign.
pub(crate) fn reason(report: &CompositeReport) -> &str {
    match report {
        CompositeReport::Unknown { reason } | CompositeReport::Foreign { reason } => reason,
        other => panic!("expected to be told why: {other:?}"),
    }
}

/// A composite whose fields a test may change.
#[derive(Debug, Clone)]
pub(crate) struct Composite {
    pub(crate) id: ProvisionedResourceId,
    pub(crate) installation: InstallationId,
    pub(crate) namespace: String,
    pub(crate) kind: CompositeType,
    pub(crate) strategy: InjectionStrategy,
    pub(crate) busy_seconds: u64,
    pub(crate) claim_token: i64,
    pub(crate) injection: Injection,
}

impl Composite {
    pub(crate) fn name(&self) -> String {
        derive_xr_name(self.id)
    }

    pub(crate) fn address(&self) -> Address {
        Address {
            provisioned_resource_id: self.id,
            namespace: self.namespace.clone(),
            name: self.name(),
            composite_type: Some(self.kind.clone()),
            substrate_uid: None,
        }
    }

    pub(crate) fn rendered(&self) -> RenderedComposite {
        let settings = NodeSettings {
            installation: self.installation,
            public_url: "https://slipway.example".to_owned(),
            heartbeat_interval_ms: 30_000,
            orphan_after_ms: 600_000,
            node_image: Some("registry.example/plexd:1".to_owned()),
            authorities: None,
        };
        composite_of(&self.snapshot(), &settings, &self.injection).unwrap()
    }

    fn snapshot(&self) -> ResourceSnapshot {
        let values = json!({ "busy_seconds": self.busy_seconds });
        let attempt = StoredAttempt {
            id: self.id,
            xr_name: self.name(),
            parameter_values: ParameterValues::from_stored(serde_json::from_value(values).unwrap()),
            ..mk_stored_attempt(Phase::Pending)
        };
        ResourceSnapshot {
            attempt: ProvisionedResource::hydrate(attempt).unwrap(),
            blueprint: Arc::new(BlueprintVersion {
                engine: Engine::Crossplane,
                composite_type: Some(self.kind.clone()),
                injection_strategy: self.strategy,
                ..mk_blueprint()
            }),
            placement: Some(Placement { namespace: self.namespace.clone(), ..mk_placement() }),
            claim_token: ClaimToken(self.claim_token),
            ..mk_snapshot(Phase::Pending)
        }
    }
}
