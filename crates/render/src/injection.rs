//! The three sites through which a bootstrap token gets into a composite, and
//! how it is read back from a live one.
//!
//! | strategy | site |
//! |---|---|
//! | `cloud-init-user-data` | `spec.userData` |
//! | `helm-values` | `spec.parameters.helmValues` |
//! | `provider-secret` | `spec.parameters.providerSecret` |
//!
//! The content of a site is passed around as one text: the document itself for
//! the first, `{"<site>": {…}}` for the other two. Every later apply writes it
//! back verbatim, since a forced server-side apply without it would take it
//! from the node.

use serde_json::{Map, Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::{InjectionStrategy, MeshRole};
use slipway_core::ids::BootstrapTokenId;
use slipway_core::nodes::token::{Carried, SecretHash};
use slipway_core::secret::Secret;

use crate::cloud_init::{self, NodeConfig};
use crate::composite::ANNOTATION_BOOTSTRAP_TOKEN;
use crate::{Error, NodeSettings};

/// Below `spec.parameters`; no parameter may have one of these names.
pub const SITE_HELM_VALUES: &str = "helmValues";
pub const SITE_PROVIDER_SECRET: &str = "providerSecret";
/// The key of the token at both of them.
const TOKEN_KEY: &str = "bootstrapToken";
/// How long a node pretends to be busy after it enrolled.
pub const PARAMETER_BUSY_SECONDS: &str = "busy_seconds";

/// What goes into the injection site.
#[derive(Debug, Clone)]
pub enum Injection {
    /// No node is expected, or the document of the object is unknown.
    None,
    /// A token that was just minted.
    Fresh { id: BootstrapTokenId, token: Secret },
    /// What the live object carries, taken over verbatim.
    Verbatim { id: Option<BootstrapTokenId>, document: Secret },
}

/// The content of a site. Contains a token, so it has no `Debug`.
enum Content {
    UserData(Secret),
    Below { site: &'static str, values: Value },
}

impl Content {
    /// The content to take over from a live object. `None` if the site of this
    /// strategy is empty there: then its token is not in place either.
    fn taken_over(strategy: InjectionStrategy, document: &Secret) -> Option<Self> {
        let Some(site) = site_of(strategy) else {
            return Some(Self::UserData(document.clone()));
        };
        let mut whole: Map<String, Value> = serde_json::from_str(document.expose()).ok()?;
        Some(Self::Below { site, values: whole.remove(site)? })
    }

    fn write(self, object: &mut Value) {
        match self {
            Self::UserData(document) => object["spec"]["userData"] = json!(document.expose()),
            Self::Below { site, values } => object["spec"]["parameters"][site] = values,
        }
    }
}

/// The name below `spec.parameters`, if the strategy has its site there.
const fn site_of(strategy: InjectionStrategy) -> Option<&'static str> {
    match strategy {
        InjectionStrategy::CloudInitUserData => None,
        InjectionStrategy::HelmValues => Some(SITE_HELM_VALUES),
        InjectionStrategy::ProviderSecret => Some(SITE_PROVIDER_SECRET),
    }
}

/// A filled site, with the id of its token.
pub(crate) struct Filled {
    pub(crate) token: Option<BootstrapTokenId>,
    content: Option<Content>,
}

impl Filled {
    /// Decides the content of the site of this strategy.
    pub(crate) fn new(
        snapshot: &ResourceSnapshot,
        strategy: InjectionStrategy,
        settings: &NodeSettings,
        injection: &Injection,
    ) -> Result<Self, Error> {
        let (token, content) = match injection {
            _ if snapshot.blueprint.mesh_role == MeshRole::Standalone => (None, None),
            Injection::None => (None, None),
            Injection::Verbatim { id, document } => (*id, Content::taken_over(strategy, document)),
            Injection::Fresh { id, token } => {
                (Some(*id), Some(fresh(snapshot, strategy, settings, token)?))
            }
        };
        Ok(Self { token, content })
    }

    pub(crate) fn write(self, object: &mut Value) {
        if let Some(content) = self.content {
            content.write(object);
        }
    }
}

/// Whether a fresh token could be injected. Checked before one is minted:
/// otherwise every tick would mint a token that nothing can carry.
pub(crate) fn can_be_fresh(
    snapshot: &ResourceSnapshot,
    strategy: InjectionStrategy,
    settings: &NodeSettings,
) -> Result<(), Error> {
    let needed =
        snapshot.blueprint.mesh_role == MeshRole::Node && strategy == InjectionStrategy::HelmValues;
    if needed && settings.node_image.is_none() {
        return Err(Error::NoNodeImage { slug: snapshot.blueprint.slug.clone() });
    }
    Ok(())
}

fn fresh(
    snapshot: &ResourceSnapshot,
    strategy: InjectionStrategy,
    settings: &NodeSettings,
    token: &Secret,
) -> Result<Content, Error> {
    can_be_fresh(snapshot, strategy, settings)?;
    Ok(match strategy {
        InjectionStrategy::CloudInitUserData => {
            let config = node_config(snapshot, settings);
            Content::UserData(cloud_init::enrolment_document(&config, token)?)
        }
        InjectionStrategy::HelmValues => Content::Below {
            site: SITE_HELM_VALUES,
            values: json!({
                TOKEN_KEY: token.expose(),
                "apiUrl": settings.public_url,
                "plexdImage": settings.node_image,
            }),
        },
        InjectionStrategy::ProviderSecret => Content::Below {
            site: SITE_PROVIDER_SECRET,
            values: json!({ TOKEN_KEY: token.expose() }),
        },
    })
}

fn node_config(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> NodeConfig {
    let busy = snapshot.attempt.parameter_values().as_map().get(PARAMETER_BUSY_SECONDS);
    NodeConfig {
        api_url: settings.public_url.clone(),
        project_id: snapshot.resource.project_id.to_string(),
        resource_handle: snapshot.resource.handle.to_string(),
        hostname: snapshot.hostname().to_owned(),
        heartbeat_interval_ms: settings.heartbeat_interval_ms,
        orphan_after_ms: settings.orphan_after_ms,
        busy_seconds: busy.and_then(Value::as_u64).unwrap_or(0),
        authorities: settings.authorities.clone(),
    }
}

/// The site below `spec.parameters` that contains a token. Only we write there,
/// so it precedes `spec.userData`, which an XRD may give a default.
fn token_below(object: &Value) -> Option<(&'static str, &str)> {
    [SITE_HELM_VALUES, SITE_PROVIDER_SECRET]
        .into_iter()
        .find_map(|site| Some((site, object["spec"]["parameters"][site][TOKEN_KEY].as_str()?)))
}

/// What a live object carries at its injection site, to be re-applied verbatim.
pub fn injected(object: &Value) -> Option<Secret> {
    match token_below(object) {
        Some((site, _)) => {
            let values = &object["spec"]["parameters"][site];
            Some(Secret::new(json!({ site: values }).to_string()))
        }
        None => object["spec"]["userData"].as_str().map(Secret::new),
    }
}

/// The token that a live object carries: the id from its annotation, the hash
/// from what was injected.
pub fn carried(object: &Value) -> Carried {
    let id = object["metadata"]["annotations"][ANNOTATION_BOOTSTRAP_TOKEN]
        .as_str()
        .and_then(|text| text.parse::<BootstrapTokenId>().ok());
    match (id, bootstrap_token(object)) {
        (Some(id), Some(value)) => {
            Carried::Token { id, hash: SecretHash::of(value.expose().as_bytes()) }
        }
        _ => Carried::Nothing,
    }
}

/// The text of the token, wherever it was injected.
pub fn bootstrap_token(object: &Value) -> Option<Secret> {
    match token_below(object) {
        Some((_, token)) => Some(Secret::new(token)),
        None => {
            let document = object["spec"]["userData"].as_str().map(Secret::new)?;
            cloud_init::bootstrap_token_in(&document)
        }
    }
}
