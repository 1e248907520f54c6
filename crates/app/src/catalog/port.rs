//! The store of the catalog domain: projects, clouds, credentials, blueprints
//! and labels. A reference is a name or an id; something deleted is found by
//! its id only.

use std::collections::BTreeMap;

use slipway_core::catalog::blueprint::{Blueprint, PublishedVersion};
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::{Credential, CredentialAssignment};
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::catalog::snapshot::{
    BlueprintSnapshot, CloudSnapshot, CredentialAssignmentSnapshot, CredentialSnapshot,
    LabelSnapshot, ProjectSnapshot,
};
use slipway_core::ids::{
    BlueprintId, BlueprintVersionId, CloudCredentialId, CloudId, LabelDefinitionId, ProjectId,
};
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
pub trait CatalogStore, intercepted by CatalogIntercept {
    /// The live project of this reference, locked.
    async fn decide_project(
        &self,
        reference: &str,
        rule: &mut Rule<'_, ProjectSnapshot>,
    ) -> Result<(), Error>;

    async fn project_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Project>, Error>;

    async fn project_list(
        &self,
        page: Page<ProjectId>,
        show_deleted: bool,
    ) -> Result<Listed<Project>, Error>;

    /// The labels of these projects, including deleted ones.
    async fn project_labels(
        &self,
        projects: &[ProjectId],
    ) -> Result<BTreeMap<ProjectId, Labels>, Error>;

    /// The live cloud of this reference, locked.
    async fn decide_cloud(
        &self,
        reference: &str,
        rule: &mut Rule<'_, CloudSnapshot>,
    ) -> Result<(), Error>;

    async fn cloud_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Cloud>, Error>;

    async fn cloud_list(
        &self,
        page: Page<CloudId>,
        show_deleted: bool,
    ) -> Result<Listed<Cloud>, Error>;

    /// The live credential, locked, and its live cloud, locked for share.
    async fn decide_credential(
        &self,
        key: &CredentialKey,
        rule: &mut Rule<'_, CredentialSnapshot>,
    ) -> Result<(), Error>;

    async fn credential_fetch(
        &self,
        id: CloudCredentialId,
        show_deleted: bool,
    ) -> Result<Option<Credential>, Error>;

    async fn credential_list(
        &self,
        filter: &CredentialFilter,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<Credential>, Error>;

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

    /// The blueprint, locked, and one of its versions.
    async fn decide_blueprint(
        &self,
        reference: &str,
        version: Option<&str>,
        rule: &mut Rule<'_, BlueprintSnapshot>,
    ) -> Result<(), Error>;

    async fn blueprint_fetch(&self, reference: &str) -> Result<Option<Blueprint>, Error>;

    async fn blueprint_list(&self, page: Page<BlueprintId>) -> Result<Listed<Blueprint>, Error>;

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

    /// The definition of this key (or id), locked.
    async fn decide_label(
        &self,
        reference: &str,
        rule: &mut Rule<'_, LabelSnapshot>,
    ) -> Result<(), Error>;

    async fn label_fetch(&self, reference: &str) -> Result<Option<LabelDefinition>, Error>;

    async fn label_list(
        &self,
        page: Page<LabelDefinitionId>,
    ) -> Result<Listed<LabelDefinition>, Error>;
}
}
