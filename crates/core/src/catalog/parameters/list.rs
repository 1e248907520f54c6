//! The short form of a schema, `{"parameters": […]}`: names with one of three types. It is
//! translated into JSON Schema, so that there is one checker.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::InvalidSchema;
use super::publish::{Fault, MAX_SUBSCHEMAS, name_problem};
use super::view::IMMUTABLE;
use crate::nearest::not_one_of;

/// The three types a parameter of the short form can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    Boolean,
    Integer,
    String,
}

impl ParameterType {
    const ALL: [Self; 3] = [Self::Boolean, Self::Integer, Self::String];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::String => "string",
        }
    }

    pub(super) fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Boolean, Value::Bool(_)) | (Self::String, Value::String(_)) => true,
            (Self::Integer, Value::Number(number)) => number.is_i64(),
            _ => false,
        }
    }
}

impl fmt::Display for ParameterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One parameter that a blueprint declares in the short form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ParameterType,
    #[serde(default)]
    pub required: bool,
    /// Cannot change in place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub immutable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The short form as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    pub(super) parameters: Vec<Parameter>,
}

/// The schema of a list.
pub(super) fn translated(parameters: &[Parameter]) -> Value {
    let property = |parameter: &Parameter| {
        let mut property = json!({ "type": parameter.kind.as_str() });
        if let Some(default) = &parameter.default {
            property["default"] = default.clone();
        }
        if parameter.immutable {
            property[IMMUTABLE] = json!(true);
        }
        (parameter.name.clone(), property)
    };
    let properties: Map<_, _> = parameters.iter().map(property).collect();
    let required: Vec<_> = parameters.iter().filter(|p| p.required).map(|p| &p.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// What contradicts itself, the first fault of each parameter.
pub(super) fn faults(parameters: &[Parameter]) -> impl Iterator<Item = InvalidSchema> {
    parameters.iter().enumerate().filter_map(|(index, parameter)| {
        let refuse = |problem| Some(InvalidSchema { name: parameter.name.clone(), problem });
        if let Some(problem) = name_problem(&parameter.name) {
            return refuse(problem);
        }
        if parameters[..index].iter().any(|earlier| earlier.name == parameter.name) {
            return refuse("is declared twice");
        }
        match &parameter.default {
            Some(_) if parameter.required => {
                refuse("is required and has a default; remove one of the two")
            }
            Some(default) if !parameter.kind.accepts(default) => {
                refuse("has a default of another type")
            }
            _ => None,
        }
    })
}

/// Reads a list as it was sent; names everything that is of another shape.
pub(super) fn read(document: &Map<String, Value>) -> Result<Vec<Parameter>, Vec<Fault>> {
    let mut faults = Vec::new();
    for key in document.keys().filter(|key| *key != "parameters") {
        faults.push(Fault::shape(
            format!("parameter_schema.{}", super::shown(key)),
            "is not known beside `parameters`",
        ));
    }
    let at = |index: usize| format!("parameter_schema.parameters[{index}]");
    let Some(Value::Array(items)) = document.get("parameters") else {
        faults.push(Fault::shape(
            "parameter_schema.parameters".to_owned(),
            "must be a list of parameters",
        ));
        return Err(faults);
    };
    if items.len() > MAX_SUBSCHEMAS {
        let problem = format!("has more than {MAX_SUBSCHEMAS} parameters");
        return Err(vec![Fault::shape("parameter_schema.parameters".to_owned(), problem)]);
    }
    let mut parameters = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Value::Object(fields) = item else {
            faults.push(Fault::shape(at(index), "must be an object with `name` and `type`"));
            continue;
        };
        let before = faults.len();
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let name = text("name").map(str::to_owned);
        if name.is_none() {
            faults.push(Fault::shape(format!("{}.name", at(index)), "is missing or is not a text"));
        }
        let named = text("type").unwrap_or_default();
        let kind = ParameterType::ALL.into_iter().find(|kind| kind.as_str() == named);
        if kind.is_none() {
            let field = format!("{}.type", at(index));
            let problem = not_one_of(&field, named, &ParameterType::ALL.map(ParameterType::as_str));
            let problem = problem.message.strip_prefix(&format!("`{field}` ")).map(str::to_owned);
            let more = "; other types need a JSON Schema";
            faults.push(Fault::shape(field, format!("{}{more}", problem.unwrap_or_default())));
        }
        for name in ["required", "immutable"] {
            if fields.get(name).is_some_and(|value| !value.is_boolean()) {
                faults.push(Fault::shape(format!("{}.{name}", at(index)), "must be true or false"));
            }
        }
        for key in fields.keys() {
            if !["name", "type", "required", "immutable", "default"].contains(&key.as_str()) {
                let field = format!("{}.{}", at(index), super::shown(key));
                let known = "name, type, required, immutable and default";
                faults.push(Fault::shape(field, format!("is not known; a parameter has {known}")));
            }
        }
        if let (Some(name), Some(kind), true) = (name, kind, faults.len() == before) {
            let is = |name: &str| fields.get(name) == Some(&Value::Bool(true));
            let default = fields.get("default").filter(|default| !default.is_null()).cloned();
            let (required, immutable) = (is("required"), is("immutable"));
            parameters.push(Parameter { name, kind, required, immutable, default });
        }
    }
    if faults.is_empty() { Ok(parameters) } else { Err(faults) }
}
