//! What objects that differ by agent are for each of them.

use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::object::DeploymentObject;
use slipway_core::fleet::per_agent::{Base, RenderSnapshot, Rendering};
use slipway_core::ids::{AgentId, DeploymentObjectId, StackId};
use sqlx::Row as _;
use uuid::Uuid;

use super::page::now;
use super::table;
use super::transaction::Load;
use super::{Connection, Row, objects, writes};
use crate::failure::Failure;
use crate::id_list::IdList;

/// An agent, locked, and objects of live stacks, which are locked against deletion.
pub(crate) struct RenderingsOf<'a> {
    pub(crate) agent: AgentId,
    pub(crate) bases: &'a [DeploymentObjectId],
}

impl Load for RenderingsOf<'_> {
    type Snapshot = RenderSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<RenderSnapshot, Failure> {
        const STACKS: &str = sql!(
            "SELECT id FROM stacks WHERE deleted_at IS NULL AND id IN \
             (SELECT o.stack_id FROM deployment_objects o WHERE o.id ",
            (one_of "$1"),
            ") ORDER BY id",
            for_share
        );
        const BASES: &str = sql!(
            "SELECT o.id, o.stack_id, s.last_sequence, g.accepts_secrets, v.id AS rendered_id, \
             v.yaml_checksum FROM deployment_objects o \
             JOIN stacks s ON s.id = o.stack_id AND s.deleted_at IS NULL \
             JOIN generators g ON g.id = s.generator_id \
             LEFT JOIN fleet_renderings f ON f.base_id = o.id AND f.agent_id = $2 \
             LEFT JOIN deployment_objects v ON v.id = f.object_id \
             WHERE o.per_agent IS NOT NULL AND o.withdrawn_at IS NULL AND o.id ",
            (one_of "$1")
        );
        let agent = table::lock::<Agent>(connection, &self.agent.to_string()).await?;
        let list: IdList = self.bases.iter().copied().collect();
        sqlx::query(STACKS).bind(list.clone()).fetch_all(&mut *connection).await?;
        let tags = sqlx::query("SELECT tags FROM fleet_agents WHERE id = $1");
        let tags = tags.bind(self.agent.as_uuid()).fetch_optional(&mut *connection).await?;
        let found = sqlx::query(BASES).bind(list).bind(self.agent.as_uuid());
        let found = found.fetch_all(&mut *connection).await?;
        let bases = found.iter().map(base).collect::<Result<_, _>>()?;
        let tags = tags.map(|row| row.try_get("tags")).transpose()?.unwrap_or_default();
        Ok(RenderSnapshot { now: now(connection).await?, agent, tags, bases })
    }
}

fn base(row: &Row) -> Result<Base, sqlx::Error> {
    let rendered: Option<Uuid> = row.try_get("rendered_id")?;
    let rendered = match rendered {
        Some(id) => Some((DeploymentObjectId::new(id), row.try_get("yaml_checksum")?)),
        None => None,
    };
    Ok(Base {
        id: DeploymentObjectId::new(row.try_get("id")?),
        stack_id: StackId::new(row.try_get("stack_id")?),
        last_sequence: row.try_get("last_sequence")?,
        accepts_secrets: row.try_get::<i32, _>("accepts_secrets")? != 0,
        rendered,
    })
}

/// New objects, then what names them. Two statements, whatever their number.
pub(crate) async fn record(connection: &mut Connection, made: &[Rendering]) -> Result<(), Failure> {
    const RECORD: &str = concat!(
        "INSERT INTO fleet_renderings (agent_id, base_id, tags, object_id, problem, made_at) \
         SELECT given.agent_id, given.base_id, given.tags, given.object_id, given.problem, ",
        sql!(now),
        " FROM ",
        rows_from_json!(
            agent_id: uuid, base_id: uuid, tags: bigint, object_id: uuid, problem: text
        ),
        // SQLite would take ON for a part of the join.
        " WHERE true ON CONFLICT (agent_id, base_id) DO UPDATE SET tags = excluded.tags, \
         object_id = excluded.object_id, problem = excluded.problem, made_at = excluded.made_at"
    );
    let new: Vec<&DeploymentObject> = made.iter().filter_map(|one| one.object.as_ref()).collect();
    if !new.is_empty() {
        objects::INSERT.write(connection, &new).await?;
    }
    let rows: Vec<_> = made
        .iter()
        .map(|row| {
            json_row!(
                agent_id: uuid = row.agent_id,
                base_id: uuid = row.base,
                tags: bigint = row.tags,
                object_id: uuid = row.object_id,
                problem: text = row.problem,
            )
        })
        .collect();
    Ok(writes::write(connection, RECORD, &rows).await?)
}
