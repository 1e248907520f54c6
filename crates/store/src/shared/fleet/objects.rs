//! The table of deployment objects. They are deleted with their stack without being touched:
//! the fragment that reads them computes it.

use slipway_app::ports::store::Page;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::object::{DeploymentObject, NewObject, ObjectRow, ObjectSnapshot};
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{AgentId, DeploymentObjectId, StackId};
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{fetch_one, hydrate, now};
use super::row_set::RowSet;
use super::table::{self, Table as _};
use super::transaction::Load;
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

macro_rules! select {
    () => {
        "SELECT o.id, o.stack_id, o.agent_id, o.sequence_id, o.yaml_content, o.yaml_checksum, \
         o.is_deletion_marker, o.submitted_at, o.withdrawn_at, s.deleted_at \
         FROM deployment_objects o JOIN stacks s ON s.id = o.stack_id "
    };
}

fn read(row: &Row) -> Result<DeploymentObject, Fault> {
    Ok(DeploymentObject {
        id: DeploymentObjectId::new(rows::get(row, "id")?),
        stack_id: StackId::new(rows::get(row, "stack_id")?),
        agent_id: rows::get::<Option<Uuid>>(row, "agent_id")?.map(AgentId::new),
        sequence: rows::get(row, "sequence_id")?,
        content: rows::get(row, "yaml_content")?,
        checksum: rows::get(row, "yaml_checksum")?,
        is_marker: rows::get::<i32>(row, "is_deletion_marker")? != 0,
        submitted_at: rows::time(row, "submitted_at")?,
        withdrawn_at: rows::time_or_null(row, "withdrawn_at")?,
        deleted_at: rows::time_or_null(row, "deleted_at")?,
    })
}

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: DeploymentObjectId,
) -> Result<Option<DeploymentObject>, Failure> {
    let query = sqlx::query(concat!(select!(), "WHERE o.id = $1")).bind(id.as_uuid());
    fetch_one(connection, query, "id", read).await
}

pub(crate) async fn list(
    connection: &mut Connection,
    (stack, page): (StackId, Page<i64>),
) -> Result<Vec<DeploymentObject>, Failure> {
    let found = sqlx::query(concat!(
        select!(),
        "WHERE o.stack_id = $1 AND o.agent_id IS NULL AND o.withdrawn_at IS NULL \
         AND o.sequence_id > $2 ORDER BY o.sequence_id LIMIT $3"
    ))
    .bind(stack.as_uuid())
    .bind(page.after.unwrap_or(-1))
    .bind(i64::from(page.limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", read)).collect()
}

/// An offer is complete or there is none, so an object that cannot be read fails it.
pub(crate) async fn fetch_all(
    connection: &mut Connection,
    ids: &[DeploymentObjectId],
) -> Result<Vec<DeploymentObject>, Failure> {
    let list: IdList = ids.iter().copied().collect();
    let statement = concat!(
        select!(),
        "WHERE o.id ",
        sql!((one_of "$1")),
        " ORDER BY o.sequence_id DESC, o.id"
    );
    let found = sqlx::query(statement).bind(list).fetch_all(connection).await?;
    found.iter().map(|row| hydrate(row, "id", read)).collect()
}

/// A stack, and an object of it that a decision is about.
pub(crate) struct ObjectOf {
    pub(crate) stack: StackId,
    pub(crate) object: Option<DeploymentObjectId>,
}

impl Load for ObjectOf {
    type Snapshot = ObjectSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<ObjectSnapshot, Failure> {
        let stack = table::lock::<Stack>(connection, &self.stack.to_string()).await?;
        let mut snapshot = ObjectSnapshot {
            now: now(connection).await?,
            stack,
            accepts_secrets: false,
            object: None,
            newest: None,
            remaining: None,
        };
        let Some(stack) = &snapshot.stack else { return Ok(snapshot) };
        // A live stack has a live generator.
        let generator = stack.generator_id.to_string();
        let generator = Generator::fetch_query(&generator, false);
        let generator = fetch_one(connection, generator, "id", Generator::read).await?;
        snapshot.accepts_secrets = generator.is_some_and(|generator| generator.accepts_secrets);
        if let Some(object) = self.object {
            snapshot.object = row(connection, self.stack, object).await?;
            let id = self.stack.as_uuid();
            snapshot.newest = newest(connection, NEWEST, id, object).await?;
            snapshot.remaining = newest(connection, REMAINING, id, object).await?;
        }
        Ok(snapshot)
    }
}

async fn row(
    connection: &mut Connection,
    stack: StackId,
    id: DeploymentObjectId,
) -> Result<Option<ObjectRow>, Failure> {
    let found = sqlx::query(
        "SELECT is_deletion_marker, CASE WHEN withdrawn_at IS NULL THEN 0 ELSE 1 END AS withdrawn \
         FROM deployment_objects WHERE id = $1 AND stack_id = $2 AND agent_id IS NULL",
    )
    .bind(id.as_uuid())
    .bind(stack.as_uuid())
    .fetch_optional(connection)
    .await?;
    let Some(found) = found else { return Ok(None) };
    Ok(Some(ObjectRow {
        id,
        is_marker: found.try_get::<i32, _>("is_deletion_marker")? != 0,
        is_withdrawn: found.try_get::<i32, _>("withdrawn")? != 0,
    }))
}

/// The newest object of the stack `$1` that nobody withdrew.
const NEWEST: &str = "SELECT id FROM deployment_objects WHERE stack_id = $1 AND agent_id IS NULL \
     AND withdrawn_at IS NULL AND $2 = $2 ORDER BY sequence_id DESC LIMIT 1";

/// The newest content apart from the object `$2`.
const REMAINING: &str = "SELECT id FROM deployment_objects WHERE stack_id = $1 \
     AND agent_id IS NULL AND withdrawn_at IS NULL AND is_deletion_marker = 0 AND id <> $2 \
     ORDER BY sequence_id DESC LIMIT 1";

async fn newest(
    connection: &mut Connection,
    statement: &'static str,
    stack: Uuid,
    object: DeploymentObjectId,
) -> Result<Option<DeploymentObjectId>, sqlx::Error> {
    let query = sqlx::query(statement).bind(stack).bind(object.as_uuid());
    let found = query.fetch_optional(connection).await?;
    found.map(|row| row.try_get("id").map(DeploymentObjectId::new)).transpose()
}

pub(crate) const INSERT: RowSet<DeploymentObject> = insert_rows!(plain, "deployment_objects", |row: &DeploymentObject| {
    id: uuid = row.id,
    stack_id: uuid = row.stack_id,
    sequence_id: bigint = row.sequence,
    yaml_content: text = row.content,
    yaml_checksum: text = row.checksum,
    is_deletion_marker: integer = i32::from(row.is_marker),
    submitted_at: time = row.submitted_at,
});

/// Markers and copies, by one statement whatever their number.
pub(crate) async fn make(
    connection: &mut Connection,
    objects: &[NewObject],
) -> Result<(), Failure> {
    const MAKE: &str = concat!(
        "INSERT INTO deployment_objects (id, stack_id, agent_id, sequence_id, yaml_content, \
         yaml_checksum, is_deletion_marker, submitted_at) \
         SELECT given.id, given.stack_id, given.agent_id, given.sequence_id, \
         coalesce(o.yaml_content, ''), coalesce(o.yaml_checksum, given.yaml_checksum), \
         CASE WHEN o.id IS NULL THEN 1 ELSE 0 END, given.submitted_at FROM ",
        rows_from_json!(
            id: uuid, stack_id: uuid, agent_id: uuid, sequence_id: bigint, copy_of: uuid,
            yaml_checksum: text, submitted_at: time
        ),
        " LEFT JOIN deployment_objects o ON o.id = given.copy_of"
    );
    let rows: Vec<_> = objects
        .iter()
        .map(|object| {
            json_row!(
                id: uuid = object.id,
                stack_id: uuid = object.stack_id,
                agent_id: uuid = object.agent_id,
                sequence_id: bigint = object.sequence,
                copy_of: uuid = object.copy_of,
                yaml_checksum: text = object.checksum,
                submitted_at: time = object.submitted_at,
            )
        })
        .collect();
    Ok(writes::write(connection, MAKE, &rows).await?)
}
