//! API keys at the start of the binary: found, counted, installed by name. Only
//! admin keys of the whole installation are installed so.

use slipway_app::ports::store::ApiKey;
use slipway_core::ids::ApiKeyId;
use slipway_core::token::SecretHash;
use sqlx::Row as _;
use uuid::Uuid;

use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

pub(super) async fn find(
    connection: &mut Connection,
    short: &str,
) -> Result<Option<ApiKey>, Failure> {
    let row = sqlx::query(
        "SELECT id, name, short, hash, role, expires_at, revoked_at FROM api_keys \
         WHERE short = $1",
    )
    .bind(short)
    .fetch_optional(&mut *connection)
    .await?;
    api_key_or_none(row.as_ref())
}

pub(super) async fn find_named_in_txn(
    connection: &mut Connection,
    name: &str,
) -> Result<Option<ApiKey>, Failure> {
    let row = sqlx::query(
        "SELECT id, name, short, hash, role, expires_at, revoked_at FROM api_keys \
         WHERE name = $1",
    )
    .bind(name)
    .fetch_optional(connection)
    .await?;
    api_key_or_none(row.as_ref())
}

/// Whether the key of this name had this text, and it was taken from it.
pub(super) async fn is_withdrawn_in_txn(
    connection: &mut Connection,
    key: &ApiKey,
) -> Result<bool, sqlx::Error> {
    let row = sqlx::query(
        "SELECT id FROM api_keys WHERE name = $1 \
         AND (previous_hash = $2 OR (hash = $2 AND revoked_at IS NOT NULL))",
    )
    .bind(&key.name)
    .bind(&key.hash.as_bytes()[..])
    .fetch_optional(connection)
    .await?;
    Ok(row.is_some())
}

fn api_key_or_none(row: Option<&Row>) -> Result<Option<ApiKey>, Failure> {
    let Some(row) = row else { return Ok(None) };
    let id: Uuid = row.try_get("id")?;
    api_key(row, id).map(Some).map_err(|fault| Failure::Corrupt { id, fault })
}

fn api_key(row: &Row, id: Uuid) -> Result<ApiKey, Fault> {
    let hash: Vec<u8> = rows::get(row, "hash")?;
    Ok(ApiKey {
        id: ApiKeyId::new(id),
        name: rows::get(row, "name")?,
        short: rows::get(row, "short")?,
        hash: SecretHash::from_slice(&hash)
            .ok_or_else(|| Fault::new("hash", "must have 32 bytes"))?,
        role: rows::get(row, "role")?,
        expires_at: rows::time_or_null(row, "expires_at")?,
        revoked_at: rows::time_or_null(row, "revoked_at")?,
    })
}

pub(super) async fn put(connection: &mut Connection, key: &ApiKey) -> Result<(), Failure> {
    Ok(put_in_txn(connection, key).await?)
}

pub(super) async fn put_in_txn(
    connection: &mut Connection,
    key: &ApiKey,
) -> Result<(), sqlx::Error> {
    sqlx::query(sql!(
        "INSERT INTO api_keys (id, name, short, hash, role, expires_at, revoked_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (name) DO UPDATE SET id = excluded.id, short = excluded.short, \
         hash = excluded.hash, role = excluded.role, expires_at = excluded.expires_at, \
         revoked_at = excluded.revoked_at, revision = 1, project_id = NULL, \
         previous_short = NULL, previous_hash = NULL, previous_until = NULL, \
         rotated_at = NULL, created_by = NULL, created_at = ",
        now
    ))
    .bind(key.id.as_uuid())
    .bind(&key.name)
    .bind(&key.short)
    .bind(&key.hash.as_bytes()[..])
    .bind(&key.role)
    .bind(key.expires_at.map(Micros::from))
    .bind(key.revoked_at.map(Micros::from))
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn count(connection: &mut Connection, (): ()) -> Result<u64, Failure> {
    Ok(count_in_txn(connection).await?)
}

pub(super) async fn count_in_txn(connection: &mut Connection) -> Result<u64, sqlx::Error> {
    let row = sqlx::query(sql!(
        "SELECT count(*) AS usable FROM api_keys WHERE role = 'admin' AND revoked_at IS NULL \
         AND (expires_at IS NULL OR expires_at > ",
        now,
        ")"
    ))
    .fetch_one(connection)
    .await?;
    Ok(u64::try_from(row.try_get::<i64, _>("usable")?).unwrap_or(0))
}
