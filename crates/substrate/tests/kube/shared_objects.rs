//! What a project's resources share: removals and writes that land late, and what
//! holds a namespace.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::{Map, Value, json};
use slipway_app::ports::substrate::Error;
use slipway_app::ports::{Definitions, Management};
use slipway_cluster::api_resource;
use slipway_core::catalog::blueprint_version::{CompositeScope, CompositeType};
use slipway_core::fixtures::at;
use slipway_core::ids::{CloudCredentialId, CloudId, ClusterId, ProjectId, Revision};
use slipway_core::placement::cluster::ClusterAssignment;
use slipway_core::placement::definitions::{DefinitionKey, DefinitionKind, DefinitionState};
use slipway_core::placement::namespace::{NamespacePhase, NamespaceStatus};
use slipway_core::placement::rules::namespace::Removal;
use slipway_core::placement::rules::residents;
use slipway_core::placement::shared_objects::{ProjectNamespace, ProviderUse, Seen, SharedKind};
use slipway_render::definitions::DefinitionObject;
use slipway_render::shared::{PlacementSettings, SharedObject, objects};
use slipway_testkit::wait::until;
use uuid::Uuid;

use crate::late::Late;
use crate::support::{Bench, TIMEOUT, define, mk_kind};

pub(crate) const PROVIDER: &str = "hetzner";

fn assignment(bench: &Bench) -> ClusterAssignment {
    ClusterAssignment {
        project_id: ProjectId::new(Uuid::from_u128(7)),
        cluster_id: ClusterId::new(Uuid::from_u128(8)),
        namespace: bench.namespace.clone(),
        namespace_phase: NamespacePhase::Ready,
        withdrawn_at: None,
        status: NamespaceStatus::default(),
        revision: Revision::FIRST,
        created_at: at(900),
        updated_at: at(900),
    }
}

/// The ProviderConfig of the project, as it is after so many removals.
pub(crate) fn provider_config(bench: &Bench, removals: u64) -> SharedObject {
    let mut assignment = assignment(bench);
    assignment.status.removals = BTreeMap::from([(format!("ProviderConfig/{PROVIDER}"), removals)]);
    let used = ProviderUse {
        provider: PROVIDER.to_owned(),
        config: PROVIDER.to_owned(),
        cloud_id: CloudId::new(Uuid::from_u128(9)),
        endpoint: Map::new(),
        credential_id: CloudCredentialId::new(Uuid::from_u128(10)),
        kv_mount: "kv".to_owned(),
        kv_path: "path".to_owned(),
    };
    let project_namespace = ProjectNamespace {
        now: at(1_000),
        assignment,
        project_deleted_at: None,
        resources: 1,
        uses: vec![used],
    };
    let settings = PlacementSettings {
        installation: bench.installation,
        subjects: Vec::new(),
        role: PlacementSettings::DEFAULT_ROLE.to_owned(),
        quota: BTreeMap::new(),
        secret_store: PlacementSettings::DEFAULT_SECRET_STORE.to_owned(),
    };
    let mut all = objects(&project_namespace, &settings).into_iter();
    all.find(|object| object.wanted.key.kind == SharedKind::ProviderConfig).unwrap()
}

fn provider_configs() -> CompositeType {
    CompositeType {
        group: format!("{PROVIDER}.crossplane.io"),
        version: "v1beta1".to_owned(),
        kind: "ProviderConfig".to_owned(),
        plural: "providerconfigs".to_owned(),
        scope: CompositeScope::Namespaced,
    }
}

/// Two replicas that have surveyed the cluster, without which neither writes.
pub(crate) async fn mk_late(test: &str) -> Option<Late> {
    let late = Late::new(test).await?;
    define(&late.bench.client, &provider_configs()).await;
    for engine in [&late.bench.engine, &late.newer] {
        let providers = BTreeSet::from([PROVIDER.to_owned()]);
        engine.survey(None, &providers).await.unwrap();
    }
    Some(late)
}

pub(crate) fn removal(object: &SharedObject, seen: &Seen) -> Removal {
    Removal { key: object.wanted.key.clone(), uid: seen.uid.clone(), version: seen.version.clone() }
}

/// The path of the object, for the proxy.
const PATH: &str = "/providerconfigs/hetzner";

#[tokio::test]
async fn a_late_removal_does_not_hit_an_object_that_was_taken_back() {
    const NAME: &str = "a_late_removal_does_not_hit_an_object_that_was_taken_back";
    let Some(late) = mk_late(NAME).await else { return };
    let object = provider_config(&late.bench, 0);
    let seen = late.newer.put(&object).await.unwrap();
    assert_eq!(seen.removals, 0);
    late.hold("DELETE", PATH);
    let sent = removal(&object, &seen);
    late.bench.engine.remove(&sent).await.unwrap_err();

    // An apply that changes nothing would not help: the version stays.
    let same = late.newer.put(&object).await.unwrap();
    assert_eq!(same.version, seen.version);
    let taken_back = late.newer.put(&provider_config(&late.bench, 1)).await.unwrap();
    assert_eq!((taken_back.removals, &taken_back.uid), (1, &seen.uid));
    assert_ne!(taken_back.version, seen.version);
    assert_eq!(late.land().await, 409);
    let found = late.newer.find(&object.wanted.key).await.unwrap().unwrap();
    assert!(!found.terminating && found == taken_back, "{found:?}");

    // Nor an object of the same name that was made anew.
    late.newer.remove(&removal(&object, &found)).await.unwrap();
    let anew = late.newer.put(&object).await.unwrap();
    assert_ne!(anew.uid, seen.uid);
    let refused = late.bench.engine.remove(&sent).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    assert_eq!(late.newer.find(&object.wanted.key).await.unwrap(), Some(anew));
}

#[tokio::test]
async fn a_late_write_of_a_shared_object_overwrites_nothing_newer() {
    const NAME: &str = "a_late_write_of_a_shared_object_overwrites_nothing_newer";
    let Some(late) = mk_late(NAME).await else { return };
    let key = provider_config(&late.bench, 0).wanted.key;
    // A late create, then a late update; the count stands for any other content.
    for (older, newer) in [(0, 1), (2, 3)] {
        late.hold("PATCH", PATH);
        late.bench.engine.put(&provider_config(&late.bench, older)).await.unwrap_err();
        let written = late.newer.put(&provider_config(&late.bench, newer)).await.unwrap();
        assert_eq!(late.land().await, 409);
        assert_eq!(late.newer.find(&key).await.unwrap(), Some(written));
    }
    // A late update makes nothing again that was removed.
    late.hold("PATCH", PATH);
    late.bench.engine.put(&provider_config(&late.bench, 4)).await.unwrap_err();
    let found = late.newer.find(&key).await.unwrap().unwrap();
    late.newer.remove(&removal(&provider_config(&late.bench, 3), &found)).await.unwrap();
    assert_eq!(late.land().await, 409);
    assert_eq!(late.newer.find(&key).await.unwrap(), None);
}

/// A definition of this installation.
pub(crate) fn role(bench: &Bench, version: &str) -> DefinitionObject {
    let name = format!("slipway-{}", bench.namespace);
    let value = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name, "labels": {
            "slipway.dev/installation": bench.installation,
            "slipway.dev/blueprint": "server",
            "slipway.dev/blueprint-version": version,
        } },
        "rules": [],
    });
    DefinitionObject { key: DefinitionKey { kind: DefinitionKind::Role, name }, value }
}

#[tokio::test]
async fn a_late_definition_overwrites_nothing_newer() {
    let Some(late) = mk_late("a_late_definition_overwrites_nothing_newer").await else { return };
    let role = |version| role(&late.bench, version);
    for (older, newer) in [("v1", "v2"), ("v3", "v4")] {
        late.hold("PATCH", &role(older).key.name);
        late.bench.engine.define(&role(older)).await.unwrap_err();
        late.newer.define(&role(newer)).await.unwrap();
        assert_eq!(late.land().await, 409);
        let DefinitionState::Seen(found) = late.newer.observe(&role(newer)).await else {
            panic!("it is there");
        };
        assert_eq!(found.version.as_deref(), Some(newer));
    }
}

/// Creates an object in the namespace of the bench.
async fn make(bench: &Bench, resource: &ApiResource, mut body: Value) {
    body["apiVersion"] = json!(resource.api_version);
    body["kind"] = json!(resource.kind);
    let body: DynamicObject = serde_json::from_value(body).unwrap();
    let api =
        Api::<DynamicObject>::namespaced_with(bench.client.clone(), &bench.namespace, resource);
    until(TIMEOUT, "the object is made", async || {
        match api.create(&PostParams::default(), &body).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            answer => answer.map(|_| ()),
        }
    })
    .await;
}

/// A custom kind that is served in this version only.
async fn custom(bench: &Bench, group: &str, version: &str, kind: &str) -> ApiResource {
    let kind = CompositeType {
        group: group.to_owned(),
        version: version.to_owned(),
        ..mk_kind(kind, CompositeScope::Namespaced)
    };
    define(&bench.client, &kind).await;
    crate::support::resource(&kind)
}

async fn held_by(bench: &Bench) -> Vec<String> {
    let found = bench.engine.residents(&assignment(bench)).await.unwrap();
    found.iter().map(residents::shown).collect()
}

#[tokio::test]
async fn whatever_somebody_put_there_holds_a_namespace() {
    const NAME: &str = "whatever_somebody_put_there_holds_a_namespace";
    let Some(bench) = Bench::new(NAME).await else { return };
    let named = |name: &str| json!({ "metadata": { "name": name } });
    let core = |kind: &str, plural: &str| api_resource("v1", kind, plural);

    // What Kubernetes makes by itself, and what the placement loop makes.
    let (maps, accounts) =
        (core("ConfigMap", "configmaps"), core("ServiceAccount", "serviceaccounts"));
    make(&bench, &accounts, named("default")).await;
    make(&bench, &maps, named("kube-root-ca.crt")).await;
    make(&bench, &core("Endpoints", "endpoints"), named("e")).await;
    let event = json!({
        "metadata": { "name": "e" },
        "involvedObject": { "kind": "Pod", "namespace": bench.namespace, "name": "p" },
    });
    make(&bench, &core("Event", "events"), event).await;
    let token = json!({
        "metadata": {
            "name": "default-token-x",
            "annotations": { "kubernetes.io/service-account.name": "default" },
        },
    });
    make(&bench, &core("Secret", "secrets"), token).await;
    let ours = json!({
        "metadata": { "name": "slipway-project", "labels": {
            "slipway.dev/installation": bench.installation,
            "slipway.dev/project": assignment(&bench).project_id,
        } },
    });
    make(&bench, &core("ResourceQuota", "resourcequotas"), ours).await;
    assert_eq!(held_by(&bench).await, [""; 0]);

    // One by one, everything else. The last two were overlooked: a kind that its
    // group serves in another version than the preferred one, and a group that
    // looks like a part of Kubernetes.
    let stored = json!({ "metadata": { "name": "data" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
    } });
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": {
        "containers": [{ "name": "c", "image": "i" }],
    } });
    let workload = json!({ "metadata": { "name": "web" }, "spec": {
        "replicas": 0, "selector": { "matchLabels": { "a": "b" } }, "template": template,
    } });
    custom(&bench, "external-secrets.example.org", "v1", "ExternalSecret").await;
    let push = custom(&bench, "external-secrets.example.org", "v1alpha1", "PushSecret").await;
    let snapshots = custom(&bench, "snapshot.storage.k8s.io", "v1", "VolumeSnapshot").await;
    for (resource, body) in [
        (maps, named("settings")),
        (accounts, named("builder")),
        (core("Secret", "secrets"), named("password")),
        (core("PersistentVolumeClaim", "persistentvolumeclaims"), stored),
        (api_resource("apps/v1", "Deployment", "deployments"), workload),
        (push, named("p")),
        (snapshots, named("s")),
    ] {
        let shown = format!("{}/{}", resource.kind, body["metadata"]["name"].as_str().unwrap());
        make(&bench, &resource, body).await;
        until(TIMEOUT, &shown, async || {
            let held = held_by(&bench).await;
            if held.contains(&shown) { Ok(()) } else { Err(format!("{held:?}")) }
        })
        .await;
    }
}

#[tokio::test]
async fn a_namespace_of_many_pages_is_not_taken_for_empty() {
    const NAME: &str = "a_namespace_of_many_pages_is_not_taken_for_empty";
    let Some(bench) = Bench::new(NAME).await else { return };
    let secrets = api_resource("v1", "Secret", "secrets");
    // More than a page of what does not hold, and one that does after it.
    for number in 0..110 {
        let token = json!({
            "metadata": {
                "name": format!("token-{number:03}"),
                "annotations": { "kubernetes.io/service-account.name": "default" },
            },
        });
        make(&bench, &secrets, token).await;
    }
    make(&bench, &secrets, json!({ "metadata": { "name": "zzz" } })).await;
    assert_eq!(held_by(&bench).await, ["Secret/zzz"]);
    let namespaces = Api::<Namespace>::all(bench.client.clone());
    namespaces.delete(&bench.namespace, &Default::default()).await.unwrap();
}
