//! Installs API keys at the start of the binary, by name, under the lock of the
//! installation's row. Only admin keys of the whole installation are installed this way.

use slipway_app::access::port::{Install, Installed};
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::api_key_rules;
use slipway_core::access::audit::Actor;
use slipway_durable::database::End;
use sqlx::Row as _;

use super::operations::control;
use super::transaction::Load as _;
use super::{Connection, api_keys, audit};
use crate::failure::Failure;
use crate::micros::Micros;

pub(crate) async fn install(
    connection: &mut Connection,
    (key, when, actor): (&ApiKey, Install, &Actor),
) -> Result<End<Installed>, Failure> {
    let now = control::Installation.load(connection).await?.control.now;
    let usable = count_usable(connection).await?;
    let before = api_keys::by_name(connection, &key.name).await?;
    let installed = match (when, &before) {
        // Before the next arm: the first key may be this one, if the answer to an
        // earlier call was lost.
        (_, Some(before))
            if before.hash == key.hash
                && before.short == key.short
                && before.role == key.role
                && before.project_id == key.project_id
                && before.revoked_at.is_none()
                && before.expires_at == key.expires_at =>
        {
            Installed::Unchanged
        }
        (Install::First, _) if usable > 0 => Installed::Occupied,
        (_, Some(_)) if is_withdrawn(connection, key).await? => Installed::Withdrawn,
        (_, Some(_)) => Installed::Replaced,
        (_, None) => Installed::Inserted,
    };
    let verb = match installed {
        Installed::Inserted => "api_key.install",
        Installed::Replaced => "api_key.replace",
        Installed::Unchanged | Installed::Occupied | Installed::Withdrawn => {
            return Ok(End::Rollback(installed));
        }
    };
    put(connection, key).await?;
    let entry = api_key_rules::audit(verb, key, actor, now);
    audit::insert(connection, &[&entry]).await?;
    Ok(End::Commit(installed))
}

/// Whether the key of this name had this secret before, and it was rotated or revoked.
async fn is_withdrawn(connection: &mut Connection, key: &ApiKey) -> Result<bool, sqlx::Error> {
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

async fn put(connection: &mut Connection, key: &ApiKey) -> Result<(), sqlx::Error> {
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
    .bind(key.role.as_str())
    .bind(key.expires_at.map(Micros::from))
    .bind(key.revoked_at.map(Micros::from))
    .execute(connection)
    .await?;
    Ok(())
}

async fn count_usable(connection: &mut Connection) -> Result<u64, sqlx::Error> {
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
