//! Server-side apply: what it writes, what it does not, and whose value wins.

use serde_json::{Value, json};
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::InjectionStrategy;
use slipway_render::composite;
use slipway_render::injection::Injection;
use slipway_substrate::crossplane::FIELD_MANAGER;

use crate::support::{Bench, TOKEN, TOKEN_ID, fresh, global, loose, typed};

/// The fields that a manager owns by server-side apply.
fn applied_by<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    let ours = |entry: &&Value| entry["manager"] == manager && entry["operation"] == "Apply";
    &managers.iter().find(ours).expect("fields of this manager")["fieldsV1"]
}

#[tokio::test]
async fn a_composite_is_made_under_our_name_and_stamped() {
    let Some(bench) = Bench::new("a_composite_is_made_under_our_name_and_stamped").await else {
        return;
    };
    for kind in [loose(), typed(), global()] {
        let composite = bench.composite(kind);
        let rendered = composite.rendered();
        let CompositeReport::Present(live) = bench.engine.apply(&rendered).await.unwrap() else {
            panic!("an apply answers with what is there then");
        };
        let object = bench.object(&composite).await;
        let metadata = &object["metadata"];
        assert_eq!(metadata["uid"], live.uid);
        assert_eq!(metadata["labels"], rendered.expose_object()["metadata"]["labels"]);
        assert_eq!(metadata["annotations"][composite::ANNOTATION_CLAIM_TOKEN], "3");
        let token = &metadata["annotations"][composite::ANNOTATION_BOOTSTRAP_TOKEN];
        assert_eq!(*token, TOKEN_ID.to_string());
        assert_eq!(metadata["finalizers"], json!([composite::FINALIZER_DRAIN]));
        assert_eq!(object["spec"]["parameters"]["busy_seconds"], 3);
        let ours = applied_by(&object, FIELD_MANAGER);
        assert!(ours["f:spec"]["f:parameters"].is_object(), "{ours}");
        assert_eq!((live.ready, live.terminating), (false, false));
        assert_eq!(live.owned_hash, rendered.owned_hash());
    }
}

#[tokio::test]
async fn the_same_again_makes_no_request() {
    let Some(bench) = Bench::new("the_same_again_makes_no_request").await else { return };
    for (kind, strategy) in [
        (loose(), InjectionStrategy::CloudInitUserData),
        (typed(), InjectionStrategy::HelmValues),
        (loose(), InjectionStrategy::ProviderSecret),
    ] {
        let mut composite = bench.composite(kind);
        composite.strategy = strategy;
        let uid = bench.apply(&composite).await.uid;
        // Also under a newer claim, which alone is not worth a write.
        composite.claim_token += 1;
        let rendered = composite.rendered();
        let (answer, verbs) = bench.verbs_of(bench.engine.apply(&rendered)).await;
        assert_eq!(answer.unwrap().live().unwrap().uid, uid);
        assert_eq!(verbs, [""; 0], "{strategy}");
    }
}

#[tokio::test]
async fn defaults_and_fields_of_others_are_no_drift() {
    let Some(bench) = Bench::new("defaults_and_fields_of_others_are_no_drift").await else {
        return;
    };
    let composite = bench.composite(typed());
    let rendered = composite.rendered();
    bench.apply(&composite).await;
    assert_eq!(bench.object(&composite).await["spec"]["parameters"]["size"], "small", "a default");
    let theirs = json!({
        "metadata": { "labels": { "team": "red" } },
        "spec": { "zone": "elsewhere", "parameters": { "size": "large" } },
    });
    bench.write(&composite, theirs).await;
    bench.conditions(&composite, json!([{ "type": "Ready", "status": "True" }])).await;
    let report = bench.until(&composite, "it is ready", crate::support::is_ready).await;
    assert_eq!(report.live().unwrap().owned_hash, rendered.owned_hash());
    let (answer, verbs) = bench.verbs_of(bench.engine.apply(&rendered)).await;
    answer.unwrap();
    assert_eq!(verbs, [""; 0]);
    assert_eq!(bench.engine.overruled(), 0);
}

#[tokio::test]
async fn a_value_of_ours_that_somebody_changed_is_drift_and_is_overruled() {
    const NAME: &str = "a_value_of_ours_that_somebody_changed_is_drift_and_is_overruled";
    let Some(bench) = Bench::new(NAME).await else { return };
    let composite = bench.composite(typed());
    let rendered = composite.rendered();
    bench.apply(&composite).await;
    bench.write(&composite, json!({ "spec": { "parameters": { "busy_seconds": 99 } } })).await;
    let drifted = |report: &CompositeReport| {
        report.live().is_some_and(|live| live.owned_hash != rendered.owned_hash())
    };
    bench.until(&composite, "the drift is seen", drifted).await;
    let (answer, verbs) = bench.verbs_of(bench.engine.apply(&rendered)).await;
    assert!(!drifted(&answer.unwrap()));
    assert_eq!(verbs, ["patch", "patch"], "refused once, then forced");
    assert_eq!(bench.engine.overruled(), 1);
    assert_eq!(bench.object(&composite).await["spec"]["parameters"]["busy_seconds"], 3);
    let (answer, verbs) = bench.verbs_of(bench.engine.apply(&rendered)).await;
    assert_eq!((answer.is_ok(), verbs.len()), (true, 0), "it is settled");
}

/// Invariant 10: a re-apply keeps the injected document to the letter.
#[tokio::test]
async fn what_is_injected_survives_a_reapply_to_the_letter() {
    const NAME: &str = "what_is_injected_survives_a_reapply_to_the_letter";
    let Some(bench) = Bench::new(NAME).await else { return };
    for kind in [loose(), typed()] {
        for strategy in InjectionStrategy::ALL {
            let mut composite = bench.composite(kind.clone());
            composite.strategy = *strategy;
            let live = bench.apply(&composite).await;
            let before = bench.object(&composite).await["spec"].clone();
            assert!(before.to_string().contains(TOKEN), "{before}");
            let id = slipway_core::ids::BootstrapTokenId::new(TOKEN_ID);
            composite.injection =
                Injection::Verbatim { id: Some(id), document: live.injected.unwrap() };
            composite.busy_seconds = 4;
            bench.apply(&composite).await;
            let mut after = bench.object(&composite).await["spec"].clone();
            assert_eq!(after["parameters"]["busy_seconds"], 4, "{strategy}");
            after["parameters"]["busy_seconds"] = json!(3);
            assert_eq!(after, before, "{strategy}");
        }
    }
    assert_eq!(bench.engine.overruled(), 0, "nobody else was in the way");
}

/// After a crash between mint and apply, the next token replaces the old one.
#[tokio::test]
async fn another_token_is_written() {
    let Some(bench) = Bench::new("another_token_is_written").await else { return };
    let mut composite = bench.composite(typed());
    composite.strategy = InjectionStrategy::HelmValues;
    bench.apply(&composite).await;
    let other = TOKEN.replace("bbbb", "cccc");
    composite.injection = fresh(&other);
    bench.apply(&composite).await;
    let object = bench.object(&composite).await;
    assert_eq!(object["spec"]["parameters"]["helmValues"]["bootstrapToken"], other);
}

#[tokio::test]
async fn our_finalizer_is_put_back() {
    let Some(bench) = Bench::new("our_finalizer_is_put_back").await else { return };
    let composite = bench.composite(loose());
    bench.apply(&composite).await;
    bench
        .write(&composite, json!({ "metadata": { "finalizers": ["theirs.example.org/x"] } }))
        .await;
    let bare = |report: &CompositeReport| {
        report
            .live()
            .is_some_and(|live| live.evidence["finalizers"] == json!(["theirs.example.org/x"]))
    };
    bench.until(&composite, "the loss is seen", bare).await;
    bench.apply(&composite).await;
    let finalizers = &bench.object(&composite).await["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["theirs.example.org/x", composite::FINALIZER_DRAIN]));
}

#[tokio::test]
async fn another_installations_object_is_neither_written_nor_deleted() {
    const NAME: &str = "another_installations_object_is_neither_written_nor_deleted";
    let Some(bench) = Bench::new(NAME).await else { return };
    let Some(other) = Bench::new(NAME).await else { return };
    let composite = bench.composite(loose());
    // The other installation creates a composite at the same address.
    let mut theirs = composite.clone();
    theirs.installation = other.installation;
    let uid = other.engine.apply(&theirs.rendered()).await.unwrap().live().unwrap().uid.clone();
    let before = bench.object(&composite).await;

    let report = bench.report(&composite).await;
    assert!(matches!(report, CompositeReport::Foreign { .. }), "{report:?}");
    assert!(crate::support::reason(&report).contains(&other.installation.to_string()));
    let refused = bench.engine.apply(&composite.rendered()).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    let refused = bench.engine.delete(&composite.address(), &uid).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    assert_eq!(bench.object(&composite).await, before);

    // An object without an owner is not written either.
    let unmarked = bench.composite(loose());
    let body = json!({
        "apiVersion": unmarked.kind.api_version(), "kind": unmarked.kind.kind,
        "metadata": { "name": unmarked.name() },
    });
    let object = serde_json::from_value(body).unwrap();
    bench.objects(&unmarked).create(&Default::default(), &object).await.unwrap();
    let refused = bench.engine.apply(&unmarked.rendered()).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    assert!(bench.object(&unmarked).await["spec"]["userData"].is_null());
}

#[tokio::test]
async fn a_missing_namespace_is_named() {
    let Some(bench) = Bench::new("a_missing_namespace_is_named").await else { return };
    let mut composite = bench.composite(loose());
    composite.namespace = "slipway-project-nowhere".to_owned();
    let refused = bench.engine.apply(&composite.rendered()).await.unwrap_err().to_string();
    assert!(refused.contains("the namespace is not there"), "{refused}");
    assert!(refused.contains("slipway-project-nowhere"), "{refused}");
}
