//! Kinds that come and go with their definitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::json;
use slipway_testkit::wait::until;

use crate::world::{
    PATIENCE, apply, definition, definitions, provider_configs, until_established, world,
};

#[tokio::test]
async fn a_kind_goes_with_its_definition() {
    let Some(world) = world("a_kind_goes_with_its_definition").await else { return };
    let kinds = Api::<CustomResourceDefinition>::all(world.client.clone());
    let (client, all) = (&world.client, definitions());
    apply(client, &all, None, &definition("xshortlived", "XShortLived")).await.unwrap();
    until_established(client, "xshortlived.example.org").await;
    let kind = kinds.get("xshortlived.example.org").await.unwrap();
    assert_eq!(kind.spec.names.list_kind.as_deref(), Some("XShortLivedList"));
    assert_eq!(kind.spec.scope, "Namespaced");
    let version = &kind.spec.versions[0];
    assert!(version.subresources.as_ref().unwrap().status.is_some());

    let api = Api::<DynamicObject>::all_with(client.clone(), &all);
    api.delete("xshortlived.example.org", &DeleteParams::default()).await.unwrap();
    until(PATIENCE, "the end of the kind", async || {
        kinds.get_opt("xshortlived.example.org").await.is_ok_and(|found| found.is_none())
    })
    .await;
}

#[tokio::test]
async fn the_kinds_of_a_provider_are_installed() {
    let Some(world) = world("the_kinds_of_a_provider_are_installed").await else { return };
    let object = json!({
        "apiVersion": "hetzner.crossplane.io/v1beta1",
        "kind": "ProviderConfig",
        "metadata": { "name": "hetzner" },
        "spec": { "credentials": { "secretRef": { "name": "any", "key": "credentials" } } },
    });
    let namespace = Some(world.namespace.as_str());
    let made = apply(&world.client, &provider_configs(), namespace, &object).await.unwrap();
    // Kept as it is written, not pruned.
    assert_eq!(made.data["spec"], object["spec"]);
}
