//! The parameter schema of a blueprint version and the values of one attempt.
//! Values are checked when they are declared and again when they are rendered;
//! only supplied values are rendered, defaults stay with the composition.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ErrorKind, Refusal};
use crate::nearest::nearest;
use crate::placement::provider_config;

/// The most faults that one answer names.
const MAX_FAULTS: usize = 64;

/// A name as an error text repeats it.
pub(crate) fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(63).collect()
}

/// The three types a parameter can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    Boolean,
    Integer,
    String,
}

impl ParameterType {
    fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Boolean, Value::Bool(_)) | (Self::String, Value::String(_)) => true,
            (Self::Integer, Value::Number(number)) => number.is_i64(),
            _ => false,
        }
    }
}

impl fmt::Display for ParameterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::String => "string",
        })
    }
}

/// One parameter that a blueprint declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ParameterType,
    #[serde(default)]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// `{"parameters": [...]}`, as the catalog writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterSchema {
    parameters: Vec<Parameter>,
}

/// A schema that cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{name}` {problem}")]
pub struct InvalidSchema {
    pub name: String,
    pub problem: &'static str,
}

impl ParameterSchema {
    /// Names that an injection strategy writes to; a parameter of that name
    /// would be overwritten by the token, or overwrite it.
    const INJECTION_SITES: [&'static str; 2] = ["helmValues", "providerSecret"];

    pub fn new(parameters: Vec<Parameter>) -> Result<Self, InvalidSchema> {
        let fault = Self::faults(&parameters).next();
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Self { parameters }),
        }
    }

    /// What is wrong with these, the first fault of each.
    pub fn faults(parameters: &[Parameter]) -> impl Iterator<Item = InvalidSchema> {
        parameters.iter().enumerate().filter_map(|(index, parameter)| {
            let refuse = |problem| Some(InvalidSchema { name: parameter.name.clone(), problem });
            let starts_well = parameter.name.starts_with(|c: char| c.is_ascii_alphabetic());
            if !starts_well
                || parameter.name.len() > 63
                || !parameter.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            {
                return refuse("must be 1 to 63 letters, digits or _, starting with a letter");
            }
            if Self::INJECTION_SITES.contains(&parameter.name.as_str()) {
                return refuse("has the name of an injection site; choose another");
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

    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether resources get the name of their ProviderConfig.
    pub fn takes_provider_config_name(&self) -> bool {
        self.parameters.iter().any(|parameter| {
            parameter.name == provider_config::PARAMETER && parameter.kind == ParameterType::String
        })
    }

    /// Checks supplied values. Reports every fault, in the order of the names and
    /// what is missing last, so that the same input always gets the same answer.
    pub fn validate(&self, values: BTreeMap<String, Value>) -> Result<ParameterValues, Refusal> {
        let fault = |name: &str, problem: String| {
            Refusal::new(ErrorKind::ParameterValuesInvalid, format!("parameter `{name}` {problem}"))
                .at(format!("parameters.{name}"))
        };
        let wrong = |(name, value): (&String, &Value)| {
            let Some(parameter) = self.parameters.iter().find(|p| &p.name == name) else {
                return Some(fault(&shown(name), self.unknown(name)));
            };
            if !parameter.kind.accepts(value) {
                return Some(fault(name, format!("must be of type {}", parameter.kind)));
            }
            let text = value.as_str().unwrap_or_default();
            (text.contains('\0') || text.len() > 65_536)
                .then(|| fault(name, "must be at most 65536 bytes without U+0000".to_owned()))
        };
        let missing =
            |parameter: &&Parameter| parameter.required && !values.contains_key(&parameter.name);
        let missing = self.parameters.iter().filter(missing);
        let missing = missing.map(|p| fault(&p.name, format!("is required ({})", p.kind)));
        // As many as a person reads; a schema is longer only by mistake.
        Refusal::all(values.iter().filter_map(wrong).chain(missing).take(MAX_FAULTS))?;
        Ok(ParameterValues(values))
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<_> = self.parameters.iter().map(|p| p.name.as_str()).collect();
        if known.is_empty() {
            return "is not known to this blueprint, which takes none".to_owned();
        }
        let meant = nearest(name, known.iter().copied());
        let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
        format!("is not known to this blueprint{meant}; it takes: {}", known.join(", "))
    }
}

/// Values that were checked against a schema, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParameterValues(BTreeMap<String, Value>);

impl ParameterValues {
    /// For rows: they were checked when declared, and are again when rendered.
    pub const fn from_stored(values: BTreeMap<String, Value>) -> Self {
        Self(values)
    }

    pub const fn as_map(&self) -> &BTreeMap<String, Value> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameter(
        name: &str,
        kind: ParameterType,
        required: bool,
        default: Option<Value>,
    ) -> Parameter {
        Parameter { name: name.to_owned(), kind, required, default }
    }

    fn schema() -> ParameterSchema {
        ParameterSchema::new(vec![
            parameter("size", ParameterType::Integer, true, None),
            parameter("public", ParameterType::Boolean, false, Some(json!(false))),
            parameter("region", ParameterType::String, false, None),
        ])
        .unwrap()
    }

    fn values(value: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_supplied_values_are_kept() {
        let kept = schema().validate(values(json!({"size": 3}))).unwrap();
        assert_eq!(kept.as_map(), &values(json!({"size": 3})));
    }

    #[test]
    fn each_fault_names_its_parameter() {
        let table = [
            (json!({}), "parameters.size"),
            (json!({"size": "3"}), "parameters.size"),
            (json!({"size": 1.5}), "parameters.size"),
            (json!({"size": 3, "public": 1}), "parameters.public"),
            (json!({"size": 3, "region": null}), "parameters.region"),
            (json!({"size": 3, "region": "a\u{0}"}), "parameters.region"),
            (json!({"size": 3, "color": "red"}), "parameters.color"),
        ];
        for (input, field) in table {
            let refusal = schema().validate(values(input.clone())).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::ParameterValuesInvalid, "{input}");
            assert_eq!(refusal.field.as_deref(), Some(field), "{input}");
        }
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let wrong = json!({"size": "3", "public": 1, "regoin": "eu"});
        let refusal = schema().validate(values(wrong)).unwrap_err();
        let fields: Vec<_> = refusal.faults().filter_map(|fault| fault.field.as_deref()).collect();
        assert_eq!(fields, ["parameters.public", "parameters.regoin", "parameters.size"]);
        assert!(refusal.others()[0].message.contains("did you mean `region`?"), "{refusal:?}");
    }

    #[test]
    fn a_schema_that_contradicts_itself_is_refused() {
        let integer = ParameterType::Integer;
        let table = [
            vec![parameter("a", integer, true, Some(json!(1)))],
            vec![parameter("a", integer, false, Some(json!("1")))],
            vec![parameter("a", integer, false, None), parameter("a", integer, false, None)],
            vec![parameter("", integer, false, None)],
            vec![parameter("helmValues", integer, false, None)],
        ];
        for parameters in table {
            assert!(ParameterSchema::new(parameters.clone()).is_err(), "{parameters:?}");
        }
    }
}
