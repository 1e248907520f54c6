//! What a declaration reads of the catalog, locked against changes until it ends.

use slipway_core::broker::snapshot::CredentialView;
use slipway_core::catalog::blueprint_version::BlueprintVersion;
use slipway_core::ids::{CloudCredentialId, CloudId};
use sqlx::Row as _;
use uuid::Uuid;

use super::page::as_id;
use super::version_hydrate::{self, select_versions};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

/// Locks the project of this name or id, and says whether it is leaving.
pub(crate) async fn lock_project(
    connection: &mut Connection,
    project: &str,
) -> Result<Option<(Uuid, bool)>, sqlx::Error> {
    let row = sqlx::query(sql!(
        "SELECT id, deletion_id FROM projects WHERE (name = $1 OR id = $2) AND deleted_at IS NULL \
         ORDER BY id LIMIT 1",
        for_update
    ))
    .bind(project)
    .bind(as_id(project))
    .fetch_optional(connection)
    .await?;
    let found = |row: Row| {
        let leaving = row.try_get::<Option<Uuid>, _>("deletion_id")?.is_some();
        Ok((row.try_get("id")?, leaving))
    };
    row.map(found).transpose()
}

/// The named version of the blueprint of this slug or id, or the last published one that is
/// not retired, and whether it is retired. The lock keeps it from being retired, and its
/// blueprint from being deleted, until this transaction ends.
pub(crate) async fn blueprint_version(
    connection: &mut Connection,
    reference: &str,
    version: Option<&str>,
) -> Result<(Option<BlueprintVersion>, bool), Failure> {
    let row = sqlx::query(concat!(
        select_versions!(),
        "WHERE (b.slug = $1 OR b.id = $3) AND b.deleted_at IS NULL \
         AND ($2 IS NULL OR v.version = $2) \
         ORDER BY CASE WHEN v.retired_at IS NULL THEN 0 ELSE 1 END, v.published_at DESC, \
         v.id DESC LIMIT 1",
        sql!(for_share)
    ))
    .bind(reference)
    .bind(version)
    .bind(as_id(reference))
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok((None, false)) };
    let id: Uuid = row.try_get("v_id")?;
    let corrupt = |fault| Failure::Corrupt { id, fault };
    let retired = rows::time_or_null(&row, "v_retired_at").map_err(corrupt)?.is_some();
    Ok((Some(version_hydrate::blueprint_version(&row).map_err(corrupt)?), retired))
}

/// The credentials that the project may use. The lock keeps the assignments
/// from being withdrawn until this transaction ends.
pub(crate) async fn assigned_credentials(
    connection: &mut Connection,
    project: Uuid,
) -> Result<Vec<(Uuid, String)>, sqlx::Error> {
    let ids: Vec<Uuid> = sqlx::query(sql!(
        "SELECT cloud_credential_id AS id FROM credential_assignments WHERE project_id = $1",
        for_share
    ))
    .bind(project)
    .fetch_all(&mut *connection)
    .await?
    .iter()
    .map(|row| row.try_get("id"))
    .collect::<Result<_, _>>()?;
    let found = sqlx::query(sql!(
        "SELECT id, name FROM cloud_credentials WHERE id ",
        (one_of "$1"),
        " AND deleted_at IS NULL ORDER BY name, id"
    ))
    .bind(IdList(ids))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| Ok((row.try_get("id")?, row.try_get("name")?))).collect()
}

/// Finds it by name or id. A name is unique within its cloud only; a credential
/// that the project may use is preferred.
pub(crate) async fn credential(
    connection: &mut Connection,
    project: Option<Uuid>,
    name_or_id: &str,
) -> Result<Option<CredentialView>, Failure> {
    let row = sqlx::query(
        "SELECT k.id, k.name, k.cloud_id, k.kv_mount, k.kv_path, c.provider, \
         CASE WHEN g.project_id IS NULL THEN 0 ELSE 1 END AS assigned \
         FROM cloud_credentials k \
         LEFT JOIN clouds c ON c.id = k.cloud_id AND c.deleted_at IS NULL \
         LEFT JOIN credential_assignments g \
            ON g.cloud_credential_id = k.id AND g.project_id = $3 \
         WHERE (k.name = $1 OR k.id = $2) AND k.deleted_at IS NULL ORDER BY assigned DESC, k.id LIMIT 1",
    )
    .bind(name_or_id)
    .bind(as_id(name_or_id))
    .bind(project)
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let id: Uuid = row.try_get("id")?;
    credential_view(&row, id).map(Some).map_err(|fault| Failure::Corrupt { id, fault })
}

fn credential_view(row: &Row, id: Uuid) -> Result<CredentialView, Fault> {
    Ok(CredentialView {
        id: CloudCredentialId::new(id),
        name: rows::get(row, "name")?,
        cloud_id: CloudId::new(rows::get(row, "cloud_id")?),
        provider: rows::get(row, "provider")?,
        assigned: rows::get::<i32>(row, "assigned")? == 1,
        kv_mount: rows::get(row, "kv_mount")?,
        kv_path: rows::get(row, "kv_path")?,
    })
}
