//! The table of templates: a row for each version.

use slipway_app::fleet::port::{FleetFilter, TemplateKey, TemplateOwner};
use slipway_app::ports::store::Page;
use slipway_core::fleet::FleetName;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::template::{Template, TemplateSnapshot, TemplateText};
use slipway_core::ids::{DeletionId, GeneratorId, ProjectId, Revision, TemplateId};
use sqlx::Row as _;
use uuid::Uuid;

use super::catalog::project;
use super::generator::open_project;
use super::page::{Query, after, as_id, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select {
    () => {
        "SELECT t.id, t.revision, t.project_id, t.generator_id, t.name, t.description, \
         t.version, t.template_content, t.parameters_schema, t.deletion_id, t.deleted_at, \
         t.created_at, t.updated_at FROM fleet_templates t "
    };
}

impl Table for Template {
    queries_by_id!(select!(), "t");

    fn page_query(filter: &FleetFilter, page: Page<TemplateId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "WHERE t.id > $1 AND ($2 OR t.deleted_at IS NULL) \
             AND ($3 IS NULL OR t.project_id = $3) \
             AND ($4 IS NULL OR t.generator_id IS NULL OR t.generator_id = $4) \
             AND ($5 IS NULL OR t.name = $5) ORDER BY t.id LIMIT $6"
        ))
        .bind(after(page))
        .bind(filter.show_deleted)
        .bind(filter.project.map(|id| id.as_uuid()))
        .bind(filter.generator.map(|id| id.as_uuid()))
        .bind(filter.name.as_deref())
        .bind(i64::from(page.limit))
    }

    /// Versions of one name are numbered under the lock of what the template belongs to.
    async fn load(
        connection: &mut Connection,
        key: &TemplateKey,
    ) -> Result<TemplateSnapshot, Failure> {
        let (mut project, mut generator, mut template) = (None, None, None);
        let mut name = None;
        match key {
            TemplateKey::New { owner: TemplateOwner::Generator(id), name: new } => {
                generator = table::lock::<Generator>(connection, &id.to_string()).await?;
                name = Some(new.clone());
            }
            TemplateKey::New { owner: TemplateOwner::Project(reference), name: new } => {
                project = open_project(connection, reference).await?;
                name = Some(new.clone());
            }
            TemplateKey::Existing(id) => {
                if let Some((of_project, of_generator)) = owner_of(connection, *id).await? {
                    match of_generator {
                        Some(id) => {
                            generator =
                                table::lock::<Generator>(connection, &id.to_string()).await?;
                        }
                        None => {
                            let reference = of_project.to_string();
                            let found = project::lock(connection, &reference).await?;
                            project = found.map(|project| project.id);
                        }
                    }
                    template = table::lock::<Self>(connection, &id.to_string()).await?;
                    name = template.as_ref().map(|found| found.name.to_string());
                }
            }
        }
        let owner = generator.as_ref().map(|one| one.id.as_uuid());
        let owner = owner.or(project.map(|project| project.as_uuid()));
        let (mut last_version, mut is_taken) = (0, false);
        if let (Some(owner), Some(name)) = (owner, name) {
            let row = sqlx::query(
                "SELECT coalesce(max(t.version), 0) AS last, \
                 coalesce(max(CASE WHEN t.deleted_at IS NULL THEN 1 ELSE 0 END), 0) AS taken \
                 FROM fleet_templates t \
                 WHERE coalesce(t.generator_id, t.project_id) = $1 AND t.name = $2",
            )
            .bind(owner)
            .bind(&name)
            .fetch_one(&mut *connection)
            .await?;
            last_version = row.try_get("last")?;
            is_taken = row.try_get::<i32, _>("taken")? != 0;
        }
        let now = now(connection).await?;
        Ok(TemplateSnapshot { now, project, generator, template, last_version, is_taken })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: TemplateId::new(rows::get(row, "id")?),
            project_id: ProjectId::new(rows::get(row, "project_id")?),
            generator_id: rows::get::<Option<Uuid>>(row, "generator_id")?.map(GeneratorId::new),
            name: FleetName::from_stored(rows::get(row, "name")?),
            description: rows::get(row, "description")?,
            version: rows::get(row, "version")?,
            text: TemplateText {
                content: rows::get(row, "template_content")?,
                parameters_schema: rows::get(row, "parameters_schema")?,
            },
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

/// What a template belongs to never changes.
async fn owner_of(
    connection: &mut Connection,
    id: TemplateId,
) -> Result<Option<(Uuid, Option<Uuid>)>, sqlx::Error> {
    let row = sqlx::query("SELECT project_id, generator_id FROM fleet_templates WHERE id = $1")
        .bind(id.as_uuid())
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok((row.try_get("project_id")?, row.try_get("generator_id")?))).transpose()
}

pub(crate) const MARKS: Marks = marks!(
    "fleet_templates",
    "name",
    "project_id",
    "(version, coalesce(generator_id, project_id)) = \
     (SELECT x.version, coalesce(x.generator_id, x.project_id) FROM fleet_templates x \
      WHERE x.id = $2)"
);

pub(crate) const INSERT: RowSet<Template> = insert_rows!(guarded, "fleet_templates", |row: &Template| {
    id: uuid = row.id,
    project_id: uuid = row.project_id,
    generator_id: uuid = row.generator_id,
    name: text = row.name,
    description: text = row.description,
    version: integer = row.version,
    template_content: text = row.text.content,
    parameters_schema: text = row.text.parameters_schema,
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});
