//! Reads bootstrap tokens: for people, and by the hash of the text that a node presents.

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::ids::{BootstrapTokenId, ResourceId};
use slipway_core::nodes::token::{BootstrapToken, SecretHash};

use super::page::{after, fetch_one, fetch_page};
use super::{Connection, hydrate};
use crate::failure::Failure;

/// Bootstrap tokens `t`, with the columns that [`hydrate::token`] reads.
macro_rules! select_tokens {
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
pub(crate) use select_tokens;

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: BootstrapTokenId,
) -> Result<Option<BootstrapToken>, Failure> {
    let query = sqlx::query(concat!(select_tokens!(), "WHERE t.id = $1")).bind(id.as_uuid());
    fetch_one(connection, query, "t_id", hydrate::token).await
}

pub(crate) async fn list(
    connection: &mut Connection,
    (resource, page): (ResourceId, Page<BootstrapTokenId>),
) -> Result<Listed<BootstrapToken>, Failure> {
    let query = sqlx::query(concat!(
        select_tokens!(),
        "JOIN provisioned_resources a ON a.id = t.provisioned_resource_id \
         WHERE a.resource_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3"
    ))
    .bind(resource.as_uuid())
    .bind(after(page))
    .bind(i64::from(page.limit));
    fetch_page(connection, query, (BootstrapTokenId::KIND, "t_id"), page, hydrate::token).await
}

/// The token is found even if its attempt no longer refers to it. The caller has locked
/// the resource of its attempt.
pub(crate) async fn by_hash(
    connection: &mut Connection,
    hash: SecretHash,
) -> Result<Option<BootstrapToken>, Failure> {
    let query =
        sqlx::query(concat!(select_tokens!(), "WHERE t.hash = $1")).bind(&hash.as_bytes()[..]);
    fetch_one(connection, query, "t_id", hydrate::token).await
}
