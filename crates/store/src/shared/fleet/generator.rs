//! The table of generators.

use std::time::Duration;

use slipway_app::fleet::port::{FleetFilter, GeneratorKey};
use slipway_app::ports::store::Page;
use slipway_core::fleet::FleetName;
use slipway_core::fleet::generator::{Generator, GeneratorSnapshot};
use slipway_core::fleet::members::project_leaving;
use slipway_core::ids::{DeletionId, GeneratorId, ProjectId, Revision};
use slipway_core::subject::{Subject, SubjectKind};
use slipway_durable::claim::micros;
use sqlx::Row as _;
use uuid::Uuid;

use super::catalog::project;
use super::deletion::hydrate::duration;
use super::page::{Query, after, as_id, count, fetch_one, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select {
    () => {
        "SELECT g.id, g.revision, g.project_id, g.name, g.description, g.accepts_secrets, \
         g.retention, g.deletion_id, g.deleted_at, g.created_at, g.updated_at FROM generators g "
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
        let mut project = None;
        let generator = match key {
            GeneratorKey::New { project: reference, name } => {
                project = open_project(connection, reference).await?;
                match project {
                    Some(project) => by_name(connection, project, name).await?,
                    None => None,
                }
            }
            GeneratorKey::Existing(id) => table::lock::<Self>(connection, &id.to_string()).await?,
        };
        Ok(GeneratorSnapshot { now: now(connection).await?, project, generator })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: GeneratorId::new(rows::get(row, "id")?),
            project_id: ProjectId::new(rows::get(row, "project_id")?),
            name: FleetName::from_stored(rows::get(row, "name")?),
            description: rows::get(row, "description")?,
            accepts_secrets: rows::get::<i32>(row, "accepts_secrets")? != 0,
            retention: rows::get::<Option<i64>>(row, "retention")?.map(duration),
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

/// The live project of a reference, locked, if something may be made in it.
pub(crate) async fn open_project(
    connection: &mut Connection,
    reference: &str,
) -> Result<Option<ProjectId>, Failure> {
    let found = project::lock(connection, reference).await?;
    match found {
        Some(found) if found.deletion_id.is_some() => {
            Err(project_leaving(found.name.as_str()).into())
        }
        found => Ok(found.map(|found| found.id)),
    }
}

/// How long the generator that this thing is or belongs to keeps what was deleted.
pub(crate) async fn retention_of(
    connection: &mut Connection,
    subject: Subject,
) -> Result<Option<Duration>, Failure> {
    let statement = match subject.kind {
        SubjectKind::Generator => "SELECT retention FROM generators WHERE id = $1",
        SubjectKind::Stack => {
            "SELECT g.retention FROM stacks s JOIN generators g ON g.id = s.generator_id \
             WHERE s.id = $1"
        }
        SubjectKind::Template => {
            "SELECT g.retention FROM fleet_templates t JOIN generators g \
             ON g.id = t.generator_id WHERE t.id = $1"
        }
        _ => return Ok(None),
    };
    let row = sqlx::query(statement).bind(subject.id).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(row.try_get::<Option<i64>, _>("retention")?.map(duration))
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
    retention: bigint = row.retention.map(micros),
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

pub(crate) const UPDATE: RowSet<Generator> = update_rows!(dated, "generators" by id, |row: &Generator| {
    name: text = row.name,
    description: text = row.description,
    accepts_secrets: integer = i32::from(row.accepts_secrets),
    retention: bigint = row.retention.map(micros),
});
