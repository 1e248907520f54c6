//! The tables of clusters and of the projects assigned to them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_app::placement::port::ClusterIdentity;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::Refusal;
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{ClusterId, DeletionId, ProjectId, Revision};
use slipway_core::placement::cluster::{
    Cluster, ClusterAccess, ClusterAssignment, ClusterAssignmentSnapshot, ClusterSnapshot,
    NamespacePrefix, Verification,
};
use slipway_core::placement::namespace::NamespacePhase;
use sqlx::Row as _;
use uuid::Uuid;

use super::broker::users;
use super::catalog::project;
use super::page::{after, count, fetch_one, fetch_page, now, readable};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::topology::servers;
use super::transaction::Load;
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

macro_rules! select_assignment {
    () => {
        "SELECT s.project_id AS id, s.revision, s.cluster_id, s.namespace, s.namespace_phase, \
         s.withdrawn_at, s.status, s.created_at, s.updated_at FROM cluster_assignments s "
    };
}

impl Table for Cluster {
    queries!(
        "clusters",
        "name",
        "id, revision, name, engine, substrate_uid, namespace_prefix, region, access, \
         verified_at, verification, deletion_id, deleted_at, created_at, updated_at"
    );

    async fn load(connection: &mut Connection, key: &str) -> Result<ClusterSnapshot, Failure> {
        let cluster = table::lock::<Self>(connection, key).await?;
        // An assignment locks the cluster for share, so under the lock for update
        // neither count can grow.
        let (mut projects, mut attempts, mut on_it) = (0, 0, 0);
        if let Some(cluster) = &cluster {
            // The row of a project that left stays, with its namespace Deleted.
            let statement = "SELECT count(*) AS found FROM cluster_assignments s \
                 JOIN projects p ON p.id = s.project_id WHERE s.cluster_id = $1 \
                 AND NOT (s.namespace_phase = 'Deleted' \
                    AND (s.withdrawn_at IS NOT NULL OR p.deleted_at IS NOT NULL))";
            projects = count(connection, statement, cluster.id.as_uuid()).await?;
            attempts = users::of_partition(connection, cluster.id.into()).await?;
            on_it = servers::of_partition(connection, cluster.id.into()).await?;
        }
        let (now, servers) = (now(connection).await?, on_it);
        Ok(ClusterSnapshot { now, cluster, projects, attempts, servers })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: ClusterId::new(rows::get(row, "id")?),
            name: Name::from_stored(rows::get(row, "name")?),
            engine: rows::member(row, "engine", Engine::parse)?,
            substrate_uid: rows::get(row, "substrate_uid")?,
            namespace_prefix: NamespacePrefix::from_stored(rows::get(row, "namespace_prefix")?),
            region: rows::get::<Option<String>>(row, "region")?.map(Name::from_stored),
            access: access(row, "access")?,
            verification: verification(row)?,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

/// The placement of a project. Locks the project first, as declarations do,
/// then the named cluster.
pub(crate) struct PlacementOf<'a> {
    pub(crate) project: &'a str,
    pub(crate) cluster: Option<&'a str>,
}

impl Load for PlacementOf<'_> {
    type Snapshot = ClusterAssignmentSnapshot;

    async fn load(
        &self,
        connection: &mut Connection,
    ) -> Result<ClusterAssignmentSnapshot, Failure> {
        let project = project::lock(connection, self.project).await?;
        let cluster = match self.cluster {
            Some(cluster) => table::share::<Cluster>(connection, cluster).await?,
            None => None,
        };
        let (mut current, mut resources, mut engines) = (None, 0, Vec::new());
        if let Some(project) = &project {
            let statement =
                concat!(select_assignment!(), "WHERE s.project_id = $1", sql!(for_update));
            let query = sqlx::query(statement).bind(project.id.as_uuid());
            current = fetch_one(connection, query, "id", assignment).await?;
            resources = users::placed_resources(connection, project.id).await?;
            engines = users::live_engines(connection, project.id).await?;
        }
        let now = now(connection).await?;
        let assignment = current;
        Ok(ClusterAssignmentSnapshot { now, project, cluster, assignment, resources, engines })
    }
}

pub(crate) async fn assignment_fetch(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<Option<ClusterAssignment>, Failure> {
    let query = sqlx::query(concat!(select_assignment!(), "WHERE s.project_id = $1"))
        .bind(project.as_uuid());
    fetch_one(connection, query, "id", assignment).await
}

/// The placements of these projects that are in force or being cleared.
pub(crate) async fn assignments_of(
    connection: &mut Connection,
    projects: &[ProjectId],
) -> Result<Vec<ClusterAssignment>, Failure> {
    let list: IdList = projects.iter().map(|id| id.as_uuid()).collect();
    let found = sqlx::query(concat!(
        select_assignment!(),
        "WHERE (s.withdrawn_at IS NULL OR s.namespace_phase <> 'Deleted') AND s.project_id ",
        sql!((one_of "$1"))
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    Ok(readable("cluster assignment", &found, assignment))
}

/// The placements of live projects, and those of deleted projects whose namespace
/// is still terminating: what blocks them would be visible nowhere else.
pub(crate) async fn assignment_list(
    connection: &mut Connection,
    page: Page<ProjectId>,
) -> Result<Listed<ClusterAssignment>, Failure> {
    let query = sqlx::query(concat!(
        select_assignment!(),
        "JOIN projects p ON p.id = s.project_id \
         AND (p.deleted_at IS NULL OR s.namespace_phase = $3) \
         WHERE s.project_id > $1 ORDER BY s.project_id LIMIT $2"
    ))
    .bind(after(page))
    .bind(i64::from(page.limit))
    .bind(NamespacePhase::Terminating.as_str());
    fetch_page(connection, query, ("cluster assignment", "project_id"), page, assignment).await
}

pub(crate) fn access(row: &Row, column: &str) -> Result<Option<ClusterAccess>, Fault> {
    let stored: Option<String> = rows::get(row, column)?;
    let parsed = stored.map(|text| ClusterAccess::parse(&text)).transpose();
    parsed.map_err(|invalid| Fault::new("access", invalid.problem))
}

/// The stored part of a verification; its time has a column of its own.
#[derive(Serialize, Deserialize)]
pub(crate) struct Verified {
    pub(crate) problem: Option<String>,
    pub(crate) facts: Value,
}

fn verification(row: &Row) -> Result<Option<Verification>, Fault> {
    let Some(at) = rows::time_or_null(row, "verified_at")? else {
        return Ok(None);
    };
    let Verified { problem, facts } = rows::json(row, "verification")?;
    Ok(Some(Verification { at, problem, facts }))
}

pub(crate) fn assignment(row: &Row) -> Result<ClusterAssignment, Fault> {
    Ok(ClusterAssignment {
        project_id: ProjectId::new(rows::get(row, "id")?),
        cluster_id: ClusterId::new(rows::get(row, "cluster_id")?),
        namespace: rows::get(row, "namespace")?,
        namespace_phase: rows::member(row, "namespace_phase", NamespacePhase::parse)?,
        withdrawn_at: rows::time_or_null(row, "withdrawn_at")?,
        status: rows::json_or_null(row, "status")?.unwrap_or_default(),
        revision: Revision(rows::get(row, "revision")?),
        created_at: rows::time(row, "created_at")?,
        updated_at: rows::time(row, "updated_at")?,
    })
}

/// A cluster of an engine that this version does not know is left to a replica
/// that knows it; it is logged and left out.
pub(crate) async fn identities(
    connection: &mut Connection,
    (): (),
) -> Result<Vec<ClusterIdentity>, Failure> {
    let statement = "SELECT id, name, engine, substrate_uid FROM clusters \
         WHERE deleted_at IS NULL ORDER BY id";
    let found = sqlx::query(statement).fetch_all(&mut *connection).await?;
    let mut clusters = Vec::with_capacity(found.len());
    for row in &found {
        let engine: String = row.try_get("engine")?;
        let name: String = row.try_get("name")?;
        match Engine::parse(&engine) {
            Some(engine) => clusters.push(ClusterIdentity {
                id: ClusterId::new(row.try_get("id")?),
                name,
                engine,
                substrate_uid: row.try_get("substrate_uid")?,
            }),
            None => tracing::warn!(name, engine, "left out a cluster of an unknown engine"),
        }
    }
    Ok(clusters)
}

pub(crate) const INSERT: RowSet<Cluster> = insert_rows!(guarded, "clusters", |cluster: &Cluster| {
    id: uuid = cluster.id,
    name: text = cluster.name,
    engine: text = cluster.engine,
    substrate_uid: text = cluster.substrate_uid,
    namespace_prefix: text = cluster.namespace_prefix.as_str(),
    region: text = cluster.region,
    access: text = cluster.access.as_ref().map(ToString::to_string),
    created_at: time = cluster.created_at,
    updated_at: time = cluster.updated_at,
});

pub(crate) const UPDATE: RowSet<Cluster> = update_rows!(dated, "clusters" by id, |cluster: &Cluster| {
    namespace_prefix: text = cluster.namespace_prefix.as_str(),
    region: text = cluster.region,
    access: text = cluster.access.as_ref().map(ToString::to_string),
});

pub(crate) const MARKS: Marks = marks!("clusters", "name", "NULL");

/// The definitions stay on a cluster that is deleted; their progress is forgotten.
pub(crate) async fn forget_definitions(
    connection: &mut Connection,
    cluster: Uuid,
) -> Result<(), Failure> {
    sqlx::query("DELETE FROM blueprint_definitions WHERE cluster_id = $1")
        .bind(cluster)
        .execute(connection)
        .await?;
    Ok(())
}

pub(crate) const ASSIGNMENT_INSERT: RowSet<ClusterAssignment> = insert_rows!(plain, "cluster_assignments", |current: &ClusterAssignment| {
    project_id: uuid = current.project_id,
    cluster_id: uuid = current.cluster_id,
    namespace: text = current.namespace,
    namespace_phase: text = current.namespace_phase,
    created_at: time = current.created_at,
    updated_at: time = current.updated_at,
    withdrawn_at: time = current.withdrawn_at,
    status: json = current.status,
});

const ASSIGNMENT_UPDATE: RowSet<ClusterAssignment> = update_rows!(dated, "cluster_assignments" by project_id, |current: &ClusterAssignment| {
    cluster_id: uuid = current.cluster_id,
    namespace: text = current.namespace,
    namespace_phase: text = current.namespace_phase,
    withdrawn_at: time = current.withdrawn_at,
    status: json = current.status,
});

pub(crate) async fn assignment_update(
    connection: &mut Connection,
    current: &ClusterAssignment,
) -> Result<(), Failure> {
    ASSIGNMENT_UPDATE.write_guarded(connection, &[current], stale).await
}

pub(crate) async fn assignment_delete(
    connection: &mut Connection,
    current: &ClusterAssignment,
) -> Result<(), Failure> {
    let deleted =
        sqlx::query("DELETE FROM cluster_assignments WHERE project_id = $1 AND revision = $2")
            .bind(current.project_id.as_uuid())
            .bind(current.revision.0)
            .execute(connection)
            .await?
            .rows_affected();
    writes::one_row(deleted, || stale(current))
}

fn stale(current: &ClusterAssignment) -> Refusal {
    writes::stale("cluster assignment of project", current.project_id, current.revision)
}

/// The cluster of a project's placement, unless it was withdrawn.
pub(crate) async fn placed_on(
    connection: &mut Connection,
    project: Uuid,
) -> Result<Option<Uuid>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT cluster_id FROM cluster_assignments \
         WHERE project_id = $1 AND withdrawn_at IS NULL",
    )
    .bind(project)
    .fetch_optional(connection)
    .await?;
    row.map(|row| row.try_get("cluster_id")).transpose()
}

/// The name of another live cluster that reported the same identity as this one.
pub(crate) async fn same_identity(
    connection: &mut Connection,
    cluster: Uuid,
) -> Result<Option<String>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT o.name FROM clusters c JOIN clusters o ON o.substrate_uid = c.substrate_uid \
         AND o.id <> c.id AND o.deleted_at IS NULL WHERE c.id = $1 ORDER BY o.id LIMIT 1",
    )
    .bind(cluster)
    .fetch_optional(connection)
    .await?;
    row.map(|row| row.try_get("name")).transpose()
}
