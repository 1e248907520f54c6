//! What a kind brings to be declared from files.

use async_trait::async_trait;
use serde_json::{Map, Value};
use slipway_core::catalog::blueprint::{PublishedVersion, SubmittedContent};
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Change, Fields, Terms, flatten};
use slipway_core::ids::{ProjectId, Revision};
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::access::authorise::Caller;
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
    /// Where it came from, such as the name of its file.
    pub origin: String,
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
        let mut fields = flatten(&self.labels, &self.spec, MAPS);
        let versions = self.versions.iter().map(|version| {
            (version_path(&version.content.version), Value::String(version.digest.clone()))
        });
        fields.extend(versions);
        fields
    }

    /// A text of the spec.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.spec.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub(super) fn required(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }
}

/// The fields of a spec whose entries are fields of their own.
pub const MAPS: &[&str] = &["endpoint", "parameters"];

pub(super) fn version_path(version: &str) -> String {
    format!("spec.versions.{version}")
}

/// A text among fields.
pub(super) fn text<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    fields.get(&format!("spec.{name}"))?.as_str()
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
    /// A deletion of it is under way or scheduled.
    pub leaving: bool,
}

impl Live {
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
}

impl Desired<'_> {
    /// Whether this field, or one below it if it ends with a dot, changes.
    pub(super) fn changes(&self, path: &str) -> bool {
        self.changes.iter().any(|change| match path.ends_with('.') {
            true => change.path.starts_with(path),
            false => change.path == path,
        })
    }

    /// The text that a field gets, if it changes; empty if it goes.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let changes = self.changes(&format!("spec.{name}"));
        changes.then(|| text(self.target, name).unwrap_or_default())
    }
}

/// What only the answer to its creation has.
#[derive(Debug, Default)]
pub struct Created {
    pub secret: Option<Secret>,
}

/// A kind of document. Creates and changes call the use-cases of its room, which authorise,
/// decide and audit.
#[async_trait]
pub trait FileKind: Send + Sync {
    fn terms(&self) -> Terms;

    /// The objects that a document refers to.
    fn needs(&self, document: &Document) -> Vec<Address>;

    /// Those of these objects that exist and that the caller may see, by one read.
    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error>;

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error>;

    /// Checks what no difference of fields shows.
    async fn verify(
        &self,
        _context: &Context,
        _caller: &Caller,
        _document: &Document,
        _live: &mut Live,
        _mine: Option<&Fields>,
    ) -> Result<(), Error> {
        Ok(())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error>;
}

/// The kind of a document.
pub fn of(kind: DocumentKind) -> &'static dyn FileKind {
    use super::kinds::{blueprint, catalog, credential, key, placement, resource};
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
    }
}
