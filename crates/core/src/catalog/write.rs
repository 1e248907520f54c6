//! What decisions about the catalog write.

use crate::access::api_key::ApiKey;
use crate::access::idempotency;
use crate::catalog::blueprint::{Blueprint, PublishedVersion};
use crate::catalog::cloud::Cloud;
use crate::catalog::credential::{Credential, CredentialAssignment};
use crate::catalog::label::LabelDefinition;
use crate::catalog::project::Project;
use crate::placement::cluster::{Cluster, ClusterAssignment};
use crate::placement::definitions::InstalledDefinitions;

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
    LabelDelete(LabelDefinition),
    ClusterInsert(Cluster),
    ClusterAssignmentInsert(ClusterAssignment),
    ClusterAssignmentUpdate(ClusterAssignment),
    ClusterAssignmentDelete(ClusterAssignment),
    DefinitionsInsert(InstalledDefinitions),
    DefinitionsUpdate(InstalledDefinitions),
    ApiKeyInsert(ApiKey),
    ApiKeyUpdate(ApiKey),
    /// Binds the caller's key to what this commit creates. Fails the commit if
    /// the key is bound already.
    IdempotencyInsert(idempotency::Entry),
}
