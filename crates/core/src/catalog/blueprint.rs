//! A blueprint and its published versions. A version is immutable but for its
//! retirement, after which nothing new is declared from it.

use serde_json::Value;

use crate::catalog::blueprint_version::{CompositeDefinition, Engine, InjectionStrategy, MeshRole};
use crate::catalog::name::{Name, document, line};
use crate::catalog::parameters::{Parameter, ParameterSchema};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{BlueprintId, BlueprintVersionId, Revision};
use crate::kind::kind;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blueprint {
    pub id: BlueprintId,
    pub slug: Name,
    pub display_name: String,
    pub description: String,
    pub engine: Engine,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Blueprint, BlueprintId, BlueprintNotFound);

/// The longest `xrd` or `composition`: two of them and the rest of the body
/// stay below the body limit of one mebibyte.
const MAX_DOCUMENT: usize = 400 * 1_024;

/// The content of a version, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionContent {
    pub version: String,
    pub xrd: String,
    pub composition: String,
    pub parameter_schema: ParameterSchema,
    pub injection_strategy: InjectionStrategy,
    pub mesh_role: MeshRole,
    pub provider_kinds: Vec<String>,
    /// XRD and Composition are installed on the clusters of projects.
    pub install_definitions: bool,
}

/// The content of a version as submitted.
#[derive(Debug, Clone)]
pub struct SubmittedContent {
    pub version: String,
    pub xrd: String,
    pub composition: String,
    pub parameters: Vec<Parameter>,
    pub injection_strategy: String,
    pub mesh_role: Option<String>,
    pub provider_kinds: Vec<String>,
    pub install_definitions: bool,
}

impl VersionContent {
    pub fn check(given: SubmittedContent) -> Result<Self, Refusal> {
        let version = line("version", &given.version, 1, 63)?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !version.chars().all(|c| plain(c) || matches!(c, '.' | '-'))
            || !version.starts_with(plain)
            || !version.ends_with(plain)
        {
            let problem = "must be 1 to 63 lowercase letters, digits, dots or hyphens, starting and ending with a letter or digit, such as v1";
            return Err(Refusal::invalid("version", problem));
        }
        Ok(Self {
            version,
            xrd: document("xrd", &given.xrd, MAX_DOCUMENT)?,
            composition: document("composition", &given.composition, MAX_DOCUMENT)?,
            parameter_schema: schema(given.parameters)?,
            injection_strategy: member(
                "injection_strategy",
                &given.injection_strategy,
                InjectionStrategy::ALL,
                InjectionStrategy::as_str,
            )?,
            mesh_role: match &given.mesh_role {
                None => MeshRole::Node,
                Some(text) => member("mesh_role", text, MeshRole::ALL, MeshRole::as_str)?,
            },
            provider_kinds: provider_kinds(given.provider_kinds)?,
            install_definitions: given.install_definitions,
        })
    }
}

fn schema(parameters: Vec<Parameter>) -> Result<ParameterSchema, Refusal> {
    for parameter in &parameters {
        let text = parameter.default.as_ref().and_then(Value::as_str).unwrap_or_default();
        document("default", text, 65_536).map_err(|invalid| {
            let name: String =
                parameter.name.chars().filter(|c| !c.is_control()).take(63).collect();
            Refusal::from(invalid).at(format!("parameter_schema.{name}.default"))
        })?;
    }
    ParameterSchema::new(parameters).map_err(|invalid| {
        let name: String = invalid.name.chars().filter(|c| !c.is_control()).take(63).collect();
        Refusal::new(
            ErrorKind::ParameterSchemaInvalid,
            format!("parameter `{name}` {}", invalid.problem),
        )
        .at(format!("parameter_schema.{name}"))
    })
}

fn provider_kinds(kinds: Vec<String>) -> Result<Vec<String>, Refusal> {
    if kinds.is_empty() || kinds.len() > 32 {
        return Err(Refusal::invalid("provider_kinds", "must name 1 to 32 providers"));
    }
    for (index, kind) in kinds.iter().enumerate() {
        Name::parse("provider_kinds", kind)?;
        if kinds[..index].contains(kind) {
            return Err(Refusal::invalid("provider_kinds", format!("names `{kind}` twice")));
        }
    }
    Ok(kinds)
}

/// Parses a member of a closed set; the refusal names them all.
pub fn member<T: Copy>(
    field: &str,
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Refusal> {
    all.iter().copied().find(|item| name(*item) == text).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|item| name(*item)).collect();
        Refusal::invalid(field, format!("must be one of {}", known.join(", ")))
    })
}

/// A published version.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedVersion {
    pub id: BlueprintVersionId,
    pub blueprint_id: BlueprintId,
    pub content: VersionContent,
    /// What was read from the documents at publication. Only engine crossplane has it.
    pub composite: Option<CompositeDefinition>,
    pub revision: Revision,
    pub published_at: Timestamp,
    pub retired_at: Option<Timestamp>,
}

kind!(PublishedVersion, BlueprintVersionId, BlueprintVersionNotFound);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::parameters::ParameterType;

    fn submitted() -> SubmittedContent {
        SubmittedContent {
            version: "v1".to_owned(),
            xrd: "kind: X".to_owned(),
            composition: "kind: C".to_owned(),
            parameters: Vec::new(),
            injection_strategy: "helm-values".to_owned(),
            mesh_role: None,
            provider_kinds: vec!["hetzner".to_owned()],
            install_definitions: false,
        }
    }

    #[test]
    fn each_fault_of_a_version_names_its_field() {
        assert_eq!(VersionContent::check(submitted()).unwrap().mesh_role, MeshRole::Node);
        let required_with_default = Parameter {
            name: "size".to_owned(),
            kind: ParameterType::Integer,
            required: true,
            default: Some(json!(1)),
        };
        let long_default = Parameter {
            kind: ParameterType::String,
            required: false,
            default: Some(json!("a\u{0}")),
            ..required_with_default.clone()
        };
        let table = [
            (SubmittedContent { version: "V 1".to_owned(), ..submitted() }, "version"),
            (SubmittedContent { version: ".1".to_owned(), ..submitted() }, "version"),
            (SubmittedContent { xrd: "a\0".to_owned(), ..submitted() }, "xrd"),
            (
                SubmittedContent { composition: "x".repeat(MAX_DOCUMENT + 1), ..submitted() },
                "composition",
            ),
            (
                SubmittedContent { parameters: vec![required_with_default], ..submitted() },
                "parameter_schema.size",
            ),
            (
                SubmittedContent { parameters: vec![long_default], ..submitted() },
                "parameter_schema.size.default",
            ),
            (
                SubmittedContent { injection_strategy: "magic".to_owned(), ..submitted() },
                "injection_strategy",
            ),
            (SubmittedContent { mesh_role: Some("hub".to_owned()), ..submitted() }, "mesh_role"),
            (SubmittedContent { provider_kinds: vec![], ..submitted() }, "provider_kinds"),
            (
                SubmittedContent { provider_kinds: vec!["a".to_owned(); 2], ..submitted() },
                "provider_kinds",
            ),
        ];
        for (given, field) in table {
            let refusal = VersionContent::check(given).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some(field), "{refusal}");
        }
    }
}
