//! Dispatches each write of the catalog to the function of its table. A decision
//! writes one row, so each is a statement of its own.

use slipway_core::catalog::CatalogWrite;

use super::{Connection, blueprint, cloud, credential, label, project};
use crate::failure::Failure;

pub(crate) async fn apply(
    connection: &mut Connection,
    write: &CatalogWrite,
) -> Result<(), Failure> {
    match write {
        CatalogWrite::ProjectInsert(row) => project::insert(connection, row).await,
        CatalogWrite::ProjectUpdate(row) => project::update(connection, row).await,
        CatalogWrite::CloudInsert(row) => cloud::insert(connection, row).await,
        CatalogWrite::CloudUpdate(row) => cloud::update(connection, row).await,
        CatalogWrite::CredentialInsert(row) => credential::insert(connection, row).await,
        CatalogWrite::CredentialUpdate(row) => credential::update(connection, row).await,
        CatalogWrite::CredentialAssignmentInsert(row) => {
            credential::assignment_insert(connection, row).await
        }
        CatalogWrite::CredentialAssignmentDelete(row) => {
            credential::assignment_delete(connection, row).await
        }
        CatalogWrite::BlueprintInsert(row) => blueprint::insert(connection, row).await,
        CatalogWrite::BlueprintUpdate(row) => blueprint::update(connection, row).await,
        CatalogWrite::VersionInsert(row) => blueprint::version_insert(connection, row).await,
        CatalogWrite::VersionUpdate(row) => blueprint::version_retire(connection, row).await,
        CatalogWrite::LabelInsert(row) => label::insert(connection, row).await,
        CatalogWrite::LabelUpdate(row) => label::update(connection, row).await,
        CatalogWrite::LabelDelete(row) => label::delete(connection, row).await,
    }
}
