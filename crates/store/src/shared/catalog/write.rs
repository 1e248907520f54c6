//! Dispatches each write of the catalog to the function of its table. A decision
//! writes one row, so each is a statement of its own.

use slipway_core::catalog::CatalogWrite;

use super::table::{insert, update};
use super::{Connection, blueprint, cloud, credential, label, project};
use crate::failure::Failure;

pub(crate) async fn apply(
    connection: &mut Connection,
    write: &CatalogWrite,
) -> Result<(), Failure> {
    match write {
        CatalogWrite::ProjectInsert(row) => insert(connection, &project::INSERT, row, "name").await,
        CatalogWrite::ProjectUpdate(row) => project::update(connection, row).await,
        CatalogWrite::CloudInsert(row) => insert(connection, &cloud::INSERT, row, "name").await,
        CatalogWrite::CloudUpdate(row) => update(connection, &cloud::UPDATE, row).await,
        CatalogWrite::CredentialInsert(row) => {
            insert(connection, &credential::INSERT, row, "name").await
        }
        CatalogWrite::CredentialUpdate(row) => update(connection, &credential::UPDATE, row).await,
        CatalogWrite::CredentialAssignmentInsert(row) => {
            credential::ASSIGNMENT_INSERT.write(connection, &[row]).await
        }
        CatalogWrite::CredentialAssignmentDelete(row) => {
            credential::assignment_delete(connection, row).await
        }
        CatalogWrite::BlueprintInsert(row) => {
            insert(connection, &blueprint::INSERT, row, "slug").await
        }
        CatalogWrite::BlueprintUpdate(row) => update(connection, &blueprint::UPDATE, row).await,
        CatalogWrite::VersionInsert(row) => blueprint::version_insert(connection, row).await,
        CatalogWrite::VersionUpdate(row) => {
            update(connection, &blueprint::VERSION_UPDATE, row).await
        }
        CatalogWrite::LabelInsert(row) => insert(connection, &label::INSERT, row, "key").await,
        CatalogWrite::LabelUpdate(row) => update(connection, &label::UPDATE, row).await,
    }
}
