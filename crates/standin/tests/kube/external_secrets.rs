//! Secrets that External Secrets would create.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use slipway_testkit::wait::until;

use crate::world::{TIMEOUT, World, apply, condition_of, external_secrets, world};

fn external_secret(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": { "name": name, "annotations": annotations },
        "spec": {
            "secretStoreRef": { "name": "openbao", "kind": "ClusterSecretStore" },
            "target": { "name": format!("cloud-{name}") },
            "data": [{ "secretKey": "token", "remoteRef": { "key": "clouds/a", "property": "token" } }],
        },
    })
}

async fn until_ready(world: &World, name: &str, status: &str) {
    let api = world.api(&external_secrets());
    until(TIMEOUT, &format!("{name} with Ready={status}"), async || {
        let found = api.get(name).await.map_err(|error| error.to_string())?;
        condition_of(&found, "Ready")
            .filter(|condition| condition["status"] == status)
            .ok_or_else(|| found.data.to_string())
    })
    .await;
}

#[tokio::test]
async fn a_secret_comes_unless_it_is_missing_and_goes_with_its_order() {
    const NAME: &str = "a_secret_comes_unless_it_is_missing_and_goes_with_its_order";
    let Some(world) = world(NAME).await else { return };
    let secrets = Api::<Secret>::namespaced(world.client.clone(), &world.namespace);
    let missing = json!({ "standin.slipway.dev/missing": "true" });
    for object in [external_secret("there", &json!({})), external_secret("absent", &missing)] {
        let namespace = Some(world.namespace.as_str());
        apply(&world.client, &external_secrets(), namespace, &object).await.unwrap();
    }
    until_ready(&world, "there", "True").await;
    let secret = secrets.get("cloud-there").await.unwrap();
    assert_eq!(secret.data.unwrap()["token"].0, b"standin");
    until_ready(&world, "absent", "False").await;
    assert!(secrets.get_opt("cloud-absent").await.unwrap().is_none());

    let found = json!({ "metadata": { "annotations": { "standin.slipway.dev/missing": null } } });
    let api = world.api(&external_secrets());
    api.patch("absent", &PatchParams::default(), &Patch::Merge(&found)).await.unwrap();
    until_ready(&world, "absent", "True").await;

    api.delete("there", &DeleteParams::default()).await.unwrap();
    until(TIMEOUT, "the end of the Secret", async || {
        secrets.get_opt("cloud-there").await.is_ok_and(|found| found.is_none())
    })
    .await;
}
