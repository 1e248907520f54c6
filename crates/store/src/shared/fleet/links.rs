//! The tables of registrations and targets.

use slipway_app::ports::store::Page;
use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::links::{Registration, RegistrationSnapshot, Target, TargetSnapshot};
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{AgentId, GeneratorId, StackId};
use uuid::Uuid;

use super::page::{after, fetch_one, hydrate, now};
use super::row_set::RowSet;
use super::table;
use super::transaction::Load;
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

/// An agent and a generator, locked in this order.
pub(crate) struct RegistrationOf(pub(crate) AgentId, pub(crate) GeneratorId);

impl Load for RegistrationOf {
    type Snapshot = RegistrationSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<RegistrationSnapshot, Failure> {
        let agent = table::share::<Agent>(connection, &self.0.to_string()).await?;
        let generator = table::share::<Generator>(connection, &self.1.to_string()).await?;
        let query = sqlx::query(
            "SELECT id, agent_id, generator_id, registered_at FROM fleet_registrations \
             WHERE agent_id = $1 AND generator_id = $2",
        );
        let query = query.bind(self.0.as_uuid()).bind(self.1.as_uuid());
        let registration = fetch_one(connection, query, "id", registration).await?;
        Ok(RegistrationSnapshot { now: now(connection).await?, agent, generator, registration })
    }
}

fn registration(row: &Row) -> Result<Registration, Fault> {
    Ok(Registration {
        id: rows::get(row, "id")?,
        agent_id: AgentId::new(rows::get(row, "agent_id")?),
        generator_id: GeneratorId::new(rows::get(row, "generator_id")?),
        registered_at: rows::time(row, "registered_at")?,
    })
}

pub(crate) async fn registrations(
    connection: &mut Connection,
    (agent, generator, page): (Option<AgentId>, Option<GeneratorId>, Page<Uuid>),
) -> Result<Vec<Registration>, Failure> {
    let found = sqlx::query(
        "SELECT r.id, r.agent_id, r.generator_id, r.registered_at FROM fleet_registrations r \
         JOIN fleet_agents a ON a.id = r.agent_id AND a.deleted_at IS NULL \
         JOIN generators g ON g.id = r.generator_id AND g.deleted_at IS NULL \
         WHERE r.id > $1 AND ($2 IS NULL OR r.agent_id = $2) \
         AND ($3 IS NULL OR r.generator_id = $3) ORDER BY r.id LIMIT $4",
    )
    .bind(after(page))
    .bind(agent.map(|id| id.as_uuid()))
    .bind(generator.map(|id| id.as_uuid()))
    .bind(i64::from(page.limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", registration)).collect()
}

/// An agent and a stack, locked in this order.
pub(crate) struct TargetOf(pub(crate) AgentId, pub(crate) StackId);

impl Load for TargetOf {
    type Snapshot = TargetSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<TargetSnapshot, Failure> {
        let agent = table::share::<Agent>(connection, &self.0.to_string()).await?;
        let stack = table::share::<Stack>(connection, &self.1.to_string()).await?;
        let query = sqlx::query(
            "SELECT id, agent_id, stack_id FROM fleet_targets \
             WHERE agent_id = $1 AND stack_id = $2",
        );
        let query = query.bind(self.0.as_uuid()).bind(self.1.as_uuid());
        let target = fetch_one(connection, query, "id", target).await?;
        let is_registered = match &stack {
            Some(stack) => registered(connection, self.0, stack.generator_id).await?,
            None => false,
        };
        Ok(TargetSnapshot { now: now(connection).await?, agent, stack, is_registered, target })
    }
}

async fn registered(
    connection: &mut Connection,
    agent: AgentId,
    generator: GeneratorId,
) -> Result<bool, Failure> {
    let page = Page { after: None, limit: 1 };
    Ok(!registrations(connection, (Some(agent), Some(generator), page)).await?.is_empty())
}

fn target(row: &Row) -> Result<Target, Fault> {
    Ok(Target {
        id: rows::get(row, "id")?,
        agent_id: AgentId::new(rows::get(row, "agent_id")?),
        stack_id: StackId::new(rows::get(row, "stack_id")?),
    })
}

pub(crate) async fn targets(
    connection: &mut Connection,
    (agent, page): (AgentId, Page<Uuid>),
) -> Result<Vec<Target>, Failure> {
    let found = sqlx::query(
        "SELECT t.id, t.agent_id, t.stack_id FROM fleet_targets t \
         JOIN stacks s ON s.id = t.stack_id AND s.deleted_at IS NULL \
         WHERE t.agent_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3",
    )
    .bind(agent.as_uuid())
    .bind(after(page))
    .bind(i64::from(page.limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", target)).collect()
}

pub(crate) const REGISTRATION_INSERT: RowSet<Registration> = insert_rows!(guarded, "fleet_registrations", |row: &Registration| {
    id: uuid = row.id,
    agent_id: uuid = row.agent_id,
    generator_id: uuid = row.generator_id,
    registered_at: time = row.registered_at,
});

pub(crate) const TARGET_INSERT: RowSet<Target> = insert_rows!(guarded, "fleet_targets", |row: &Target| {
    id: uuid = row.id,
    agent_id: uuid = row.agent_id,
    stack_id: uuid = row.stack_id,
});

pub(crate) async fn remove_registration(
    connection: &mut Connection,
    id: Uuid,
) -> Result<u64, Failure> {
    let query = sqlx::query("DELETE FROM fleet_registrations WHERE id = $1").bind(id);
    Ok(query.execute(connection).await?.rows_affected())
}

pub(crate) async fn remove_target(connection: &mut Connection, id: Uuid) -> Result<u64, Failure> {
    let query = sqlx::query("DELETE FROM fleet_targets WHERE id = $1").bind(id);
    Ok(query.execute(connection).await?.rows_affected())
}
