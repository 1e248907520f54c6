//! The hashes of key texts that were rotated away, replaced or revoked. Rows are
//! only ever added, and nothing deletes them: a start may bring any old text.

use slipway_core::nodes::token::SecretHash;

use super::Connection;
use crate::failure::Failure;

pub(crate) async fn insert(connection: &mut Connection, hash: &SecretHash) -> Result<(), Failure> {
    sqlx::query("INSERT INTO withdrawn_keys (hash) VALUES ($1) ON CONFLICT (hash) DO NOTHING")
        .bind(&hash.as_bytes()[..])
        .execute(connection)
        .await?;
    Ok(())
}

pub(crate) async fn contain(
    connection: &mut Connection,
    hash: &SecretHash,
) -> Result<bool, sqlx::Error> {
    let found = sqlx::query("SELECT hash FROM withdrawn_keys WHERE hash = $1")
        .bind(&hash.as_bytes()[..])
        .fetch_optional(connection)
        .await?;
    Ok(found.is_some())
}
