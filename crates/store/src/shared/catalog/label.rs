//! The table of label definitions.

use slipway_core::catalog::label::{LabelDefinition, LabelKey};
use slipway_core::catalog::rules::label::LabelSnapshot;
use slipway_core::ids::{LabelDefinitionId, Revision};

use super::page::now;
use super::table::{self, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

impl Table for LabelDefinition {
    queries!(
        removed,
        "label_definitions",
        "key",
        "id, revision, key, description, propagate, created_at, updated_at"
    );

    async fn load(connection: &mut Connection, key: &str) -> Result<LabelSnapshot, Failure> {
        let label = table::lock::<Self>(connection, key).await?;
        Ok(LabelSnapshot { now: now(connection).await?, label })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: LabelDefinitionId::new(rows::get(row, "id")?),
            key: LabelKey::from_stored(rows::get(row, "key")?),
            description: rows::get(row, "description")?,
            propagate: rows::get::<i32>(row, "propagate")? != 0,
            revision: Revision(rows::get(row, "revision")?),
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

pub(crate) async fn insert(
    connection: &mut Connection,
    label: &LabelDefinition,
) -> Result<(), Failure> {
    let query = sqlx::query(
        "INSERT INTO label_definitions (id, key, description, propagate, created_at, \
         updated_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
    )
    .bind(label.id.as_uuid())
    .bind(label.key.as_str())
    .bind(&label.description)
    .bind(i32::from(label.propagate))
    .bind(Micros::from(label.created_at))
    .bind(Micros::from(label.updated_at));
    table::insert(connection, query, "key", label.key.as_str()).await
}

pub(crate) async fn update(
    connection: &mut Connection,
    label: &LabelDefinition,
) -> Result<(), Failure> {
    let statement = update_sql!("label_definitions", "description = $3, propagate = $4");
    let query = table::at_revision(statement, label)
        .bind(&label.description)
        .bind(i32::from(label.propagate));
    table::write(connection, query, label).await
}

pub(crate) async fn delete(
    connection: &mut Connection,
    label: &LabelDefinition,
) -> Result<(), Failure> {
    let statement = "DELETE FROM label_definitions WHERE id = $1 AND revision = $2";
    table::write(connection, table::at_revision(statement, label), label).await
}
