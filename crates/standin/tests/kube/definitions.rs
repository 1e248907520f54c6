//! Kinds that come and go with their definitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use slipway_testkit::wait::until;

use crate::world::{
    TIMEOUT, apply, composite, condition_of, definition, definitions, provider_configs, servers,
    until_established, world,
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
    until(TIMEOUT, "the end of the kind", async || {
        kinds.get_opt("xshortlived.example.org").await.is_ok_and(|found| found.is_none())
    })
    .await;
}

#[tokio::test]
async fn a_composite_of_the_whole_cluster_is_composed_too() {
    let Some(world) = world("a_composite_of_the_whole_cluster_is_composed_too").await else {
        return;
    };
    let mut wide = definition("xwide", "XWide");
    wide["spec"]["scope"] = json!("Cluster");
    apply(&world.client, &definitions(), None, &wide).await.unwrap();
    until_established(&world.client, "xwide.example.org").await;
    let kind = GroupVersionKind::gvk("example.org", "v1", "XWide");
    let resource = ApiResource::from_gvk_with_plural(&kind, "xwide");
    let object = json!({
        "apiVersion": "example.org/v1",
        "kind": "XWide",
        "metadata": { "name": "one-and-all" },
        "spec": { "parameters": {} },
    });
    apply(&world.client, &resource, None, &object).await.unwrap();
    let api = Api::<DynamicObject>::all_with(world.client.clone(), &resource);
    let ready = until(TIMEOUT, "the composite to be Ready", async || {
        let found = api.get("one-and-all").await.map_err(|error| error.to_string())?;
        let condition = condition_of(&found, "Ready");
        let is_ready = condition.is_some_and(|condition| condition["status"] == "True");
        if is_ready { Ok(found) } else { Err(found.data.to_string()) }
    })
    .await;
    assert_eq!(ready.data["spec"]["crossplane"]["resourceRefs"][0]["namespace"], "default");
    // Deleting the definition removes everything, the composite in order.
    let all = Api::<DynamicObject>::all_with(world.client.clone(), &definitions());
    all.delete("xwide.example.org", &DeleteParams::default()).await.unwrap();
    let servers =
        Api::<DynamicObject>::namespaced_with(world.client.clone(), "default", &servers());
    until(TIMEOUT, "the end of the composed resource", async || {
        servers.get_opt("one-and-all").await.is_ok_and(|found| found.is_none())
    })
    .await;
    let kinds = Api::<CustomResourceDefinition>::all(world.client.clone());
    until(TIMEOUT, "the end of the kind", async || {
        kinds.get_opt("xwide.example.org").await.is_ok_and(|found| found.is_none())
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
    // Kept as written, not pruned.
    assert_eq!(made.data["spec"], object["spec"]);
}

/// As Crossplane: the Composition has to be there and for the API version in which composites
/// are read.
#[tokio::test]
async fn a_composite_is_composed_by_the_composition_that_it_names() {
    let test = "a_composite_is_composed_by_the_composition_that_it_names";
    let Some(world) = world(test).await else { return };
    let kind = GroupVersionKind::gvk("apiextensions.crossplane.io", "v1", "Composition");
    let compositions = ApiResource::from_gvk_with_plural(&kind, "compositions");
    let compose = async |name: &str, version: &str| {
        let object = json!({
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": { "name": name },
            "spec": {
                "compositeTypeRef": { "apiVersion": format!("example.org/{version}"), "kind": "XServer" },
                "pipeline": [{ "step": format!("of-{name}") }],
            },
        });
        apply(&world.client, &compositions, None, &object).await.unwrap();
    };
    let name_it = async |composition: &str| {
        let mut object = composite("named", &json!({ "standin": "no-node" }));
        object["spec"]["crossplane"] = json!({ "compositionRef": { "name": composition } });
        world.apply(&object).await;
    };
    let refused = async |why: &str| {
        until(TIMEOUT, why, async || {
            let found = world.until("named", "Synced", "False").await;
            let said = condition_of(&found, "Synced").map(|said| said["message"].to_string());
            if said.as_ref().is_some_and(|said| said.contains(why)) {
                Ok(())
            } else {
                Err(said.unwrap_or_default())
            }
        })
        .await;
    };
    compose("named-v2", "v2").await;
    name_it("named-v1").await;
    refused("cannot get Composition").await;
    name_it("named-v2").await;
    refused("not compatible").await;
    compose("named-v1", "v1").await;
    name_it("named-v1").await;
    world.until("named", "Ready", "True").await;
    let server = world.api(&servers()).get("named").await.unwrap();
    let by = json!({ "name": "named-v1", "steps": ["of-named-v1"] });
    assert_eq!(server.data["spec"]["composedBy"], by);
    // What is composed stays as it is.
    name_it("named-v3").await;
    refused("cannot get Composition").await;
    world.until("named", "Ready", "True").await;
    let server = world.api(&servers()).get("named").await.unwrap();
    assert_eq!(server.data["spec"]["composedBy"], by);
}
