//! The table of stacks.

use slipway_app::fleet::port::{FleetFilter, StackKey};
use slipway_app::ports::store::Page;
use slipway_core::fleet::FleetName;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::rollout::Rolling;
use slipway_core::fleet::stack::{Stack, StackSnapshot};
use slipway_core::ids::{
    DeletionId, DeploymentObjectId, GeneratorId, ProjectId, Revision, RolloutId, StackId,
};
use slipway_core::rollouts::record::Rollout;
use uuid::Uuid;

use super::page::{Query, after, as_id, fetch_one, now};
use super::rollouts::reads;
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select {
    () => {
        "SELECT s.id, s.revision, s.project_id, s.generator_id, s.name, s.description, \
         s.last_sequence, s.strategy, s.rollout_id, s.settled_object_id, s.rolls_back, \
         s.deletion_id, s.deleted_at, s.created_at, s.updated_at FROM stacks s "
    };
}
pub(crate) use select;

impl Table for Stack {
    queries_by_id!(select!(), "s");

    fn page_query(filter: &FleetFilter, page: Page<StackId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "WHERE s.id > $1 AND ($2 OR s.deleted_at IS NULL) \
             AND ($3 IS NULL OR s.project_id = $3) AND ($4 IS NULL OR s.generator_id = $4) \
             AND ($5 IS NULL OR s.name = $5) ORDER BY s.id LIMIT $6"
        ))
        .bind(after(page))
        .bind(filter.show_deleted)
        .bind(filter.project.map(|id| id.as_uuid()))
        .bind(filter.generator.map(|id| id.as_uuid()))
        .bind(filter.name.as_deref())
        .bind(i64::from(page.limit))
    }

    /// A new stack locks its generator for share: deleting that updates its row.
    async fn load(connection: &mut Connection, key: &StackKey) -> Result<StackSnapshot, Failure> {
        let (mut generator, mut stack, mut rollout) = (None, None, None);
        match key {
            StackKey::New { generator: id, name } => {
                generator = table::share::<Generator>(connection, &id.to_string()).await?;
                if let Some(generator) = &generator {
                    stack = by_name(connection, generator.project_id, name).await?;
                }
            }
            StackKey::Existing(id) => {
                stack = table::lock::<Self>(connection, &id.to_string()).await?;
                rollout = under_way(connection, stack.as_ref()).await?;
            }
        }
        Ok(StackSnapshot { now: now(connection).await?, generator, stack, rollout })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: StackId::new(rows::get(row, "id")?),
            project_id: ProjectId::new(rows::get(row, "project_id")?),
            generator_id: GeneratorId::new(rows::get(row, "generator_id")?),
            name: FleetName::from_stored(rows::get(row, "name")?),
            description: rows::get(row, "description")?,
            last_sequence: rows::get(row, "last_sequence")?,
            rolling: Rolling {
                // Written with other columns, an absent one may be a JSON null.
                strategy: rows::json_or_null::<Option<_>>(row, "strategy")?.flatten(),
                rollout_id: rows::get::<Option<Uuid>>(row, "rollout_id")?.map(RolloutId::new),
                settled: rows::get::<Option<Uuid>>(row, "settled_object_id")?
                    .map(DeploymentObjectId::new),
                rolls_back: rows::get::<i32>(row, "rolls_back")? != 0,
            },
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

/// The roll-out of a locked stack that has not ended.
pub(crate) async fn under_way(
    connection: &mut Connection,
    stack: Option<&Stack>,
) -> Result<Option<Rollout>, Failure> {
    let Some(id) = stack.and_then(|stack| stack.rolling.rollout_id) else { return Ok(None) };
    let found = reads::fetch(connection, id).await?;
    Ok(found.filter(|rollout| rollout.ended_at.is_none()))
}

async fn by_name(
    connection: &mut Connection,
    project: ProjectId,
    name: &str,
) -> Result<Option<Stack>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE s.project_id = $1 AND s.name = $2 AND s.deleted_at IS NULL"
    ));
    let query = query.bind(project.as_uuid()).bind(name);
    fetch_one(connection, query, "id", Stack::read).await
}

pub(crate) const MARKS: Marks = marks!(
    "stacks",
    "name",
    "project_id",
    "project_id = (SELECT x.project_id FROM stacks x WHERE x.id = $2)"
);

pub(crate) const INSERT: RowSet<Stack> = insert_rows!(guarded, "stacks", |row: &Stack| {
    id: uuid = row.id,
    project_id: uuid = row.project_id,
    generator_id: uuid = row.generator_id,
    name: text = row.name,
    description: text = row.description,
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

pub(crate) const UPDATE: RowSet<Stack> = update_rows!(dated, "stacks" by id, |row: &Stack| {
    name: text = row.name,
    description: text = row.description,
    last_sequence: bigint = row.last_sequence,
    strategy: json = row.rolling.strategy,
    rollout_id: uuid = row.rolling.rollout_id,
    settled_object_id: uuid = row.rolling.settled,
    rolls_back: integer = i32::from(row.rolling.rolls_back),
});
