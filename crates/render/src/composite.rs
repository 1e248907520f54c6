//! The composite that an engine applies, and the names of what we stamp on it.

use std::fmt;

use serde_json::{Map, Value, json};
use slipway_core::ids::{BootstrapTokenId, ClaimToken};
use slipway_core::secret::Secret;
use slipway_core::token::{Carried, SecretHash};

use crate::{canonical, cloud_init};

/// Labels: identity, never changing for one object.
pub const LABEL_INSTALLATION: &str = "slipway.dev/installation";
pub const LABEL_PROJECT: &str = "slipway.dev/project";
pub const LABEL_RESOURCE: &str = "slipway.dev/resource";
pub const LABEL_PROVISIONED_RESOURCE: &str = "slipway.dev/provisioned-resource";
/// Annotations: who wrote it last, and with which token.
pub const ANNOTATION_CLAIM_TOKEN: &str = "slipway.dev/claim-token";
pub const ANNOTATION_BOOTSTRAP_TOKEN: &str = "slipway.dev/bootstrap-token-id";

/// A composite, ready to be applied. May contain a bootstrap token, so its
/// `Debug` shows the name and the hash only.
#[derive(Clone)]
pub struct RenderedComposite {
    namespace: String,
    name: String,
    owned_hash: String,
    claim_token: ClaimToken,
    object: Value,
}

impl RenderedComposite {
    /// Puts an object together from its owned part, which is hashed, and what
    /// is injected or stamped, which is not.
    pub(crate) fn assemble(
        namespace: &str,
        name: &str,
        mut object: Value,
        claim_token: ClaimToken,
        token: Option<BootstrapTokenId>,
        injected: Option<&Secret>,
    ) -> Self {
        let owned_hash = owned_hash(&object);
        let mut annotations = Map::new();
        annotations.insert(ANNOTATION_CLAIM_TOKEN.to_owned(), json!(claim_token.0.to_string()));
        if let Some(token) = token {
            annotations.insert(ANNOTATION_BOOTSTRAP_TOKEN.to_owned(), json!(token));
        }
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["annotations"] = Value::Object(annotations);
        if let Some(injected) = injected {
            object["spec"]["userData"] = json!(injected.expose());
        }
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            owned_hash,
            claim_token,
            object,
        }
    }

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

/// Hash over kind, labels and parameters of a live or rendered object.
pub fn owned_hash(object: &Value) -> String {
    canonical::hash(&json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "labels": object["metadata"]["labels"],
        "parameters": object["spec"]["parameters"],
    }))
}

/// The injected document of a live object, to be re-applied verbatim.
pub fn injected(object: &Value) -> Option<Secret> {
    object["spec"]["userData"].as_str().map(Secret::new)
}

/// The token that a live object carries: the id from its annotation, the hash
/// from the injected document.
pub fn carried(object: &Value) -> Carried {
    let id = object["metadata"]["annotations"][ANNOTATION_BOOTSTRAP_TOKEN]
        .as_str()
        .and_then(|text| text.parse::<BootstrapTokenId>().ok());
    let value = injected(object).and_then(|document| cloud_init::bootstrap_token_in(&document));
    match (id, value) {
        (Some(id), Some(value)) => {
            Carried::Token { id, hash: SecretHash::of(value.expose().as_bytes()) }
        }
        _ => Carried::Nothing,
    }
}

/// The claim token of whoever wrote the live object last.
pub fn claim_token(object: &Value) -> Option<ClaimToken> {
    let text = object["metadata"]["annotations"][ANNOTATION_CLAIM_TOKEN].as_str()?;
    text.parse().ok().map(ClaimToken)
}

/// The installation that the live object belongs to, as text.
pub fn installation(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][LABEL_INSTALLATION].as_str()
}
