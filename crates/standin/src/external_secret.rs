//! One `ExternalSecret`: creates its Secret, with a dummy value.
//!
//! With the annotation `standin.slipway.dev/missing` it creates none, as if the
//! store did not have the secret.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::clock;
use crate::context::Context;
use crate::kinds::{self, MANAGER};
use crate::script::PREFIX;
use crate::watching::Updates;

const VALUE: &str = "standin";
const RETRY: Duration = Duration::from_millis(500);

/// Follows one until it is gone, then deletes its Secret.
pub(crate) async fn live(context: Context, mut updates: Updates) {
    let mut written = None;
    loop {
        let object = updates.borrow_and_update().clone();
        let is_missing = is_missing(&object);
        let wait = if written == Some(is_missing) {
            None
        } else {
            match converge(&context, &object, is_missing).await {
                Ok(()) => {
                    written = Some(is_missing);
                    None
                }
                Err(error) => {
                    tracing::debug!(%error, "an ExternalSecret is tried again later");
                    Some(RETRY)
                }
            }
        };
        let changed = match wait {
            None => updates.changed().await,
            Some(wait) => tokio::select! {
                changed = updates.changed() => changed,
                () = tokio::time::sleep(wait) => Ok(()),
            },
        };
        if changed.is_err() {
            break;
        }
    }
    let object = updates.borrow().clone();
    let (namespace, target) = target(&object);
    let secrets = Api::<Secret>::namespaced(context.client.clone(), &namespace);
    if let Err(error) = secrets.delete(&target, &DeleteParams::default()).await {
        tracing::debug!(%error, target, "the Secret of an ExternalSecret is not deleted");
    }
}

fn is_missing(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    let value = annotations.and_then(|all| all.get(&format!("{PREFIX}missing")));
    value.is_some_and(|value| value != "false")
}

fn target(object: &DynamicObject) -> (String, String) {
    let name = object.metadata.name.clone().unwrap_or_default();
    let target = object.data["spec"]["target"]["name"].as_str().map_or(name, str::to_owned);
    (object.metadata.namespace.clone().unwrap_or_default(), target)
}

async fn converge(context: &Context, object: &DynamicObject, is_missing: bool) -> kube::Result<()> {
    let (namespace, target) = target(object);
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let secrets = Api::<Secret>::namespaced(context.client.clone(), &namespace);
    let _permit = context.permit().await;
    if !is_missing {
        let keys = object.data["spec"]["data"].as_array();
        let mut values: serde_json::Map<String, Value> = keys
            .into_iter()
            .flatten()
            .filter_map(|entry| entry["secretKey"].as_str())
            .map(|key| (key.to_owned(), json!(VALUE)))
            .collect();
        if values.is_empty() {
            values.insert("credentials".to_owned(), json!(VALUE));
        }
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": target },
            "stringData": values,
        });
        secrets
            .patch(&target, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&secret))
            .await?;
    }
    let (status, reason, message) = if is_missing {
        ("False", "SecretSyncedError", "could not get secret data from provider")
    } else {
        ("True", "SecretSynced", "secret synced")
    };
    let now = clock::now_in_seconds();
    let patch = json!({ "status": {
        "refreshTime": now,
        "binding": { "name": target },
        "conditions": [{
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": now,
        }],
    } });
    let api = context.api(&kinds::external_secrets(), Some(&namespace));
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(|_| ())
}
