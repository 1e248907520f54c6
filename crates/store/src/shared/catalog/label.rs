//! The table of label definitions.

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::catalog::label::{LabelDefinition, LabelKey};
use slipway_core::catalog::snapshot::LabelSnapshot;
use slipway_core::ids::{LabelDefinitionId, Revision};

use super::page::{after, as_id, by_reference, fetch_one, fetch_page, now, taken};
use super::transaction::Load;
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

macro_rules! select {
    () => {
        "SELECT id, revision, key, description, propagate, created_at, updated_at \
         FROM label_definitions "
    };
}

/// A label definition by its key or id.
pub(crate) struct ByReference<'a>(pub(crate) &'a str);

impl Load for ByReference<'_> {
    type Snapshot = LabelSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<LabelSnapshot, Failure> {
        let statement =
            concat!(select!(), "WHERE key = $1 OR id = $2 ORDER BY id LIMIT 1", sql!(for_update));
        let query = by_reference(statement, self.0);
        let label = fetch_one(connection, query, "id", label).await?;
        Ok(LabelSnapshot { now: now(connection).await?, label })
    }
}

pub(crate) async fn fetch(
    connection: &mut Connection,
    reference: &str,
) -> Result<Option<LabelDefinition>, Failure> {
    let query = sqlx::query(concat!(select!(), "WHERE key = $1 OR id = $2 ORDER BY id LIMIT 1"))
        .bind(reference)
        .bind(as_id(reference));
    fetch_one(connection, query, "id", label).await
}

pub(crate) async fn list(
    connection: &mut Connection,
    page: Page<LabelDefinitionId>,
) -> Result<Listed<LabelDefinition>, Failure> {
    let query = sqlx::query(concat!(select!(), "WHERE id > $1 ORDER BY id LIMIT $2"))
        .bind(after(page))
        .bind(i64::from(page.limit));
    fetch_page(connection, query, (LabelDefinitionId::KIND, "id"), page, label).await
}

fn label(row: &Row) -> Result<LabelDefinition, Fault> {
    Ok(LabelDefinition {
        id: LabelDefinitionId::new(rows::get(row, "id")?),
        key: LabelKey::from_stored(rows::get(row, "key")?),
        description: rows::get(row, "description")?,
        propagate: rows::get::<i32>(row, "propagate")? != 0,
        revision: Revision(rows::get(row, "revision")?),
        created_at: rows::time(row, "created_at")?,
        updated_at: rows::time(row, "updated_at")?,
    })
}

pub(crate) async fn insert(
    connection: &mut Connection,
    label: &LabelDefinition,
) -> Result<(), Failure> {
    let inserted = sqlx::query(
        "INSERT INTO label_definitions (id, key, description, propagate, created_at, \
         updated_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
    )
    .bind(label.id.as_uuid())
    .bind(label.key.as_str())
    .bind(&label.description)
    .bind(i32::from(label.propagate))
    .bind(Micros::from(label.created_at))
    .bind(Micros::from(label.updated_at))
    .execute(connection)
    .await?
    .rows_affected();
    writes::one_row(inserted, || taken("key", label.key.as_str()))
}

pub(crate) async fn update(
    connection: &mut Connection,
    label: &LabelDefinition,
) -> Result<(), Failure> {
    let updated = sqlx::query(sql!(
        "UPDATE label_definitions SET description = $3, propagate = $4, \
         revision = revision + 1, updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id = $1 AND revision = $2"
    ))
    .bind(label.id.as_uuid())
    .bind(label.revision.0)
    .bind(&label.description)
    .bind(i32::from(label.propagate))
    .execute(connection)
    .await?
    .rows_affected();
    writes::one_row(updated, || writes::stale(LabelDefinitionId::KIND, label.id, label.revision))
}

pub(crate) async fn delete(
    connection: &mut Connection,
    label: &LabelDefinition,
) -> Result<(), Failure> {
    let deleted = sqlx::query("DELETE FROM label_definitions WHERE id = $1 AND revision = $2")
        .bind(label.id.as_uuid())
        .bind(label.revision.0)
        .execute(connection)
        .await?
        .rows_affected();
    writes::one_row(deleted, || writes::stale(LabelDefinitionId::KIND, label.id, label.revision))
}
