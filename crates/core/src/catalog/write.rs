//! What decisions about the catalog write.

use crate::catalog::blueprint::{Blueprint, PublishedVersion};
use crate::catalog::cloud::Cloud;
use crate::catalog::credential::{Credential, CredentialAssignment};
use crate::catalog::label::LabelDefinition;
use crate::catalog::project::Project;

/// One row. Updates and deletes name the revision in the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum CatalogWrite {
    ProjectInsert(Project),
    ProjectUpdate(Project),
    CloudInsert(Cloud),
    CloudUpdate(Cloud),
    CredentialInsert(Credential),
    CredentialUpdate(Credential),
    CredentialAssignmentInsert(CredentialAssignment),
    CredentialAssignmentDelete(CredentialAssignment),
    BlueprintInsert(Blueprint),
    BlueprintUpdate(Blueprint),
    VersionInsert(PublishedVersion),
    VersionUpdate(PublishedVersion),
    LabelInsert(LabelDefinition),
    LabelUpdate(LabelDefinition),
}
