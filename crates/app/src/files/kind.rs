//! What a kind brings to be declared from files.

use async_trait::async_trait;
use serde_json::{Map, Value};
use slipway_core::catalog::blueprint::{PublishedVersion, SubmittedContent};
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Change, Fields, Terms, flatten};
use slipway_core::fleet::content::checksum;
use slipway_core::ids::{DeletionId, ProjectId, Revision};
use slipway_core::kind::Kind;
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use slipway_core::topology::declared::to_fields;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::access::authorise::Caller;
use crate::topology::plan::Plan;
use crate::{Context, Error};

/// A document whose shape was checked.
#[derive(Debug, Clone)]
pub struct Document {
    pub address: Address,
    pub labels: BTreeMap<String, String>,
    /// Without `versions`.
    pub spec: Map<String, Value>,
    /// Of a blueprint.
    pub versions: Vec<Version>,
    /// Of a stack.
    pub content: Option<String>,
    /// Where it came from, such as the name of its file.
    pub origin: String,
    /// What it is to do, and nothing else: the digest of a plan.
    pub plan: Option<String>,
}

/// A version of a blueprint as a document has it.
#[derive(Debug, Clone)]
pub struct Version {
    pub content: SubmittedContent,
    /// The hash of the content as the document has it.
    pub digest: String,
}

impl Document {
    /// What the document writes.
    pub fn fields(&self) -> Fields {
        let declared = (self.address.kind == DocumentKind::Workspace)
            .then(|| super::kinds::topology::declared(self).ok())
            .flatten();
        let mut fields = match &declared {
            Some(declared) => to_fields(declared),
            None => flatten(&self.labels, &self.spec, MAPS),
        };
        let versions = self.versions.iter().map(|version| {
            (version_path(&version.content.version), Value::String(version.digest.clone()))
        });
        fields.extend(versions);
        for name in SETS {
            if let Some(Value::Array(items)) = fields.get_mut(&format!("spec.{name}")) {
                items.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
                items.dedup();
            }
        }
        let content = self.content.as_deref();
        fields.extend(content.map(|text| (OBJECTS.to_owned(), shown(&checksum(text), text.len()))));
        fields
    }

    /// A text of the spec.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.spec.get(name).and_then(Value::as_str)
    }

    /// A text that the schema of the kind requires.
    pub(super) fn required(&self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }
}

/// The fields of a spec whose entries are fields of their own.
pub const MAPS: &[&str] = &["endpoint", "parameters", "annotations"];

/// The lists of a spec whose order means nothing: they are fields in one order.
const SETS: [&str; 3] = ["generators", "targets", "labels"];

/// The field of the content of a stack.
pub(super) const OBJECTS: &str = "spec.objects";

/// Content as differences show it, which may be confidential.
pub(super) fn shown(checksum: &str, bytes: usize) -> Value {
    Value::String(format!("sha256:{checksum}, {bytes} bytes"))
}

pub(super) fn version_path(version: &str) -> String {
    format!("spec.versions.{version}")
}

/// Who applies, and what it is applied to: every function of a kind gets it.
#[derive(Debug, Clone, Copy)]
pub struct Applier<'a> {
    pub context: &'a Context,
    pub caller: &'a Caller,
}

/// An object as it is.
#[derive(Debug, Clone)]
pub struct Live {
    pub address: Address,
    /// Of an assignment and a placement: the project.
    pub subject_id: Uuid,
    /// The project that it is in, or that it is.
    pub project_id: Option<ProjectId>,
    pub revision: Option<Revision>,
    pub fields: Fields,
    /// Of a blueprint.
    pub versions: Vec<PublishedVersion>,
    /// Of a stack that is shown.
    pub content: Option<String>,
    /// A deletion of it is under way or scheduled.
    pub leaving: bool,
}

impl Live {
    /// A row whose name alone says which object it is.
    pub(super) fn row<K: Kind>(
        kind: DocumentKind,
        name: impl Into<String>,
        row: &K,
        fields: Fields,
    ) -> Self {
        Self::at(&Address::new(kind, name), row, fields)
    }

    /// The row at this address.
    pub(super) fn at<K: Kind>(address: &Address, row: &K, fields: Fields) -> Self {
        Self {
            address: address.clone(),
            subject_id: row.id().into(),
            project_id: None,
            revision: Some(row.revision()),
            fields,
            versions: Vec::new(),
            content: None,
            leaving: false,
        }
    }

    /// Something that a project has; without an id of its own it has that of the project.
    pub(super) fn of_project(address: &Address, project: ProjectId, fields: Fields) -> Self {
        Self {
            address: address.clone(),
            subject_id: project.as_uuid(),
            project_id: Some(project),
            revision: None,
            fields,
            versions: Vec::new(),
            content: None,
            leaving: false,
        }
    }

    pub(super) fn within(self, project_id: Option<ProjectId>) -> Self {
        Self { project_id, ..self }
    }

    pub(super) fn leaving(self, deletion: Option<DeletionId>) -> Self {
        Self { leaving: deletion.is_some(), ..self }
    }

    pub(super) fn expected(&self) -> Expected {
        self.revision.map_or(Expected::Any, Expected::Exactly)
    }
}

/// What a change has to make true.
#[derive(Debug)]
pub struct Desired<'a> {
    pub document: &'a Document,
    pub live: &'a Live,
    /// The object afterwards.
    pub target: &'a Fields,
    pub changes: &'a [Change],
    /// What a field is that goes.
    pub defaults: &'a Fields,
}

impl Desired<'_> {
    /// Whether this field, or one below it if it ends with a dot, changes.
    pub(super) fn changes(&self, path: &str) -> bool {
        self.changes.iter().any(|change| match path.ends_with('.') {
            true => change.path.starts_with(path),
            false => change.path == path,
        })
    }

    /// The value that a field of the spec gets, if it changes; its default if it goes.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        let path = format!("spec.{name}");
        let value = || self.target.get(&path).or(self.defaults.get(&path)).unwrap_or(&Value::Null);
        self.changes(&path).then(value)
    }

    /// The same as a text; empty if it goes and has no default.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.value(name).map(|value| value.as_str().unwrap_or_default())
    }

    /// The description that something of Fleet gets, if it changes; `None` takes it away.
    pub(super) fn description(&self) -> Option<Option<String>> {
        let text = self.text("description")?;
        Some(Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    /// The id of the object, as use-cases take it.
    pub(super) fn id(&self) -> String {
        self.live.subject_id.to_string()
    }
}

/// A kind of document: its schema is the type of its spec on the wire, its rules on fields are
/// its [`Terms`], and three functions read, create and change its objects. Creates and changes
/// call the use-cases of its room, which authorise, decide and audit.
#[async_trait]
pub trait FileKind: Send + Sync {
    /// The refusal if there is no such object.
    fn missing(&self) -> ErrorKind;

    fn terms(&self) -> Terms {
        Terms::default()
    }

    /// The objects that a document refers to.
    fn needs(&self, _document: &Document) -> Vec<Address> {
        Vec::new()
    }

    /// Those of these objects that exist and that the caller may see, by a few reads for all.
    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error>;

    /// Adds what only a document that is shown has.
    async fn show(&self, _by: Applier<'_>, _live: &mut Live) -> Result<(), Error> {
        Ok(())
    }

    /// Answers what only the answer to its creation has.
    async fn create(&self, by: Applier<'_>, document: &Document) -> Result<Option<Secret>, Error>;

    /// Checks what no difference of fields shows.
    async fn verify(
        &self,
        _by: Applier<'_>,
        _document: &Document,
        _live: &mut Live,
        _mine: Option<&Fields>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// What making this true would do beside the change of fields.
    async fn plan(
        &self,
        _by: Applier<'_>,
        _document: &Document,
        _target: &Fields,
    ) -> Result<Option<Plan>, Error> {
        Ok(None)
    }

    /// Not called for a kind whose fields are all fixed.
    async fn change(&self, _by: Applier<'_>, _wanted: Desired<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// The kind of a document.
pub fn of(kind: DocumentKind) -> &'static dyn FileKind {
    use super::kinds::{
        blueprint, catalog, credential, fleet, key, placement, resource, tenants, topology,
    };
    match kind {
        DocumentKind::Label => &catalog::Labels,
        DocumentKind::Cloud => &catalog::Clouds,
        DocumentKind::Credential => &credential::Credentials,
        DocumentKind::Cluster => &placement::Clusters,
        DocumentKind::Blueprint => &blueprint::Blueprints,
        DocumentKind::Project => &catalog::Projects,
        DocumentKind::Assignment => &credential::Assignments,
        DocumentKind::Placement => &placement::Placements,
        DocumentKind::Key => &key::Keys,
        DocumentKind::Resource => &resource::Resources,
        DocumentKind::Generator => &fleet::Generators,
        DocumentKind::Template => &fleet::Templates,
        DocumentKind::Stack => &fleet::Stacks,
        DocumentKind::Agent => &fleet::Agents,
        DocumentKind::TenantProfile => &tenants::TenantProfiles,
        DocumentKind::Tenant => &tenants::Tenants,
        DocumentKind::Workspace => &topology::Workspaces,
    }
}
