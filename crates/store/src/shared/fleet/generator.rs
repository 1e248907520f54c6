//! The table of generators.

use slipway_app::fleet::port::{FleetFilter, GeneratorKey};
use slipway_app::ports::store::Page;
use slipway_core::fleet::FleetName;
use slipway_core::fleet::generator::{Generator, GeneratorSnapshot};
use slipway_core::ids::{DeletionId, GeneratorId, ProjectId, Revision};
use uuid::Uuid;

use super::catalog::project;
use super::page::{Query, after, as_id, count, fetch_one, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows, stack, template};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select {
    () => {
        "SELECT g.id, g.revision, g.project_id, g.name, g.description, g.accepts_secrets, \
         g.deletion_id, g.deleted_at, g.created_at, g.updated_at FROM generators g "
    };
}

impl Table for Generator {
    queries_by_id!(select!(), "g");

    fn page_query(filter: &FleetFilter, page: Page<GeneratorId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "WHERE g.id > $1 AND ($2 OR g.deleted_at IS NULL) \
             AND ($3 IS NULL OR g.project_id = $3) AND ($4 IS NULL OR g.id = $4) \
             AND ($5 IS NULL OR g.name = $5) ORDER BY g.id LIMIT $6"
        ))
        .bind(after(page))
        .bind(filter.show_deleted)
        .bind(filter.project.map(|id| id.as_uuid()))
        .bind(filter.generator.map(|id| id.as_uuid()))
        .bind(filter.name.as_deref())
        .bind(i64::from(page.limit))
    }

    async fn load(
        connection: &mut Connection,
        key: &GeneratorKey,
    ) -> Result<GeneratorSnapshot, Failure> {
        let (mut project, mut stacks, mut templates) = (None, Vec::new(), Vec::new());
        let generator = match key {
            GeneratorKey::New { project: reference, name } => {
                let found = project::lock(connection, reference).await?;
                project = found.map(|project| project.id);
                match project {
                    Some(project) => by_name(connection, project, name).await?,
                    None => None,
                }
            }
            GeneratorKey::Existing(id) => table::lock::<Self>(connection, &id.to_string()).await?,
            GeneratorKey::Leaving(id) => {
                let found = table::lock::<Self>(connection, &id.to_string()).await?;
                if found.is_some() {
                    stacks = stack::lock_of(connection, *id).await?;
                    templates = template::lock_of(connection, *id).await?;
                }
                found
            }
        };
        Ok(GeneratorSnapshot { now: now(connection).await?, project, generator, stacks, templates })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: GeneratorId::new(rows::get(row, "id")?),
            project_id: ProjectId::new(rows::get(row, "project_id")?),
            name: FleetName::from_stored(rows::get(row, "name")?),
            description: rows::get(row, "description")?,
            accepts_secrets: rows::get::<i32>(row, "accepts_secrets")? != 0,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

async fn by_name(
    connection: &mut Connection,
    project: ProjectId,
    name: &str,
) -> Result<Option<Generator>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE g.project_id = $1 AND g.name = $2 AND g.deleted_at IS NULL"
    ));
    let query = query.bind(project.as_uuid()).bind(name);
    fetch_one(connection, query, "id", Generator::read).await
}

/// Live generators, agents and templates of a project, which keep it from being deleted.
pub(crate) async fn live_in(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<i64, sqlx::Error> {
    let statement = "SELECT (SELECT count(*) FROM generators WHERE project_id = $1 \
         AND deleted_at IS NULL) + (SELECT count(*) FROM fleet_agents WHERE project_id = $1 \
         AND deleted_at IS NULL) + (SELECT count(*) FROM fleet_templates WHERE project_id = $1 \
         AND deleted_at IS NULL) AS found";
    count(connection, statement, project.as_uuid()).await
}

pub(crate) const MARKS: Marks = marks!(
    "generators",
    "name",
    "project_id",
    "project_id = (SELECT x.project_id FROM generators x WHERE x.id = $2)"
);

pub(crate) const INSERT: RowSet<Generator> = insert_rows!(guarded, "generators", |row: &Generator| {
    id: uuid = row.id,
    project_id: uuid = row.project_id,
    name: text = row.name,
    description: text = row.description,
    accepts_secrets: integer = i32::from(row.accepts_secrets),
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

pub(crate) const UPDATE: RowSet<Generator> = update_rows!(dated, "generators" by id, |row: &Generator| {
    name: text = row.name,
    description: text = row.description,
    accepts_secrets: integer = i32::from(row.accepts_secrets),
});
