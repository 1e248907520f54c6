//! The composite of engine crossplane: an object of the type that the version's
//! XRD defines. A Composition turns it into cloud resources.

use serde_json::{Map, Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::ClaimToken;
use slipway_core::placement::provider_config;

use crate::cloud_tags::{self, CloudTags, SkipReason, Skipped};
use crate::composite::{FIELD_CROSSPLANE, FINALIZER_DRAIN, RenderedComposite, labels};
use crate::injection::{Filled, Injection};
use crate::{Error, NodeSettings};

/// The part of the object that we own, as it should be. Checks the parameter
/// values again, since the row may be older than the check.
///
/// A field that the XRD does not declare must be left out: a server-side apply
/// refuses it. So `parameters` is present if the blueprint declares some (an
/// XRD without the field could not be published then), and `cloudTags` if the
/// XRD has them and there are any. A version that asks for the name of its ProviderConfig
/// gets it, unless the declaration names another. Crossplane itself gives every composite the
/// field for the Composition, which a version that we install names.
pub fn owned(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<Value, Error> {
    let blueprint = &snapshot.blueprint;
    let Some(composite_type) = &blueprint.composite_type else {
        let (slug, version) = (blueprint.slug.clone(), blueprint.version.clone());
        return Err(Error::NoCompositeType { slug, version });
    };
    let schema = &blueprint.parameter_schema;
    let values = schema.validate(snapshot.attempt.parameter_values().as_map().clone())?;
    let mut values = values.as_map().clone();
    if let Some(facts) = &snapshot.provider
        && schema.takes_provider_config_name()
    {
        let name = || blueprint.provider_config(&facts.provider, facts.credential_id).into();
        values.entry(provider_config::PARAMETER.to_owned()).or_insert_with(name);
    }
    let mut spec = Map::new();
    if !schema.is_empty() {
        spec.insert("parameters".to_owned(), json!(values));
    }
    if let Some(name) = blueprint.composition(snapshot.read_as.as_deref()) {
        let reference = json!({ "compositionRef": { "name": name } });
        spec.insert(FIELD_CROSSPLANE.to_owned(), reference);
    }
    let tags = cloud_tags(snapshot).tags;
    if !tags.is_empty() {
        spec.insert("cloudTags".to_owned(), json!(tags));
    }
    Ok(json!({
        "apiVersion": composite_type.api_version(),
        "kind": composite_type.kind,
        "metadata": {
            "labels": labels(snapshot, settings),
            "finalizers": [FINALIZER_DRAIN],
        },
        "spec": spec,
    }))
}

/// The labels that become cloud tags, and those that cannot.
pub fn cloud_tags(snapshot: &ResourceSnapshot) -> CloudTags {
    let Some(facts) = snapshot.provider.as_deref() else { return CloudTags::default() };
    let propagating = facts.labels.iter().filter(|(_, label)| label.propagate);
    if !snapshot.blueprint.cloud_tags {
        let skip = |key: &String| Skipped { key: key.clone(), reason: SkipReason::NoField };
        let skipped = propagating.map(|(key, _)| skip(key)).collect();
        return CloudTags { skipped, ..CloudTags::default() };
    }
    let labels = propagating.map(|(key, label)| (key.as_str(), label.value.as_str()));
    cloud_tags::of(labels, &facts.provider)
}

/// The whole composite.
pub fn render(
    snapshot: &ResourceSnapshot,
    namespace: &str,
    settings: &NodeSettings,
    claim_token: ClaimToken,
    injection: &Injection,
) -> Result<RenderedComposite, Error> {
    let owned = owned(snapshot, settings)?;
    let strategy = snapshot.blueprint.injection_strategy;
    let filled = Filled::new(snapshot, strategy, settings, injection)?;
    Ok(RenderedComposite::assemble(snapshot, namespace, claim_token, owned, filled))
}

#[cfg(test)]
mod tests;
