//! Projects, clouds, credentials, blueprints and label definitions. A credential has no
//! field for a value, so a body that contains a secret is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// `POST /api/v1/projects`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateProject {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The network that its nodes get their addresses from, like `10.42.0.0/16`;
    /// `100.64.0.0/10` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_cidr: Option<String>,
    /// Whether it is protected from deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

/// `PATCH /api/v1/projects/{project}`. What is not given stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateProject {
    /// All labels; they replace the old ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Can change only while no node has an address in the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_cidr: Option<String>,
}

/// `PATCH /api/v1/resources/{id}`: all labels; they replace the old ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Relabel {
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    pub id: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Empty where an older server answers.
    #[serde(default)]
    #[schema(required = true)]
    pub mesh_cidr: String,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    pub deletion_id: Option<String>,
}

/// `POST /api/v1/clouds`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCloud {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub name: String,
    /// What blueprints name as their provider kind.
    pub provider: String,
    /// How the provider is reached: names with plain values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub endpoint: Map<String, Value>,
}

/// `PATCH /api/v1/clouds/{cloud}`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateCloud {
    pub endpoint: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cloud {
    pub id: String,
    pub name: String,
    pub provider: String,
    pub endpoint: Map<String, Value>,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    pub deletion_id: Option<String>,
}

/// `POST /api/v1/credentials`: where the secret is stored. What is not given is
/// derived from the ids of the cloud and the credential.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCredential {
    /// The cloud: its name, its id or the beginning of it.
    pub cloud: String,
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_mount: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_path: Option<String>,
}

/// `PATCH /api/v1/credentials/{id}`. What is not given stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateCredential {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_mount: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Credential {
    pub id: String,
    /// The name of its cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
    pub cloud_id: String,
    pub name: String,
    pub kv_mount: String,
    pub kv_path: String,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    pub deletion_id: Option<String>,
}

/// One line of `GET /api/v1/projects/{project}/credentials`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialAssignment {
    /// The name of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub project_id: String,
    pub assigned_at: String,
    pub credential: Credential,
}

/// `POST /api/v1/blueprints`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBlueprint {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub slug: String,
    pub display_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// `local` or `crossplane`.
    #[schema(pattern = "^(crossplane|local)$")]
    pub engine: String,
    /// Whether it is protected from deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

/// `PATCH /api/v1/blueprints/{blueprint}`. What is not given stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateBlueprint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Blueprint {
    pub id: String,
    pub slug: String,
    pub display_name: String,
    pub description: String,
    pub engine: String,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    pub deletion_id: Option<String>,
}

/// The parameters that a declaration may give: a JSON Schema (2020-12) of type object, or
/// the short form with a list. The server reads it, so that all faults are named at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParameterSchema(pub Map<String, Value>);

/// The two forms of a parameter schema, for the description of the API.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ParameterSchema)]
pub enum ParameterForm {
    List(ParameterList),
    Schema(JsonSchema),
}

/// The short form: parameters of three types.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterList {
    pub parameters: Vec<Parameter>,
}

/// A JSON Schema (2020-12). Besides the keywords of the standard, `x-immutable: true` on a
/// property means that it cannot change in place.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct JsonSchema {
    #[serde(rename = "type")]
    pub kind: ObjectType,
    #[schema(value_type = Option<Object>)]
    pub properties: Option<Map<String, Value>>,
    pub required: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectType {
    Object,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    Boolean,
    Integer,
    String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ParameterType,
    #[serde(default)]
    pub required: bool,
    /// Cannot change in place.
    #[serde(default)]
    pub immutable: bool,
    /// Only on optional ones, and of that type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// `POST /api/v1/blueprints/{blueprint}/versions`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishVersion {
    pub version: String,
    #[serde(default)]
    pub xrd: String,
    #[serde(default)]
    pub composition: String,
    /// For engine crossplane taken from the XRD if not given; none for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ParameterForm>)]
    pub parameter_schema: Option<ParameterSchema>,
    /// `cloud-init-user-data`, `helm-values` or `provider-secret`.
    pub injection_strategy: String,
    /// `node` if not given, or `standalone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_role: Option<String>,
    pub provider_kinds: Vec<String>,
    /// Install XRD and Composition on every cluster that has a project; for
    /// engine crossplane only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub install_definitions: bool,
    /// Two attempts of one resource may stand at once, so that a replacement can make the
    /// new one first; not for engine manual.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surge: bool,
}

/// `metadata.json` in the folder of a blueprint, beside `xrd.yaml` and
/// `composition.yaml`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// For editors: where the JSON Schema of this file is.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The name of the blueprint and of the folder.
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub slug: String,
    /// What people call it; the slug if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub display_name: Option<String>,
    /// What it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// The version that is published; the same as the served version of the XRD.
    #[schema(pattern = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length = 63)]
    pub version: String,
    /// The providers that it is made for, as clouds name them.
    #[schema(min_items = 1, max_items = 32)]
    pub provider_kinds: Vec<String>,
    /// How the bootstrap token gets to the node.
    pub injection_strategy: String,
    /// The parameters that a declaration may give; those of the XRD if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ParameterForm>)]
    pub parameter_schema: Option<ParameterSchema>,
    /// Whether a node enrols for it; `node` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_role: Option<String>,
    /// Two attempts of one resource may stand at once, so that a replacement can make the
    /// new one first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surge: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlueprintVersion {
    pub id: String,
    pub blueprint_id: String,
    pub blueprint: String,
    pub version: String,
    pub xrd: String,
    pub composition: String,
    #[schema(value_type = ParameterForm)]
    pub parameter_schema: ParameterSchema,
    pub injection_strategy: String,
    pub mesh_role: String,
    pub provider_kinds: Vec<String>,
    /// XRD and Composition are installed on every cluster that has a project.
    #[serde(default)]
    #[schema(required = true)]
    pub install_definitions: bool,
    /// The name under which its Composition is installed and which its composites name; null if
    /// Slipway does not install it, or an earlier Slipway published it.
    #[serde(default)]
    pub composition_name: Option<String>,
    /// Two attempts of one resource may stand at once.
    #[serde(default)]
    #[schema(required = true)]
    pub surge: bool,
    /// The type of its composites; only engine crossplane has it.
    #[serde(default)]
    pub composite: Option<CompositeType>,
    pub revision: i64,
    pub published_at: String,
    /// From then on nothing new is declared from it.
    pub retired_at: Option<String>,
}

/// The type of composites, as their XRD defines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositeType {
    /// `group/version`.
    pub api_version: String,
    pub kind: String,
    pub plural: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
}

/// `POST /api/v1/labels`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DefineLabel {
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Becomes a tag in the cloud.
    #[serde(default)]
    pub propagate: bool,
}

/// `PATCH /api/v1/labels/{key}`. What is not given stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateLabel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagate: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelDefinition {
    pub id: String,
    pub key: String,
    pub description: String,
    pub propagate: bool,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    pub deletion_id: Option<String>,
}

/// A label in effect, and where it was set: `project` or `resource`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveLabel {
    pub value: String,
    pub source: String,
}
