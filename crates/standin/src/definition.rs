//! One `CompositeResourceDefinition`: the kind that it defines while it exists,
//! and its composites.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::context::Context;
use crate::install::{anything, apply_kind};
use crate::watching::Updates;
use crate::{clock, kinds, run};

const RETRY: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(30);

/// *Expected flow:* the kind is created and can be listed → the definition is
/// Established → its composites are watched → the definition is deleted → the
/// kind is deleted, and its composites end in order.
///
/// *Caveat:* if somebody removes a kind by hand, it is created again only when
/// its definition changes. Crossplane would do it at once; a test that removes
/// a kind needs the time without it.
pub(crate) async fn live(context: Context, mut updates: Updates) {
    let Some(resource) = establish(&context, &mut updates).await else { return };
    let (read_as, current) = watch::channel(resource.api_version.clone());
    let mut composites = std::pin::pin!(run::composites(&context, &resource, &current));
    let followed = async {
        while updates.changed().await.is_ok() {
            let Some(now) = establish(&context, &mut updates).await else { return };
            read_as.send_if_modified(|before| {
                let changed = *before != now.api_version;
                before.clone_from(&now.api_version);
                changed
            });
        }
    };
    tokio::select! {
        () = &mut composites => {}
        () = followed => {}
    }
    tokio::select! {
        () = composites => {}
        () = remove(&context, &resource) => {}
    }
}

/// Retries until it succeeds; `None` if the definition is deleted first.
async fn establish(context: &Context, updates: &mut Updates) -> Option<ApiResource> {
    loop {
        let object = updates.borrow_and_update().clone();
        match establish_once(context, &object).await {
            Ok(resource) => return Some(resource),
            Err(error) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(error = format!("{error:#}"), name, "a definition is not usable");
            }
        }
        tokio::select! {
            changed = updates.changed() => changed.ok()?,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

async fn establish_once(context: &Context, object: &DynamicObject) -> anyhow::Result<ApiResource> {
    let value = serde_json::to_value(object)?;
    let resource =
        kinds::composites(&value).context("it lacks spec.group, spec.names or a served version")?;
    let established = value["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    apply_kind(&context.client, &kind(&value, &resource)).await?;
    until_served(context, &resource).await?;
    if !established {
        let status = json!({ "status": {
            "conditions": [{
                "type": "Established",
                "status": "True",
                "reason": "WatchingCompositeResource",
                "lastTransitionTime": clock::now_in_seconds(),
            }],
            "controllers": { "compositeResourceType": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
            } },
        } });
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let definitions = context.api(&kinds::definitions(), None);
        definitions.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    }
    Ok(resource)
}

/// A kind is established a moment before its path is served.
async fn until_served(context: &Context, resource: &ApiResource) -> anyhow::Result<()> {
    let api = context.api(resource, None);
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match api.list(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                return Err(error).with_context(|| format!("{} is not served", resource.plural));
            }
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// Deletes the kind and waits until it is gone, which takes until its
/// composites are gone. Leaves a kind of the same name that another definition
/// creates meanwhile.
async fn remove(context: &Context, resource: &ApiResource) {
    let api = Api::<CustomResourceDefinition>::all(context.client.clone());
    let name = format!("{}.{}", resource.plural, resource.group);
    let mut ours = None;
    loop {
        match api.get_opt(&name).await {
            Ok(None) => return,
            Ok(Some(found)) => {
                let uid = found.metadata.uid;
                if *ours.get_or_insert_with(|| uid.clone()) != uid {
                    return;
                }
                let preconditions = Preconditions { uid, resource_version: None };
                let parameters =
                    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                if let Err(error) = api.delete(&name, &parameters).await {
                    tracing::debug!(%error, name, "the kind is still there");
                }
            }
            Err(error) => tracing::debug!(%error, name, "the kind cannot be read"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The `CustomResourceDefinition` that Crossplane derives from a definition.
fn kind(definition: &Value, resource: &ApiResource) -> Value {
    let spec = &definition["spec"];
    let mut names = spec["names"].clone();
    if names["singular"].is_null() {
        names["singular"] = json!(resource.kind.to_lowercase());
    }
    if names["listKind"].is_null() {
        names["listKind"] = json!(format!("{}List", resource.kind));
    }
    let versions: Vec<Value> = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| {
            json!({
                "name": version["name"],
                "served": version["served"],
                "storage": version["name"] == json!(resource.version),
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema(&version["schema"]["openAPIV3Schema"]) },
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", resource.plural, resource.group),
            "ownerReferences": [{
                "apiVersion": "apiextensions.crossplane.io/v2",
                "kind": "CompositeResourceDefinition",
                "name": definition["metadata"]["name"],
                "uid": definition["metadata"]["uid"],
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "group": resource.group,
            "scope": if spec["scope"] == "Cluster" { "Cluster" } else { "Namespaced" },
            "names": names,
            "versions": versions,
        },
    })
}

/// The definition's schema of spec and status, plus Crossplane's own fields.
fn schema(given: &Value) -> Value {
    let part = |name: &str| match &given["properties"][name] {
        Value::Object(part) => Value::Object(part.clone()),
        _ => json!({ "type": "object" }),
    };
    let (mut spec, mut status) = (part("spec"), part("status"));
    spec["properties"]["crossplane"] = anything();
    status["properties"]["conditions"] = json!({ "type": "array", "items": anything() });
    json!({ "type": "object", "properties": { "spec": spec, "status": status } })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::kind;
    use crate::kinds;

    #[test]
    fn a_definition_becomes_a_kind_with_the_fields_of_both() {
        let definition = json!({
            "metadata": { "name": "xservers.example.org", "uid": "u" },
            "spec": {
                "group": "example.org",
                "names": { "kind": "XServer", "plural": "xservers" },
                "scope": "Namespaced",
                "versions": [
                    { "name": "v1alpha1", "served": true, "referenceable": false },
                    { "name": "v1", "served": true, "referenceable": true, "schema": {
                        "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                            "type": "object",
                            "properties": { "userData": { "type": "string" } },
                        } } },
                    } },
                ],
            },
        });
        let resource = kinds::composites(&definition).unwrap();
        assert_eq!((resource.version.as_str(), resource.kind.as_str()), ("v1", "XServer"));
        let kind = kind(&definition, &resource);
        assert_eq!(kind["metadata"]["name"], "xservers.example.org");
        assert_eq!(kind["spec"]["versions"][0]["storage"], false);
        let version = &kind["spec"]["versions"][1];
        assert_eq!(version["storage"], true);
        let properties = &version["schema"]["openAPIV3Schema"]["properties"];
        assert_eq!(properties["spec"]["properties"]["userData"]["type"], "string");
        assert_eq!(
            properties["spec"]["properties"]["crossplane"]["x-kubernetes-preserve-unknown-fields"],
            true
        );
        assert_eq!(properties["status"]["properties"]["conditions"]["type"], "array");
    }
}
