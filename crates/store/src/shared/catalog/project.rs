//! The table of projects.

use std::collections::BTreeMap;

use slipway_core::catalog::Name;
use slipway_core::catalog::project::Project;
use slipway_core::catalog::rules::project::ProjectSnapshot;
use slipway_core::ids::{DeletionId, ProjectId, Revision};
use slipway_core::text::Labels;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::broker::users;
use super::nodes::mesh;
use super::page::{hydrate, now};
use super::table::{self, Table};
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

impl Table for Project {
    queries!(
        marked,
        "projects",
        "name",
        "id, revision, name, labels, mesh_cidr, deletion_id, deleted_at, created_at, updated_at"
    );

    async fn load(connection: &mut Connection, key: &str) -> Result<ProjectSnapshot, Failure> {
        let project = lock(connection, key).await?;
        let (resources, mesh_nodes) = match &project {
            Some(project) => (
                users::live_resources(connection, project.id).await?,
                mesh::live_nodes(connection, project.id).await?,
            ),
            None => (0, 0),
        };
        Ok(ProjectSnapshot { now: now(connection).await?, project, resources, mesh_nodes })
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

pub(crate) async fn insert(connection: &mut Connection, project: &Project) -> Result<(), Failure> {
    let query = sqlx::query(
        "INSERT INTO projects (id, name, labels, created_at, updated_at, mesh_cidr) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
    )
    .bind(project.id.as_uuid())
    .bind(project.name.as_str())
    .bind(Json(&project.labels))
    .bind(Micros::from(project.created_at))
    .bind(Micros::from(project.updated_at))
    .bind(project.mesh_cidr.to_string());
    table::insert(connection, query, "name", project.name.as_str()).await
}

pub(crate) async fn update(connection: &mut Connection, project: &Project) -> Result<(), Failure> {
    mesh::clear_if_unused(connection, project).await?;
    let statement =
        update_sql!("projects", "labels = $3, deletion_id = $4, deleted_at = $5, mesh_cidr = $6");
    let query = table::at_revision(statement, project)
        .bind(Json(&project.labels))
        .bind(project.deletion_id.map(|id| id.as_uuid()))
        .bind(writes::optional(project.deleted_at))
        .bind(project.mesh_cidr.to_string());
    table::write(connection, query, project).await
}
