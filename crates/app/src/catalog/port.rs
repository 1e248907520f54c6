//! The store of the catalog domain: projects, clouds, credentials, blueprints
//! and labels.

use std::collections::BTreeMap;

use slipway_core::catalog::blueprint::{Blueprint, PublishedVersion};
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::{
    Credential, CredentialAssignment, CredentialAssignmentSnapshot,
};
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::ids::{BlueprintId, BlueprintVersionId, CloudCredentialId, ProjectId};
use slipway_core::text::Labels;

use crate::ports::listed::Listed;
use crate::ports::store::{Error, Page, Rule};

/// Which credential a decision is about.
#[derive(Debug, Clone)]
pub enum CredentialKey {
    /// A new one: its cloud by reference, and its name.
    New {
        cloud: String,
        name: String,
    },
    Existing(CloudCredentialId),
}

/// Which blueprint a decision is about, by slug or id, and which version of it.
#[derive(Debug, Clone)]
pub struct BlueprintKey {
    pub blueprint: String,
    pub version: Option<String>,
}

/// Which credentials to list.
#[derive(Debug, Clone, Default)]
pub struct CredentialFilter {
    /// Name or id.
    pub cloud: Option<String>,
    pub name: Option<String>,
    pub show_deleted: bool,
}

port! {
/// Everything about the catalog.
pub trait CatalogStore of (Project, Cloud, Credential, Blueprint, LabelDefinition), intercepted by CatalogIntercept {
    /// The labels of these projects, including deleted ones.
    async fn project_labels(
        &self,
        projects: &[ProjectId],
    ) -> Result<BTreeMap<ProjectId, Labels>, Error>;

    /// Project and credential locked for share, the assignment locked.
    async fn decide_credential_assignment(
        &self,
        project: &str,
        credential: CloudCredentialId,
        rule: &mut Rule<'_, CredentialAssignmentSnapshot>,
    ) -> Result<(), Error>;

    /// The credentials that a project may use, in the order of their ids.
    async fn credential_assignment_list(
        &self,
        project: ProjectId,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<(CredentialAssignment, Credential)>, Error>;

    /// Every assignment of these projects.
    async fn credential_assignments_of(
        &self,
        projects: &[ProjectId],
    ) -> Result<Vec<CredentialAssignment>, Error>;

    /// By id, or by the text of the version.
    async fn version_fetch(
        &self,
        blueprint: BlueprintId,
        version: &str,
    ) -> Result<Option<PublishedVersion>, Error>;

    async fn version_list(
        &self,
        blueprint: BlueprintId,
        page: Page<BlueprintVersionId>,
    ) -> Result<Listed<PublishedVersion>, Error>;
}
}
