//! Finds a presented token by its hash, even if its attempt no longer refers to it.

use slipway_core::nodes::token::{BootstrapToken, SecretHash};
use sqlx::Row as _;

use super::{Connection, hydrate};
use crate::failure::Failure;

/// The caller has locked the resource of the token's attempt.
pub(crate) async fn token(
    connection: &mut Connection,
    hash: SecretHash,
) -> Result<Option<BootstrapToken>, Failure> {
    let row = sqlx::query(
        "SELECT id AS t_id, project_id AS t_project_id, \
         provisioned_resource_id AS t_provisioned_resource_id, kind AS t_kind, hash AS t_hash, \
         issued_at AS t_issued_at, expires_at AS t_expires_at, \
         hard_expires_at AS t_hard_expires_at, consumed_at AS t_consumed_at, \
         consumed_nonce AS t_consumed_nonce, consumed_by_node_id AS t_consumed_by_node_id, \
         consumed_public_key AS t_consumed_public_key, revoked_at AS t_revoked_at, \
         issued_by AS t_issued_by \
         FROM bootstrap_tokens WHERE hash = $1",
    )
    .bind(&hash.as_bytes()[..])
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let id = row.try_get("t_id")?;
    hydrate::token(&row).map(Some).map_err(|fault| Failure::Corrupt { id, fault })
}
