//! The type of the spec of each kind of document: it is read with it, and the schema for
//! editors is that of the type.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::files::document::DocumentKind;
use slipway_wire::files::{
    AgentSpec, AssignmentSpec, BlueprintSpec, CloudSpec, ClusterSpec, CredentialSpec,
    DocumentMetadata, GeneratorSpec, KeySpec, LabelSpec, PlacementSpec, ProjectSpec, ResourceSpec,
    StackSpec, TemplateSpec, TypedDocument,
};
use slipway_wire::parse::{Fault, parse};
use slipway_wire::tenants::{TenantProfileSpec, TenantSpec};
use slipway_wire::topology::WorkspaceSpec;
use utoipa::ToSchema;

use crate::routes::Document;

/// How the spec of a kind is described and read.
pub(crate) struct Spec {
    pub(crate) schema: Document,
    /// The metadata of a document, and its spec as its type writes it.
    pub(super) read: fn(&Value) -> Result<(DocumentMetadata, Value), Refusal>,
}

/// The one table of the specs.
pub(crate) fn of(kind: DocumentKind) -> Spec {
    match kind {
        DocumentKind::Label => Spec::of::<LabelSpec>(),
        DocumentKind::Cloud => Spec::of::<CloudSpec>(),
        DocumentKind::Credential => Spec::of::<CredentialSpec>(),
        DocumentKind::Cluster => Spec::of::<ClusterSpec>(),
        DocumentKind::Blueprint => Spec::of::<BlueprintSpec>(),
        DocumentKind::Project => Spec::of::<ProjectSpec>(),
        DocumentKind::Assignment => Spec::of::<AssignmentSpec>(),
        DocumentKind::Placement => Spec::of::<PlacementSpec>(),
        DocumentKind::Key => Spec::of::<KeySpec>(),
        DocumentKind::Resource => Spec::of::<ResourceSpec>(),
        DocumentKind::Generator => Spec::of::<GeneratorSpec>(),
        DocumentKind::Template => Spec::of::<TemplateSpec>(),
        DocumentKind::Stack => Spec::of::<StackSpec>(),
        DocumentKind::Agent => Spec::of::<AgentSpec>(),
        DocumentKind::TenantProfile => Spec::of::<TenantProfileSpec>(),
        DocumentKind::Tenant => Spec::of::<TenantSpec>(),
        DocumentKind::Workspace => Spec::of::<WorkspaceSpec>(),
    }
}

impl Spec {
    fn of<S: ToSchema + DeserializeOwned + Serialize>() -> Self {
        Self { schema: Document::of::<S>(), read: read::<S> }
    }
}

fn read<S: DeserializeOwned + Serialize>(
    document: &Value,
) -> Result<(DocumentMetadata, Value), Refusal> {
    match parse::<TypedDocument<S>>(document.to_string().as_bytes()) {
        Ok(typed) => Ok((typed.metadata, json!(typed.spec))),
        Err(faults) => {
            Refusal::all(faults.into_iter().map(refusal))?;
            Err(Refusal::new(ErrorKind::Internal, "a document was refused without a fault"))
        }
    }
}

fn refusal(fault: Fault) -> Refusal {
    let field = fault.field.unwrap_or_default();
    let shown = if field.is_empty() { "the document".to_owned() } else { format!("`{field}`") };
    Refusal::new(ErrorKind::InvalidInput, format!("{shown}: {}", fault.problem)).at(field)
}
