//! What holds the deletion of a composite: it walks from the composite to what it is
//! composed of, and reports what is still there, with the provider's last error. Also tells
//! managed resources to keep their external objects.
//!
//! How a managed resource keeps its external object depends on its provider. Those with
//! `spec.managementPolicies` keep it without the action `Delete`; those with
//! `spec.deletionPolicy` keep it with `Orphan`. Where an object has both, the provider obeys
//! the one that is not the default, so `deletionPolicy` alone is written while the policies
//! are `["*"]`: a provider that does not support management policies refuses any others.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use slipway_app::ports::substrate::{Address, Error};
use slipway_cluster::{ApiResource, Connection, Facts, ObjectRef, Version, api_resource};
use slipway_core::broker::holding::{
    FINALIZER_MANAGED, HOLDERS_MAX, Holder, Keepable, OutsideObject, ProviderError, cleaned,
};
use slipway_core::broker::orphan::KeepOrder;
use slipway_core::text::storable;
use slipway_render::composite::FINALIZER_DRAIN;

use super::FIELD_MANAGER;
use super::engine::{CrossplaneSubstrate, failed, not_written, object_of, shown};
use super::live_object::{LiveObject, why};

const EXTERNAL_NAME: &str = "crossplane.io/external-name";
const PAUSED: &str = "crossplane.io/paused";

/// Attempts when somebody else writes the object between our read and our write.
const RETRIES: usize = 4;

/// An object to ask for.
struct Reference {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    owners: String,
}

/// *Expected flow:* the composite → what its references name → what theirs name, until
/// [`HOLDERS_MAX`] objects were asked for.
/// *Guarantees:* reports only objects of a composite that is ours. One that cannot be read
/// is reported with the reason.
pub(super) async fn observe(
    engine: &CrossplaneSubstrate,
    address: &Address,
) -> Result<Vec<Holder>, Error> {
    let Some(kind) = &address.composite_type else { return Ok(Vec::new()) };
    engine.same_cluster(address.substrate_uid.as_deref()).await.map_err(failed)?;
    let composite = object_of(kind, address);
    let connection = engine.connection();
    let Some(object) = connection.get(&composite).await.map_err(failed)? else {
        return Ok(Vec::new());
    };
    let live = LiveObject::parse(&object)
        .ok_or_else(|| Error::Failed(format!("the composite {} has no uid", shown(address))))?;
    if let Some(reason) = engine.another(&live, address) {
        return Err(Error::Conflict(reason));
    }
    let object = serde_json::to_value(&object).unwrap_or_default();
    let mut walk = Walk { connection, kinds: BTreeMap::new(), rights: BTreeMap::new() };
    let mut found = Vec::new();
    let mut queue = references(&object, composite.namespace.as_deref(), &composite.to_string());
    let mut own = holder(&composite, &object, &composite.to_string());
    // Slipway removes its own finalizer with the deletion.
    own.finalizers.retain(|name| name != FINALIZER_DRAIN);
    found.push(own);
    let mut asked = 0;
    while let Some(reference) = queue.pop_front() {
        asked += 1;
        if asked > HOLDERS_MAX {
            break;
        }
        if let Some((holder, more)) = walk.ask(reference).await? {
            found.push(holder);
            queue.extend(more);
        }
    }
    Ok(found)
}

/// One walk; asks for each kind once.
struct Walk<'a> {
    connection: &'a Connection,
    kinds: BTreeMap<(String, String), Option<(ApiResource, bool)>>,
    /// Whether our account may patch the objects of a kind in a namespace.
    rights: BTreeMap<(String, String, Option<String>), bool>,
}

impl Walk<'_> {
    /// The object, and what it is composed of in turn; `None` if it is gone.
    async fn ask(
        &mut self,
        reference: Reference,
    ) -> Result<Option<(Holder, VecDeque<Reference>)>, Error> {
        let Reference { api_version, kind, namespace, name, owners } = reference;
        let key = (api_version.clone(), kind.clone());
        let known = match self.kinds.get(&key) {
            Some(known) => known.clone(),
            None => {
                let asked = self.connection.kind_named(&api_version, &kind).await;
                let known = asked.map_err(failed)?;
                self.kinds.insert(key, known.clone());
                known
            }
        };
        let Some((resource, namespaced)) = known else {
            let resource = api_resource(&api_version, &kind, "?");
            let object = ObjectRef { resource, namespace, name };
            let problem = format!("the cluster does not serve {kind} ({api_version})");
            return Ok(Some((unreadable(&object, &owners, &problem), VecDeque::new())));
        };
        let namespace = namespace.filter(|_| namespaced);
        let object = ObjectRef { resource, namespace, name };
        let owners = format!("{owners} → {object}");
        let live = match self.connection.get(&object).await {
            Ok(Some(live)) => serde_json::to_value(&live).unwrap_or_default(),
            Ok(None) => return Ok(None),
            Err(error) if error.is_forbidden() => {
                let found = unreadable(&object, &owners, &error.to_string());
                return Ok(Some((found, VecDeque::new())));
            }
            Err(error) => return Err(failed(error)),
        };
        let more = references(&live, object.namespace.as_deref(), &owners);
        let mut found = holder(&object, &live, &owners);
        if found.keepable == Keepable::Yes && found.is_held() && !self.may_patch(&object).await? {
            found.keepable = Keepable::No(format!(
                "Slipway's account may not patch {}.{}; docs/deletion.md has the role",
                object.resource.plural, object.resource.group
            ));
        }
        Ok(Some((found, more)))
    }

    async fn may_patch(&mut self, object: &ObjectRef) -> Result<bool, Error> {
        let ObjectRef { resource, namespace, .. } = object;
        let key = (resource.group.clone(), resource.plural.clone(), namespace.clone());
        if let Some(known) = self.rights.get(&key) {
            return Ok(*known);
        }
        let kind = (resource.group.as_str(), resource.plural.as_str());
        let may = self.connection.may("patch", kind, namespace.as_deref()).await;
        let may = may.map_err(failed)?;
        self.rights.insert(key, may);
        Ok(may)
    }
}

/// What an object is composed of, from either field in which versions of Crossplane list it.
fn references(object: &Value, namespace: Option<&str>, owners: &str) -> VecDeque<Reference> {
    let lists = [&object["spec"]["crossplane"]["resourceRefs"], &object["spec"]["resourceRefs"]];
    let listed = lists.into_iter().filter_map(Value::as_array).flatten();
    let part = |value: &Value, field: &str| value[field].as_str().map(str::to_owned);
    let reference = |value: &Value| {
        Some(Reference {
            api_version: part(value, "apiVersion")?,
            kind: part(value, "kind")?,
            // Within a namespace a reference means the same one.
            namespace: part(value, "namespace").or_else(|| namespace.map(str::to_owned)),
            name: part(value, "name")?,
            owners: owners.to_owned(),
        })
    };
    listed.filter_map(reference).take(HOLDERS_MAX).collect()
}

fn outside(object: &ObjectRef, uid: &str) -> OutsideObject {
    OutsideObject {
        api_version: storable(&object.resource.api_version),
        kind: storable(&object.resource.kind),
        plural: storable(&object.resource.plural),
        namespace: object.namespace.as_deref().map(storable),
        name: storable(&object.name),
        uid: storable(uid),
    }
}

fn holder(object: &ObjectRef, live: &Value, owners: &str) -> Holder {
    let metadata = &live["metadata"];
    let text = |value: &Value| value.as_str().map(storable);
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
    let finalizers: Vec<_> = finalizers.filter_map(text).collect();
    let is_managed = finalizers.iter().any(|name| name == FINALIZER_MANAGED);
    Holder {
        object: outside(object, metadata["uid"].as_str().unwrap_or_default()),
        owners: storable(owners),
        terminating: metadata["deletionTimestamp"].is_string(),
        finalizers,
        external_name: text(&metadata["annotations"][EXTERNAL_NAME]),
        provider_config: text(&live["spec"]["providerConfigRef"]["name"]),
        error: last_error(live),
        keepable: match (is_managed, keeping(&live["spec"])) {
            (false, _) => Keepable::No("it is no managed resource of a provider".to_owned()),
            (true, _) if metadata["annotations"][PAUSED] == "true" => Keepable::No(format!(
                "its provider leaves it alone while it has the annotation {PAUSED}; take that away"
            )),
            (true, Keeping::Already) => Keepable::Already,
            (true, Keeping::Write(_)) => Keepable::Yes,
            (true, Keeping::Unable) => Keepable::No(
                "it has neither spec.managementPolicies nor spec.deletionPolicy, so its provider cannot be told to keep its external object"
                    .to_owned(),
            ),
        },
    }
}

fn unreadable(object: &ObjectRef, owners: &str, problem: &str) -> Holder {
    Holder {
        object: outside(object, ""),
        owners: storable(owners),
        terminating: true,
        finalizers: Vec::new(),
        external_name: None,
        provider_config: None,
        error: None,
        keepable: Keepable::No(format!("it cannot be read: {}", storable(problem))),
    }
}

/// The condition that is not fulfilled and says why: that of the reconciliation before the
/// others, and `Ready` only if it says more than that it is being deleted.
fn last_error(live: &Value) -> Option<ProviderError> {
    let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    let mut failed: Vec<_> =
        conditions.filter(|condition| condition["status"] == "False").collect();
    let rank = |condition: &&Value| match condition["type"].as_str() {
        Some("Synced") => 0,
        Some("Ready") => 2,
        _ => 1,
    };
    failed.sort_by_key(rank);
    let said = |condition: &&&Value| condition["message"].as_str().is_some_and(|m| !m.is_empty());
    let condition = failed.iter().find(said)?;
    Some(ProviderError {
        reason: condition["reason"].as_str().map(cleaned),
        message: cleaned(why(condition)?),
        at: condition["lastTransitionTime"].as_str().map(storable),
    })
}

/// What has to be written so that a managed resource keeps its external object.
#[derive(Debug, PartialEq)]
enum Keeping {
    Already,
    Write(Value),
    Unable,
}

fn keeping(spec: &Value) -> Keeping {
    let policy = spec["deletionPolicy"].as_str();
    let actions: Option<Vec<_>> = spec["managementPolicies"]
        .as_array()
        .map(|actions| actions.iter().filter_map(Value::as_str).collect());
    let all = |actions: &[&str]| actions == ["*"];
    let deletes = |actions: &[&str]| actions.iter().any(|action| ["*", "Delete"].contains(action));
    match (policy, actions) {
        (Some("Orphan"), None) => Keeping::Already,
        (Some("Orphan"), Some(actions)) if all(&actions) || !deletes(&actions) => Keeping::Already,
        (_, Some(actions)) if !deletes(&actions) && !actions.is_empty() => Keeping::Already,
        (Some(_), None) => Keeping::Write(json!({ "deletionPolicy": "Orphan" })),
        (Some(_), Some(actions)) if all(&actions) => {
            Keeping::Write(json!({ "deletionPolicy": "Orphan" }))
        }
        // No action at all means paused: a paused one does not even remove its finalizer.
        (_, Some(actions)) if actions.is_empty() || actions.contains(&"*") => Keeping::Write(
            json!({ "managementPolicies": ["Observe", "Create", "Update", "LateInitialize"] }),
        ),
        (_, Some(mut actions)) => {
            actions.retain(|action| *action != "Delete");
            Keeping::Write(json!({ "managementPolicies": actions }))
        }
        (None, None) => Keeping::Unable,
    }
}

/// *Expected flow:* read each → write the one field, conditionally on what was read.
/// *Guarantees:* writes only the object with the uid that was recorded. One that is gone, or
/// that keeps its external object already, gets no request that changes anything.
pub(super) async fn keep(engine: &CrossplaneSubstrate, kept: &[KeepOrder]) -> Result<(), Error> {
    for KeepOrder { object, .. } in kept {
        keep_one(engine, object).await?;
    }
    Ok(())
}

async fn keep_one(engine: &CrossplaneSubstrate, object: &OutsideObject) -> Result<(), Error> {
    let uid = &object.uid;
    let object = ObjectRef {
        resource: api_resource(&object.api_version, &object.kind, &object.plural),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    };
    for _ in 0..RETRIES {
        let Some(live) = engine.connection().get(&object).await.map_err(failed)? else {
            return Ok(());
        };
        let Some(read) = Version::of(&live.metadata).filter(|read| read.uid == *uid) else {
            return Ok(());
        };
        let spec = &live.data["spec"];
        let body = match keeping(spec) {
            Keeping::Already => return Ok(()),
            Keeping::Write(spec) => json!({ "spec": spec }),
            Keeping::Unable => {
                return Err(Error::Failed(format!(
                    "{object} has neither spec.managementPolicies nor spec.deletionPolicy any more, so it cannot be told to keep its external object"
                )));
            }
        };
        let write = async |to: &Connection| {
            to.merge("orphan", &object, &read, body.clone(), FIELD_MANAGER).await
        };
        match engine.permitted(write).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(not_written(error)),
        }
    }
    Err(Error::Failed(format!(
        "could not orphan {object}: somebody else keeps writing it; it is tried again"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_managed_resource_keeps_its_external_object_by_the_field_that_it_has() {
        let table = [
            (json!({}), Keeping::Unable),
            (
                json!({ "deletionPolicy": "Delete" }),
                Keeping::Write(json!({ "deletionPolicy": "Orphan" })),
            ),
            (json!({ "deletionPolicy": "Orphan" }), Keeping::Already),
            (
                json!({ "deletionPolicy": "Delete", "managementPolicies": ["*"] }),
                Keeping::Write(json!({ "deletionPolicy": "Orphan" })),
            ),
            (json!({ "deletionPolicy": "Orphan", "managementPolicies": ["*"] }), Keeping::Already),
            (
                // Policies that are not the default win over the deletion policy.
                json!({ "deletionPolicy": "Orphan", "managementPolicies": ["Observe", "Delete"] }),
                Keeping::Write(json!({ "managementPolicies": ["Observe"] })),
            ),
            (
                json!({ "managementPolicies": ["*"] }),
                Keeping::Write(
                    json!({ "managementPolicies": ["Observe", "Create", "Update", "LateInitialize"] }),
                ),
            ),
            (
                json!({ "managementPolicies": ["Observe", "Create", "Delete"] }),
                Keeping::Write(json!({ "managementPolicies": ["Observe", "Create"] })),
            ),
            (json!({ "managementPolicies": ["Observe"] }), Keeping::Already),
        ];
        for (spec, expected) in table {
            assert_eq!(keeping(&spec), expected, "{spec}");
        }
    }

    #[test]
    fn the_error_of_the_reconciliation_comes_first() {
        let of = |conditions: Value| last_error(&json!({ "status": { "conditions": conditions } }));
        let ready = json!({ "type": "Ready", "status": "False", "reason": "Deleting" });
        assert_eq!(of(json!([ready])), None);
        let synced = json!({
            "type": "Synced", "status": "False", "reason": "ReconcileError",
            "message": "cannot delete: token=abc", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let error = of(json!([ready, synced])).unwrap();
        assert_eq!(error.message, "cannot delete: token=[hidden]");
        assert_eq!(error.reason.as_deref(), Some("ReconcileError"));
        assert_eq!(error.at.as_deref(), Some("2026-01-01T00:00:00Z"));
    }
}
