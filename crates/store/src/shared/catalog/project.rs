//! The table of projects.

use std::collections::BTreeMap;

use slipway_core::catalog::Name;
use slipway_core::catalog::project::{Project, ProjectSnapshot};
use slipway_core::ids::{DeletionId, ProjectId, Revision};
use slipway_core::text::Labels;
use sqlx::Row as _;
use uuid::Uuid;

use super::broker::users;
use super::fleet::generator;
use super::nodes::mesh;
use super::page::{hydrate, now};
use super::placement::namespace;
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::tenants::tenant;
use super::topology::workspace;
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

impl Table for Project {
    queries!(
        "projects",
        "name",
        "id, revision, name, labels, mesh_cidr, deletion_id, deleted_at, created_at, updated_at"
    );

    async fn load(connection: &mut Connection, key: &str) -> Result<ProjectSnapshot, Failure> {
        let project = lock(connection, key).await?;
        let (resources, mesh_nodes, has_namespace, fleet, tenants, workspaces) = match &project {
            Some(project) => (
                users::live_resources(connection, project.id).await?,
                mesh::live_nodes(connection, project.id).await?,
                namespace::is_left(connection, project.id).await?,
                generator::live_in(connection, project.id).await?,
                tenant::live_in(connection, project.id).await?,
                workspace::live_in(connection, project.id).await?,
            ),
            None => (0, 0, false, 0, 0, 0),
        };
        let now = now(connection).await?;
        Ok(ProjectSnapshot {
            now,
            project,
            resources,
            mesh_nodes,
            has_namespace,
            fleet,
            tenants,
            workspaces,
        })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: ProjectId::new(rows::get(row, "id")?),
            name: Name::from_stored(rows::get(row, "name")?),
            labels: rows::json(row, "labels")?,
            mesh_cidr: mesh::cidr(row)?,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

/// Locks the live project of a reference: every decision that adds something to
/// it or removes it takes this lock.
pub(crate) async fn lock(
    connection: &mut Connection,
    reference: &str,
) -> Result<Option<Project>, Failure> {
    table::lock::<Project>(connection, reference).await
}

pub(crate) async fn labels(
    connection: &mut Connection,
    projects: &[ProjectId],
) -> Result<BTreeMap<ProjectId, Labels>, Failure> {
    let list: IdList = projects.iter().map(|id| id.as_uuid()).collect();
    let found = sqlx::query(sql!("SELECT id, labels FROM projects WHERE id ", (one_of "$1")))
        .bind(list)
        .fetch_all(&mut *connection)
        .await?;
    let pairs = found.iter().map(|row| {
        let id: Uuid = row.try_get("id")?;
        let labels = hydrate(row, "id", |row| rows::json::<Labels>(row, "labels"))?;
        Ok((ProjectId::new(id), labels))
    });
    pairs.collect()
}

pub(crate) const INSERT: RowSet<Project> = insert_rows!(guarded, "projects", |project: &Project| {
    id: uuid = project.id,
    name: text = project.name,
    labels: json = project.labels,
    created_at: time = project.created_at,
    updated_at: time = project.updated_at,
    mesh_cidr: text = project.mesh_cidr.to_string(),
});

pub(crate) const MARKS: Marks = marks!("projects", "name", "id");

const UPDATE: RowSet<Project> = update_rows!(dated, "projects" by id, |project: &Project| {
    labels: json = project.labels,
    mesh_cidr: text = project.mesh_cidr.to_string(),
});

pub(crate) async fn update(connection: &mut Connection, project: &Project) -> Result<(), Failure> {
    mesh::clear_if_unused(connection, project).await?;
    table::update(connection, &UPDATE, project).await
}
