//! Reads the documents of a blueprint (YAML or JSON, one document each) and
//! reports faults by field, problem and remedy.

use std::fmt;

use serde_json::Value;

/// Something that keeps a blueprint version from being published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// The field of the publication, with the path inside its document.
    pub field: String,
    pub problem: String,
    pub remedy: String,
}

impl Fault {
    pub(crate) fn new(
        field: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}; {}", self.field, self.problem, self.remedy)
    }
}

/// A document that was read, with the name of the field it was given for.
pub(crate) struct Document {
    field: &'static str,
    value: Value,
}

impl Document {
    pub(crate) fn read(field: &'static str, text: &str) -> Result<Self, Fault> {
        let value: Value = serde_yaml_ng::from_str(text).map_err(|error| {
            let location = error.location().map_or_else(String::new, |at| {
                format!(" near line {}, column {}", at.line(), at.column())
            });
            Fault::new(
                field,
                format!("is not one YAML or JSON document{location}"),
                "give exactly one document",
            )
        })?;
        if !value.is_object() {
            return Err(Fault::new(field, "is not a map", "give the whole object"));
        }
        Ok(Self { field, value })
    }

    pub(crate) fn into_value(self) -> Value {
        self.value
    }

    pub(crate) fn fault(
        &self,
        path: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Fault {
        Fault::new(format!("{}.{path}", self.field), problem, remedy)
    }

    /// The value at a dotted path; null if there is none.
    pub(crate) fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.value, |value, name| &value[name])
    }

    pub(crate) fn text(&self, path: &str) -> Result<&str, Fault> {
        let found = self.at(path).as_str().filter(|text| !text.is_empty());
        found.ok_or_else(|| self.fault(path, "is missing or is not a text", "write it down"))
    }

    /// Checks that the object is of exactly this type.
    pub(crate) fn is_a(&self, api_version: &str, kind: &str) -> Result<(), Fault> {
        for (path, wanted) in [("apiVersion", api_version), ("kind", kind)] {
            if self.text(path)? != wanted {
                let problem = format!("is not {wanted}");
                return Err(self.fault(path, problem, format!("write {wanted}")));
            }
        }
        Ok(())
    }
}
