//! The eleven situations of the runbook on a cluster: each is produced, shown by
//! the real `slipway explain` with its code and its remedy, and repaired as the
//! page says. `docs/placement.md` names the test of each.
//!
//! Few worlds, each with several resources at once, so that the waits overlap.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use slipway_testkit::kube::ADMIN;
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::stage::Environment;
use crate::world::{BLUEPRINT, Setup, World};

/// Short deadlines, so that everything is overdue soon.
const SOON: [&str; 8] = [
    "--provisioning-deadline",
    "1s",
    "--enrolling-deadline",
    "1s",
    "--deprovisioning-deadline",
    "1s",
    "--reconcile-interval",
    "1s",
];

impl World {
    /// Waits until `slipway explain resource` shows exactly these blockers, and
    /// all of these words.
    async fn explains(&self, id: &str, codes: &[&str], words: &[&str]) -> String {
        wait::until(TIMEOUT, &format!("{codes:?} with {words:?}"), async || {
            let text = self.plane.explained(id, codes).await;
            match words.iter().find(|word| !text.contains(*word)) {
                None => Ok(text),
                Some(word) => Err(format!("{word} is not in\n{text}")),
            }
        })
        .await
    }

    async fn merge(&self, composite: &str, change: Value) {
        let parameters = PatchParams::default();
        let patched = self.composites().await;
        patched.patch(composite, &parameters, &Patch::Merge(change)).await.unwrap();
    }

    async fn remove_by_hand(&self, composite: &str) {
        self.composites().await.delete(composite, &DeleteParams::default()).await.unwrap();
    }
}

/// 2, 3 and 5: resources that do not come up.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_come_up_says_why_and_goes_on_when_it_is_mended() {
    let test = "what_does_not_come_up_says_why_and_goes_on_when_it_is_mended";
    let setup = Setup { settings: &SOON, environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let unready = world.declare("unready", "never-ready").await;
    let unsynced = world.declare("unsynced", "ready-after=soon").await;
    let failed = world.declare("failed", "fail=no room in fsn1").await;
    let alone = world.declare("alone", "no-node").await;

    let observe = "check the evidence and repair the substrate; the loop continues by itself";
    let codes = ["provisioning_overdue"];
    let shown = ["is Provisioning", observe, "reason: Creating", "type: Ready"];
    world.explains(&unready, &codes, &shown).await;
    let shown = ["is Provisioning", observe, "reason: ReconcileError", "is not a time"];
    world.explains(&unsynced, &codes, &shown).await;
    world.tell(&unready, "never-ready", "false").await;
    world.tell(&unsynced, "ready-after", "0ms").await;

    let shown = ["is Enrolling", "can it reach this control plane", "$ slipway token list "];
    world.explains(&alone, &["enrolling_overdue"], &shown).await;
    world.tell(&alone, "no-node", "false").await;

    let shown = [
        "is Failed",
        ": no room in fsn1\n",
        "$ slipway resource retry ",
        "Failed is final until somebody retries or deletes it",
    ];
    world.plane.wait_for_phase(&failed, "Failed").await;
    world.explains(&failed, &[], &shown).await;
    let first = world.xr_name(&failed).await;
    world.plane.says(&["resource", "retry", &failed, "--reason", "there is room now"]);
    let second = world
        .plane
        .wait_for(&failed, "Failed once more", |seen| {
            seen["phase"] == "Failed" && seen["attempt"]["number"] == 2
        })
        .await;
    assert_ne!(second["attempt"]["xr_name"], first, "{second}");
    assert!(world.composites().await.get_opt(&first).await.unwrap().is_none());

    // What was declared cannot work, so the retry corrects it.
    let corrected = "standin=ready-after=0ms";
    let why = "--reason=the parameter was wrong";
    let text = world.plane.says(&["resource", "retry", "failed", "--param", corrected, why]);
    assert!(text.contains("Deregistering"), "{text}");
    let ready = world.plane.wait_for_phase(&failed, "Ready").await;
    assert_eq!(ready["attempt"]["number"], 3, "{ready}");
    assert_eq!(ready["attempt"]["parameters"]["standin"], "ready-after=0ms", "{ready}");
    assert_eq!(ready["attempt"]["parameters"]["size"], 2, "the rest stays: {ready}");
    // Both failures stay on record, with what was observed, in all that shows the resource.
    let attempts = world.plane.get(&format!("/api/v1/resources/{failed}/attempts?limit=2")).await;
    assert_eq!(attempts[1]["failure"]["reason"], "no room in fsn1", "{attempts}");
    let observed = attempts[1]["failure"]["observed"].to_string();
    assert!(observed.contains("ProvisioningFailed"), "{observed}");
    let text = world.plane.says(&["resource", "get", "failed"]);
    assert_eq!(text.matches("no room in fsn1").count(), 2, "{text}");
    let text = world.plane.says(&["explain", "failed"]);
    assert!(text.contains("an older attempt; it failed at "), "{text}");
    let second = attempts[1]["id"].as_str().unwrap();
    let text = world.plane.says(&["explain", second]);
    assert!(text.contains("failed attempt 2 is Deleted"), "{text}");
    let history = world.plane.get(&format!("/api/v1/explain/{second}")).await["history"].clone();
    let mut phases = history.as_array().unwrap().iter().map(|line| &line["to"]);
    assert!(phases.any(|phase| phase == "Failed"), "{history}");
    let audit = world.plane.says(&["audit", "list", "--id", &failed, "-o", "json"]);
    assert!(audit.contains(r#""changed""#) && audit.contains(r#""standin""#), "{audit}");
    assert!(!audit.contains("ready-after=0ms"), "values are not in the audit: {audit}");

    for id in [&unready, &unsynced, &alone] {
        let ready = world.plane.wait_for_phase(id, "Ready").await;
        assert_eq!(ready["blockers"], json!([]), "{ready}");
    }
}

/// 1 and 4: a namespace that cannot be created, and a cluster that cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_says_why_and_goes_on_when_it_is_mended() {
    let test = "what_cannot_be_reached_says_why_and_goes_on_when_it_is_mended";
    let setup = Setup { settings: &SOON, environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let served = world.declare("served", "").await;

    // Somebody else has a namespace of that name.
    let project = world.make("/api/v1/projects", json!({ "name": "taken" })).await;
    let name = format!("slipway-project-{}", project["id"].as_str().unwrap());
    let namespaces = Api::<Namespace>::all(world.client.clone());
    let theirs = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    namespaces.create(&PostParams::default(), &theirs).await.unwrap();
    let credentials = world.plane.get("/api/v1/credentials").await;
    let main = credentials.as_array().unwrap().iter().find(|one| one["name"] == "main").unwrap();
    let main = main["id"].as_str().unwrap();
    world.put(&format!("/api/v1/projects/taken/credentials/{main}"), json!({})).await;
    let assignment =
        world.put("/api/v1/projects/taken/cluster", json!({ "cluster": "east" })).await;
    assert_eq!(assignment["namespace"], json!(name));
    let body = json!({ "project": "taken", "handle": "waits", "blueprint": BLUEPRINT });
    let waits = world.make("/api/v1/resources", body).await;
    let waits = waits["id"].as_str().unwrap();
    let left_alone = "belongs to somebody else; it is left alone";
    let shown = ["is Pending", left_alone, "bring the project's namespace to Ready"];
    world.explains(waits, &["namespace_not_ready"], &shown).await;
    let text = world.plane.says(&["explain", "project", "taken"]);
    assert!(text.contains(left_alone) && text.contains("to become Ready"), "{text}");

    // A pass does not write an unchanged state again.
    let turns = async || {
        let loops = world.plane.get("/api/v1/loops").await;
        let placement =
            loops.as_array().unwrap().iter().find(|one| one["name"] == "placement").cloned();
        placement.unwrap()["claimed"].as_u64().unwrap()
    };
    let (before, looked) = (world.plane.get("/api/v1/projects/taken/cluster").await, turns().await);
    wait::until(TIMEOUT, "more looks", async || turns().await >= looked + 3).await;
    assert_eq!(world.plane.get("/api/v1/projects/taken/cluster").await, before);
    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
    world.plane.wait_for_phase(waits, "Ready").await;

    // The account's token is no longer accepted.
    world.plane.wait_for_phase(&served, "Ready").await;
    let file = world.kubeconfig_file();
    let refused = world.kubernetes.kubeconfig_with_token(ADMIN, "one-that-was-revoked");
    std::fs::write(&file, refused).unwrap();
    let accept = "the API server does not accept our credentials; renew the kubeconfig";
    let shown = ["is Ready", "make the substrate readable again", accept];
    world.explains(&served, &["substrate_unknown"], &shown).await;
    wait::until(TIMEOUT, "the cluster to say so", async || {
        let text = world.plane.says(&["cluster", "get", "east"]);
        if text.contains("does not accept our credentials") { Ok(()) } else { Err(text) }
    })
    .await;
    std::fs::write(&file, world.kubernetes.kubeconfig(ADMIN)).unwrap();
    let well = |seen: &Value| seen["phase"] == "Ready" && seen["blockers"] == json!([]);
    world.plane.wait_for(&served, "Ready, and well", well).await;
}

/// 6, 7 and 10: a slow node, whoever deletes its substrate.
#[tokio::test(flavor = "multi_thread")]
async fn what_drains_is_waited_for_whoever_deletes_it() {
    let test = "what_drains_is_waited_for_whoever_deletes_it";
    let setup = Setup { settings: &SOON, environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let wanted = world.declare("wanted", "busy").await;
    let leaving = world.declare("leaving", "busy").await;
    let pulled = world.declare("pulled", "busy").await;
    let mut nodes = Vec::new();
    for id in [&wanted, &leaving, &pulled] {
        let ready = world.plane.wait_for_phase(id, "Ready").await;
        nodes.push(ready["node"]["id"].as_str().unwrap().to_owned());
    }
    let names =
        [world.xr_name(&wanted).await, world.xr_name(&leaving).await, world.xr_name(&pulled).await];
    world.remove_by_hand(&names[0]).await;
    world.plane.delete(&leaving).await;
    world.plane.delete(&pulled).await;

    let nothing =
        "nothing: somebody deleted the substrate; Slipway drains its node, releases the substrate";
    world.explains(&wanted, &["substrate_terminating"], &["is Ready", nothing]).await;
    let force = "$ slipway resource force-drain ";
    let shown =
        ["is Deregistering", "has not acknowledged its drain", "let the node finish", force];
    world.explains(&leaving, &["node_not_draining"], &shown).await;
    world.explains(&pulled, &["node_not_draining"], &shown).await;

    // Their work ends.
    world.tell(&wanted, "busy", "false").await;
    world.tell(&leaving, "busy", "false").await;
    world
        .plane
        .wait_for(&wanted, "Ready with another node", |seen| {
            seen["phase"] == "Ready" && seen["node"]["id"] != *nodes[0]
        })
        .await;
    world.plane.wait_for_phase(&leaving, "Deleted").await;
    for node in &nodes[..2] {
        let node = world.plane.get(&format!("/api/v1/nodes/{node}")).await;
        assert_eq!(node["deregistered_how"], json!("acknowledged"), "{node}");
    }

    // Somebody deletes the substrate of a draining node. While it carries our
    // finalizer it stays, and the drain waits; without it, both end.
    world.remove_by_hand(&names[2]).await;
    world.explains(&pulled, &["node_not_draining"], &["is Deregistering"]).await;
    world.merge(&names[2], json!({ "metadata": { "finalizers": null } })).await;
    let gone = world.plane.wait_for_phase(&pulled, "Deleted").await;
    assert_eq!(gone["node"]["deregistered_how"], json!("substrate_absent"), "{gone}");
    world.explains(&pulled, &[], &["is Deleted"]).await;
}

/// 8 and 9: a substrate that must not be deleted, and one whose deletion does not end.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_go_says_what_holds_it() {
    let test = "what_does_not_go_says_what_holds_it";
    let setup = Setup { settings: &SOON, environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let guarded = world.declare("guarded", "").await;
    let held = world.declare("held", "keep-finalizer").await;
    let slow = world.declare("slow", "deletion-delay=10m").await;
    for id in [&guarded, &held, &slow] {
        world.plane.wait_for_phase(id, "Ready").await;
    }
    let namespace = world.namespace().await;
    let (guarded_name, held_name) = (world.xr_name(&guarded).await, world.xr_name(&held).await);

    let owner: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "name": "owner" } })).unwrap();
    let owners = Api::<ConfigMap>::namespaced(world.client.clone(), &namespace);
    let owner = owners.create(&PostParams::default(), &owner).await.unwrap();
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid().unwrap(),
    });
    world.merge(&held_name, json!({ "metadata": { "ownerReferences": [reference] } })).await;
    guard(&world, &guarded_name).await;
    for id in [&guarded, &held, &slow] {
        world.plane.delete(id).await;
    }

    let observe = "check the evidence and repair the substrate; the loop continues by itself";
    let codes = ["deprovisioning_overdue"];
    let finalizer = "finalizers: composite.apiextensions.crossplane.io";
    let composed = "composed: Server/pr-<id>";
    let owned = "owners: ConfigMap/owner";
    world
        .explains(&held, &codes, &["is Deprovisioning", observe, finalizer, owned, composed])
        .await;
    world.explains(&slow, &codes, &["is Deprovisioning", observe, finalizer, composed]).await;
    let codes = ["delete_failed", "deprovisioning_overdue"];
    let shown = ["is Deprovisioning", observe, "guard.example.org"];
    world.explains(&guarded, &codes, &shown).await;
    let there = world.composites().await.get(&guarded_name).await.unwrap();
    assert!(there.metadata.deletion_timestamp.is_none(), "{there:?}");

    world.tell(&slow, "deletion-delay", "0ms").await;
    world.merge(&held_name, json!({ "metadata": { "finalizers": null } })).await;
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(world.client.clone());
    webhooks.delete("guard", &DeleteParams::default()).await.unwrap();
    for id in [&guarded, &held, &slow] {
        let gone = world.plane.wait_for_phase(id, "Deleted").await;
        assert_eq!(gone["blockers"], json!([]), "{gone}");
    }
}

/// Makes the API server call a webhook that does not exist before it deletes
/// this composite; returns when that is in effect.
async fn guard(world: &World, composite: &str) {
    world.merge(composite, json!({ "metadata": { "labels": { "guarded": "yes" } } })).await;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "guard" },
        "webhooks": [{
            "name": "guard.example.org",
            // Nothing listens there.
            "clientConfig": { "url": "https://127.0.0.1:1/" },
            "rules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["DELETE"],
                "resources": ["xservers"],
            }],
            "objectSelector": { "matchLabels": { "guarded": "yes" } },
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(world.client.clone());
    webhooks.patch("guard", &PatchParams::apply("tests"), &Patch::Apply(&webhook)).await.unwrap();
    // The server loads it a moment later.
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let composites = world.composites().await;
    wait::until(TIMEOUT, "the webhook to be in force", async || {
        composites.delete(composite, &dry).await.is_err()
    })
    .await;
}

/// The page is right: a test in one of these files shows each situation.
#[test]
fn the_page_names_the_tests_of_every_situation() {
    let tests: String = ["situations.rs", "namespace_status.rs", "hand.rs", "abandon.rs"]
        .map(|file| std::fs::read_to_string(format!("tests/kube/{file}")).unwrap())
        .concat();
    let page = std::fs::read_to_string("../../docs/placement.md").unwrap();
    let table = page.split("## The eleven situations here").nth(1).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    let rows: Vec<_> = rows.filter(|row| row.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(rows.len(), 11, "{rows:#?}");
    for row in rows {
        let shown_by = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in shown_by.split(", ").map(|name| name.trim_matches('`')) {
            assert!(tests.contains(&format!("async fn {name}() {{")), "{name} in {row}");
        }
    }
}
