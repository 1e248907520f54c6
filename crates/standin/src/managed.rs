//! The composed resource as a managed resource whose provider refuses to delete its external
//! object. The external object is a ConfigMap, so that a test sees whether it is kept.
//!
//! As a real provider does, it removes its finalizer when the external object is gone, or
//! when it is told to keep it: by management policies without `Delete`, or by
//! `deletionPolicy: Orphan` while the policies are the default.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::clock;
use crate::context::Context;
use crate::kinds::MANAGER;
use crate::script::Script;

/// The finalizer that every provider sets.
const FINALIZER: &str = "finalizer.managedresource.crossplane.io";
/// Where the external objects are.
pub const CLOUD: &str = "default";
pub(crate) const RETRY: Duration = Duration::from_millis(100);

/// The external name of the machine of a composite.
pub fn external_name(composite: &str) -> String {
    format!("machine-of-{composite}")
}

/// Makes the external object, and what stands for it.
pub(crate) async fn make(
    context: &Context,
    composite: &str,
    script: &Script,
    object: &mut Value,
) -> kube::Result<()> {
    let name = external_name(composite);
    object["metadata"]["finalizers"] = json!([FINALIZER]);
    object["metadata"]["annotations"] = json!({ "crossplane.io/external-name": name });
    object["spec"] = match script.deletion_policy {
        true => json!({ "deletionPolicy": "Delete" }),
        false => json!({ "managementPolicies": ["*"] }),
    };
    object["spec"]["providerConfigRef"] = json!({ "name": "standin" });
    let external = json!({ "metadata": { "name": name } });
    let external: ConfigMap = serde_json::from_value(external).map_err(kube::Error::SerdeError)?;
    match cloud(context).create(&PostParams::default(), &external).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        made => made.map(|_| ()),
    }
}

/// Reconciles the managed resource once while it is deleted; whether it is gone.
pub(crate) async fn is_gone(
    context: &Context,
    servers: &Api<DynamicObject>,
    composite: &str,
    script: &Script,
) -> kube::Result<bool> {
    let _permit = context.permit().await;
    let Some(server) = servers.get_opt(composite).await? else { return Ok(true) };
    if !server.metadata.finalizers.iter().flatten().any(|name| name == FINALIZER) {
        return Ok(true);
    }
    if !keeps(&server.data["spec"]) {
        if let Some(message) = &script.refuse_deletion {
            let condition = json!({
                "type": "Synced",
                "status": "False",
                "reason": "ReconcileError",
                "message": format!("delete failed: {message}"),
                "lastTransitionTime": clock::now_in_seconds(),
            });
            let said = server.data["status"]["conditions"][0]["message"] == condition["message"];
            if !said {
                let status = json!({ "status": { "conditions": [condition] } });
                let parameters = PatchParams::default();
                servers.patch_status(composite, &parameters, &Patch::Merge(&status)).await?;
            }
            return Ok(false);
        }
        let name = external_name(composite);
        match cloud(context).delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
    let released = json!({ "metadata": { "finalizers": null } });
    match servers.patch(composite, &parameters, &Patch::Merge(&released)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
        released => released.map(|_| true),
    }
}

/// Whether the external object outlives it.
fn keeps(spec: &Value) -> bool {
    let actions = spec["managementPolicies"].as_array();
    let all = actions.is_none_or(|actions| *actions == [json!("*")]);
    match all {
        true => spec["deletionPolicy"] == "Orphan",
        false => actions.is_some_and(|actions| !actions.contains(&json!("Delete"))),
    }
}

fn cloud(context: &Context) -> Api<ConfigMap> {
    Api::namespaced(context.client.clone(), CLOUD)
}
