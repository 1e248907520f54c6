//! The kinds that the stand-in watches or creates.

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

/// The field manager of everything that it writes.
pub(crate) const MANAGER: &str = "crossplane-standin";

/// Crossplane's own finalizer on composites.
pub(crate) const FINALIZER: &str = "composite.apiextensions.crossplane.io";

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

pub(crate) fn definitions() -> ApiResource {
    resource(
        "apiextensions.crossplane.io",
        "v2",
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
    )
}

pub(crate) fn compositions() -> ApiResource {
    resource("apiextensions.crossplane.io", "v1", "Composition", "compositions")
}

pub(crate) fn external_secrets() -> ApiResource {
    resource("external-secrets.io", "v1", "ExternalSecret", "externalsecrets")
}

/// The composed resource.
pub(crate) fn servers() -> ApiResource {
    resource("standin.slipway.dev", "v1alpha1", "Server", "servers")
}

pub(crate) fn provider_configs(provider: &str) -> ApiResource {
    let group = format!("{provider}.crossplane.io");
    resource(&group, "v1beta1", "ProviderConfig", "providerconfigs")
}

/// The kind of a definition's composites, in the version that Crossplane itself
/// works with: the referenceable one.
pub(crate) fn composites(definition: &Value) -> Option<ApiResource> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array()?;
    let served = |version: &&Value| version["served"] == Value::Bool(true);
    let version = versions
        .iter()
        .filter(served)
        .find(|version| version["referenceable"] == Value::Bool(true))
        .or_else(|| versions.iter().find(served))?;
    Some(resource(
        spec["group"].as_str()?,
        version["name"].as_str()?,
        spec["names"]["kind"].as_str()?,
        spec["names"]["plural"].as_str()?,
    ))
}
