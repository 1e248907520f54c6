//! What decisions about documents write.

use crate::commit::{Commit, Write};
use crate::files::document::{Address, DocumentKind};
use crate::files::fields::Fields;
use crate::ids::ProjectId;
use uuid::Uuid;

/// The fields that one source wrote of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredObject {
    /// Orders the rows of a list. The first one that a row got stays.
    pub id: Uuid,
    pub source: String,
    pub address: Address,
    /// The object itself; something that was deleted and made again is another one. Of an
    /// assignment and a placement it is the project.
    pub subject_id: Uuid,
    /// The project that it is in, or that it is.
    pub project_id: Option<ProjectId>,
    /// What was written, as [`crate::files::fields::written`] shortens it.
    pub fields: Fields,
    /// Where the document came from, such as the name of its file.
    pub origin: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub enum FilesWrite {
    /// Replaces what the source is known to have written.
    Put(Box<DeclaredObject>),
}

/// Adds rows to the commit that makes or changes their object. One without a subject gets that
/// of the first audit entry, which is the new object.
pub fn add(commit: &mut Commit, rows: &[DeclaredObject]) {
    let made = commit.audit.first().map(|entry| entry.subject.id).unwrap_or_default();
    commit.writes.extend(rows.iter().map(|row| {
        let is_new = row.subject_id.is_nil();
        let subject_id = if is_new { made } else { row.subject_id };
        // A new project is in itself.
        let is_project = is_new && row.address.kind == DocumentKind::Project;
        let own = is_project.then(|| ProjectId::new(made));
        let row = DeclaredObject { subject_id, project_id: row.project_id.or(own), ..row.clone() };
        Write::Files(FilesWrite::Put(Box::new(row)))
    }));
}
