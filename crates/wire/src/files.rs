//! Documents that people keep in files, and applying them. A document has the same shape for
//! every kind; its `spec` has a type of its own for each.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::broker::FieldChange;
use crate::catalog::{ParameterForm, ParameterSchema, PublishVersion};
use crate::problem::FieldError;
use crate::topology::WorkspacePlan;

/// `POST /api/v1/apply`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// Who declares this: fields that a source wrote are its own.
    #[schema(pattern = "^[A-Za-z0-9._-]+$", max_length = 63)]
    pub source: String,
    /// At most 200.
    #[schema(max_items = 200)]
    pub documents: Vec<SubmittedDocument>,
    /// Decide and answer, and write nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Take fields over that other sources wrote.
    #[serde(default)]
    pub force: bool,
}

/// A document, and where it came from.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmittedDocument {
    /// Such as the name of its file.
    #[serde(default)]
    #[schema(max_length = 512)]
    pub origin: String,
    /// A [`Document`]; one that is not is refused by itself.
    pub document: Value,
    /// Of a workspace: the `digest` of its plan. If something else would happen by now, it is
    /// refused (`plan_stale`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub plan: Option<String>,
}

/// What became of a document.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedDocument {
    /// `created`, `changed`, `unchanged` or `refused`.
    pub outcome: String,
    /// What differs, by field.
    #[serde(default)]
    pub changes: Vec<FieldChange>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<DocumentRefusal>,
    /// The text of a new key, this once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Of a workspace that differs, in a dry run: what would become of its servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<WorkspacePlan>,
}

impl fmt::Debug for AppliedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outcome, changes, refusal, secret: _, plan } = self;
        let mut shown = f.debug_tuple("AppliedDocument");
        shown.field(outcome).field(changes).field(refusal).field(plan).finish()
    }
}

/// Why a document was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DocumentRefusal {
    /// Stable, snake_case.
    pub code: String,
    /// What happened, to what, and what to do.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Every fault, the one of `code` first; none if no field is at fault.
    #[serde(default)]
    pub errors: Vec<FieldError>,
}

/// `POST /api/v1/documents`: which objects to show as documents.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadDocuments {
    /// At most 200.
    #[schema(max_items = 200)]
    pub objects: Vec<ObjectReference>,
}

/// An object by its names.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ObjectReference {
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Of a credential and an assignment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
    pub name: String,
}

impl fmt::Display for ObjectReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outer = [self.project.as_deref(), self.cloud.as_deref()];
        let parts: Vec<&str> = outer.into_iter().flatten().chain([self.name.as_str()]).collect();
        write!(f, "{} {}", self.kind, parts.join("/"))
    }
}

/// A source that declared something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplySource {
    pub name: String,
    pub objects: i64,
    /// How many files or documents its last apply could not apply.
    #[serde(default)]
    pub faults: i64,
    /// When something that it declared was written last.
    pub updated_at: String,
}

/// Why something in a file was not applied: the file cannot be read, or a document of it was
/// refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileFault {
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Stable, snake_case.
    pub code: String,
    pub message: String,
}

/// `PUT /api/v1/apply-sources/{source}/faults`: what the apply that ends now could not apply.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutFaults {
    /// The first 100; texts are cut after 512 characters.
    #[schema(max_items = 100)]
    pub faults: Vec<FileFault>,
    /// How many there were.
    #[serde(default)]
    pub total: u32,
}

/// An object that a source declared and that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeclaredObject {
    pub object: ObjectReference,
    pub id: String,
    /// The paths of the fields that the source wrote.
    pub fields: Vec<String>,
    /// Where its document came from.
    pub origin: String,
    /// The other sources that declare it too.
    pub shared_with: Vec<String>,
    pub updated_at: String,
}

/// An object as people write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    /// `slipway.dev/v1`.
    pub api_version: String,
    pub kind: String,
    pub metadata: DocumentMetadata,
    /// As its kind says.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub spec: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentMetadata {
    pub name: String,
    /// The project that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Of projects and resources.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A document whose spec is that of its kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TypedDocument<S> {
    pub api_version: String,
    pub kind: String,
    pub metadata: DocumentMetadata,
    pub spec: S,
}

/// What a project is; its labels are in the metadata.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectSpec {
    /// The network that its nodes get their addresses from; `100.64.0.0/10` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_cidr: Option<String>,
}

/// An account of a provider.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloudSpec {
    /// What blueprints name as their provider kind. It cannot change.
    pub provider: String,
    /// How the provider is reached: names with plain values, never a secret.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub endpoint: Map<String, Value>,
}

/// Where a secret is stored, never its value.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CredentialSpec {
    /// The name of its cloud, within which its own name is unique.
    pub cloud: String,
    /// `secret` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_mount: Option<String>,
    /// Derived from the ids of cloud and credential if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_path: Option<String>,
}

/// Lets the project use the credential that the metadata names.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssignmentSpec {
    /// The name of the cloud of the credential.
    pub cloud: String,
}

/// What resources are made from.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlueprintSpec {
    /// What people call it; its name if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `local`, `crossplane`, `manual` or `hetzner`. It cannot change.
    pub engine: String,
    /// Published if they are not yet. One that was published never changes, and stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<BlueprintVersionSpec>,
}

/// A version of a blueprint.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlueprintVersionSpec {
    pub version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub xrd: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub composition: String,
    /// That of the XRD if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ParameterForm>)]
    pub parameter_schema: Option<ParameterSchema>,
    /// `cloud-init-user-data`, `helm-values` or `provider-secret`.
    pub injection_strategy: String,
    /// `node` if not given, or `standalone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_role: Option<String>,
    pub provider_kinds: Vec<String>,
    /// Install XRD and Composition on every cluster that has a project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub install_definitions: bool,
    /// Two attempts of one resource may stand at once, so that a replacement can make the
    /// new one first; not for engine manual.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surge: bool,
}

impl From<BlueprintVersionSpec> for PublishVersion {
    fn from(spec: BlueprintVersionSpec) -> Self {
        Self {
            version: spec.version,
            xrd: spec.xrd,
            composition: spec.composition,
            parameter_schema: spec.parameter_schema,
            injection_strategy: spec.injection_strategy,
            mesh_role: spec.mesh_role,
            provider_kinds: spec.provider_kinds,
            install_definitions: spec.install_definitions,
            surge: spec.surge,
        }
    }
}

/// What the label of this key means.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it becomes a tag in the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagate: Option<bool>,
}

/// Where projects live.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSpec {
    /// `local`, `crossplane`, `manual` or `hetzner`. It cannot change.
    pub engine: String,
    /// For projects that are placed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// `in-cluster`, or `kubeconfig/` and the name of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
}

/// Where the project of this name lives: one of the two.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlacementSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// An API key. Its text is shown once, by the apply that makes it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeySpec {
    /// `viewer`, `operator` or `admin`. It cannot change.
    pub role: String,
    /// The person or program that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// It never expires if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// Declared infrastructure; its labels are in the metadata.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceSpec {
    /// The blueprint that it is made from. It cannot change.
    pub blueprint: String,
    /// The newest published version at its declaration if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The project's only one if not given. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// A program that submits stacks. The text of its key is shown once, by the apply that makes it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GeneratorSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether its objects may have Secrets with values; not if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts_secrets: Option<bool>,
    /// How long what is deleted of it can be restored; as the settings of deletions say if not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_seconds: Option<u64>,
}

/// A text that objects are made from. A change makes a new version.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateSpec {
    /// The generator that owns it; of the whole project if not given. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The text, in the language of Tera.
    pub content: String,
    /// The JSON Schema of its parameters; any parameters if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters_schema: Option<Map<String, Value>>,
}

/// What a generator wants on clusters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StackSpec {
    /// The generator that owns it. It cannot change.
    pub generator: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// An agent with one of these labels gets it, if it is registered with the generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// The same for an agent with one of these annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The manifests, as one YAML text. `slipway apply` also takes a list of manifests. A new
    /// object is submitted if the text differs from that of the newest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<String>,
    /// Instead of `objects`: a folder of manifests beside the file, which `slipway apply` reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// A program that brings stacks to a cluster; its name is `NAME@CLUSTER`. The text of its key is
/// shown once, by the apply that makes it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentSpec {
    /// Whether it carries out what it is offered; not if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// The generators that it takes stacks of, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Vec<String>>,
    /// Stacks that it gets whatever its labels are, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
