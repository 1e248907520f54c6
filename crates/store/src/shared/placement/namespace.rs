//! The placements of projects on management clusters, with what their resources use.

use std::collections::HashMap;

use serde_json::Value;
use slipway_app::placement::port::Found;
use slipway_core::Timestamp;
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint_version::{CompositeType, Engine};
use slipway_core::ids::{CloudCredentialId, CloudId, ClusterId, ProjectId};
use slipway_core::placement::cluster::Candidate;
use slipway_core::placement::provider_config;
use slipway_core::placement::shared_objects::{ProjectNamespace, ProviderUse};
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::broker::users;
use super::catalog::version_hydrate;
use super::cluster::{self, Verified};
use super::page::{as_id, count, fetch_one, hydrate, now, readable};
use super::transaction::Load;
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

pub(crate) async fn candidates(
    connection: &mut Connection,
    (region, project): (&str, &str),
) -> Result<Vec<Candidate>, Failure> {
    let found = sqlx::query(
        "SELECT c.id, c.substrate_uid, c.verification, count(s.project_id) AS projects, \
         count(CASE WHEN p.id = $3 OR p.name = $2 THEN 1 END) AS home FROM clusters c \
         LEFT JOIN cluster_assignments s ON s.cluster_id = c.id AND s.withdrawn_at IS NULL \
         LEFT JOIN projects p ON p.id = s.project_id AND p.deleted_at IS NULL \
         WHERE c.region = $1 AND c.deleted_at IS NULL \
         GROUP BY c.id, c.substrate_uid, c.verification ORDER BY c.id",
    )
    .bind(region)
    .bind(project)
    .bind(as_id(project))
    .fetch_all(&mut *connection)
    .await?;
    Ok(readable(ClusterId::KIND, &found, candidate))
}

fn candidate(row: &Row) -> Result<Candidate, Fault> {
    let known: Option<String> = rows::get(row, "substrate_uid")?;
    let verified: Option<Verified> = rows::json_or_null(row, "verification")?;
    let usable = known.is_some() && verified.is_none_or(|verified| verified.problem.is_none());
    Ok(Candidate {
        id: ClusterId::new(rows::get(row, "id")?),
        usable,
        projects: rows::get(row, "projects")?,
        is_home: rows::get::<i64>(row, "home")? > 0,
    })
}

macro_rules! select {
    () => {
        "SELECT s.project_id AS id, s.revision, s.cluster_id, s.namespace, s.namespace_phase, \
         s.withdrawn_at, s.status, s.created_at, s.updated_at, p.deleted_at AS project_deleted_at \
         FROM cluster_assignments s JOIN projects p ON p.id = s.project_id "
    };
}

/// The clouds and credentials used by resources whose absence is not proven for
/// good, as [`users::placed_resources`] counts them. By provider, the shared ProviderConfig
/// before those of credentials.
macro_rules! uses {
    ($which:literal) => {
        concat!(
            "SELECT DISTINCT a.project_id, c.provider, c.id AS cloud_id, c.endpoint, \
             k.id AS credential_id, k.kv_mount, k.kv_path, v.own_provider_config \
             FROM provisioned_resources a \
             JOIN cluster_assignments s ON s.project_id = a.project_id \
             JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
             JOIN blueprints b ON b.id = v.blueprint_id AND b.engine = $2 \
             JOIN cloud_credentials k ON k.id = a.cloud_credential_id \
             JOIN clouds c ON c.id = k.cloud_id WHERE ",
            $which,
            " AND (a.status <> $3 OR (a.absence_proven_at IS NULL AND a.due_at IS NOT NULL)) \
             ORDER BY c.provider, v.own_provider_config, k.id"
        )
    };
}

pub(crate) async fn list(
    connection: &mut Connection,
    cluster: ClusterId,
) -> Result<Vec<ProjectNamespace>, Failure> {
    let places = sqlx::query(concat!(select!(), "WHERE s.cluster_id = $1 ORDER BY s.project_id"))
        .bind(cluster.as_uuid())
        .fetch_all(&mut *connection)
        .await?;
    let statement = uses!("s.cluster_id = $1");
    let mut used = used(connection, statement, cluster.as_uuid()).await?;
    let mut project_namespaces = Vec::with_capacity(places.len());
    let now = now(connection).await?;
    for (assignment, project_deleted_at) in readable("cluster assignment", &places, current) {
        let project = assignment.project_id;
        let uses = used.remove(&project.as_uuid()).unwrap_or_default();
        let mut project_namespace =
            ProjectNamespace { now, assignment, project_deleted_at, resources: 0, uses };
        // Only leaving projects need the count, and few leave at a time.
        if project_namespace.is_leaving() {
            project_namespace.resources = users::placed_resources(connection, project).await?;
        }
        project_namespaces.push(project_namespace);
    }
    Ok(project_namespaces)
}

fn current(
    row: &Row,
) -> Result<(slipway_core::placement::cluster::ClusterAssignment, Option<Timestamp>), Fault> {
    Ok((cluster::assignment(row)?, rows::time_or_null(row, "project_deleted_at")?))
}

async fn used(
    connection: &mut Connection,
    statement: &'static str,
    key: Uuid,
) -> Result<HashMap<Uuid, Vec<ProviderUse>>, Failure> {
    let found = sqlx::query(statement)
        .bind(key)
        .bind(Engine::Crossplane.as_str())
        .bind(Phase::Deleted.as_str())
        .fetch_all(connection)
        .await?;
    let mut uses: HashMap<Uuid, Vec<ProviderUse>> = HashMap::new();
    for row in &found {
        let project: Uuid = row.try_get("project_id")?;
        let uses = uses.entry(project).or_default();
        let used = hydrate(row, "credential_id", one_use)?;
        // One credential for each ProviderConfig: one that awaits its deletion verification
        // may be a second one, and the two must not alternately overwrite each other.
        let is_other =
            |last: &ProviderUse| (&last.provider, &last.config) != (&used.provider, &used.config);
        if uses.last().is_none_or(is_other) {
            uses.push(used);
        }
    }
    Ok(uses)
}

fn one_use(row: &Row) -> Result<ProviderUse, Fault> {
    let provider: String = rows::get(row, "provider")?;
    let credential_id = CloudCredentialId::new(rows::get(row, "credential_id")?);
    let own = rows::get::<i32>(row, "own_provider_config")? != 0;
    Ok(ProviderUse {
        config: provider_config::name(&provider, own.then_some(credential_id)),
        provider,
        cloud_id: CloudId::new(rows::get(row, "cloud_id")?),
        endpoint: rows::json(row, "endpoint")?,
        credential_id,
        kv_mount: rows::get(row, "kv_mount")?,
        kv_path: rows::get(row, "kv_path")?,
    })
}

/// Whether the namespace of a project is not proven gone from its cluster. Where the
/// engine needs none, there is none.
pub(crate) async fn is_left(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<bool, sqlx::Error> {
    let statement = "SELECT count(*) AS found FROM cluster_assignments s \
         JOIN clusters c ON c.id = s.cluster_id WHERE s.project_id = $1 \
         AND c.engine = 'crossplane' AND s.namespace_phase <> 'Deleted'";
    Ok(count(connection, statement, project.as_uuid()).await? > 0)
}

/// The placement of a project. Locks the project first, as declarations do: a
/// concurrent declaration waits, and an earlier one is counted.
pub(crate) struct PlacementOf(pub(crate) ProjectId);

impl Load for PlacementOf {
    type Snapshot = ProjectNamespace;

    async fn load(&self, connection: &mut Connection) -> Result<ProjectNamespace, Failure> {
        let project = self.0;
        sqlx::query(sql!("SELECT id FROM projects WHERE id = $1", for_update))
            .bind(project.as_uuid())
            .fetch_optional(&mut *connection)
            .await?;
        let statement = concat!(select!(), "WHERE s.project_id = $1", sql!((for_update_of "s")));
        let query = sqlx::query(statement).bind(project.as_uuid());
        let (assignment, project_deleted_at) =
            fetch_one(connection, query, "id", current)
                .await?
                .ok_or(Failure::NotFound { kind: "cluster assignment" })?;
        let statement = uses!("a.project_id = $1");
        let mut used = used(connection, statement, project.as_uuid()).await?;
        Ok(ProjectNamespace {
            now: now(connection).await?,
            assignment,
            project_deleted_at,
            resources: users::placed_resources(connection, project).await?,
            uses: used.remove(&project.as_uuid()).unwrap_or_default(),
        })
    }
}

/// An attempt's partition is the id of its cluster.
pub(crate) async fn kinds(
    connection: &mut Connection,
    cluster: ClusterId,
) -> Result<Vec<CompositeType>, Failure> {
    let found = sqlx::query(
        "SELECT v.id AS v_id, v.api_group AS v_api_group, v.api_version AS v_api_version, \
         v.kind AS v_kind, v.plural AS v_plural, v.scope AS v_scope, \
         v.cloud_tags AS v_cloud_tags FROM blueprint_versions v WHERE v.kind IS NOT NULL \
         AND EXISTS (SELECT 1 FROM provisioned_resources a \
            WHERE a.blueprint_version_id = v.id AND a.partition = $1) ORDER BY v.id",
    )
    .bind(cluster.as_uuid())
    .fetch_all(&mut *connection)
    .await?;
    let mut kinds = Vec::with_capacity(found.len());
    for row in &found {
        kinds.extend(hydrate(row, "v_id", version_hydrate::composite_definition)?);
    }
    Ok(kinds.into_iter().map(|defined| defined.composite_type).collect())
}

pub(crate) async fn verified(
    connection: &mut Connection,
    (cluster, found): (ClusterId, &Found),
) -> Result<End<bool>, Failure> {
    let row = sqlx::query(sql!(
        "SELECT substrate_uid, verification FROM clusters WHERE id = $1 AND deleted_at IS NULL",
        for_update
    ))
    .bind(cluster.as_uuid())
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(Failure::NotFound { kind: ClusterId::KIND })?;
    let known: Option<String> = row.try_get("substrate_uid")?;
    let before: Option<Json<Value>> = row.try_get("verification")?;
    let identity = known.as_deref().or(found.identity.as_deref());
    let after = serde_json::json!({ "problem": found.problem, "facts": found.facts });
    if known.as_deref() == identity && before.is_some_and(|before| before.0 == after) {
        return Ok(End::Rollback(false));
    }
    sqlx::query(sql!(
        "UPDATE clusters SET substrate_uid = $2, verification = $3, verified_at = ",
        now,
        ", revision = revision + 1, updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id = $1"
    ))
    .bind(cluster.as_uuid())
    .bind(identity)
    .bind(Json(after))
    .execute(&mut *connection)
    .await?;
    Ok(End::Commit(true))
}
