//! Deletion: which object it deletes, what it waits for, and what it reports.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::CompositeScope;
use slipway_render::composite::FINALIZER_DRAIN;
use slipway_testkit::wait::until;

use crate::support::{Bench, TIMEOUT, define, global, is_absent, loose, mk_kind};

fn is_terminating(report: &CompositeReport) -> bool {
    report.live().is_some_and(|live| live.terminating)
}

#[tokio::test]
async fn a_deletion_ends_in_proven_absence() {
    let Some(bench) = Bench::new("a_deletion_ends_in_proven_absence").await else { return };
    for kind in [loose(), global()] {
        let composite = bench.composite(kind);
        let uid = bench.apply(&composite).await.uid;
        let address = composite.address();
        let (answer, verbs) = bench.verbs_of(bench.engine.delete(&address, &uid)).await;
        answer.unwrap();
        if composite.kind.scope == CompositeScope::Namespaced {
            assert_eq!(verbs, ["delete", "patch"]);
        }
        bench.until(&composite, "it is gone", is_absent).await;
        // Deletes of an object that is gone, and of one that never existed.
        bench.engine.delete(&composite.address(), &uid).await.unwrap();
        let never = bench.composite(composite.kind.clone());
        bench.engine.delete(&never.address(), &uid).await.unwrap();
    }
}

#[tokio::test]
async fn an_object_made_anew_under_the_name_is_a_conflict() {
    const NAME: &str = "an_object_made_anew_under_the_name_is_a_conflict";
    let Some(bench) = Bench::new(NAME).await else { return };
    let composite = bench.composite(loose());
    let first = bench.apply(&composite).await.uid;
    bench.engine.delete(&composite.address(), &first).await.unwrap();
    bench.until(&composite, "it is gone", is_absent).await;
    let second = bench.apply(&composite).await.uid;
    assert_ne!(first, second);
    for engine in [&bench.engine, &bench.another_engine().await] {
        let refused = engine.delete(&composite.address(), &first).await.unwrap_err();
        assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    }
    let object = bench.object(&composite).await;
    assert!(object["metadata"]["deletionTimestamp"].is_null(), "{object}");
}

#[tokio::test]
async fn our_finalizer_comes_off_and_others_stay_and_are_named() {
    const NAME: &str = "our_finalizer_comes_off_and_others_stay_and_are_named";
    let Some(bench) = Bench::new(NAME).await else { return };
    let composite = bench.composite(loose());
    let uid = bench.apply(&composite).await.uid;
    let theirs = "composite.apiextensions.crossplane.io";
    let change = json!({
        "metadata": {
            "finalizers": [theirs, FINALIZER_DRAIN],
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "0" },
            ],
        },
        "spec": { "resourceRefs": [
            { "apiVersion": "cloud.example.org/v1", "kind": "Server", "name": "s-1" },
        ] },
    });
    bench.write(&composite, change).await;
    let composed = |report: &CompositeReport| {
        report.live().is_some_and(|live| live.evidence["composed"] == json!(["Server/s-1"]))
    };
    bench.until(&composite, "what it is composed of is seen", composed).await;
    bench.engine.delete(&composite.address(), &uid).await.unwrap();
    let released = |report: &CompositeReport| {
        is_terminating(report) && report.live().unwrap().evidence["finalizers"] == json!([theirs])
    };
    let report = bench.until(&composite, "only theirs is left", released).await;
    let evidence = &report.live().unwrap().evidence;
    assert_eq!(evidence["owners"], json!(["ConfigMap/owner"]));
    assert_eq!(evidence["composed"], json!(["Server/s-1"]));
    assert!(evidence["deletion_requested_at"].is_string(), "{evidence}");

    let address = composite.address();
    let (answer, verbs) = bench.verbs_of(bench.engine.delete(&address, &uid)).await;
    answer.unwrap();
    assert_eq!(verbs, [""; 0], "it was told, and waits for others");
    let refused = bench.engine.apply(&composite.rendered()).await.unwrap_err();
    assert!(refused.to_string().contains("is being deleted"), "{refused}");
    bench.write(&composite, json!({ "metadata": { "finalizers": null } })).await;
    bench.until(&composite, "it is gone", is_absent).await;
}

#[tokio::test]
async fn a_deletion_by_hand_waits_for_ours() {
    let Some(bench) = Bench::new("a_deletion_by_hand_waits_for_ours").await else { return };
    let composite = bench.composite(loose());
    let uid = bench.apply(&composite).await.uid;
    bench.objects(&composite).delete(&composite.name(), &Default::default()).await.unwrap();
    bench.until(&composite, "it is terminating", is_terminating).await;
    assert!(bench.object_exists(&composite).await);
    bench.engine.delete(&composite.address(), &uid).await.unwrap();
    bench.until(&composite, "it is gone", is_absent).await;
    let requests = bench.requests();
    let deletions = requests.iter().filter(|record| record.verb == "delete").count();
    assert_eq!(deletions, 1, "only the one by hand: {requests:?}");
}

#[tokio::test]
async fn a_webhook_that_refuses_is_named() {
    let Some(bench) = Bench::new("a_webhook_that_refuses_is_named").await else { return };
    let kind = mk_kind("XGuarded", CompositeScope::Namespaced);
    define(&bench.client, &kind).await;
    let composite = bench.composite(kind.clone());
    let uid = bench.apply(&composite).await.uid;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "guard" },
        "webhooks": [{
            "name": "guard.example.org",
            // Nothing listens there.
            "clientConfig": { "url": "https://127.0.0.1:1/" },
            "rules": [{
                "apiGroups": [kind.group], "apiVersions": ["*"], "operations": ["DELETE"],
                "resources": [kind.plural],
            }],
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let webhooks = Api::<ValidatingWebhookConfiguration>::all(bench.client.clone());
    webhooks.patch("guard", &PatchParams::apply("test"), &Patch::Apply(&webhook)).await.unwrap();
    // A webhook is in force a moment after it was written, so another object
    // probes for it.
    until(TIMEOUT, "the webhook is in force", async || {
        let probe = bench.composite(kind.clone());
        let uid = bench.apply(&probe).await.uid;
        bench.engine.delete(&probe.address(), &uid).await.is_err()
    })
    .await;
    let refused = bench.engine.delete(&composite.address(), &uid).await.unwrap_err();
    assert!(matches!(refused, Error::Failed(_)), "{refused:?}");
    assert!(refused.to_string().contains("guard.example.org"), "{refused}");
    assert!(!bench.live(&composite).await.terminating);

    webhooks.delete("guard", &Default::default()).await.unwrap();
    until(TIMEOUT, "the deletion passes", async || {
        bench.engine.delete(&composite.address(), &uid).await
    })
    .await;
    bench.until(&composite, "it is gone", is_absent).await;
}

/// A namespace goes only after the objects with our finalizer, and accepts no new
/// ones meanwhile.
#[tokio::test]
async fn a_namespace_deleted_by_hand_waits_for_ours_and_takes_nothing_more() {
    const NAME: &str = "a_namespace_deleted_by_hand_waits_for_ours_and_takes_nothing_more";
    let Some(bench) = Bench::new(NAME).await else { return };
    let (held, late) = (bench.composite(loose()), bench.composite(loose()));
    let uid = bench.apply(&held).await.uid;
    let namespaces = Api::<Namespace>::all(bench.client.clone());
    namespaces.delete(&bench.namespace, &Default::default()).await.unwrap();
    bench.until(&held, "it is told to go with its namespace", is_terminating).await;
    let refused = bench.engine.apply(&late.rendered()).await.unwrap_err().to_string();
    assert!(refused.contains("being terminated"), "{refused}");
    assert!(!refused.contains("grant"), "no role helps: {refused}");
    assert!(namespaces.get_opt(&bench.namespace).await.unwrap().is_some());
    bench.engine.delete(&held.address(), &uid).await.unwrap();
    bench.until(&held, "it is gone", is_absent).await;
    // The kind is known and the cluster is the same, so the composite is absent
    // also when the namespace is gone.
    until(TIMEOUT, "the end of the namespace", async || {
        namespaces.get_opt(&bench.namespace).await.unwrap().is_none()
    })
    .await;
    assert!(is_absent(&bench.report(&held).await));
}
