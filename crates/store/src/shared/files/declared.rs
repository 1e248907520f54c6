//! The table of what sources declared.

use serde_json::{Value, json};
use slipway_app::files::port::{Declared, Source};
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::write::DeclaredObject;
use slipway_core::ids::ProjectId;
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::page::{after, fetch_page, readable};
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

const KIND: &str = "declared object";

macro_rules! select {
    () => {
        "SELECT d.id, d.source, d.kind, d.path, d.subject_id, d.project_id, d.fields, d.origin, \
         d.updated_at FROM declared_objects d "
    };
}

fn read(row: &Row) -> Result<DeclaredObject, Fault> {
    let kind = rows::member(row, "kind", DocumentKind::parse)?;
    let path: String = rows::get(row, "path")?;
    Ok(DeclaredObject {
        id: rows::get(row, "id")?,
        source: rows::get(row, "source")?,
        address: Address::from_stored(kind, &path),
        subject_id: rows::get(row, "subject_id")?,
        project_id: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
        fields: rows::json(row, "fields")?,
        origin: rows::get(row, "origin")?,
    })
}

/// What all sources wrote of these objects.
pub(crate) async fn at(
    connection: &mut Connection,
    (kind, paths): (DocumentKind, &[String]),
) -> Result<Vec<DeclaredObject>, Failure> {
    let given: Vec<Value> = paths.iter().map(|path| json!({ "path": path })).collect();
    let found = sqlx::query(concat!(
        select!(),
        "WHERE d.kind = $2 AND d.path IN (SELECT given.path FROM ",
        rows_from_json!(path: text),
        ") ORDER BY d.source"
    ))
    .bind(Json(given))
    .bind(kind.as_str())
    .fetch_all(connection)
    .await?;
    Ok(readable(KIND, &found, read))
}

/// Writes rows; one of the same source and object is replaced and keeps its id. A row that
/// owns nothing any more goes.
pub(crate) async fn put(
    connection: &mut Connection,
    rows: &[&DeclaredObject],
) -> Result<(), Failure> {
    let given: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "id": row.id,
                "source": row.source,
                "kind": row.address.kind,
                "path": row.address.path(),
                "subject_id": row.subject_id,
                "project_id": row.project_id.map(|id| id.as_uuid()),
                "fields": row.fields,
                "origin": row.origin,
            })
        })
        .collect();
    let statement = concat!(
        "INSERT INTO declared_objects \
         (id, source, kind, path, subject_id, project_id, fields, origin, updated_at) \
         SELECT given.id, given.source, given.kind, given.path, given.subject_id, \
         given.project_id, given.fields, given.origin, ",
        sql!(now),
        " FROM ",
        rows_from_json!(
            id: uuid, source: text, kind: text, path: text, subject_id: uuid, project_id: uuid,
            fields: json, origin: text
        ),
        " WHERE true ON CONFLICT (source, kind, path) DO UPDATE SET \
         subject_id = excluded.subject_id, project_id = excluded.project_id, \
         fields = excluded.fields, origin = excluded.origin, updated_at = excluded.updated_at"
    );
    Ok(writes::write(connection, statement, &given).await?)
}

/// The same in a transaction of its own.
pub(crate) async fn put_all(
    connection: &mut Connection,
    rows: &[DeclaredObject],
) -> Result<End<()>, Failure> {
    put(connection, &rows.iter().collect::<Vec<_>>()).await?;
    Ok(End::Commit(()))
}

/// A page of what a source declared.
pub(crate) async fn page(
    connection: &mut Connection,
    (source, project, page): (&str, Option<ProjectId>, Page<Uuid>),
) -> Result<Listed<Declared>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE d.source = $1 AND d.id > $2 AND ($3 IS NULL OR d.project_id = $3) \
         ORDER BY d.id LIMIT $4"
    ))
    .bind(source)
    .bind(after(page))
    .bind(project.map(|id| id.as_uuid()))
    .bind(i64::from(page.limit));
    let declared = |row: &Row| Ok((read(row)?, rows::time(row, "updated_at")?));
    fetch_page(connection, query, (KIND, "id"), page, declared).await
}

/// Forgets what a source wrote of an object.
pub(crate) async fn forget(
    connection: &mut Connection,
    (source, kind, path, project): (&str, DocumentKind, &str, Option<ProjectId>),
) -> Result<bool, Failure> {
    let removed = sqlx::query(
        "DELETE FROM declared_objects WHERE source = $1 AND kind = $2 AND path = $3 \
         AND ($4 IS NULL OR project_id = $4)",
    )
    .bind(source)
    .bind(kind.as_str())
    .bind(path)
    .bind(project.map(|id| id.as_uuid()))
    .execute(connection)
    .await?;
    Ok(removed.rows_affected() > 0)
}

/// Forgets subjects that were purged.
pub(crate) async fn forget_subjects(
    connection: &mut Connection,
    subjects: &IdList,
) -> Result<(), Failure> {
    sqlx::query(sql!("DELETE FROM declared_objects WHERE subject_id ", (one_of "$1")))
        .bind(subjects.clone())
        .execute(connection)
        .await?;
    Ok(())
}

/// Whether a source declares something.
pub(crate) async fn exists(
    connection: &mut Connection,
    (source, project): (&str, Option<ProjectId>),
) -> Result<bool, Failure> {
    let found = sqlx::query(
        "SELECT id FROM declared_objects WHERE source = $1 \
         AND ($2 IS NULL OR project_id = $2) LIMIT 1",
    )
    .bind(source)
    .bind(project.map(|id| id.as_uuid()))
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

/// Every source with what it declared and could not, by name.
pub(crate) async fn sources(
    connection: &mut Connection,
    (project, after, limit): (Option<ProjectId>, Option<&str>, u32),
) -> Result<Vec<Source>, Failure> {
    let found = sqlx::query(
        "SELECT s.source, CAST(sum(s.objects) AS BIGINT) AS objects, \
         CAST(sum(s.faults) AS BIGINT) AS faults, max(s.updated_at) AS updated_at FROM \
         (SELECT source, count(*) AS objects, 0 AS faults, max(updated_at) AS updated_at \
         FROM declared_objects WHERE source > $1 AND ($2 IS NULL OR project_id = $2) \
         GROUP BY source UNION ALL \
         SELECT source, 0 AS objects, sum(total) AS faults, max(updated_at) AS updated_at \
         FROM file_faults WHERE source > $1 AND ($2 IS NULL OR project_id = $2) \
         GROUP BY source) s GROUP BY s.source ORDER BY s.source LIMIT $3",
    )
    .bind(after.unwrap_or_default())
    .bind(project.map(|id| id.as_uuid()))
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    let source = |row: &Row| {
        Ok(Source {
            name: row.try_get("source")?,
            objects: row.try_get("objects")?,
            faults: row.try_get("faults")?,
            updated_at: row.try_get::<crate::micros::Micros, _>("updated_at")?.into(),
        })
    };
    found.iter().map(source).collect()
}
