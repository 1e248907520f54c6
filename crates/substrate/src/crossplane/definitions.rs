//! The definitions port on a cluster: XRDs, Compositions and the roles for
//! their composites.

use async_trait::async_trait;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use slipway_app::ports::Definitions;
use slipway_app::ports::substrate::Error;
use slipway_core::blueprint::CompositeType;
use slipway_core::delivery::{DeliveredKind, DeliveredSeen, Look, Owner};
use slipway_render::composite::LABEL_INSTALLATION;
use slipway_render::delivery::{self, DeliveredObject, LABEL_BLUEPRINT, LABEL_VERSION, VERBS};

use super::engine::CrossplaneSubstrate;
use super::{FIELD_MANAGER, fold, trouble};

const CONDITION_ESTABLISHED: &str = "Established";

fn resource(kind: DeliveredKind) -> ApiResource {
    let (group, version, plural) = match kind {
        DeliveredKind::Definition => {
            ("apiextensions.crossplane.io", "v2", "compositeresourcedefinitions")
        }
        DeliveredKind::Composition => ("apiextensions.crossplane.io", "v1", "compositions"),
        DeliveredKind::Role => ("rbac.authorization.k8s.io", "v1", "clusterroles"),
    };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.as_str().to_owned(),
        plural: plural.to_owned(),
    }
}

impl CrossplaneSubstrate {
    async fn definitions(&self, kind: DeliveredKind) -> Result<Api<DynamicObject>, String> {
        Ok(Api::all_with(self.connection().client().await?, &resource(kind)))
    }

    fn delivered(&self, live: &DynamicObject, object: &DeliveredObject) -> Look {
        match serde_json::to_value(live) {
            Ok(live) => Look::Seen(seen(&live, object, self.installation())),
            Err(error) => Look::Unreadable(error.to_string()),
        }
    }
}

#[async_trait]
impl Definitions for CrossplaneSubstrate {
    async fn look(&self, object: &DeliveredObject) -> Look {
        let (kind, name) = (object.key.kind, &*object.key.name);
        let api = match self.definitions(kind).await {
            Ok(api) => api,
            Err(problem) => return Look::Unreadable(problem),
        };
        match trouble::within(api.get(name)).await {
            Ok(live) => self.delivered(&live, object),
            Err(error) if trouble::is_gone(&error, &resource(kind).plural, name) => Look::Absent,
            Err(error) => {
                let told = trouble::describe(&format!("read {kind} {name}"), &error);
                if trouble::is_forbidden(&error) {
                    Look::Refused(told)
                } else {
                    Look::Unreadable(told)
                }
            }
        }
    }

    /// One that was absent is applied without force: whoever made it meanwhile
    /// keeps it.
    async fn define(&self, object: &DeliveredObject) -> Result<Look, Error> {
        let (kind, name) = (object.key.kind, &*object.key.name);
        let mut parameters = PatchParams::apply(FIELD_MANAGER);
        let slug = object.value["metadata"]["labels"][LABEL_BLUEPRINT].as_str();
        match self.look(object).await {
            Look::Absent => {}
            Look::Seen(DeliveredSeen { owner: Owner::Ours(owner), .. })
                if owner.is_none() || owner.as_deref() == slug =>
            {
                parameters = parameters.force();
            }
            Look::Seen(_) => {
                let told = format!("{kind} {name} is there and not ours; it is left alone");
                return Err(Error::Conflict(told));
            }
            refused @ Look::Refused(_) => return Ok(refused),
            Look::Unreadable(problem) => return Err(Error::Failed(problem)),
        }
        let api = self.definitions(kind).await.map_err(Error::Failed)?;
        let patch = Patch::Apply(&object.value);
        match trouble::within(api.patch(name, &parameters, &patch)).await {
            Ok(live) => Ok(match self.delivered(&live, object) {
                // A server that writes it otherwise has it all the same.
                Look::Seen(seen) => Look::Seen(DeliveredSeen { fits: true, ..seen }),
                other => other,
            }),
            Err(error) => {
                let told = trouble::describe(&format!("apply {kind} {name}"), &error);
                if trouble::is_forbidden(&error) {
                    Ok(Look::Refused(told))
                } else if trouble::is_conflict(&error) {
                    Err(Error::Conflict(told))
                } else {
                    Err(Error::Failed(told))
                }
            }
        }
    }

    /// Every account may ask what it may do itself.
    async fn lacking(&self, kind: &CompositeType) -> Result<Vec<String>, Error> {
        let client = self.connection().client().await.map_err(Error::Failed)?;
        let reviews = Api::<SelfSubjectAccessReview>::all(client);
        let mut lacking = Vec::new();
        for verb in VERBS {
            let asked = json!({ "spec": { "resourceAttributes": {
                "group": kind.group, "resource": kind.plural, "verb": verb,
            } } });
            let asked: SelfSubjectAccessReview = serde_json::from_value(asked)
                .map_err(|error| Error::Failed(format!("the question is not one: {error}")))?;
            let answer =
                trouble::within(reviews.create(&PostParams::default(), &asked)).await.map_err(
                    |error| Error::Failed(trouble::describe("ask what our account may do", &error)),
                )?;
            if !answer.status.is_some_and(|status| status.allowed) {
                lacking.push(verb.to_owned());
            }
        }
        Ok(lacking)
    }
}

fn seen(live: &Value, object: &DeliveredObject, installation: &str) -> DeliveredSeen {
    let metadata = &live["metadata"];
    let label = |name: &str| metadata["labels"][name].as_str();
    let owner = match label(LABEL_INSTALLATION) {
        Some(found) if found == installation => {
            Owner::Ours(label(LABEL_BLUEPRINT).map(str::to_owned))
        }
        Some(other) => Owner::Foreign(format!("installation {other}")),
        None => Owner::Foreign("somebody else".to_owned()),
    };
    DeliveredSeen {
        owner,
        version: label(LABEL_VERSION).map(str::to_owned),
        fits: delivery::fits(object.key.kind, live, &object.value),
        terminating: !metadata["deletionTimestamp"].is_null(),
        established: established(live),
        serves: delivery::served(live),
    }
}

/// A condition that is older than the last change says nothing about it.
fn established(definition: &Value) -> Result<(), String> {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions
        .clone()
        .find(|condition| condition["type"] == CONDITION_ESTABLISHED)
        .ok_or("Crossplane has not said anything yet")?;
    let looked_at = condition["observedGeneration"].as_i64();
    if looked_at.is_some_and(|looked| Some(looked) < definition["metadata"]["generation"].as_i64())
    {
        return Err("Crossplane has not looked at its last change yet".to_owned());
    }
    if condition["status"] == "True" {
        return Ok(());
    }
    Err(fold::why(condition).unwrap_or("Crossplane does not say why").to_owned())
}

#[cfg(test)]
mod tests {
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
