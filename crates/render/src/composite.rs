//! The composite that an engine applies, and the metadata that we put on it.

use std::fmt;

use serde_json::{Map, Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::{CompositeScope, CompositeType, InjectionStrategy};
use slipway_core::ids::{ClaimToken, GroupId};

use crate::injection::{Filled, Injection, SITE_HELM_VALUES, SITE_PROVIDER_SECRET};
use crate::{Error, NodeSettings, canonical};

pub use crate::injection::{bootstrap_token, carried, injected};

/// Labels: the identity of an object, which never changes.
pub const LABEL_INSTALLATION: &str = "slipway.dev/installation";
pub const LABEL_PROJECT: &str = "slipway.dev/project";
pub const LABEL_RESOURCE: &str = "slipway.dev/resource";
pub const LABEL_PROVISIONED_RESOURCE: &str = "slipway.dev/provisioned-resource";
/// Of a server: the group of its workspace.
pub const LABEL_GROUP: &str = "slipway.dev/group";
/// The prefix of all our labels and annotations.
const OWN_PREFIX: &str = "slipway.dev/";
/// Annotations: the claim of the last writer, and the id of the injected token.
pub const ANNOTATION_CLAIM_TOKEN: &str = "slipway.dev/claim-token";
pub const ANNOTATION_BOOTSTRAP_TOKEN: &str = "slipway.dev/bootstrap-token-id";
/// Keeps a composite on its cluster until its node is drained, even if somebody
/// deletes it there by hand.
pub const FINALIZER_DRAIN: &str = "slipway.dev/drain";
/// The field of `spec` in which Crossplane keeps what concerns itself.
pub(crate) const FIELD_CROSSPLANE: &str = "crossplane";

/// A composite, ready to be applied. May contain a bootstrap token, so its
/// `Debug` shows the name and the hash only.
#[derive(Clone)]
pub struct RenderedComposite {
    namespace: String,
    name: String,
    owned_hash: String,
    claim_token: ClaimToken,
    composite_type: Option<CompositeType>,
    substrate_uid: Option<String>,
    object: Value,
}

impl RenderedComposite {
    /// Assembles an object from its owned part, which is hashed, and the
    /// injected and stamped parts, which are not.
    pub(crate) fn assemble(
        snapshot: &ResourceSnapshot,
        namespace: &str,
        claim_token: ClaimToken,
        mut object: Value,
        filled: Filled,
    ) -> Self {
        let owned_hash = owned_hash(&object);
        let name = snapshot.attempt.xr_name();
        let composite_type = snapshot.blueprint.composite_type.clone();
        let mut annotations = Map::new();
        annotations.insert(ANNOTATION_CLAIM_TOKEN.to_owned(), json!(claim_token.0.to_string()));
        if let Some(token) = filled.token {
            annotations.insert(ANNOTATION_BOOTSTRAP_TOKEN.to_owned(), json!(token));
        }
        object["metadata"]["name"] = json!(name);
        // A cluster-scoped kind belongs to a project by its labels alone.
        if composite_type.as_ref().is_none_or(|kind| kind.scope == CompositeScope::Namespaced) {
            object["metadata"]["namespace"] = json!(namespace);
        }
        object["metadata"]["annotations"] = Value::Object(annotations);
        filled.write(&mut object);
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            owned_hash,
            claim_token,
            composite_type,
            substrate_uid: snapshot.placement.as_ref().and_then(|p| p.substrate_uid.clone()),
            object,
        }
    }

    /// What starts with a document, whatever strategy its blueprint names: a process, or a
    /// machine that somebody boots.
    pub(crate) fn started(
        snapshot: &ResourceSnapshot,
        namespace: &str,
        settings: &NodeSettings,
        claim_token: ClaimToken,
        owned: Value,
        injection: &Injection,
    ) -> Result<Self, Error> {
        let strategy = InjectionStrategy::CloudInitUserData;
        let filled = Filled::new(snapshot, strategy, settings, injection)?;
        Ok(Self::assemble(snapshot, namespace, claim_token, owned, filled))
    }

    /// The namespace of its project, even for a cluster-scoped kind.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hash over the fields that we own; equal to [`owned_hash`] of the live
    /// object as long as nobody else changed one of them.
    pub fn owned_hash(&self) -> &str {
        &self.owned_hash
    }

    pub const fn claim_token(&self) -> ClaimToken {
        self.claim_token
    }

    /// Its type on a cluster; only engine crossplane has one.
    pub const fn composite_type(&self) -> Option<&CompositeType> {
        self.composite_type.as_ref()
    }

    /// The identity that its cluster or root must have.
    pub fn substrate_uid(&self) -> Option<&str> {
        self.substrate_uid.as_deref()
    }

    /// The whole object, secrets included.
    pub const fn expose_object(&self) -> &Value {
        &self.object
    }
}

impl fmt::Debug for RenderedComposite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenderedComposite")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("owned_hash", &self.owned_hash)
            .finish_non_exhaustive()
    }
}

/// The identity labels of every object of a resource.
pub(crate) fn labels(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Value {
    let attempt = &snapshot.attempt;
    let mut labels = json!({
        LABEL_INSTALLATION: settings.installation,
        LABEL_PROJECT: attempt.project_id(),
        LABEL_RESOURCE: attempt.resource_id(),
        LABEL_PROVISIONED_RESOURCE: attempt.id(),
    });
    if let Some(owner) = &snapshot.resource.owner {
        labels[LABEL_GROUP] = json!(owner.group_id);
    }
    labels
}

/// The part that we own of an object whose kind has nothing but parameters. Checks the
/// values again, since the row may be older than the check.
pub(crate) fn plain(
    snapshot: &ResourceSnapshot,
    settings: &NodeSettings,
    api_version: &str,
    kind: &str,
) -> Result<Value, Error> {
    let values = snapshot
        .blueprint
        .parameter_schema
        .validate(snapshot.attempt.parameter_values().as_map().clone())?;
    Ok(json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "labels": labels(snapshot, settings) },
        "spec": { "parameters": values },
    }))
}

/// Hash over what we own in a live or rendered object: its type, our labels,
/// the parameters without the injection sites, the cloud tags, the Composition.
/// An empty map counts as none, since an API server may keep either.
pub fn owned_hash(object: &Value) -> String {
    let spec = &object["spec"];
    let mut owned = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "labels": filtered(&object["metadata"]["labels"], |key| key.starts_with(OWN_PREFIX)),
        "parameters": filtered(&spec["parameters"], |key| {
            ![SITE_HELM_VALUES, SITE_PROVIDER_SECRET].contains(&key)
        }),
        "cloudTags": filtered(&spec["cloudTags"], |_| true),
    });
    if let Value::String(name) = &spec[FIELD_CROSSPLANE]["compositionRef"]["name"] {
        owned["composition"] = json!(name);
    }
    canonical::hash(&owned)
}

fn filtered(map: &Value, keep: impl Fn(&str) -> bool) -> Value {
    let Value::Object(map) = map else { return map.clone() };
    let kept: Map<_, _> = map.iter().filter(|(key, _)| keep(key)).map(owned_pair).collect();
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}

fn owned_pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// The claim token of whoever wrote the live object last.
pub fn claim_token(object: &Value) -> Option<ClaimToken> {
    let text = object["metadata"]["annotations"][ANNOTATION_CLAIM_TOKEN].as_str()?;
    text.parse().ok().map(ClaimToken)
}

/// The group of servers that the live object belongs to.
pub fn group(object: &Value) -> Option<GroupId> {
    object["metadata"]["labels"][LABEL_GROUP].as_str()?.parse().ok()
}

/// The installation that the live object belongs to, as text.
pub fn installation(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][LABEL_INSTALLATION].as_str()
}
