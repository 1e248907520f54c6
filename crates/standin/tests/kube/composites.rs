//! The life of composites, as their scripts define it.

use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use slipway_testkit::wait::until;

use crate::world::{TIMEOUT, composite, composites, condition_of, servers, world};

const FINALIZER: &str = "composite.apiextensions.crossplane.io";

#[tokio::test]
async fn a_composite_becomes_ready_and_leaves_after_others_let_it_go() {
    const NAME: &str = "a_composite_becomes_ready_and_leaves_after_others_let_it_go";
    let Some(world) = world(NAME).await else { return };
    let mut object = composite("one", &json!({ "size": "small" }));
    object["metadata"]["finalizers"] = json!(["example.org/drain"]);
    world.apply(&object).await;
    let ready = world.until("one", "Ready", "True").await;
    assert_eq!(condition_of(&ready, "Synced").unwrap()["status"], "True");
    let mut finalizers = ready.finalizers().to_vec();
    finalizers.sort();
    assert_eq!(finalizers, [FINALIZER, "example.org/drain"]);
    assert_eq!(ready.data["spec"]["crossplane"]["resourceRefs"][0]["name"], "one");
    assert_eq!(ready.data["spec"]["parameters"], json!({ "size": "small" }));
    let server = world.api(&servers()).get("one").await.unwrap();
    assert_eq!(server.owner_references()[0].uid, ready.uid().unwrap());
    // A second apply of ours has the finalizer and the parameters as before,
    // and takes nothing from the other manager.
    let applied = world.apply(&object).await;
    assert_eq!(applied.finalizers().len(), 2);

    let api = world.api(&composites());
    api.delete("one", &DeleteParams::default()).await.unwrap();
    // Wait for the next composite to become Ready: it is not stuck behind the
    // first, and by then the stand-in has seen the deletion.
    world.apply(&composite("two", &json!({}))).await;
    world.until("two", "Ready", "True").await;
    assert_eq!(api.get("one").await.unwrap().finalizers().len(), 2);
    assert!(world.api(&servers()).get_opt("one").await.unwrap().is_some());

    let patch = json!({ "metadata": { "finalizers": [FINALIZER] } });
    api.patch("one", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    world.until_gone(&composites(), "one").await;
    world.until_gone(&servers(), "one").await;
}

#[tokio::test]
async fn a_composite_goes_as_it_is_told() {
    let Some(world) = world("a_composite_goes_as_it_is_told").await else { return };
    let told = |text: &str| json!({ "standin": text });
    world.apply(&composite("fails", &told("fail=quota exceeded"))).await;
    world.apply(&composite("never", &told("never-ready"))).await;
    world.apply(&composite("wrong", &told("raedy-after=1s"))).await;
    world.apply(&composite("flaps", &told("flap=30ms"))).await;

    let failed = world.until("fails", "ProvisioningFailed", "True").await;
    let condition = condition_of(&failed, "ProvisioningFailed").unwrap();
    assert_eq!(condition["message"], "quota exceeded");
    assert_eq!(condition_of(&failed, "Ready").unwrap()["status"], "False");
    let never = world.until("never", "Ready", "False").await;
    assert_eq!(condition_of(&never, "Ready").unwrap()["reason"], "Creating");
    let wrong = world.until("wrong", "Synced", "False").await;
    let message = condition_of(&wrong, "Synced").unwrap()["message"].to_string();
    assert!(message.contains("raedy-after"), "{message}");
    for status in ["True", "False", "True"] {
        world.until("flaps", "Ready", status).await;
    }

    // An annotation overrules the parameter while the composite lives.
    let mut relieved = composite("never", &told("never-ready"));
    relieved["metadata"]["annotations"] = json!({ "standin.slipway.dev/never-ready": "false" });
    world.apply(&relieved).await;
    world.until("never", "Ready", "True").await;
}

#[tokio::test]
async fn a_deletion_lingers_as_it_is_told() {
    let Some(world) = world("a_deletion_lingers_as_it_is_told").await else { return };
    let told = |text: &str| json!({ "standin": text });
    world.apply(&composite("kept", &told("keep-finalizer"))).await;
    world.apply(&composite("slow", &told("deletion-delay=10m"))).await;
    for name in ["kept", "slow"] {
        world.until(name, "Ready", "True").await;
        world.api(&composites()).delete(name, &DeleteParams::default()).await.unwrap();
    }
    // The first loses its composed resource and keeps the finalizer; the
    // deletion of the second has not begun.
    world.until_gone(&servers(), "kept").await;
    for name in ["kept", "slow"] {
        let leaving = world.until(name, "Ready", "False").await;
        assert_eq!(condition_of(&leaving, "Ready").unwrap()["reason"], "Deleting");
        assert_eq!(leaving.finalizers(), [FINALIZER]);
    }
    assert!(world.api(&servers()).get_opt("slow").await.unwrap().is_some());

    // Both end when their annotations say so.
    for (name, word, value) in
        [("kept", "keep-finalizer", "false"), ("slow", "deletion-delay", "0")]
    {
        let patch = json!({ "metadata": { "annotations": {
            format!("standin.slipway.dev/{word}"): value,
        } } });
        let api = world.api(&composites());
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        world.until_gone(&composites(), name).await;
    }
    until(TIMEOUT, "the end of the composed resources", async || {
        world.api(&servers()).get_opt("slow").await.is_ok_and(|found| found.is_none())
    })
    .await;
}
