//! The catalog's port, method by method, and which function writes what.

use std::collections::BTreeMap;

use async_trait::async_trait;
use slipway_app::ports::Listed;
use slipway_app::ports::catalog::{Bound, CatalogStore, CredentialFilter, CredentialKey};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_core::catalog::CatalogWrite;
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

use super::{
    Backend, Connection, api_keys, catalog_blueprint, catalog_cloud, catalog_cluster,
    catalog_credential, catalog_label, catalog_project, delivery, idempotency,
};
use crate::failure::Failure;

pub(super) async fn apply(
    connection: &mut Connection,
    write: &CatalogWrite,
) -> Result<(), Failure> {
    match write {
        CatalogWrite::ProjectInsert(row) => catalog_project::insert(connection, row).await,
        CatalogWrite::ProjectUpdate(row) => catalog_project::update(connection, row).await,
        CatalogWrite::CloudInsert(row) => catalog_cloud::insert(connection, row).await,
        CatalogWrite::CloudUpdate(row) => catalog_cloud::update(connection, row).await,
        CatalogWrite::CredentialInsert(row) => catalog_credential::insert(connection, row).await,
        CatalogWrite::CredentialUpdate(row) => catalog_credential::update(connection, row).await,
        CatalogWrite::CredentialAssignmentInsert(row) => {
            catalog_credential::assignment_insert(connection, row).await
        }
        CatalogWrite::CredentialAssignmentDelete(row) => {
            catalog_credential::assignment_delete(connection, row).await
        }
        CatalogWrite::BlueprintInsert(row) => catalog_blueprint::insert(connection, row).await,
        CatalogWrite::BlueprintUpdate(row) => catalog_blueprint::update(connection, row).await,
        CatalogWrite::VersionInsert(row) => {
            catalog_blueprint::version_insert(connection, row).await
        }
        CatalogWrite::VersionUpdate(row) => {
            catalog_blueprint::version_retire(connection, row).await
        }
        CatalogWrite::LabelInsert(row) => catalog_label::insert(connection, row).await,
        CatalogWrite::LabelUpdate(row) => catalog_label::update(connection, row).await,
        CatalogWrite::LabelDelete(row) => catalog_label::delete(connection, row).await,
        CatalogWrite::ClusterInsert(row) => catalog_cluster::insert(connection, row).await,
        CatalogWrite::ClusterAssignmentInsert(row) => {
            catalog_cluster::assignment_insert(connection, row).await
        }
        CatalogWrite::ClusterAssignmentUpdate(row) => {
            catalog_cluster::assignment_update(connection, row).await
        }
        CatalogWrite::ClusterAssignmentDelete(row) => {
            catalog_cluster::assignment_delete(connection, row).await
        }
        CatalogWrite::DeliveryInsert(row) => delivery::insert(connection, row).await,
        CatalogWrite::DeliveryUpdate(row) => delivery::update(connection, row).await,
        CatalogWrite::ApiKeyInsert(row) => api_keys::insert(connection, row).await,
        CatalogWrite::ApiKeyUpdate(row) => api_keys::update(connection, row).await,
        CatalogWrite::IdempotencyInsert(row) => idempotency::insert(connection, row).await,
    }
}

#[async_trait]
impl CatalogStore for Backend {
    async fn decide_project(
        &self,
        reference: &str,
        rule: &mut Rule<'_, ProjectSnapshot>,
    ) -> Result<(), Error> {
        self.decided(catalog_project::ByReference(reference), rule).await
    }

    async fn project_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Project>, Error> {
        self.read((reference, show_deleted), catalog_project::fetch).await
    }

    async fn project_list(
        &self,
        page: Page<ProjectId>,
        show_deleted: bool,
    ) -> Result<Listed<Project>, Error> {
        self.read((page, show_deleted), catalog_project::list).await
    }

    async fn project_labels(
        &self,
        projects: &[ProjectId],
    ) -> Result<BTreeMap<ProjectId, Labels>, Error> {
        self.read(projects, catalog_project::labels).await
    }

    async fn decide_cloud(
        &self,
        reference: &str,
        rule: &mut Rule<'_, CloudSnapshot>,
    ) -> Result<(), Error> {
        self.decided(catalog_cloud::ByReference(reference), rule).await
    }

    async fn cloud_fetch(
        &self,
        reference: &str,
        show_deleted: bool,
    ) -> Result<Option<Cloud>, Error> {
        self.read((reference, show_deleted), catalog_cloud::fetch).await
    }

    async fn cloud_list(
        &self,
        page: Page<CloudId>,
        show_deleted: bool,
    ) -> Result<Listed<Cloud>, Error> {
        self.read((page, show_deleted), catalog_cloud::list).await
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
        self.read((id, show_deleted), catalog_credential::fetch).await
    }

    async fn credential_list(
        &self,
        filter: &CredentialFilter,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<Credential>, Error> {
        self.read((filter, page), catalog_credential::list).await
    }

    async fn decide_credential_assignment(
        &self,
        project: &str,
        credential: CloudCredentialId,
        rule: &mut Rule<'_, CredentialAssignmentSnapshot>,
    ) -> Result<(), Error> {
        self.decided(catalog_credential::AssignmentOf { project, credential }, rule).await
    }

    async fn credential_assignment_list(
        &self,
        project: ProjectId,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<(CredentialAssignment, Credential)>, Error> {
        self.read((project, page), catalog_credential::assignment_list).await
    }

    async fn decide_blueprint(
        &self,
        reference: &str,
        version: Option<&str>,
        rule: &mut Rule<'_, BlueprintSnapshot>,
    ) -> Result<(), Error> {
        let key = catalog_blueprint::ByReference { blueprint: reference, version };
        self.decided(key, rule).await
    }

    async fn blueprint_fetch(&self, reference: &str) -> Result<Option<Blueprint>, Error> {
        self.read(reference, catalog_blueprint::fetch).await
    }

    async fn blueprint_list(&self, page: Page<BlueprintId>) -> Result<Listed<Blueprint>, Error> {
        self.read(page, catalog_blueprint::list).await
    }

    async fn version_fetch(
        &self,
        blueprint: BlueprintId,
        version: &str,
    ) -> Result<Option<PublishedVersion>, Error> {
        self.read((blueprint, version), catalog_blueprint::version_fetch).await
    }

    async fn version_list(
        &self,
        blueprint: BlueprintId,
        page: Page<BlueprintVersionId>,
    ) -> Result<Listed<PublishedVersion>, Error> {
        self.read((blueprint, page), catalog_blueprint::version_list).await
    }

    async fn decide_label(
        &self,
        reference: &str,
        rule: &mut Rule<'_, LabelSnapshot>,
    ) -> Result<(), Error> {
        self.decided(catalog_label::ByReference(reference), rule).await
    }

    async fn label_fetch(&self, reference: &str) -> Result<Option<LabelDefinition>, Error> {
        self.read(reference, catalog_label::fetch).await
    }

    async fn label_list(
        &self,
        page: Page<LabelDefinitionId>,
    ) -> Result<Listed<LabelDefinition>, Error> {
        self.read(page, catalog_label::list).await
    }

    async fn decide_cluster(
        &self,
        reference: &str,
        rule: &mut Rule<'_, ClusterSnapshot>,
    ) -> Result<(), Error> {
        self.decided(catalog_cluster::ByReference(reference), rule).await
    }

    async fn cluster_fetch(&self, reference: &str) -> Result<Option<Cluster>, Error> {
        self.read(reference, catalog_cluster::fetch).await
    }

    async fn cluster_page(&self, page: Page<ClusterId>) -> Result<Listed<Cluster>, Error> {
        self.read(page, catalog_cluster::list).await
    }

    async fn decide_cluster_assignment(
        &self,
        project: &str,
        cluster: Option<&str>,
        rule: &mut Rule<'_, ClusterAssignmentSnapshot>,
    ) -> Result<(), Error> {
        self.decided(catalog_cluster::PlacementOf { project, cluster }, rule).await
    }

    async fn cluster_assignment_fetch(
        &self,
        project: ProjectId,
    ) -> Result<Option<ClusterAssignment>, Error> {
        self.read(project, catalog_cluster::assignment_fetch).await
    }

    async fn cluster_assignment_list(
        &self,
        page: Page<ProjectId>,
    ) -> Result<Listed<ClusterAssignment>, Error> {
        self.read(page, catalog_cluster::assignment_list).await
    }

    async fn idempotency_find(&self, caller: &str, key: &str) -> Result<Option<Bound>, Error> {
        self.read((caller, key), idempotency::find).await
    }

    async fn idempotency_answer(&self, record: Uuid, answer: &Answer) -> Result<(), Error> {
        self.statement((record, answer), idempotency::answer).await
    }
}
