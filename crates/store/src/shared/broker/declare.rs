//! Loads what a declaration is checked against, with the project row locked.
//!
//! The lock serialises the declarations of one project, so that a handle that
//! was read as free still is when it is written.

use slipway_app::broker::port::DeclareKey;
use slipway_core::broker::snapshot::{CredentialConflict, CredentialView, DeclareSnapshot};
use slipway_core::catalog::blueprint_version::{BlueprintVersion, Engine};
use slipway_core::ids::{CloudCredentialId, CloudId, ProjectId, ResourceId};
use slipway_core::placement::namespace::Placement;
use sqlx::Row as _;
use uuid::Uuid;

use super::catalog::version_hydrate::{self, select_versions};
use super::page::{as_id, now};
use super::placement::hydrate::select_placements;
use super::transaction::Load;
use super::{Connection, Row, placement, rows};
use crate::failure::Failure;
use crate::fault::Fault;

impl Load for &DeclareKey {
    type Snapshot = DeclareSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<DeclareSnapshot, Failure> {
        let project = project_lock(connection, &self.project).await?;
        let (blueprint, blueprint_retired) =
            blueprint_version(connection, &self.blueprint, self.version.as_deref()).await?;
        let assigned_credentials = match project {
            Some(project) => assigned_credentials(connection, project).await?,
            None => Vec::new(),
        };
        let credential = match (&self.credential, &assigned_credentials[..]) {
            (Some(name), _) => credential(connection, project, name).await?,
            (None, [(id, _)]) => credential(connection, project, &id.to_string()).await?,
            (None, _) => None,
        };
        let (placement, holder) = match project {
            Some(project) => (
                placement(connection, project).await?,
                holder(connection, project, &self.handle).await?,
            ),
            None => (None, None),
        };
        let conflict = match (project, &blueprint, &credential) {
            (Some(project), Some(blueprint), Some(credential))
                if blueprint.engine == Engine::Crossplane =>
            {
                conflict(connection, project, credential).await?
            }
            _ => None,
        };
        Ok(DeclareSnapshot {
            now: now(connection).await?,
            project: project.map(ProjectId::new),
            blueprint,
            blueprint_retired,
            credential,
            assigned_credentials: assigned_credentials.into_iter().map(|(_, name)| name).collect(),
            placement,
            holder,
            conflict,
        })
    }
}

async fn project_lock(
    connection: &mut Connection,
    project: &str,
) -> Result<Option<Uuid>, sqlx::Error> {
    let row = sqlx::query(sql!(
        "SELECT id FROM projects WHERE (name = $1 OR id = $2) AND deleted_at IS NULL \
         ORDER BY id LIMIT 1",
        for_update
    ))
    .bind(project)
    .bind(as_id(project))
    .fetch_optional(connection)
    .await?;
    row.map(|row| row.try_get("id")).transpose()
}

/// The named version, or the last published one that is not retired, and whether it
/// is retired. The lock keeps it from being retired until this transaction ends.
async fn blueprint_version(
    connection: &mut Connection,
    slug: &str,
    version: Option<&str>,
) -> Result<(Option<BlueprintVersion>, bool), Failure> {
    let row = sqlx::query(concat!(
        select_versions!(),
        "WHERE b.slug = $1 AND ($2 IS NULL OR v.version = $2) \
         ORDER BY CASE WHEN v.retired_at IS NULL THEN 0 ELSE 1 END, v.published_at DESC, \
         v.id DESC LIMIT 1",
        sql!(for_share)
    ))
    .bind(slug)
    .bind(version)
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
async fn assigned_credentials(
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
    .bind(crate::id_list::IdList(ids))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| Ok((row.try_get("id")?, row.try_get("name")?))).collect()
}

/// Finds it by name or id. A name is unique within its cloud only; a credential
/// that the project may use is preferred.
async fn credential(
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

async fn placement(
    connection: &mut Connection,
    project: Uuid,
) -> Result<Option<Placement>, Failure> {
    let row = sqlx::query(concat!(
        select_placements!(),
        "WHERE s.project_id = $1 AND s.withdrawn_at IS NULL"
    ))
    .bind(project)
    .fetch_optional(connection)
    .await?;
    match row {
        None => Ok(None),
        Some(row) => placement::hydrate::placement(&row)
            .map_err(|fault| Failure::Corrupt { id: project, fault }),
    }
}

async fn holder(
    connection: &mut Connection,
    project: Uuid,
    handle: &str,
) -> Result<Option<Uuid>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT id FROM resources \
         WHERE project_id = $1 AND handle = $2 AND deleted_at IS NULL",
    )
    .bind(project)
    .bind(handle)
    .fetch_optional(connection)
    .await?;
    row.map(|row| row.try_get("id")).transpose()
}

/// A resource of the project whose composite would read the same ProviderConfig
/// and needs another credential in it. All attempts of a resource use one
/// credential, so any of them will do.
async fn conflict(
    connection: &mut Connection,
    project: Uuid,
    wanted: &CredentialView,
) -> Result<Option<CredentialConflict>, Failure> {
    let row = sqlx::query(
        "SELECT r.id, k.name FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id \
         JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
         JOIN blueprints b ON b.id = v.blueprint_id \
         JOIN cloud_credentials k ON k.id = a.cloud_credential_id \
         JOIN clouds c ON c.id = k.cloud_id \
         WHERE r.project_id = $1 AND r.deleted_at IS NULL AND b.engine = 'crossplane' \
         AND c.provider = $2 AND k.id <> $3 ORDER BY r.id LIMIT 1",
    )
    .bind(project)
    .bind(&wanted.provider)
    .bind(wanted.id.as_uuid())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let resource_id = ResourceId::new(row.try_get("id")?);
    Ok(Some(CredentialConflict { resource_id, credential: row.try_get("name")? }))
}
