//! The parameter schema of a blueprint version, which is a JSON Schema, and the values of one
//! attempt. Values are checked when they are declared and again when they are rendered;
//! only supplied values are rendered, defaults stay with the composition.
//!
//! An author writes a JSON Schema ([`publish`] bounds it) or the short form ([`list`]), which
//! is translated. What was written is stored and shown; the translation is what checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};

use crate::catalog::name::document;
use crate::error::{ErrorKind, Refusal, or_fault};
use crate::placement::provider_config;

mod check;
mod list;
mod path;
mod publish;
mod values;
mod view;

pub use list::{Parameter, ParameterType};
pub use publish::{DIALECTS, is_known_format, pattern_problem};
pub use view::{Described, IMMUTABLE, View};

use path::Path;

/// The most faults that one answer names.
const MAX_FAULTS: usize = 64;

/// A name as an error text repeats it.
pub(crate) fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(63).collect()
}

/// The parameters that a version takes.
#[derive(Debug, Clone)]
pub struct ParameterSchema {
    /// As the author wrote it, in either form.
    given: Arc<Value>,
    /// The JSON Schema that checks values.
    schema: Arc<Value>,
}

/// A schema in the short form that cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{name}` {problem}")]
pub struct InvalidSchema {
    pub name: String,
    pub problem: &'static str,
}

impl ParameterSchema {
    /// A schema in the short form.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self, InvalidSchema> {
        let fault = list::faults(&parameters).next();
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Self::listed(parameters)),
        }
    }

    fn listed(parameters: Vec<Parameter>) -> Self {
        let schema = list::translated(&parameters);
        let given = json!(list::List { parameters });
        Self { given: Arc::new(given), schema: Arc::new(schema) }
    }

    /// Names outside of `properties` are refused, unless the author says otherwise.
    fn written(given: Value) -> Self {
        let mut schema = given.clone();
        if let Value::Object(keywords) = &mut schema {
            keywords.entry("additionalProperties").or_insert(Value::Bool(false));
            // For editors; the checker has but one dialect.
            keywords.remove("$schema");
        }
        Self { given: Arc::new(given), schema: Arc::new(schema) }
    }

    /// A schema in either form as it was submitted, or everything that is wrong with it.
    pub fn read(mut given: Value) -> Result<Self, Vec<Refusal>> {
        let refusals = |faults: Vec<publish::Fault>| {
            faults.into_iter().take(MAX_FAULTS).map(Refusal::from).collect::<Vec<_>>()
        };
        match &given {
            Value::Object(fields) if fields.contains_key("parameters") => {
                let parameters = list::read(fields).map_err(refusals)?;
                let faults = list_faults(&parameters);
                if faults.is_empty() { Ok(Self::listed(parameters)) } else { Err(faults) }
            }
            _ => match publish::check(&mut given) {
                faults if faults.is_empty() => Ok(Self::written(given)),
                faults => Err(refusals(faults)),
            },
        }
    }

    /// Whether no value can be given.
    pub fn is_empty(&self) -> bool {
        let view = self.view();
        view.properties().is_empty() && view.others().is_none() && !view.is_open()
    }

    /// As the author wrote it.
    pub fn document(&self) -> &Value {
        &self.given
    }

    /// The schema of all parameters.
    pub fn view(&self) -> View<'_> {
        View::of(&self.schema, &self.schema)
    }

    /// Every parameter and its fields, for people.
    pub fn described(&self) -> Vec<Described> {
        let mut rows = Vec::new();
        self.view().describe("", &mut rows);
        rows
    }

    /// Whether resources get the name of their ProviderConfig.
    pub fn takes_provider_config_name(&self) -> bool {
        let properties = self.view().properties();
        let found = properties.iter().find(|(name, _)| *name == provider_config::PARAMETER);
        found.is_some_and(|(_, schema)| schema.types() == ["string"])
    }

    /// Checks supplied values. Reports every fault, in the order of the names and
    /// what is missing last, so that the same input always gets the same answer.
    pub fn validate(
        &self,
        mut values: BTreeMap<String, Value>,
    ) -> Result<ParameterValues, Refusal> {
        let refusal = |fault: &check::Fault| {
            let said = fault.said(&self.schema);
            let message = match fault.path.is_root() {
                true => format!("the parameters {said}"),
                false => format!("parameter `{}` {said}", fault.path),
            };
            Refusal::new(ErrorKind::ParameterValuesInvalid, message)
                .at(fault.path.field("parameters"))
        };
        let mut faults = values::check(&mut values).map_err(|limit| refusal(&limit))?;
        let validator = check::compiled(&self.schema).map_err(|problem| {
            let message = format!("the schema of this blueprint version cannot be used: it {problem}; publish a new version");
            Refusal::new(ErrorKind::ParameterValuesInvalid, message).at("parameters")
        })?;
        let map: Map<String, Value> = std::mem::take(&mut values).into_iter().collect();
        let map = Value::Object(map);
        // Bounds the work for a hostile schema; more than enough to fill the answer.
        faults.extend(check::faults(&self.schema, &validator, &map, 16 * MAX_FAULTS));
        faults.sort_by(|one, other| (one.missing, &one.path).cmp(&(other.missing, &other.path)));
        faults.dedup_by(|one, other| one.path == other.path);
        Refusal::all(faults.iter().take(MAX_FAULTS).map(refusal))?;
        let Value::Object(map) = map else { return Ok(ParameterValues::default()) };
        Ok(ParameterValues(map.into_iter().collect()))
    }

    /// What is marked immutable and differs, such as `parameters.region`. A value that
    /// appears or goes differs, too.
    pub fn immutable_changes(
        &self,
        before: &ParameterValues,
        after: &ParameterValues,
    ) -> Vec<String> {
        let object = |values: &ParameterValues| {
            Value::Object(
                values.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            )
        };
        let (before, after) = (object(before), object(after));
        let mut found = Vec::new();
        changes(&self.view(), &Path::default(), (Some(&before), Some(&after)), &mut found);
        found
    }
}

/// Everything that is wrong with the parameters of a list.
fn list_faults(parameters: &[Parameter]) -> Vec<Refusal> {
    let mut faults = Vec::new();
    for parameter in parameters {
        let text = parameter.default.as_ref().and_then(Value::as_str).unwrap_or_default();
        let at = format!("parameter_schema.{}.default", shown(&parameter.name));
        or_fault(document(&at, text, 65_536), &mut faults);
    }
    faults.extend(list::faults(parameters).map(|invalid| {
        let name = shown(&invalid.name);
        let message = format!("parameter `{name}` {}", invalid.problem);
        Refusal::new(ErrorKind::ParameterSchemaInvalid, message)
            .at(format!("parameter_schema.{name}"))
    }));
    faults
}

fn changes(
    view: &View<'_>,
    path: &Path,
    (before, after): (Option<&Value>, Option<&Value>),
    found: &mut Vec<String>,
) {
    if before == after {
        return;
    }
    if view.is_immutable() {
        found.push(path.field("parameters"));
        return;
    }
    let fields =
        |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (fields(before), fields(after));
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for name in names {
        if let Some(field) = view.field(name) {
            changes(&field, &path.name(name), (before.get(name), after.get(name)), found);
        }
    }
}

/// None.
impl Default for ParameterSchema {
    fn default() -> Self {
        Self::listed(Vec::new())
    }
}

/// By what the author wrote.
impl PartialEq for ParameterSchema {
    fn eq(&self, other: &Self) -> bool {
        self.given == other.given
    }
}

impl Serialize for ParameterSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.given.serialize(serializer)
    }
}

/// For rows: they were checked when published.
impl<'de> Deserialize<'de> for ParameterSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        match &given {
            Value::Object(fields) if fields.contains_key("parameters") => {
                let list: list::List = serde_json::from_value(given).map_err(de::Error::custom)?;
                Ok(Self::listed(list.parameters))
            }
            Value::Object(_) => Ok(Self::written(given)),
            _ => Err(de::Error::custom("a schema is an object")),
        }
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

    /// The values with others over them, as in a JSON merge patch: objects are merged, null
    /// takes a value away, everything else is replaced. To be checked by a schema.
    pub fn merged(
        &self,
        patch: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Value>, Refusal> {
        let map = |map: &BTreeMap<String, Value>| {
            map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let mut merged: Map<String, Value> = map(&self.0);
        merge(&mut merged, &map(patch), &Path::default())?;
        Ok(merged.into_iter().collect())
    }

    /// The patch that [`Self::merged`] makes exactly these values with.
    #[must_use]
    pub fn patch_to(&self, target: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
        let map = |map: &BTreeMap<String, Value>| map.clone().into_iter().collect();
        difference(&map(&self.0), &map(target)).into_iter().collect()
    }
}

fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in after {
        match (before.get(name), value) {
            (Some(same), value) if same == value => {}
            (Some(Value::Object(before)), Value::Object(after)) => {
                patch.insert(name.clone(), Value::Object(difference(before, after)));
            }
            (_, value) => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    patch
}

fn merge(
    values: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    path: &Path,
) -> Result<(), Refusal> {
    for (name, value) in patch {
        let path = path.name(name);
        match (value, values.get_mut(name)) {
            (Value::Null, Some(_)) => {
                values.remove(name);
            }
            (Value::Null, None) => {
                let message = format!("parameter `{path}` has no value that could be taken away");
                let field = path.field("parameters");
                return Err(Refusal::new(ErrorKind::ParameterValuesInvalid, message).at(field));
            }
            (Value::Object(patch), Some(Value::Object(fields)))
                if path.depth() <= values::MAX_DEPTH =>
            {
                merge(fields, patch, &path)?;
            }
            // A null within it is refused by the check.
            (value, _) => {
                values.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
