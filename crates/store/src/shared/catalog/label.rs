//! The table of label definitions.

use slipway_core::catalog::label::{LabelDefinition, LabelKey, LabelSnapshot};
use slipway_core::ids::{DeletionId, LabelDefinitionId, Revision};
use uuid::Uuid;

use super::page::now;
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

impl Table for LabelDefinition {
    queries!(
        "label_definitions",
        "key",
        "id, revision, key, description, propagate, deletion_id, deleted_at, created_at, updated_at"
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
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

pub(crate) const MARKS: Marks = marks!("label_definitions", "key", "NULL");

pub(crate) const INSERT: RowSet<LabelDefinition> = insert_rows!(guarded, "label_definitions", |label: &LabelDefinition| {
    id: uuid = label.id,
    key: text = label.key.as_str(),
    description: text = label.description,
    propagate: integer = i32::from(label.propagate),
    created_at: time = label.created_at,
    updated_at: time = label.updated_at,
});

pub(crate) const UPDATE: RowSet<LabelDefinition> = update_rows!(dated, "label_definitions" by id, |label: &LabelDefinition| {
    description: text = label.description,
    propagate: integer = i32::from(label.propagate),
});
