//! An XRD (CompositeResourceDefinition): what the composites of a blueprint
//! are on a cluster, and which of the fields that we write they have.

use serde_json::Value;
use slipway_core::catalog::blueprint_version::{CompositeScope, CompositeType};

use crate::composite::FIELD_CROSSPLANE;
use crate::documents::Document;
pub use crate::documents::Fault;

const API_VERSION: &str = "apiextensions.crossplane.io/v2";
const KIND: &str = "CompositeResourceDefinition";
const PRESERVE_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
/// Where the schema of the composites' `spec` is, below a version.
const SPEC_SCHEMA: [&str; 4] = ["schema", "openAPIV3Schema", "properties", "spec"];

/// What an XRD defines in the first version that it serves. Only that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Xrd {
    pub composite_type: CompositeType,
    /// Crossplane uses one Composition, whatever a composite names.
    pub enforces_a_composition: bool,
    /// A composite stays with the revision that it had first, unless it says otherwise.
    pub updates_by_hand: bool,
    spec: Schema,
}

impl Xrd {
    /// The schema of `spec.parameters`. `None` if there is no such field, so
    /// that whatever is written there would be pruned.
    pub fn parameters(&self) -> Option<Schema> {
        self.spec.field("parameters")
    }

    pub fn user_data(&self) -> Option<Schema> {
        self.spec.field("userData")
    }

    pub fn cloud_tags(&self) -> Option<Schema> {
        self.spec.field("cloudTags")
    }

    /// The field in which Crossplane keeps what concerns itself. It adds the field, so an
    /// author need not declare it.
    pub fn crossplane(&self) -> Option<Schema> {
        self.spec.field(FIELD_CROSSPLANE)
    }
}

/// A part of an OpenAPI schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema(Value);

impl Schema {
    /// The schema of a field, if it would be kept: declared, or allowed anyway.
    pub fn field(&self, name: &str) -> Option<Self> {
        let declared = &self.0["properties"][name];
        if !declared.is_null() {
            return Some(Self(declared.clone()));
        }
        if self.takes_anything() {
            return Some(Self(serde_json::json!({ PRESERVE_UNKNOWN: true })));
        }
        match &self.0["additionalProperties"] {
            Value::Bool(true) => Some(Self(serde_json::json!({ PRESERVE_UNKNOWN: true }))),
            additional @ Value::Object(_) => Some(Self(additional.clone())),
            _ => None,
        }
    }

    /// Whether undeclared fields are kept.
    pub fn takes_anything(&self) -> bool {
        self.0[PRESERVE_UNKNOWN] == Value::Bool(true)
    }

    /// Whether the schema accepts a value of this JSON type, as far as it says.
    pub fn takes(&self, kind: &str) -> bool {
        let either = self.0["x-kubernetes-int-or-string"] == Value::Bool(true);
        match self.0["type"].as_str() {
            None => !either || ["integer", "string"].contains(&kind),
            Some("number") => ["integer", "number"].contains(&kind),
            Some(named) => named == kind,
        }
    }

    /// The schema of the items of an array, if it says something about them.
    pub fn items(&self) -> Option<Self> {
        self.0.get("items").map(|items| Self(items.clone()))
    }

    /// The schema as it is written.
    pub(crate) const fn as_value(&self) -> &Value {
        &self.0
    }

    /// Whether the schema accepts a map.
    pub fn takes_a_map(&self) -> bool {
        self.0["type"].as_str().is_none_or(|kind| kind == "object")
    }

    /// Whether the schema accepts a map from texts to texts, with any key.
    pub fn takes_a_map_of_texts(&self) -> bool {
        let any_key = self.field("any").is_some_and(|value| value.takes("string"));
        self.takes_a_map() && any_key
    }
}

pub fn parse(text: &str) -> Result<Xrd, Fault> {
    let document = Document::read("xrd", text)?;
    document.is_a(API_VERSION, KIND)?;
    let group = document.text("spec.group")?;
    if !group.contains('.') || !group.split('.').all(is_label) {
        let remedy = "give a DNS name with a dot, such as nodes.example.org";
        return Err(document.fault("spec.group", "is not the name of an API group", remedy));
    }
    let kind = document.text("spec.names.kind")?;
    if !is_kind(kind) {
        let remedy = "give 1 to 63 letters and digits, beginning with a capital";
        return Err(document.fault("spec.names.kind", "is not the name of a kind", remedy));
    }
    let plural = document.text("spec.names.plural")?;
    if !is_label(plural) {
        let remedy = "give 1 to 63 lowercase letters, digits or hyphens";
        return Err(document.fault("spec.names.plural", "is not the name of a resource", remedy));
    }
    let wanted = format!("{plural}.{group}");
    if document.text("metadata.name")? != wanted {
        let (problem, remedy) = ("is not <plural>.<group>", format!("write {wanted}"));
        return Err(document.fault("metadata.name", problem, remedy));
    }
    let scope = scope(&document)?;
    let (version, spec) = served(&document)?;
    let composite_type = CompositeType {
        group: group.to_owned(),
        version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        scope,
    };
    let policy = document.at("spec.defaultCompositionUpdatePolicy");
    Ok(Xrd {
        composite_type,
        enforces_a_composition: !document.at("spec.enforcedCompositionRef").is_null(),
        updates_by_hand: *policy == "Manual",
        spec,
    })
}

/// Namespaced by default, as Crossplane has it in this API version.
fn scope(document: &Document) -> Result<CompositeScope, Fault> {
    let path = "spec.scope";
    match document.at(path) {
        Value::Null => Ok(CompositeScope::Namespaced),
        given => given.as_str().and_then(CompositeScope::parse).ok_or_else(|| {
            let remedy = "write Namespaced or Cluster; claims are not used here";
            document.fault(path, "is not a scope that is supported", remedy)
        }),
    }
}

fn served(document: &Document) -> Result<(String, Schema), Fault> {
    let path = "spec.versions";
    let versions = document.at(path).as_array().map(Vec::as_slice).unwrap_or_default();
    let found = versions.iter().enumerate().find(|(_, version)| version["served"] == true);
    let Some((index, version)) = found else {
        return Err(document.fault(path, "serves no version", "set `served: true` on one"));
    };
    let fault = |name: &str, problem: &str, remedy: &str| {
        document.fault(&format!("{path}[{index}].{name}"), problem, remedy)
    };
    let name = version["name"].as_str().filter(|name| is_label(name));
    let Some(name) = name else {
        return Err(fault("name", "is not the name of a version", "name it, such as v1alpha1"));
    };
    if version["referenceable"] != true {
        let remedy = "set `referenceable: true`, or serve the referenceable version first";
        return Err(fault("referenceable", "is not true, so no Composition is for it", remedy));
    }
    let spec = SPEC_SCHEMA.iter().fold(version, |schema, name| &schema[*name]);
    if !spec.is_object() {
        let problem = "says nothing about `spec`";
        let remedy = "describe it below openAPIV3Schema.properties.spec";
        return Err(fault("schema", problem, remedy));
    }
    Ok((name.to_owned(), Schema(spec.clone())))
}

/// A DNS label.
fn is_label(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.chars().all(|c| edge(c) || c == '-')
        && text.starts_with(edge)
        && text.ends_with(edge)
}

fn is_kind(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}
