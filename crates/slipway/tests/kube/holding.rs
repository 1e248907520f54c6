//! A teardown that a managed resource holds: what `explain` says about it, and the way out
//! that strips no finalizer.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use reqwest::Method;
use serde_json::{Value, json};
use slipway_standin::managed::{CLOUD, external_name};
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::stage::Environment;
use crate::world::{Setup, World, resource};

const SETTINGS: [&str; 6] =
    ["--deprovisioning-deadline", "2s", "--reconcile-interval", "1s", "--lease", "3s"];

impl World {
    async fn orphan(&self, id: &str, dry_run: bool) -> (u16, Value) {
        let body = json!({ "reason": "its provider is stuck", "dry_run": dry_run });
        self.plane.call(Method::POST, &format!("/api/v1/resources/{id}/orphan"), Some(body)).await
    }

    async fn orphaned(&self) -> Vec<Value> {
        let leaks = self.plane.get("/api/v1/leaks?kind=orphaned_external").await;
        leaks.as_array().unwrap().clone()
    }

    /// The managed resources of the project.
    async fn servers(&self) -> Api<DynamicObject> {
        let kind = resource("standin.slipway.dev/v1alpha1", "Server", "servers");
        Api::namespaced_with(self.client.clone(), &self.namespace().await, &kind)
    }

    /// Whether the cloud has the machine of this composite.
    async fn is_in_the_cloud(&self, composite: &str) -> bool {
        let cloud = Api::<ConfigMap>::namespaced(self.client.clone(), CLOUD);
        cloud.get_opt(&external_name(composite)).await.unwrap().is_some()
    }

    async fn overdue(&self, id: &str) -> Value {
        let path = format!("/api/v1/explain/resource/{id}");
        wait::until(TIMEOUT, "what holds it to be shown", async || {
            let found = self.plane.get(&path).await;
            let blockers = found["blockers"].as_array().unwrap().iter();
            let mut overdue = blockers.filter(|one| one["code"] == "deprovisioning_overdue");
            let held = overdue
                .next()
                .filter(|one| one["evidence"]["holding"][1]["provider_error"].is_string());
            held.cloned().ok_or_else(|| found.to_string())
        })
        .await
    }
}

/// The object, its owner and the error of its provider are named; what was declared kept is
/// kept, recorded before it is told, told after a crash, and not while a freeze is in force.
#[tokio::test(flavor = "multi_thread")]
async fn what_holds_a_teardown_is_named_and_can_be_kept_on_purpose() {
    let test = "what_holds_a_teardown_is_named_and_can_be_kept_on_purpose";
    let setup = Setup { settings: &SETTINGS, environment: Environment::Shared, ..Setup::default() };
    let Some(mut world) = World::start(test, setup).await else { return };
    let stuck = world.declare("stuck", "refuse-deletion=it is locked, token=abc").await;
    let older = world.declare("older", "refuse-deletion=it is locked; deletion-policy").await;
    let mended = world.declare("mended", "refuse-deletion=try later").await;
    for id in [&stuck, &older, &mended] {
        world.plane.wait_for_phase(id, "Ready").await;
    }
    let (name, older_name) = (world.xr_name(&stuck).await, world.xr_name(&older).await);
    let mended_name = world.xr_name(&mended).await;
    let (status, early) = world.orphan(&stuck, false).await;
    assert_eq!((status, &early["code"]), (409, &json!("not_orphanable")), "{early}");
    let planned = json!({ "kind": "resource", "reference": stuck });
    let (status, plan) =
        world.plane.call(Method::POST, "/api/v1/deletion-plans", Some(planned)).await;
    let server = format!("Server/{name} (in its cloud: {})", external_name(&name));
    assert_eq!((status, &plan["composed"][&name]), (201, &json!([server])), "{plan}");
    for id in [&stuck, &older, &mended] {
        world.plane.delete(id).await;
    }
    let (status, early) = world.orphan(&stuck, false).await;
    assert_eq!((status, &early["code"]), (409, &json!("not_orphanable")), "{early}");

    let blocker = world.overdue(&stuck).await;
    let [composite, server] = &blocker["evidence"]["holding"].as_array().unwrap()[..] else {
        panic!("{blocker}")
    };
    let namespace = world.namespace().await;
    assert_eq!(composite["object"], format!("XServer {namespace}/{name}"), "{blocker}");
    assert!(composite["held_by"].as_str().unwrap().contains("Crossplane"), "{blocker}");
    assert_eq!(server["object"], format!("Server {namespace}/{name}"), "{blocker}");
    let owners = format!("XServer {namespace}/{name} → Server {namespace}/{name}");
    assert_eq!(server["owner"], owners, "{blocker}");
    assert_eq!(server["provider_error"], "delete failed: it is locked, token=[hidden]");
    assert_eq!(server["provider_reason"], "ReconcileError", "{blocker}");
    assert!(server["provider_error_since"].is_string(), "{blocker}");
    assert_eq!(server["external_name"], external_name(&name), "{blocker}");
    let by = server["held_by"].as_str().unwrap();
    assert!(by.contains("standin.slipway.dev (ProviderConfig standin)"), "{by}");
    assert!(server["retry"].as_str().unwrap().starts_with("kubectl annotate servers."), "{server}");
    let remedies = blocker["remedies"].to_string();
    assert!(remedies.contains(&format!("slipway resource orphan {stuck}")), "{remedies}");
    // The explanation of the deletion says the same.
    let deletion = world.plane.resource(&stuck).await["deletion_id"].as_str().unwrap().to_owned();
    let explained = world.plane.get(&format!("/api/v1/explain/deletion/{deletion}")).await;
    assert!(explained.to_string().contains("it is locked, token=[hidden]"), "{explained}");
    let text = world.plane.says(&["explain", "resource", &stuck]);
    assert!(text.contains("provider error: delete failed: it is locked"), "{text}");

    // Its provider is mended: it goes by itself, and takes its machine along.
    world.tell(&mended, "refuse-deletion", "false").await;
    world.plane.wait_for_phase(&mended, "Deleted").await;
    assert!(!world.is_in_the_cloud(&mended_name).await);

    let (status, planned) = world.orphan(&stuck, true).await;
    assert_eq!((status, planned["kept"].as_array().unwrap().len()), (200, 1), "{planned}");
    assert_eq!(planned["kept"][0]["external_name"], external_name(&name), "{planned}");
    assert_eq!(world.orphaned().await, Vec::<Value>::new(), "nothing was recorded");

    // Recorded, but the cluster refuses the write: killed, frozen, then let go.
    guard(&world, &name).await;
    let both = tokio::join!(world.orphan(&stuck, false), world.orphan(&stuck, false));
    for (status, orphaned) in [both.0, both.1] {
        assert_eq!((status, orphaned["kept"].as_array().unwrap().len()), (202, 1), "{orphaned}");
    }
    let leaks = world.orphaned().await;
    assert_eq!(leaks.len(), 1, "{leaks:?}");
    let leak = &leaks[0];
    assert_eq!(leak["evidence"]["external_name"], external_name(&name), "{leak}");
    assert_eq!((&leak["name"], leak["cluster"].is_string()), (&json!(name), true), "{leak}");
    world.wait_blocked(&stuck, "delete_failed", "hold.example.org").await;
    world.plane.kill();
    world.plane.start().await;
    // Settled: a pass that began before the freeze may still have a permit for the write.
    world.plane.says(&["freeze", "--for", "10m", "--reason", "a storm", "--wait"]);
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(world.client.clone());
    webhooks.delete("hold", &DeleteParams::default()).await.unwrap();
    world.wait_blocked(&stuck, "frozen", "").await;
    let (status, refused) = world.orphan(&older, false).await;
    assert_eq!((status, &refused["code"]), (409, &json!("not_orphanable")), "{refused}");
    let untouched = world.servers().await.get(&name).await.unwrap();
    assert_eq!(untouched.data["spec"]["managementPolicies"], json!(["*"]), "{untouched:?}");
    world.plane.says(&["unfreeze", "--reason", "it is over"]);
    world.plane.says(&["resource", "orphan", &older, "--reason=its provider is stuck", "--yes"]);
    for (id, name) in [(&stuck, &name), (&older, &older_name)] {
        let gone = world.plane.wait_for_phase(id, "Deleted").await;
        assert_eq!(gone["blockers"], json!([]), "{gone}");
        assert!(world.composites().await.get_opt(name).await.unwrap().is_none());
        assert!(world.servers().await.get_opt(name).await.unwrap().is_none());
        assert!(world.is_in_the_cloud(name).await, "it was to be kept");
    }
    let (status, over) = world.orphan(&stuck, false).await;
    assert_eq!((status, &over["code"]), (409, &json!("not_orphanable")), "{over}");

    // Its absence is proven twice, and what is kept stays on record until somebody says so.
    let proven = |seen: &Value| seen["attempt"]["absence_proven_at"].is_string();
    world.plane.wait_for(&stuck, "the second proof", proven).await;
    assert_eq!(world.orphaned().await.len(), 2);
    let report = world.plane.says(&["deletion", "report", &deletion]);
    assert!(report.contains("gone            attempt stuck attempt 1"), "{report}");
    assert!(
        report.contains("kept on purpose leak orphaned_external Server machine-of-"),
        "{report}"
    );
    assert!(report.contains("0 with an open leak, 1 kept on purpose"), "{report}");
    let leak = leak["id"].as_str().unwrap();
    world.plane.says(&["leaks", "resolve", leak, "--reason", "sold with its cloud"]);
    assert_eq!(world.orphaned().await.len(), 1);
}

/// Makes the API server call a webhook that does not exist before it changes this managed
/// resource; returns when that is in effect.
async fn guard(world: &World, name: &str) {
    let servers = world.servers().await;
    let label = json!({ "metadata": { "labels": { "hold": "yes" } } });
    servers.patch(name, &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "hold" },
        "webhooks": [{
            "name": "hold.example.org",
            // Nothing listens there.
            "clientConfig": { "url": "https://127.0.0.1:1/" },
            "rules": [{
                "apiGroups": ["standin.slipway.dev"], "apiVersions": ["*"],
                "operations": ["UPDATE"], "resources": ["servers"],
            }],
            "objectSelector": { "matchLabels": { "hold": "yes" } },
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(world.client.clone());
    webhooks.patch("hold", &PatchParams::apply("tests"), &Patch::Apply(&webhook)).await.unwrap();
    // The server loads it a moment later.
    let change = json!({ "metadata": { "labels": { "try": "yes" } } });
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    wait::until(TIMEOUT, "the webhook to be in force", async || {
        servers.patch(name, &dry, &Patch::Merge(&change)).await.is_err()
    })
    .await;
}
