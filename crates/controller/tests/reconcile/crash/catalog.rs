//! The catalog's side of the store under faults: handed through. Nothing of it
//! is a passage, since no loop writes the catalog.

use std::collections::BTreeMap;

use async_trait::async_trait;
use slipway_app::ports::Listed;
use slipway_app::ports::catalog::{Bound, CatalogStore, CredentialFilter, CredentialKey};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_core::catalog::blueprint::{Blueprint, PublishedVersion};
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::cluster::{Cluster, ClusterAssignment};
use slipway_core::catalog::credential::{Credential, CredentialAssignment};
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::catalog::snapshot::{
    BlueprintSnapshot, CloudSnapshot, ClusterAssignmentSnapshot, ClusterSnapshot,
    CredentialAssignmentSnapshot, CredentialSnapshot, LabelSnapshot, ProjectSnapshot,
};
use slipway_core::idempotency::Answer;
use slipway_core::ids::{
    BlueprintId, BlueprintVersionId, CloudCredentialId, CloudId, ClusterId, LabelDefinitionId,
    ProjectId,
};
use slipway_core::text::Labels;
use uuid::Uuid;

use super::store::FatedStore;

#[async_trait]
impl CatalogStore for FatedStore {
    async fn decide_project(
        &self,
        reference: &str,
        rule: &mut Rule<'_, ProjectSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_project(reference, rule).await
    }

    async fn project_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Project>, Error> {
        self.inner.project_fetch(reference, show_deleted).await
    }

    async fn project_list(
        &self,
        page: Page<ProjectId>,
        show_deleted: bool,
    ) -> Result<Listed<Project>, Error> {
        self.inner.project_list(page, show_deleted).await
    }

    async fn project_labels(
        &self,
        projects: &[ProjectId],
    ) -> Result<BTreeMap<ProjectId, Labels>, Error> {
        self.inner.project_labels(projects).await
    }

    async fn decide_cloud(
        &self,
        reference: &str,
        rule: &mut Rule<'_, CloudSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_cloud(reference, rule).await
    }

    async fn cloud_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Cloud>, Error> {
        self.inner.cloud_fetch(reference, show_deleted).await
    }

    async fn cloud_list(
        &self,
        page: Page<CloudId>,
        show_deleted: bool,
    ) -> Result<Listed<Cloud>, Error> {
        self.inner.cloud_list(page, show_deleted).await
    }

    async fn decide_credential(
        &self,
        key: &CredentialKey,
        rule: &mut Rule<'_, CredentialSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_credential(key, rule).await
    }

    async fn credential_fetch(
        &self,
        id: CloudCredentialId,
        show_deleted: bool,
    ) -> Result<Option<Credential>, Error> {
        self.inner.credential_fetch(id, show_deleted).await
    }

    async fn credential_list(
        &self,
        filter: &CredentialFilter,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<Credential>, Error> {
        self.inner.credential_list(filter, page).await
    }

    async fn decide_credential_assignment(
        &self,
        project: &str,
        credential: CloudCredentialId,
        rule: &mut Rule<'_, CredentialAssignmentSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_credential_assignment(project, credential, rule).await
    }

    async fn credential_assignment_list(
        &self,
        project: ProjectId,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<(CredentialAssignment, Credential)>, Error> {
        self.inner.credential_assignment_list(project, page).await
    }

    async fn decide_blueprint(
        &self,
        reference: &str,
        version: Option<&str>,
        rule: &mut Rule<'_, BlueprintSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_blueprint(reference, version, rule).await
    }

    async fn blueprint_fetch(&self, reference: &str) -> Result<Option<Blueprint>, Error> {
        self.inner.blueprint_fetch(reference).await
    }

    async fn blueprint_list(&self, page: Page<BlueprintId>) -> Result<Listed<Blueprint>, Error> {
        self.inner.blueprint_list(page).await
    }

    async fn version_fetch(
        &self,
        blueprint: BlueprintId,
        version: &str,
    ) -> Result<Option<PublishedVersion>, Error> {
        self.inner.version_fetch(blueprint, version).await
    }

    async fn version_list(
        &self,
        blueprint: BlueprintId,
        page: Page<BlueprintVersionId>,
    ) -> Result<Listed<PublishedVersion>, Error> {
        self.inner.version_list(blueprint, page).await
    }

    async fn decide_label(
        &self,
        reference: &str,
        rule: &mut Rule<'_, LabelSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_label(reference, rule).await
    }

    async fn label_fetch(&self, reference: &str) -> Result<Option<LabelDefinition>, Error> {
        self.inner.label_fetch(reference).await
    }

    async fn label_list(
        &self,
        page: Page<LabelDefinitionId>,
    ) -> Result<Listed<LabelDefinition>, Error> {
        self.inner.label_list(page).await
    }

    async fn decide_cluster(
        &self,
        reference: &str,
        rule: &mut Rule<'_, ClusterSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_cluster(reference, rule).await
    }

    async fn cluster_fetch(&self, reference: &str) -> Result<Option<Cluster>, Error> {
        self.inner.cluster_fetch(reference).await
    }

    async fn cluster_page(&self, page: Page<ClusterId>) -> Result<Listed<Cluster>, Error> {
        self.inner.cluster_page(page).await
    }

    async fn decide_cluster_assignment(
        &self,
        project: &str,
        cluster: Option<&str>,
        rule: &mut Rule<'_, ClusterAssignmentSnapshot>,
    ) -> Result<(), Error> {
        self.inner.decide_cluster_assignment(project, cluster, rule).await
    }

    async fn cluster_assignment_fetch(
        &self,
        project: ProjectId,
    ) -> Result<Option<ClusterAssignment>, Error> {
        self.inner.cluster_assignment_fetch(project).await
    }

    async fn cluster_assignment_list(
        &self,
        page: Page<ProjectId>,
    ) -> Result<Listed<ClusterAssignment>, Error> {
        self.inner.cluster_assignment_list(page).await
    }

    async fn idempotency_find(&self, caller: &str, key: &str) -> Result<Option<Bound>, Error> {
        self.inner.idempotency_find(caller, key).await
    }

    async fn idempotency_answer(&self, record: Uuid, answer: &Answer) -> Result<(), Error> {
        self.inner.idempotency_answer(record, answer).await
    }
}
