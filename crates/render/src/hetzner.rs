//! The composite of engine `hetzner`: one server in a project of the provider. What a
//! declaration leaves out is taken from the defaults of the blueprint version, since nothing
//! behind this engine has any.

use serde_json::{Map, Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ClaimToken;

use crate::{Error, Injection, NodeSettings, RenderedComposite, canonical, composite};

const API_VERSION: &str = "hetzner.slipway.dev/v1";
const KIND: &str = "Server";

/// The most fallbacks of a server: each is one more request where there is no capacity.
const FALLBACKS_MAX: usize = 8;

/// What a server is made from, and how it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    pub wanted: Offer,
    pub image: String,
    /// Tried in this order where the provider has no capacity.
    pub fallbacks: Vec<Offer>,
    pub delete_protection: bool,
    /// By name; it has to exist.
    pub placement_group: Option<String>,
    /// By name.
    pub ssh_keys: Vec<String>,
}

/// A type of server in a location.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer {
    pub server_type: String,
    pub location: String,
}

impl std::fmt::Display for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.server_type, self.location)
    }
}

impl Offer {
    fn parse(text: &str) -> Option<Self> {
        let (server_type, location) = text.split_once('@')?;
        let plain = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let (server_type, location) = (server_type.to_owned(), location.to_owned());
        (plain(&server_type) && plain(&location)).then_some(Self { server_type, location })
    }
}

impl ServerSpec {
    /// Of a rendered object.
    pub fn of(object: &Value) -> Result<Self, Refusal> {
        let values = &object["spec"]["parameters"];
        let wanted = Offer {
            server_type: text(values, "server_type")?,
            location: text(values, "location")?,
        };
        let fallbacks = texts(values, "fallbacks")?;
        if fallbacks.len() > FALLBACKS_MAX {
            return Err(refusal("fallbacks", &format!("has more than {FALLBACKS_MAX} entries")));
        }
        let offer = |text: &String| {
            let problem = "must be a list of <server type>@<location>, such as cx32@nbg1";
            Offer::parse(text).ok_or_else(|| refusal("fallbacks", problem))
        };
        let placement_group = match &values["placement_group"] {
            Value::Null => None,
            _ => Some(text(values, "placement_group")?),
        };
        Ok(Self {
            wanted,
            image: text(values, "image")?,
            fallbacks: fallbacks.iter().map(offer).collect::<Result<_, _>>()?,
            delete_protection: match &values["delete_protection"] {
                Value::Null => false,
                Value::Bool(value) => *value,
                _ => return Err(refusal("delete_protection", "must be true or false")),
            },
            placement_group,
            ssh_keys: texts(values, "ssh_keys")?,
        })
    }

    /// What is tried, the preferred one first, each once.
    pub fn offers(&self) -> Vec<Offer> {
        let mut offers = Vec::new();
        for offer in std::iter::once(&self.wanted).chain(&self.fallbacks) {
            if !offers.contains(offer) {
                offers.push(offer.clone());
            }
        }
        offers
    }

    /// A hash over what a server keeps for life: no write can change it.
    pub fn lasting_hash(&self) -> String {
        canonical::hash(&json!({
            "server_type": self.wanted.server_type,
            "location": self.wanted.location,
            "image": self.image,
            "placement_group": self.placement_group,
            "ssh_keys": self.ssh_keys,
        }))
    }
}

fn refusal(name: &str, problem: &str) -> Refusal {
    Refusal::new(ErrorKind::ParameterValuesInvalid, format!("parameter `{name}` {problem}"))
        .at(format!("parameters.{name}"))
}

fn text(values: &Value, name: &str) -> Result<String, Refusal> {
    let problem = "is missing or empty: declare it, or give it a default in the blueprint version";
    let found = values[name].as_str().map(str::trim).filter(|text| !text.is_empty());
    found.map(str::to_owned).ok_or_else(|| refusal(name, problem))
}

fn texts(values: &Value, name: &str) -> Result<Vec<String>, Refusal> {
    match &values[name] {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let each = items.iter().map(|item| item.as_str().map(str::to_owned));
            each.collect::<Option<_>>().ok_or_else(|| refusal(name, "must be a list of texts"))
        }
        _ => Err(refusal(name, "must be a list of texts")),
    }
}

/// The part of the object that we own, as it should be.
pub fn owned(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<Value, Error> {
    let mut object = composite::plain(snapshot, settings, API_VERSION, KIND)?;
    let mut values = match object["spec"]["parameters"].take() {
        Value::Object(values) => values,
        _ => Map::new(),
    };
    for (name, part) in snapshot.blueprint.parameter_schema.view().properties() {
        if let Some(default) = part.get("default") {
            values.entry(name).or_insert_with(|| default.clone());
        }
    }
    object["spec"]["parameters"] = Value::Object(values);
    ServerSpec::of(&object)?;
    Ok(object)
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
    RenderedComposite::started(snapshot, namespace, settings, claim_token, owned, injection)
}

#[cfg(test)]
mod tests;
