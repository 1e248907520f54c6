//! The definitions of a blueprint version: its XRD as the author wrote it, its
//! Composition and those of other versions under names of their own, all with
//! our labels, and the role that our account needs for the composites.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::catalog::composition_name;
use slipway_core::ids::InstallationId;
use slipway_core::placement::definitions::{DefinitionKey, DefinitionKind, DefinitionSet, Demand};

use crate::canonical;
use crate::composite::LABEL_INSTALLATION;
use crate::documents::{Document, Fault};

pub const LABEL_BLUEPRINT: &str = "slipway.dev/blueprint";
pub const LABEL_VERSION: &str = "slipway.dev/blueprint-version";
/// Kubernetes aggregates roles with this label into our account's role.
pub const LABEL_AGGREGATE: &str = "slipway.dev/aggregate-to-control-plane";
/// Hash of the rendered object, without this annotation.
pub const ANNOTATION_HASH: &str = "slipway.dev/rendered-hash";

/// The verbs that our account uses on composites.
pub const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// An object to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionObject {
    pub key: DefinitionKey,
    pub value: Value,
}

/// All objects that a version is installed as.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    pub definitions: DefinitionSet,
    pub objects: Vec<DefinitionObject>,
}

/// Fails only on a fault that would have prevented publication.
pub fn render(demand: &Demand, installation: InstallationId) -> Result<Bundle, Fault> {
    let labels = |version: &str| {
        json!({
            LABEL_INSTALLATION: installation,
            LABEL_BLUEPRINT: demand.slug,
            LABEL_VERSION: version,
        })
    };
    let own = labels(&demand.version);
    let definition = stamped(read("xrd", &demand.xrd, &own)?);
    let mut composition = read("composition", &demand.composition, &own)?;
    if let Some(name) = &demand.composition_name {
        composition["metadata"]["name"] = json!(name);
    }
    let composition = stamped(composition);
    let mut others = Vec::new();
    let kind = &demand.composite_type;
    for other in &demand.others {
        let mut value = read("composition", &other.composition, &labels(&other.version))?;
        let name = &other.composition_name;
        let name = composition_name::read_as(name, &other.version, &kind.version);
        value["metadata"]["name"] = json!(name);
        // Crossplane takes a Composition only for the API version in which it reads
        // composites, which is that of the XRD.
        value["spec"]["compositeTypeRef"]["apiVersion"] = json!(kind.api_version());
        others.push(stamped(value));
    }
    let mut role = role(&demand.slug, &demand.composite_type);
    role["metadata"]["labels"][LABEL_INSTALLATION] = json!(installation);
    let key = |kind: DefinitionKind, value: &Value| DefinitionKey {
        kind,
        name: value["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
    };
    let definitions = DefinitionSet {
        installation,
        definition: key(DefinitionKind::Xrd, &definition),
        role: key(DefinitionKind::Role, &role),
        composition: key(DefinitionKind::Composition, &composition),
        others: others.iter().map(|value| key(DefinitionKind::Composition, value)).collect(),
        serves: served(&definition),
    };
    let mut objects = vec![
        DefinitionObject { key: definitions.definition.clone(), value: definition },
        DefinitionObject { key: definitions.role.clone(), value: role },
        DefinitionObject { key: definitions.composition.clone(), value: composition },
    ];
    let others = definitions.others.iter().cloned().zip(others);
    objects.extend(others.map(|(key, value)| DefinitionObject { key, value }));
    Ok(Bundle { definitions, objects })
}

/// An author's document: its relevant fields and our labels.
fn read(field: &'static str, text: &str, ours: &Value) -> Result<Value, Fault> {
    let document = Document::read(field, text)?;
    let name = document.text("metadata.name")?.to_owned();
    let given = document.into_value();
    let mut metadata = json!({ "name": name, "labels": {}, "annotations": {} });
    for part in ["labels", "annotations"] {
        if let Value::Object(theirs) = &given["metadata"][part] {
            metadata[part] = Value::Object(theirs.clone());
        }
    }
    for (label, value) in ours.as_object().into_iter().flatten() {
        metadata["labels"][label] = value.clone();
    }
    Ok(json!({
        "apiVersion": given["apiVersion"],
        "kind": given["kind"],
        "metadata": metadata,
        "spec": given["spec"],
    }))
}

/// A document as it is applied, with its hash.
fn stamped(mut value: Value) -> Value {
    let hash = canonical::hash(&value);
    value["metadata"]["annotations"][ANNOTATION_HASH] = json!(hash);
    value
}

/// The API versions that an XRD serves.
pub fn served(definition: &Value) -> BTreeSet<String> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served.filter_map(|version| version["name"].as_str()).map(str::to_owned).collect()
}

/// The role that our account needs for the composites of one kind. Whoever
/// holds these rights can apply it. It names no installation, so that anybody
/// who knows the blueprint can print it.
pub fn role(slug: &str, kind: &CompositeType) -> Value {
    let of = |resource: String, verbs: &[&str]| json!({ "apiGroups": [kind.group], "resources": [resource], "verbs": verbs });
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": format!("slipway-blueprint-{slug}"),
            "labels": { LABEL_AGGREGATE: "true", LABEL_BLUEPRINT: slug },
        },
        "rules": [
            of(kind.plural.clone(), &VERBS),
            of(format!("{}/status", kind.plural), &["get"]),
            // Required by the admission plugin that guards blockOwnerDeletion.
            of(format!("{}/finalizers", kind.plural), &["update"]),
        ],
    })
}

/// The role as a document for `kubectl apply`.
pub fn role_yaml(slug: &str, kind: &CompositeType) -> Result<String, serde_yaml_ng::Error> {
    serde_yaml_ng::to_string(&role(slug, kind))
}

/// Whether a live object is as rendered, apart from what the server added.
pub fn fits(kind: DefinitionKind, live: &Value, rendered: &Value) -> bool {
    match kind {
        // A person may have applied it, without all of our labels.
        DefinitionKind::Role => {
            live["rules"] == rendered["rules"]
                && live["metadata"]["labels"][LABEL_AGGREGATE] == "true"
        }
        DefinitionKind::Xrd | DefinitionKind::Composition => {
            let hash = |object: &Value| object["metadata"]["annotations"][ANNOTATION_HASH].clone();
            hash(live) == hash(rendered) && covers(live, rendered)
        }
    }
}

/// Whether the live object has everything that is wanted. Defaults filled in by
/// the server do no harm; a null or an empty map may be missing.
fn covers(live: &Value, wanted: &Value) -> bool {
    let within = |live: &Map<String, Value>, wanted: &Map<String, Value>| {
        wanted.iter().all(|(name, value)| covers(live.get(name).unwrap_or(&Value::Null), value))
    };
    match (live, wanted) {
        (_, Value::Null) => true,
        (Value::Object(live), Value::Object(wanted)) => within(live, wanted),
        (Value::Null, Value::Object(wanted)) => within(&Map::new(), wanted),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live.iter().zip(wanted).all(|(one, other)| covers(one, other))
        }
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        (Value::Number(live), Value::Number(wanted)) => live.as_f64() == wanted.as_f64(),
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use slipway_core::catalog::blueprint_version::CompositeScope;
    use slipway_core::fixtures::at;
    use slipway_core::ids::{BlueprintId, ClusterId};
    use slipway_core::placement::definitions::OtherVersion;
    use uuid::Uuid;

    use super::*;

    const XRD: &str = "\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xservers.nodes.example.org
  labels: { team: platform, slipway.dev/blueprint: forged }
  resourceVersion: '7'
spec:
  group: nodes.example.org
  names: { kind: XServer, plural: xservers }
  versions:
    - { name: v2, served: true, referenceable: true, schema: {} }
    - { name: v1, served: true, referenceable: false, schema: {} }
    - { name: v0, served: false, referenceable: false, schema: {} }
status: { conditions: [] }
";
    const COMPOSITION: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: { name: servers }
spec: { mode: Pipeline, pipeline: [{ step: compose }] }
";

    fn demand() -> Demand {
        Demand {
            now: at(1),
            cluster_id: ClusterId::new(Uuid::from_u128(2)),
            blueprint_id: BlueprintId::new(Uuid::from_u128(3)),
            slug: "server".to_owned(),
            version: "v2".to_owned(),
            xrd: XRD.to_owned(),
            composition: COMPOSITION.to_owned(),
            composition_name: None,
            others: Vec::new(),
            composite_type: mk_type(),
            kept: BTreeSet::new(),
            definitions: None,
        }
    }

    fn rendered(demand: &Demand) -> Bundle {
        render(demand, InstallationId::new(Uuid::from_u128(4))).unwrap()
    }

    fn bundle() -> Bundle {
        rendered(&demand())
    }

    fn mk_type() -> CompositeType {
        CompositeType {
            group: "nodes.example.org".to_owned(),
            version: "v2".to_owned(),
            kind: "XServer".to_owned(),
            plural: "xservers".to_owned(),
            scope: CompositeScope::Namespaced,
        }
    }

    #[test]
    fn a_version_is_installed_as_its_documents_with_our_labels() {
        let Bundle { definitions, objects } = bundle();
        assert_eq!(definitions.serves.into_iter().collect::<Vec<_>>(), ["v1", "v2"]);
        let values: Vec<_> = objects.iter().map(|object| &object.value).collect();
        insta::assert_json_snapshot!(values);
    }

    /// Each version has a Composition of its own, for the API version of the XRD.
    #[test]
    fn versions_have_compositions_side_by_side() {
        let of = |version: &str, step: &str| {
            let kind = format!("apiVersion: nodes.example.org/{version}, kind: XServer");
            let spec = format!("spec: {{ compositeTypeRef: {{ {kind} }},");
            COMPOSITION.replace("spec: {", &spec).replace("step: compose", step)
        };
        let older = OtherVersion {
            version: "v1".to_owned(),
            composition: of("v1", "step: compose-as-before"),
            composition_name: "servers-v1-000000000001".to_owned(),
        };
        let demand = Demand {
            composition: of("v2", "step: compose"),
            composition_name: Some("servers-v2-000000000002".to_owned()),
            others: vec![older],
            ..demand()
        };
        let Bundle { definitions, objects } = rendered(&demand);
        let names: Vec<_> = objects.iter().map(|object| object.key.name.as_str()).collect();
        let expected = [
            "xservers.nodes.example.org",
            "slipway-blueprint-server",
            "servers-v2-000000000002",
            "servers-v1-000000000001.v2",
        ];
        assert_eq!(names, expected);
        assert_eq!(definitions.others, [objects[3].key.clone()]);
        for (object, version, step) in
            [(&objects[2], "v2", "compose"), (&objects[3], "v1", "compose-as-before")]
        {
            let value = &object.value;
            assert_eq!(value["metadata"]["name"], object.key.name.as_str());
            assert_eq!(value["metadata"]["labels"][LABEL_VERSION], version);
            assert_eq!(value["spec"]["pipeline"][0]["step"], step);
            let read_as = &value["spec"]["compositeTypeRef"]["apiVersion"];
            assert_eq!(read_as, "nodes.example.org/v2");
        }
    }

    #[test]
    fn the_role_is_a_document_that_can_be_applied() {
        insta::assert_snapshot!(role_yaml("server", &mk_type()).unwrap());
    }

    #[test]
    fn what_a_server_adds_is_no_difference_and_what_somebody_changes_is() {
        for object in bundle().objects {
            let (kind, rendered) = (object.key.kind, object.value);
            let mut live = rendered.clone();
            live["metadata"]["uid"] = json!("u");
            live["metadata"]["labels"]["theirs"] = json!("x");
            live["status"] = json!({ "conditions": [] });
            if kind != DefinitionKind::Role {
                live["spec"]["defaulted"] = json!(true);
            }
            assert!(fits(kind, &live, &rendered), "{kind}");
            let mut changed = live.clone();
            let (part, other) = match kind {
                DefinitionKind::Xrd => ("/spec/versions/0/served", json!(false)),
                DefinitionKind::Composition => ("/spec/pipeline/0/step", json!("other")),
                DefinitionKind::Role => ("/rules/0/verbs", json!(["get"])),
            };
            *changed.pointer_mut(part).unwrap() = other;
            assert!(!fits(kind, &changed, &rendered), "{kind}");
        }
    }
}
