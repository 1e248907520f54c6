//! Implements the port `CatalogStore`: projects, clouds, credentials,
//! blueprints and labels.

use std::collections::BTreeMap;

use async_trait::async_trait;
use slipway_app::catalog::port::{CredentialFilter, CredentialKey};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{CatalogStore, Listed};
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

use super::{Backend, blueprint, cloud, credential, label, project};

#[async_trait]
impl CatalogStore for Backend {
    async fn decide_project(
        &self,
        reference: &str,
        rule: &mut Rule<'_, ProjectSnapshot>,
    ) -> Result<(), Error> {
        self.decided(project::ByReference(reference), rule).await
    }

    async fn project_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Project>, Error> {
        self.read((reference, show_deleted), project::fetch).await
    }

    async fn project_list(
        &self,
        page: Page<ProjectId>,
        show_deleted: bool,
    ) -> Result<Listed<Project>, Error> {
        self.read((page, show_deleted), project::list).await
    }

    async fn project_labels(
        &self,
        projects: &[ProjectId],
    ) -> Result<BTreeMap<ProjectId, Labels>, Error> {
        self.read(projects, project::labels).await
    }

    async fn decide_cloud(
        &self,
        reference: &str,
        rule: &mut Rule<'_, CloudSnapshot>,
    ) -> Result<(), Error> {
        self.decided(cloud::ByReference(reference), rule).await
    }

    async fn cloud_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Cloud>, Error> {
        self.read((reference, show_deleted), cloud::fetch).await
    }

    async fn cloud_list(
        &self,
        page: Page<CloudId>,
        show_deleted: bool,
    ) -> Result<Listed<Cloud>, Error> {
        self.read((page, show_deleted), cloud::list).await
    }

    async fn decide_credential(
        &self,
        key: &CredentialKey,
        rule: &mut Rule<'_, CredentialSnapshot>,
    ) -> Result<(), Error> {
        self.decided(key, rule).await
    }

    async fn credential_fetch(
        &self,
        id: CloudCredentialId,
        show_deleted: bool,
    ) -> Result<Option<Credential>, Error> {
        self.read((id, show_deleted), credential::fetch).await
    }

    async fn credential_list(
        &self,
        filter: &CredentialFilter,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<Credential>, Error> {
        self.read((filter, page), credential::list).await
    }

    async fn decide_credential_assignment(
        &self,
        project: &str,
        credential: CloudCredentialId,
        rule: &mut Rule<'_, CredentialAssignmentSnapshot>,
    ) -> Result<(), Error> {
        self.decided(credential::AssignmentOf { project, credential }, rule).await
    }

    async fn credential_assignment_list(
        &self,
        project: ProjectId,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<(CredentialAssignment, Credential)>, Error> {
        self.read((project, page), credential::assignment_list).await
    }

    async fn decide_blueprint(
        &self,
        reference: &str,
        version: Option<&str>,
        rule: &mut Rule<'_, BlueprintSnapshot>,
    ) -> Result<(), Error> {
        let key = blueprint::ByReference { blueprint: reference, version };
        self.decided(key, rule).await
    }

    async fn blueprint_fetch(&self, reference: &str) -> Result<Option<Blueprint>, Error> {
        self.read(reference, blueprint::fetch).await
    }

    async fn blueprint_list(&self, page: Page<BlueprintId>) -> Result<Listed<Blueprint>, Error> {
        self.read(page, blueprint::list).await
    }

    async fn version_fetch(
        &self,
        blueprint: BlueprintId,
        version: &str,
    ) -> Result<Option<PublishedVersion>, Error> {
        self.read((blueprint, version), blueprint::version_fetch).await
    }

    async fn version_list(
        &self,
        blueprint: BlueprintId,
        page: Page<BlueprintVersionId>,
    ) -> Result<Listed<PublishedVersion>, Error> {
        self.read((blueprint, page), blueprint::version_list).await
    }

    async fn decide_label(
        &self,
        reference: &str,
        rule: &mut Rule<'_, LabelSnapshot>,
    ) -> Result<(), Error> {
        self.decided(label::ByReference(reference), rule).await
    }

    async fn label_fetch(&self, reference: &str) -> Result<Option<LabelDefinition>, Error> {
        self.read(reference, label::fetch).await
    }

    async fn label_list(
        &self,
        page: Page<LabelDefinitionId>,
    ) -> Result<Listed<LabelDefinition>, Error> {
        self.read(page, label::list).await
    }
}
