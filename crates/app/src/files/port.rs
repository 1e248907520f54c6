//! The store of the files domain: who declared which fields of an object, and what could not
//! be applied.

use std::sync::Arc;
use std::time::Duration;

use slipway_core::files::document::DocumentKind;
use slipway_core::files::fault::Faults;
use slipway_core::files::write::DeclaredObject;
use slipway_core::ids::ProjectId;
use slipway_core::time::Timestamp;
use uuid::Uuid;

use crate::ports::Stores;
use crate::ports::listed::Listed;
use crate::ports::store::{Error, Page};

/// What every decision through a store writes too, in its own transaction.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Rows of the files domain. One without a subject gets that of the first audit entry.
    pub rows: Vec<DeclaredObject>,
    /// Decide, and write nothing: a decision that would write ends in [`Error::DryRun`].
    pub dry_run: bool,
}

/// A source, and how much it declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub objects: i64,
    /// How many files or documents its last apply could not apply.
    pub faults: i64,
    /// When a row of it was written last.
    pub updated_at: Timestamp,
}

/// A source that could not apply everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFaults {
    pub source: String,
    pub total: u64,
}

/// A row with the time at which it was written.
pub type Declared = (DeclaredObject, Timestamp);

port! {
/// Everything about documents.
pub trait FilesStore, intercepted by FilesIntercept {
    /// The same stores, whose decisions write this too.
    async fn beside(&self, beside: Arc<Beside>) -> Stores;

    /// What all sources wrote of the objects at these paths.
    async fn declared_at(
        &self,
        kind: DocumentKind,
        paths: &[String],
    ) -> Result<Vec<DeclaredObject>, Error>;

    /// Replaces rows, all or none.
    async fn declared_put(&self, rows: &[DeclaredObject]) -> Result<(), Error>;

    /// A page of what a source declared, in the order of ids; of one project, or all.
    async fn declared_page(
        &self,
        source: &str,
        project: Option<ProjectId>,
        page: Page<Uuid>,
    ) -> Result<Listed<Declared>, Error>;

    /// Forgets what a source wrote of an object; answers whether there was anything.
    async fn declared_forget(
        &self,
        source: &str,
        kind: DocumentKind,
        path: &str,
        project: Option<ProjectId>,
    ) -> Result<bool, Error>;

    /// Replaces what the last apply of a source could not apply, as keys of one project, or of
    /// all, record it.
    async fn faults_put(
        &self,
        source: &str,
        project: Option<ProjectId>,
        faults: &Faults,
    ) -> Result<(), Error>;

    /// What keys of this project recorded of a source, or all keys.
    async fn faults_of(&self, source: &str, project: Option<ProjectId>) -> Result<Faults, Error>;

    /// Sources that have faults, by name.
    async fn faults_list(&self, limit: u32) -> Result<Vec<SourceFaults>, Error>;

    /// Removes faults that nobody recorded again for this long; answers how many sources.
    async fn faults_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// Whether a source declares something, of one project or of all.
    async fn source_exists(&self, source: &str, project: Option<ProjectId>) -> Result<bool, Error>;

    /// Every source that declared something or could not, by name, after this one.
    async fn source_page(
        &self,
        project: Option<ProjectId>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Source>, Error>;
}
}
