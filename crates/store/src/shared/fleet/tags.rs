//! The tables of labels and annotations.

use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::stack::Stack;
use slipway_core::fleet::tags::{Annotation, Label, TagSnapshot};
use slipway_core::fleet::template::Template;
use slipway_core::ids::ProjectId;
use slipway_core::subject::{Subject, SubjectKind};
use uuid::Uuid;

use super::page::{self, fetch_one, hydrate, now};
use super::row_set::RowSet;
use super::table;
use super::transaction::Load;
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

/// The project of a live owner, which is locked against deletion; an agent for itself, since its
/// changes are counted.
async fn owner(connection: &mut Connection, owner: Subject) -> Result<Option<ProjectId>, Failure> {
    let id = owner.id.to_string();
    Ok(match owner.kind {
        SubjectKind::Agent => {
            table::lock::<Agent>(connection, &id).await?.map(|agent| agent.project_id)
        }
        SubjectKind::Stack => {
            table::share::<Stack>(connection, &id).await?.map(|stack| stack.project_id)
        }
        SubjectKind::Template => {
            table::share::<Template>(connection, &id).await?.map(|template| template.project_id)
        }
        _ => None,
    })
}

/// A label of an owner.
pub(crate) struct LabelOf<'a>(pub(crate) Subject, pub(crate) &'a str);

impl Load for LabelOf<'_> {
    type Snapshot = TagSnapshot<Label>;

    async fn load(&self, connection: &mut Connection) -> Result<TagSnapshot<Label>, Failure> {
        let project = owner(connection, self.0).await?;
        let query = sqlx::query(
            "SELECT id, owner_kind, owner_id, label, created_at FROM fleet_labels \
             WHERE owner_id = $1 AND label = $2",
        );
        let tag = fetch_one(connection, query.bind(self.0.id).bind(self.1), "id", label).await?;
        let statement = "SELECT count(*) AS found FROM fleet_labels WHERE owner_id = $1";
        let count = page::count(connection, statement, self.0.id).await?;
        Ok(TagSnapshot { now: now(connection).await?, project, tag, count })
    }
}

/// An annotation of an owner, by its key.
pub(crate) struct AnnotationOf<'a>(pub(crate) Subject, pub(crate) &'a str);

impl Load for AnnotationOf<'_> {
    type Snapshot = TagSnapshot<Annotation>;

    async fn load(&self, connection: &mut Connection) -> Result<TagSnapshot<Annotation>, Failure> {
        let project = owner(connection, self.0).await?;
        let query = sqlx::query(
            "SELECT id, owner_kind, owner_id, key, value, created_at FROM fleet_annotations \
             WHERE owner_id = $1 AND key = $2",
        );
        let query = query.bind(self.0.id).bind(self.1);
        let tag = fetch_one(connection, query, "id", annotation).await?;
        let statement = "SELECT count(*) AS found FROM fleet_annotations WHERE owner_id = $1";
        let count = page::count(connection, statement, self.0.id).await?;
        Ok(TagSnapshot { now: now(connection).await?, project, tag, count })
    }
}

fn subject(row: &Row) -> Result<Subject, Fault> {
    Ok(Subject {
        kind: rows::member(row, "owner_kind", SubjectKind::parse)?,
        id: rows::get(row, "owner_id")?,
    })
}

pub(crate) fn label(row: &Row) -> Result<Label, Fault> {
    Ok(Label {
        id: rows::get(row, "id")?,
        owner: subject(row)?,
        label: rows::get(row, "label")?,
        created_at: rows::time(row, "created_at")?,
    })
}

pub(crate) fn annotation(row: &Row) -> Result<Annotation, Fault> {
    Ok(Annotation {
        id: rows::get(row, "id")?,
        owner: subject(row)?,
        key: rows::get(row, "key")?,
        value: rows::get(row, "value")?,
        created_at: rows::time(row, "created_at")?,
    })
}

pub(crate) async fn labels(
    connection: &mut Connection,
    owner: Subject,
) -> Result<Vec<Label>, Failure> {
    let found = sqlx::query(
        "SELECT id, owner_kind, owner_id, label, created_at FROM fleet_labels \
         WHERE owner_id = $1 ORDER BY label",
    )
    .bind(owner.id)
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", label)).collect()
}

pub(crate) async fn annotations(
    connection: &mut Connection,
    owner: Subject,
) -> Result<Vec<Annotation>, Failure> {
    let found = sqlx::query(
        "SELECT id, owner_kind, owner_id, key, value, created_at FROM fleet_annotations \
         WHERE owner_id = $1 ORDER BY key",
    )
    .bind(owner.id)
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", annotation)).collect()
}

pub(crate) const LABEL_INSERT: RowSet<Label> = insert_rows!(guarded, "fleet_labels", |row: &Label| {
    id: uuid = row.id,
    owner_kind: text = row.owner.kind,
    owner_id: uuid = row.owner.id,
    label: text = row.label,
    created_at: time = row.created_at,
});

pub(crate) const ANNOTATION_INSERT: RowSet<Annotation> = insert_rows!(guarded, "fleet_annotations", |row: &Annotation| {
    id: uuid = row.id,
    owner_kind: text = row.owner.kind,
    owner_id: uuid = row.owner.id,
    key: text = row.key,
    value: text = row.value,
    created_at: time = row.created_at,
});

/// Counts a change of an agent's labels or annotations: what was rendered with them is out of
/// date.
pub(crate) async fn count(connection: &mut Connection, owner: Subject) -> Result<(), Failure> {
    if owner.kind == SubjectKind::Agent {
        let counted = "UPDATE fleet_agents SET tags = tags + 1 WHERE id = $1";
        sqlx::query(counted).bind(owner.id).execute(connection).await?;
    }
    Ok(())
}

pub(crate) async fn remove_label(connection: &mut Connection, id: Uuid) -> Result<u64, Failure> {
    let counted = "UPDATE fleet_agents SET tags = tags + 1 \
         WHERE id = (SELECT owner_id FROM fleet_labels WHERE id = $1)";
    sqlx::query(counted).bind(id).execute(&mut *connection).await?;
    let query = sqlx::query("DELETE FROM fleet_labels WHERE id = $1").bind(id);
    Ok(query.execute(connection).await?.rows_affected())
}

pub(crate) async fn remove_annotation(
    connection: &mut Connection,
    id: Uuid,
) -> Result<u64, Failure> {
    let counted = "UPDATE fleet_agents SET tags = tags + 1 \
         WHERE id = (SELECT owner_id FROM fleet_annotations WHERE id = $1)";
    sqlx::query(counted).bind(id).execute(&mut *connection).await?;
    let query = sqlx::query("DELETE FROM fleet_annotations WHERE id = $1").bind(id);
    Ok(query.execute(connection).await?.rows_affected())
}
