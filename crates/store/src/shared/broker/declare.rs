//! Loads what a declaration is checked against, with the project row locked, and the same
//! for whoever corrects one.
//!
//! The lock serialises the declarations of one project, so that a handle that
//! was read as free still is when it is written.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_app::broker::port::{DeclareKey, RedeclareKey, Redeclared, ResourceKey};
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::{CredentialConflict, CredentialView, DeclareSnapshot};
use slipway_core::broker::surge;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{ProjectId, ResourceId};
use slipway_core::placement::namespace::Placement;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::catalog::for_declaration;
use super::decide::ByKey;
use super::page::now;
use super::placement::hydrate::select_placements;
use super::transaction::Load;
use super::{Connection, placement};
use crate::blueprints::Blueprints;
use crate::failure::Failure;

impl Load for &DeclareKey {
    type Snapshot = DeclareSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<DeclareSnapshot, Failure> {
        let (snapshot, holders) = load_group(connection, &[*self]).await?;
        Ok(DeclareSnapshot { holder: holders.get(&self.handle).copied(), ..snapshot })
    }
}

/// Locks the project of declarations that differ only in their handles, and loads what all of
/// them are checked against, and who holds these handles.
pub(crate) async fn load_group(
    connection: &mut Connection,
    keys: &[&DeclareKey],
) -> Result<(DeclareSnapshot, BTreeMap<String, Uuid>), Failure> {
    let Some(key) = keys.first() else { return Err(Failure::NotFound { kind: "declaration" }) };
    let project = for_declaration::lock_project(connection, &key.project).await?;
    let project_leaving = project.is_some_and(|(_, leaving)| leaving);
    let project = project.map(|(id, _)| id);
    let named = (key.blueprint.as_str(), key.version.as_deref(), key.credential.as_deref());
    let holders = match project {
        Some(project) => {
            let handles: Vec<&str> = keys.iter().map(|key| &*key.handle).collect();
            holders(connection, project, &handles).await?
        }
        None => BTreeMap::new(),
    };
    let declared = snapshot(connection, project, named).await?;
    Ok((DeclareSnapshot { project_leaving, ..declared }, holders))
}

/// A resource, locked, with what its corrected declaration is checked against. The project is not locked: who has locked it waits for no resource, and what
/// the resource uses of the project cannot be withdrawn while it uses it. Another version
/// may use the shared ProviderConfig for the first time, see [`conflict`].
pub(crate) struct Corrected<'a> {
    pub(crate) blueprints: &'a Blueprints,
    pub(crate) key: &'a RedeclareKey,
}

impl Load for Corrected<'_> {
    type Snapshot = RedeclareSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<RedeclareSnapshot, Failure> {
        let key = ResourceKey::Resource(self.key.resource);
        let by_key = ByKey { blueprints: self.blueprints, key };
        let resource = Box::pin(by_key.load(connection)).await?;
        let beside = resource.beside().filter(|_| self.key.of == Redeclared::Beside);
        let corrected = beside.unwrap_or(&resource);
        let project = resource.resource.project_id.as_uuid();
        let name = sqlx::query("SELECT name FROM projects WHERE id = $1")
            .bind(project)
            .fetch_one(&mut *connection)
            .await?
            .try_get("name")?;
        let version = self.key.version.as_deref().unwrap_or(&corrected.blueprint.version);
        let credential = corrected.attempt.cloud_credential_id().to_string();
        let named = (corrected.blueprint.slug.as_str(), Some(version), Some(credential.as_str()));
        let mut declared = snapshot(connection, Some(project), named).await?;
        if self.key.of == Redeclared::WithSurge {
            // The project is not locked, since its nodes are waited for here: a declaration at
            // the same moment may take the name as a handle. Two nodes are called alike then,
            // and nothing relies on that.
            let hostname = surge::hostname(&resource.resource.handle, resource.latest + 1);
            let holders = holders(connection, project, &[&hostname]).await?;
            declared.holder = holders.get(&hostname).copied();
        }
        Ok(RedeclareSnapshot { resource, project: name, declared })
    }
}

/// What is found of blueprint, version and credential, for this project.
pub(crate) async fn snapshot(
    connection: &mut Connection,
    project: Option<Uuid>,
    (slug, version, credential): (&str, Option<&str>, Option<&str>),
) -> Result<DeclareSnapshot, Failure> {
    let (blueprint, blueprint_retired) =
        for_declaration::blueprint_version(connection, slug, version).await?;
    let assigned_credentials = match project {
        Some(project) => for_declaration::assigned_credentials(connection, project).await?,
        None => Vec::new(),
    };
    let credential = match (credential, &assigned_credentials[..]) {
        (Some(name), _) => for_declaration::credential(connection, project, name).await?,
        (None, [(id, _)]) => {
            for_declaration::credential(connection, project, &id.to_string()).await?
        }
        (None, _) => None,
    };
    let placement = match project {
        Some(project) => placement(connection, project).await?,
        None => None,
    };
    let conflict = match (project, &blueprint, &credential) {
        (Some(project), Some(blueprint), Some(credential))
            if blueprint.engine == Engine::Crossplane && !blueprint.own_provider_config =>
        {
            conflict(connection, project, credential).await?
        }
        _ => None,
    };
    Ok(DeclareSnapshot {
        now: now(connection).await?,
        project: project.map(ProjectId::new),
        project_leaving: false,
        blueprint,
        blueprint_retired,
        credential,
        assigned_credentials: assigned_credentials.into_iter().map(|(_, name)| name).collect(),
        placement,
        holder: None,
        conflict,
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

/// The resources that have the handles, or whose nodes have them as their names.
async fn holders(
    connection: &mut Connection,
    project: Uuid,
    handles: &[&str],
) -> Result<BTreeMap<String, Uuid>, sqlx::Error> {
    let given: Vec<Value> = handles.iter().map(|handle| json!({ "handle": handle })).collect();
    let found = sqlx::query(concat!(
        "WITH wanted AS (SELECT given.handle FROM ",
        rows_from_json!(handle: text),
        ") SELECT r.handle, r.id FROM wanted JOIN resources r ON r.handle = wanted.handle \
         WHERE r.project_id = $2 AND r.deleted_at IS NULL \
         UNION ALL SELECT a.hostname AS handle, a.resource_id AS id FROM wanted \
         JOIN provisioned_resources a ON a.hostname = wanted.handle \
         WHERE a.project_id = $2 AND a.status <> 'Deleted'"
    ))
    .bind(Json(given))
    .bind(project)
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| Ok((row.try_get("handle")?, row.try_get("id")?))).collect()
}

/// A resource of the project whose attempt, or the corrected one that follows it,
/// reads the shared ProviderConfig and needs another credential in it. The lock of the
/// placement serialises those who ask, since a correction does not lock the project.
async fn conflict(
    connection: &mut Connection,
    project: Uuid,
    wanted: &CredentialView,
) -> Result<Option<CredentialConflict>, Failure> {
    sqlx::query(sql!(
        "SELECT project_id FROM cluster_assignments WHERE project_id = $1",
        for_update
    ))
    .bind(project)
    .fetch_optional(&mut *connection)
    .await?;
    let row = sqlx::query(
        "SELECT r.id, k.name FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id AND a.status <> 'Deleted' \
         JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
         LEFT JOIN blueprint_versions n ON n.id = a.next_blueprint_version_id \
         JOIN blueprints b ON b.id = v.blueprint_id \
         JOIN cloud_credentials k ON k.id = a.cloud_credential_id \
         JOIN clouds c ON c.id = k.cloud_id \
         WHERE r.project_id = $1 AND r.deleted_at IS NULL AND b.engine = 'crossplane' \
         AND c.provider = $2 AND k.id <> $3 \
         AND (v.own_provider_config = 0 OR n.own_provider_config = 0) ORDER BY r.id LIMIT 1",
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
