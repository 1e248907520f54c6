//! Dispatches each write of the catalog to the function of its table.

use slipway_core::catalog::CatalogWrite;

use super::{
    Connection, api_keys, catalog_blueprint, catalog_cloud, catalog_cluster, catalog_credential,
    catalog_label, catalog_project, definitions, idempotency,
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
        CatalogWrite::DefinitionsInsert(row) => definitions::insert(connection, row).await,
        CatalogWrite::DefinitionsUpdate(row) => definitions::update(connection, row).await,
        CatalogWrite::ApiKeyInsert(row) => api_keys::insert(connection, row).await,
        CatalogWrite::ApiKeyUpdate(row) => api_keys::update(connection, row).await,
        CatalogWrite::IdempotencyInsert(row) => idempotency::insert(connection, row).await,
    }
}
