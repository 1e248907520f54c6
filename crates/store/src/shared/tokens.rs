//! Bootstrap tokens, read for people.

use async_trait::async_trait;
use slipway_app::ports::Listed;
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::tokens::TokenStore;
use slipway_core::ids::{BootstrapTokenId, ResourceId};
use slipway_core::token::BootstrapToken;

use super::catalog_row::{beginning, listed, whole};
use super::{Backend, rows};
use crate::failure::Failure;
use crate::retry::retried;

macro_rules! select {
    () => {
        "SELECT t.id AS t_id, t.project_id AS t_project_id, \
         t.provisioned_resource_id AS t_provisioned_resource_id, t.kind AS t_kind, \
         t.hash AS t_hash, t.issued_at AS t_issued_at, t.expires_at AS t_expires_at, \
         t.hard_expires_at AS t_hard_expires_at, t.consumed_at AS t_consumed_at, \
         t.consumed_nonce AS t_consumed_nonce, t.consumed_by_node_id AS t_consumed_by_node_id, \
         t.consumed_public_key AS t_consumed_public_key, t.revoked_at AS t_revoked_at, \
         t.issued_by AS t_issued_by FROM bootstrap_tokens t "
    };
}

#[async_trait]
impl TokenStore for Backend {
    async fn token_fetch(&self, id: BootstrapTokenId) -> Result<Option<BootstrapToken>, Error> {
        Ok(retried!(fetch(self, id))?)
    }

    async fn token_list(
        &self,
        resource: ResourceId,
        page: Page<BootstrapTokenId>,
    ) -> Result<Listed<BootstrapToken>, Error> {
        Ok(retried!(list(self, resource, page))?)
    }
}

async fn fetch(backend: &Backend, id: BootstrapTokenId) -> Result<Option<BootstrapToken>, Failure> {
    let mut connection = backend.reader().await?;
    let row = sqlx::query(concat!(select!(), "WHERE t.id = $1"))
        .bind(id.as_uuid())
        .fetch_optional(&mut *connection)
        .await?;
    row.map(|row| whole(&row, "t_id", rows::token)).transpose()
}

async fn list(
    backend: &Backend,
    resource: ResourceId,
    page: Page<BootstrapTokenId>,
) -> Result<Listed<BootstrapToken>, Failure> {
    let mut connection = backend.reader().await?;
    let found = sqlx::query(concat!(
        select!(),
        "JOIN provisioned_resources a ON a.id = t.provisioned_resource_id \
         WHERE a.resource_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3"
    ))
    .bind(resource.as_uuid())
    .bind(beginning(page.after.map(|id| id.as_uuid())))
    .bind(i64::from(page.limit))
    .fetch_all(&mut *connection)
    .await?;
    Ok(listed(BootstrapTokenId::KIND, "t_id", &page, &found, rows::token))
}
