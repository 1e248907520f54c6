//! The table of deployment objects. They are deleted with their stack without being touched:
//! the fragment that reads them computes it.

use slipway_app::fleet::port::PrunedObjects;
use slipway_app::ports::store::Page;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::object::{DeploymentObject, NewObject, ObjectRow, ObjectSnapshot};
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{AgentId, DeploymentObjectId, StackId};
use slipway_durable::database::End;
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{fetch_one, hydrate, now};
use super::row_set::RowSet;
use super::table::{self, Table as _};
use super::transaction::Load;
use super::{Connection, Row, rolling, rows, stack, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

macro_rules! select {
    () => {
        "SELECT o.id, o.stack_id, o.agent_id, o.sequence_id, o.yaml_content, o.yaml_checksum, \
         o.per_agent, o.is_deletion_marker, o.keeps, o.submitted_at, o.withdrawn_at, o.erased_at, \
         s.deleted_at \
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
        per_agent: rows::json_or_null(row, "per_agent")?,
        is_marker: rows::get::<i32>(row, "is_deletion_marker")? != 0,
        keeps: rows::get::<i32>(row, "keeps")? != 0,
        submitted_at: rows::time(row, "submitted_at")?,
        withdrawn_at: rows::time_or_null(row, "withdrawn_at")?,
        erased_at: rows::time_or_null(row, "erased_at")?,
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
            newest_is_marker: false,
            remaining: None,
            rollout: None,
            agents: Vec::new(),
        };
        let Some(stack) = &snapshot.stack else { return Ok(snapshot) };
        // A live stack has a live generator.
        let generator = stack.generator_id.to_string();
        let generator = Generator::fetch_query(&generator, false);
        let generator = fetch_one(connection, generator, "id", Generator::read).await?;
        snapshot.accepts_secrets = generator.is_some_and(|generator| generator.accepts_secrets);
        snapshot.rollout = stack::under_way(connection, Some(stack)).await?;
        if stack.rolling.strategy.is_some() {
            snapshot.agents = rolling::associated(connection, stack).await?;
        }
        let found = sqlx::query(NEWEST).bind(self.stack.as_uuid());
        if let Some(found) = found.fetch_optional(&mut *connection).await? {
            snapshot.newest = Some(DeploymentObjectId::new(found.try_get("id")?));
            snapshot.newest_is_marker = found.try_get::<i32, _>("is_deletion_marker")? != 0;
        }
        if let Some(object) = self.object {
            snapshot.object = row(connection, self.stack, object).await?;
            snapshot.remaining = remaining(connection, self.stack, object).await?;
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
const NEWEST: &str = "SELECT id, is_deletion_marker FROM deployment_objects \
     WHERE stack_id = $1 AND agent_id IS NULL AND withdrawn_at IS NULL \
     ORDER BY sequence_id DESC LIMIT 1";

/// The newest content of a stack apart from this object.
async fn remaining(
    connection: &mut Connection,
    stack: StackId,
    object: DeploymentObjectId,
) -> Result<Option<DeploymentObjectId>, sqlx::Error> {
    let found = sqlx::query(
        "SELECT id FROM deployment_objects WHERE stack_id = $1 AND agent_id IS NULL \
         AND withdrawn_at IS NULL AND is_deletion_marker = 0 AND id <> $2 \
         ORDER BY sequence_id DESC LIMIT 1",
    )
    .bind(stack.as_uuid())
    .bind(object.as_uuid())
    .fetch_optional(connection)
    .await?;
    found.map(|row| row.try_get("id").map(DeploymentObjectId::new)).transpose()
}

pub(crate) const INSERT: RowSet<DeploymentObject> = insert_rows!(plain, "deployment_objects", |row: &DeploymentObject| {
    id: uuid = row.id,
    stack_id: uuid = row.stack_id,
    agent_id: uuid = row.agent_id,
    sequence_id: bigint = row.sequence,
    yaml_content: text = row.content,
    yaml_checksum: text = row.checksum,
    per_agent: json = row.per_agent,
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
         yaml_checksum, per_agent, is_deletion_marker, keeps, submitted_at) \
         SELECT given.id, given.stack_id, given.agent_id, given.sequence_id, \
         coalesce(o.yaml_content, ''), coalesce(o.yaml_checksum, given.yaml_checksum), \
         o.per_agent, CASE WHEN o.id IS NULL THEN 1 ELSE 0 END, given.keeps, given.submitted_at FROM ",
        rows_from_json!(
            id: uuid, stack_id: uuid, agent_id: uuid, sequence_id: bigint, copy_of: uuid,
            yaml_checksum: text, keeps: integer, submitted_at: time
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
                keeps: integer = i32::from(object.keeps),
                submitted_at: time = object.submitted_at,
            )
        })
        .collect();
    Ok(writes::write(connection, MAKE, &rows).await?)
}

/// Above every number that a lost future of the database may have given out: they were the time
/// of its clock, and no clock that we would trust is a day ahead.
const LIFTED: i64 = 24 * 3_600 * 1_000_000;

/// Lifts the numbers after the database was restored to an earlier state: the newest object of
/// every stack, deleted ones included, is then newer than anything that an agent may have. Three
/// statements, whatever their number; the last lets holdings have the numbers of their objects.
pub(crate) async fn raise_numbers(connection: &mut Connection) -> Result<(), sqlx::Error> {
    let floor = now(connection).await?.as_micros() + LIFTED;
    let stacks = sql!(
        "UPDATE stacks SET last_sequence = ",
        greatest,
        "(last_sequence + 1, $1) WHERE id ",
        picked_from,
        "SELECT id FROM stacks ORDER BY id",
        for_update,
        picked_end
    );
    let newest = "UPDATE deployment_objects SET sequence_id = (SELECT s.last_sequence \
         FROM stacks s WHERE s.id = deployment_objects.stack_id) WHERE id IN (\
            SELECT (SELECT o.id FROM deployment_objects o WHERE o.stack_id = s.id \
                AND o.agent_id IS NULL AND o.withdrawn_at IS NULL \
                ORDER BY o.sequence_id DESC LIMIT 1) FROM stacks s) \
         OR (agent_id IS NOT NULL AND EXISTS (SELECT 1 FROM holdings h \
            WHERE h.object_id = deployment_objects.id AND h.released_at IS NULL))";
    sqlx::query(stacks).bind(floor).execute(&mut *connection).await?;
    sqlx::query(newest).execute(&mut *connection).await?;
    let held = "UPDATE holdings SET sequence_id = (SELECT o.sequence_id \
         FROM deployment_objects o WHERE o.id = holdings.object_id) WHERE sequence_id IS NOT NULL";
    sqlx::query(held).execute(connection).await?;
    Ok(())
}

/// Objects in one transaction of [`prune`].
const PRUNED: u32 = 500;

/// Removes the superseded objects of the next `limit` live stacks after this one, with what
/// agents said about them. Kept are the `keep` newest, the newest content, which a withdrawal
/// or a restore goes back to, what a roll-out goes back to, renderings of what is kept, and
/// whatever an agent was offered last.
pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, after, limit): (u32, Option<StackId>, u32),
) -> Result<End<PrunedObjects>, Failure> {
    const STACKS: &str =
        "SELECT id FROM stacks WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2";
    const SUPERSEDED: &str = sql!(
        "SELECT p.id FROM (SELECT o.id, o.stack_id, o.agent_id, row_number() OVER \
            (PARTITION BY o.stack_id, o.agent_id ORDER BY o.sequence_id DESC) AS place \
            FROM deployment_objects o WHERE o.stack_id ",
        (one_of "$1"),
        ") p WHERE (p.place > $2 OR p.agent_id IS NOT NULL) \
         AND NOT EXISTS (SELECT 1 FROM holdings h WHERE h.object_id = p.id) \
         AND NOT EXISTS (SELECT 1 FROM stacks s WHERE s.settled_object_id = p.id) \
         AND NOT EXISTS (SELECT 1 FROM fleet_renderings f WHERE f.object_id = p.id) \
         AND NOT EXISTS (SELECT 1 FROM deployment_objects c WHERE c.id = p.id AND c.id = \
            (SELECT x.id FROM deployment_objects x WHERE x.stack_id = p.stack_id \
            AND x.agent_id IS NULL AND x.withdrawn_at IS NULL AND x.is_deletion_marker = 0 \
            ORDER BY x.sequence_id DESC LIMIT 1)) ORDER BY p.id LIMIT $3"
    );
    let begin = after.map_or_else(Uuid::nil, |after| after.as_uuid());
    let found = sqlx::query(STACKS).bind(begin).bind(i64::from(limit));
    let stacks = ids(&found.fetch_all(&mut *connection).await?)?;
    let last = stacks.0.last().copied().map(StackId::new);
    let is_full = stacks.0.len() >= limit as usize;
    let found = sqlx::query(SUPERSEDED).bind(stacks).bind(i64::from(keep));
    let found = ids(&found.bind(i64::from(PRUNED)).fetch_all(&mut *connection).await?)?;
    let removed = found.0.len() as u64;
    let next = match removed >= u64::from(PRUNED) {
        // There may be more of the same stacks.
        true => Some(after.unwrap_or_else(|| StackId::new(Uuid::nil()))),
        false => last.filter(|_| is_full),
    };
    let step = PrunedObjects { removed, next };
    if removed == 0 {
        return Ok(End::Rollback(step));
    }
    for statement in [
        sql!("DELETE FROM agent_reports WHERE object_id ", (one_of "$1")),
        sql!("DELETE FROM object_health WHERE object_id ", (one_of "$1")),
        sql!("DELETE FROM fleet_renderings WHERE base_id ", (one_of "$1")),
        sql!("DELETE FROM deployment_objects WHERE id ", (one_of "$1")),
    ] {
        sqlx::query(statement).bind(found.clone()).execute(&mut *connection).await?;
    }
    Ok(End::Commit(step))
}

fn ids(found: &[Row]) -> Result<IdList, sqlx::Error> {
    Ok(IdList(found.iter().map(|row| row.try_get("id")).collect::<Result<_, _>>()?))
}
