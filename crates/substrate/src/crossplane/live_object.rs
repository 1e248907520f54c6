//! Parses a live object into the facts that decisions need. Pure.
//!
//! Before an object is hashed, it is projected on the fields that its
//! managedFields assign to us. So a default or a field of another manager is
//! never drift, and a field that somebody took over is.

use serde_json::{Map, Value, json};
use slipway_cluster::{DynamicObject, Facts, Version};
use slipway_core::broker::observation::LiveComposite;
use slipway_core::ids::{ClaimToken, GroupId, ProvisionedResourceId};
use slipway_core::nodes::token::Carried;
use slipway_core::secret::Secret;
use slipway_render::{composite, injection};

use super::FIELD_MANAGER;

/// The facts of a live composite that decisions need, and short evidence for
/// people.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LiveObject {
    pub(super) uid: Box<str>,
    pub(super) resource_version: u64,
    pub(super) installation: Option<Box<str>>,
    pub(super) owner: Option<ProvisionedResourceId>,
    pub(super) group: Option<GroupId>,
    pub(super) claim_token: Option<ClaimToken>,
    pub(super) finalizers: Box<[Box<str>]>,
    deciding: Deciding,
    injected: Option<Injected>,
    /// JSON text, parsed only when it is shown.
    evidence: Box<str>,
}

/// The facts that may change a decision.
#[derive(Debug, Clone, PartialEq)]
struct Deciding {
    ready: bool,
    failure: Option<Box<str>>,
    terminating: bool,
    owned_hash: Box<str>,
    carried: Carried,
}

/// The injected document. A type of its own, because a [`Secret`] has no equality.
#[derive(Debug, Clone)]
struct Injected(Secret);

impl PartialEq for Injected {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose() == other.0.expose()
    }
}

/// A composition reports a permanent failure by this condition. Any other
/// condition that is false may still become true.
const CONDITION_FAILED: &str = "ProvisioningFailed";
const CONDITION_READY: &str = "Ready";

/// Limits of the evidence; the rest can be read on the cluster.
const SHOWN: usize = 12;
const SHOWN_TEXT: usize = 400;

impl Facts for LiveObject {
    type Owner = ProvisionedResourceId;

    fn parse(object: &DynamicObject) -> Option<Self> {
        let metadata = &object.metadata;
        let whole = serde_json::to_value(object).ok()?;
        let labels = &whole["metadata"]["labels"];
        let finalizers = metadata.finalizers.iter().flatten().map(|name| name.as_str().into());
        Some(Self {
            uid: metadata.uid.as_deref()?.into(),
            resource_version: metadata.resource_version.as_deref()?.parse().ok()?,
            installation: composite::installation(&whole).map(Into::into),
            group: labels[composite::LABEL_GROUP].as_str().and_then(|id| id.parse().ok()),
            owner: labels[composite::LABEL_PROVISIONED_RESOURCE]
                .as_str()
                .and_then(|text| text.parse().ok()),
            claim_token: composite::claim_token(&whole),
            finalizers: finalizers.collect(),
            deciding: Deciding {
                ready: condition(&whole, CONDITION_READY).is_some(),
                failure: condition(&whole, CONDITION_FAILED).map(failure),
                terminating: metadata.deletion_timestamp.is_some(),
                owned_hash: composite::owned_hash(&ours(&whole)).into(),
                carried: injection::carried(&whole),
            },
            injected: injection::injected(&whole).map(Injected),
            evidence: evidence(&whole).to_string().into(),
        })
    }

    fn resource_version(&self) -> u64 {
        self.resource_version
    }

    fn owner(&self) -> Option<ProvisionedResourceId> {
        self.owner
    }

    fn decides_as(&self, other: &Self) -> bool {
        self.uid == other.uid && self.deciding == other.deciding
    }
}

impl LiveObject {
    /// What a write of this object names.
    pub(super) fn version(&self) -> Version {
        let resource_version = self.resource_version.to_string();
        Version { uid: self.uid.to_string(), resource_version }
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.deciding.terminating
    }

    /// Whether it has our finalizer.
    pub(super) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|name| **name == *composite::FINALIZER_DRAIN)
    }

    pub(super) fn owned_hash(&self) -> &str {
        &self.deciding.owned_hash
    }

    pub(super) fn carried(&self) -> Carried {
        self.deciding.carried
    }

    pub(super) fn live(&self) -> LiveComposite {
        LiveComposite {
            uid: self.uid.to_string(),
            ready: self.deciding.ready,
            failure: self.deciding.failure.as_deref().map(str::to_owned),
            terminating: self.deciding.terminating,
            owned_hash: self.deciding.owned_hash.to_string(),
            carried: self.deciding.carried,
            injected: self.injected.as_ref().map(|injected| injected.0.clone()),
            // `evidence` wrote it, so it parses.
            evidence: serde_json::from_str(&self.evidence).unwrap_or_default(),
        }
    }
}

/// The condition of this type, if it is True.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn failure(condition: &Value) -> Box<str> {
    why(condition)
        .unwrap_or("the composition says that provisioning failed for good, and not why")
        .into()
}

/// The message of a condition, else its reason.
pub(super) fn why(condition: &Value) -> Option<&str> {
    let said = |field: &str| condition[field].as_str().filter(|text| !text.is_empty());
    said("message").or_else(|| said("reason"))
}

/// The fields of the object that our field manager owns.
pub(super) fn ours(object: &Value) -> Value {
    let mut projected = json!({ "apiVersion": object["apiVersion"], "kind": object["kind"] });
    let managed = object["metadata"]["managedFields"].as_array();
    for entry in managed.into_iter().flatten() {
        if entry["manager"] == FIELD_MANAGER
            && entry["operation"] == "Apply"
            && let Some(part) = project(object, &entry["fieldsV1"])
        {
            merge(&mut projected, part);
        }
    }
    projected
}

/// The part of the value that the fields name: `f:` is a member, `.` the value
/// itself. Lists are taken whole: the only list that we render are the
/// finalizers, and those are not hashed.
fn project(value: &Value, fields: &Value) -> Option<Value> {
    let members = fields.as_object()?;
    let (Value::Object(object), false) = (value, members.keys().all(|key| key == ".")) else {
        return Some(value.clone());
    };
    let mut projected = Map::new();
    for (key, fields) in members {
        let Some(name) = key.strip_prefix("f:") else { continue };
        if let Some(member) = object.get(name).and_then(|value| project(value, fields)) {
            projected.insert(name.to_owned(), member);
        }
    }
    Some(Value::Object(projected))
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Evidence for people: conditions, what a deletion waits for, and the composed
/// resources.
fn evidence(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let shown: Vec<_> = conditions
        .take(SHOWN)
        .map(|condition| {
            json!({
                "type": condition["type"],
                "status": condition["status"],
                "reason": condition["reason"],
                "message": shortened(condition["message"].as_str()),
            })
        })
        .collect();
    let mut evidence = json!({
        "kind": object["kind"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "conditions": shown,
    });
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let lists = [
        ("finalizers", metadata["finalizers"].as_array().cloned().unwrap_or_default()),
        ("owners", owners.map(reference).collect()),
        ("composed", composed(object)),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            evidence[name] = json!(&list[..list.len().min(SHOWN)]);
        }
        if list.len() > SHOWN {
            evidence[format!("{name}_count")] = json!(list.len());
        }
    }
    if let Some(at) = metadata["deletionTimestamp"].as_str() {
        evidence["deletion_requested_at"] = json!(at);
    }
    evidence
}

/// The composed resources, from either field in which versions of Crossplane
/// list them.
fn composed(object: &Value) -> Vec<Value> {
    let objects = [&object["spec"]["crossplane"]["resourceRefs"], &object["spec"]["resourceRefs"]];
    objects.into_iter().filter_map(Value::as_array).flatten().map(reference).collect()
}

fn reference(value: &Value) -> Value {
    let part = |field: &str| value[field].as_str().unwrap_or("?").to_owned();
    json!(format!("{}/{}", part("kind"), part("name")))
}

fn shortened(text: Option<&str>) -> Option<String> {
    let text = text?;
    match text.char_indices().nth(SHOWN_TEXT) {
        Some((end, _)) => Some(format!("{}…", &text[..end])),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(change: impl FnOnce(&mut Value)) -> LiveObject {
        let mut value = json!({
            "apiVersion": "nodes.example.org/v1",
            "kind": "XNode",
            "metadata": {
                "name": "pr-1",
                "namespace": "slipway-project-1",
                "uid": "u-1",
                "resourceVersion": "7",
                "labels": {
                    "slipway.dev/installation": "i",
                    "slipway.dev/provisioned-resource": "00000000-0000-0000-0000-00000000000a",
                    "crossplane.io/composite": "pr-1",
                },
                "annotations": { "slipway.dev/claim-token": "3" },
                "finalizers": ["slipway.dev/drain"],
                "managedFields": [
                    {
                        "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "nodes.example.org/v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {
                            "f:metadata": { "f:labels": {
                                "f:slipway.dev/installation": {},
                                "f:slipway.dev/provisioned-resource": {},
                            } },
                            "f:spec": { "f:parameters": { ".": {}, "f:size": {} } },
                        },
                    },
                    {
                        "manager": "crossplane", "operation": "Update", "apiVersion": "nodes.example.org/v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": { "f:spec": { "f:parameters": { "f:region": {} } } },
                    },
                ],
            },
            "spec": { "parameters": { "size": 2, "region": "fsn1" } },
        });
        change(&mut value);
        LiveObject::parse(&serde_json::from_value(value).unwrap()).unwrap()
    }

    #[test]
    fn the_hash_is_over_what_we_hold_and_nothing_else() {
        let plain = object(|_| {});
        let rendered = composite::owned_hash(&json!({
            "apiVersion": "nodes.example.org/v1",
            "kind": "XNode",
            "metadata": { "labels": {
                "slipway.dev/installation": "i",
                "slipway.dev/provisioned-resource": "00000000-0000-0000-0000-00000000000a",
            } },
            "spec": { "parameters": { "size": 2 } },
        }));
        assert_eq!(plain.owned_hash(), rendered);
        let theirs = object(|value| value["spec"]["parameters"]["region"] = json!("nbg1"));
        assert_eq!(theirs.owned_hash(), rendered, "another manager's field is no drift");
        let chosen = json!({ "compositionRef": { "name": "x" } });
        let chosen = object(|value| value["spec"]["crossplane"] = chosen);
        assert_eq!(chosen.owned_hash(), rendered, "nor is what Crossplane chooses");
        let changed = object(|value| value["spec"]["parameters"]["size"] = json!(3));
        assert_ne!(changed.owned_hash(), rendered, "a value of ours that is another");
        let taken = object(|value| {
            value["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"] = json!({});
        });
        assert_ne!(taken.owned_hash(), rendered, "a field that somebody took over");
    }

    #[test]
    fn only_the_marker_is_terminal() {
        let with = |conditions: Value| {
            object(|value| value["status"] = json!({ "conditions": conditions })).live()
        };
        let transient = with(json!([
            { "type": "Synced", "status": "False", "message": "no composition yet" },
            { "type": "Ready", "status": "False" },
            { "type": "ProvisioningFailed", "status": "False", "message": "not yet" },
        ]));
        assert_eq!((transient.ready, transient.failure), (false, None));
        let failed = with(json!([
            { "type": "Ready", "status": "True" },
            { "type": "ProvisioningFailed", "status": "True", "message": "quota" },
        ]));
        assert_eq!((failed.ready, failed.failure.as_deref()), (true, Some("quota")));
        for silent in [json!({}), json!({ "message": "" }), json!({ "reason": "Quota" })] {
            let mut condition = silent;
            condition["type"] = json!("ProvisioningFailed");
            condition["status"] = json!("True");
            assert!(!with(json!([condition])).failure.unwrap().is_empty());
        }
        assert!(!with(json!("nonsense")).ready);
    }

    #[test]
    fn what_holds_a_deletion_is_shown() {
        let leaving = object(|value| {
            value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            value["metadata"]["finalizers"] = json!(["composite.apiextensions.crossplane.io"]);
            value["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "Claim", "name": "c", "uid": "x",
            }]);
            value["spec"]["crossplane"] =
                json!({ "resourceRefs": [{ "kind": "Server", "name": "s-1" }] });
        });
        assert!(leaving.is_terminating());
        let evidence = leaving.live().evidence;
        assert_eq!(evidence["finalizers"], json!(["composite.apiextensions.crossplane.io"]));
        assert_eq!(evidence["owners"], json!(["Claim/c"]));
        assert_eq!(evidence["composed"], json!(["Server/s-1"]));
    }

    #[test]
    fn a_change_that_decides_nothing_wakes_nobody() {
        let before = object(|_| {});
        let touched = object(|value| value["metadata"]["resourceVersion"] = json!("8"));
        assert!(before.decides_as(&touched));
        let ready = object(|value| {
            value["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        });
        assert!(!before.decides_as(&ready));
    }
}
