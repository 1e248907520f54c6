//! The kinds that Crossplane, its providers and External Secrets install on a
//! management cluster, reduced to what a client can observe.

use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::kinds::{self, MANAGER};

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Installs all kinds and waits until each can be used.
pub async fn install(client: &Client, providers: &[String]) -> anyhow::Result<()> {
    let mut wanted = vec![
        custom_resource(&kinds::definitions(), "Cluster"),
        custom_resource(&kinds::compositions(), "Cluster"),
        custom_resource(&kinds::external_secrets(), "Namespaced"),
        custom_resource(&kinds::servers(), "Namespaced"),
    ];
    wanted.extend(
        providers
            .iter()
            .map(|provider| custom_resource(&kinds::provider_configs(provider), "Namespaced")),
    );
    try_join_all(wanted.iter().map(|kind| apply_kind(client, kind))).await?;
    Ok(())
}

/// Applies a `CustomResourceDefinition` and waits until it is established.
pub(crate) async fn apply_kind(client: &Client, kind: &Value) -> anyhow::Result<()> {
    let name = kind["metadata"]["name"].as_str().unwrap_or_default();
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let parameters = PatchParams::apply(MANAGER).force();
    let waiting = async {
        loop {
            let applied = api.patch(name, &parameters, &Patch::Apply(kind)).await?;
            // A kind that is being deleted is still established; it is applied
            // again once it is gone.
            if is_established(&applied) && applied.metadata.deletion_timestamp.is_none() {
                return anyhow::Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting)
        .await
        .with_context(|| format!("the kind {name} is not established after {TIMEOUT:?}"))?
        .with_context(|| format!("cannot install the kind {name}"))
}

fn is_established(kind: &CustomResourceDefinition) -> bool {
    let conditions = kind.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}

/// A kind that keeps every field as written, with a status.
fn custom_resource(resource: &ApiResource, scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", resource.plural, resource.group) },
        "spec": {
            "group": resource.group,
            "scope": scope,
            "names": {
                "kind": resource.kind,
                "listKind": format!("{}List", resource.kind),
                "plural": resource.plural,
                "singular": resource.kind.to_lowercase(),
            },
            "versions": [{
                "name": resource.version,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": anything(),
                        "status": anything(),
                    },
                } },
            }],
        },
    })
}

pub(crate) fn anything() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
