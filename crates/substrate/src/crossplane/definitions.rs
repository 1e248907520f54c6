//! Implements the definitions port on a cluster: XRDs, Compositions and the
//! roles for their composites.

use async_trait::async_trait;
use serde_json::Value;
use slipway_app::ports::Definitions;
use slipway_app::ports::substrate::Error;
use slipway_cluster::{DynamicObject, Listing, ObjectRef, Version, api_resource};
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::placement::definitions::{
    DefinitionKind, DefinitionState, ObservedDefinition, Owner,
};
use slipway_render::composite::LABEL_INSTALLATION;
use slipway_render::definitions::{self, DefinitionObject, LABEL_BLUEPRINT, LABEL_VERSION, VERBS};

use super::engine::{CrossplaneSubstrate, failed};
use super::live_object;
use super::management::no_uid;

const CONDITION_ESTABLISHED: &str = "Established";

fn object_of(object: &DefinitionObject) -> ObjectRef {
    let kind = object.key.kind;
    let (api_version, plural) = match kind {
        DefinitionKind::Xrd => ("apiextensions.crossplane.io/v2", "compositeresourcedefinitions"),
        DefinitionKind::Composition => ("apiextensions.crossplane.io/v1", "compositions"),
        DefinitionKind::Role => ("rbac.authorization.k8s.io/v1", "clusterroles"),
    };
    ObjectRef {
        resource: api_resource(api_version, kind.as_str(), plural),
        namespace: None,
        name: object.key.name.clone(),
    }
}

impl CrossplaneSubstrate {
    fn definition(&self, live: &DynamicObject, object: &DefinitionObject) -> DefinitionState {
        match serde_json::to_value(live) {
            Ok(live) => DefinitionState::Seen(seen(&live, object, self.installation())),
            Err(error) => DefinitionState::Unreadable(error.to_string()),
        }
    }

    /// Lists by name, because an idle installation reads only by lists. If the
    /// list is empty, a GET confirms that the object is absent.
    async fn read_definition(
        &self,
        reference: &ObjectRef,
    ) -> Result<Option<DynamicObject>, slipway_cluster::Error> {
        let listing = Listing { name: Some(&reference.name), ..Listing::all(&reference.resource) };
        match self.connection().list(listing).await?.pop() {
            Some(live) => Ok(Some(live)),
            None => self.connection().get(reference).await,
        }
    }

    /// Refuses an object of somebody else, or of another blueprint of ours.
    fn require_ours(&self, live: &DynamicObject, object: &DefinitionObject) -> Result<(), Error> {
        let slug = object.value["metadata"]["labels"][LABEL_BLUEPRINT].as_str();
        match self.definition(live, object) {
            DefinitionState::Seen(ObservedDefinition { owner: Owner::Ours(owner), .. })
                if owner.is_none() || owner.as_deref() == slug =>
            {
                Ok(())
            }
            DefinitionState::Unreadable(problem) => Err(Error::Failed(problem)),
            _ => Err(Error::Conflict(format!(
                "{} is there and not ours; it is left alone",
                object_of(object)
            ))),
        }
    }
}

/// The state that a failed read leaves.
fn unread(error: &slipway_cluster::Error) -> DefinitionState {
    let problem = error.to_string();
    if error.is_forbidden() {
        DefinitionState::Refused(problem)
    } else {
        DefinitionState::Unreadable(problem)
    }
}

#[async_trait]
impl Definitions for CrossplaneSubstrate {
    async fn observe(&self, object: &DefinitionObject) -> DefinitionState {
        match self.read_definition(&object_of(object)).await {
            Ok(Some(live)) => self.definition(&live, object),
            Ok(None) => DefinitionState::Absent,
            Err(error) => unread(&error),
        }
    }

    /// Creates an absent object and updates what is ours, each bound to what was
    /// read: whoever created or wrote it meanwhile keeps it.
    async fn define(&self, object: &DefinitionObject) -> Result<DefinitionState, Error> {
        self.require_same_cluster().await?;
        let reference = object_of(object);
        let found = match self.read_definition(&reference).await {
            Ok(found) => found,
            Err(error) if error.is_forbidden() => return Ok(unread(&error)),
            Err(error) => return Err(failed(error)),
        };
        let read = match found {
            None => None,
            Some(live) => {
                self.require_ours(&live, object)?;
                Some(Version::of(&live.metadata).ok_or_else(|| no_uid(&reference))?)
            }
        };
        match self.put_applied(&reference, read, &object.value).await {
            Ok(live) => Ok(match self.definition(&live, object) {
                // The apply succeeded, so the object fits even if the server
                // normalised its fields.
                DefinitionState::Seen(seen) => {
                    DefinitionState::Seen(ObservedDefinition { fits: true, ..seen })
                }
                other => other,
            }),
            Err(error) if error.is_forbidden() => Ok(DefinitionState::Refused(error.to_string())),
            Err(error) if error.is_conflict() => Err(Error::Conflict(error.to_string())),
            Err(error) => Err(failed(error)),
        }
    }

    async fn lacking(&self, kind: &CompositeType) -> Result<Vec<String>, Error> {
        let mut lacking = Vec::new();
        for verb in VERBS {
            let allowed = self.connection().may(verb, (&kind.group, &kind.plural), None).await;
            if !allowed.map_err(failed)? {
                lacking.push(verb.to_owned());
            }
        }
        Ok(lacking)
    }
}

fn seen(live: &Value, object: &DefinitionObject, installation: &str) -> ObservedDefinition {
    let metadata = &live["metadata"];
    let label = |name: &str| metadata["labels"][name].as_str();
    let owner = match label(LABEL_INSTALLATION) {
        Some(found) if found == installation => {
            Owner::Ours(label(LABEL_BLUEPRINT).map(str::to_owned))
        }
        Some(other) => Owner::Foreign(format!("installation {other}")),
        None => Owner::Foreign("somebody else".to_owned()),
    };
    ObservedDefinition {
        owner,
        version: label(LABEL_VERSION).map(str::to_owned),
        fits: definitions::fits(object.key.kind, live, &object.value),
        terminating: !metadata["deletionTimestamp"].is_null(),
        established: established(live),
        serves: definitions::served(live),
    }
}

/// A condition that is older than the last change does not count.
fn established(definition: &Value) -> Result<(), String> {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions
        .clone()
        .find(|condition| condition["type"] == CONDITION_ESTABLISHED)
        .ok_or("Crossplane has not said anything yet")?;
    let looked_at = condition["observedGeneration"].as_i64();
    if looked_at.is_some_and(|looked| Some(looked) < definition["metadata"]["generation"].as_i64())
    {
        return Err("Crossplane has not processed its last change yet".to_owned());
    }
    if condition["status"] == "True" {
        return Ok(());
    }
    Err(live_object::why(condition).unwrap_or("Crossplane does not say why").to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_counts_for_the_change_that_it_saw() {
        let of = |condition: Value| {
            established(&json!({
                "metadata": { "generation": 2 }, "status": { "conditions": [condition] },
            }))
        };
        assert_eq!(of(json!({ "type": "Established", "status": "True" })), Ok(()));
        let seen = |generation: i64| json!({ "type": "Established", "status": "True", "observedGeneration": generation });
        assert_eq!(of(seen(2)), Ok(()));
        assert!(of(seen(1)).unwrap_err().contains("last change"));
        let refused =
            json!({ "type": "Established", "status": "False", "message": "no such kind" });
        assert_eq!(of(refused).unwrap_err(), "no such kind");
        assert!(of(json!({ "type": "Offered", "status": "True" })).is_err());
        assert!(established(&json!({})).is_err());
    }
}
