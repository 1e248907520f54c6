//! How agents and stacks are doing: counts over what hangs on them, by one statement each.

use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::overview::{AgentOverview, ObjectHealthCount};
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{AgentId, DeploymentObjectId, ProjectId, StackId};

use super::page::hydrate;
use super::table::Table as _;
use super::{Connection, Row, agent, rows, stack};
use crate::failure::Failure;
use crate::fault::Fault;

/// The agents of `$1`, or the one of `$2`, and the live stacks that they should have.
macro_rules! desired {
    () => {
        "WITH chosen AS (SELECT id FROM fleet_agents WHERE deleted_at IS NULL \
            AND ($1 IS NULL OR project_id = $1) AND ($2 IS NULL OR id = $2)), \
         pairs AS (SELECT t.agent_id, t.stack_id FROM chosen c \
            JOIN fleet_targets t ON t.agent_id = c.id \
            UNION SELECT al.owner_id, sl.owner_id FROM chosen c \
            JOIN fleet_labels al ON al.owner_id = c.id \
            JOIN fleet_labels sl ON sl.label = al.label AND sl.owner_kind = 'stack' \
            UNION SELECT aa.owner_id, sa.owner_id FROM chosen c \
            JOIN fleet_annotations aa ON aa.owner_id = c.id \
            JOIN fleet_annotations sa ON sa.key = aa.key AND sa.value = aa.value \
            AND sa.owner_kind = 'stack'), \
         newest AS (SELECT p.agent_id, p.stack_id, (SELECT x.id FROM deployment_objects x \
                WHERE x.stack_id = s.id AND x.agent_id IS NULL AND x.withdrawn_at IS NULL \
                ORDER BY x.sequence_id DESC LIMIT 1) AS object_id \
            FROM pairs p JOIN stacks s ON s.id = p.stack_id AND s.deleted_at IS NULL \
            JOIN fleet_registrations r \
            ON r.agent_id = p.agent_id AND r.generator_id = s.generator_id), \
         desired AS (SELECT n.agent_id, n.stack_id, coalesce(f.object_id, n.object_id) \
            AS object_id FROM newest n LEFT JOIN fleet_renderings f \
            ON f.base_id = n.object_id AND f.agent_id = n.agent_id) "
    };
}

/// An agent still has to deploy what it is to have and did not report as deployed, and to
/// remove what it holds and is not to have.
const AGENTS: &str = concat!(
    desired!(),
    ", due AS (SELECT w.agent_id FROM desired w JOIN deployment_objects o ON o.id = w.object_id \
        AND o.is_deletion_marker = 0 WHERE NOT EXISTS (SELECT 1 FROM agent_reports r \
            WHERE r.agent_id = w.agent_id AND r.object_id = w.object_id \
            AND r.status = 'SUCCESS') \
        UNION ALL SELECT h.agent_id FROM chosen c JOIN holdings h ON h.agent_id = c.id \
        WHERE h.released_at IS NULL AND NOT EXISTS (SELECT 1 FROM desired w \
            JOIN deployment_objects o ON o.id = w.object_id AND o.is_deletion_marker = 0 \
            WHERE w.agent_id = h.agent_id AND w.stack_id = h.stack_id)), \
     pending AS (SELECT agent_id, count(*) AS found FROM due GROUP BY agent_id), \
     seen AS (SELECT h.agent_id, sum(CASE WHEN x.status = 'degraded' THEN 1 ELSE 0 END) AS degraded, \
        sum(CASE WHEN x.status = 'failing' THEN 1 ELSE 0 END) AS failing \
        FROM chosen c JOIN holdings h ON h.agent_id = c.id AND h.released_at IS NULL \
        JOIN object_health x ON x.agent_id = h.agent_id AND x.object_id = h.object_id \
        GROUP BY h.agent_id), \
     reported AS (SELECT r.agent_id, max(r.last_at) AS last_at FROM chosen c \
        JOIN agent_reports r ON r.agent_id = c.id GROUP BY r.agent_id) ",
    "SELECT ",
    agent::agent_columns!(),
    ", coalesce(pending.found, 0) AS pending, coalesce(seen.degraded, 0) AS degraded, \
     coalesce(seen.failing, 0) AS failing, reported.last_at AS last_report_at \
     FROM chosen JOIN fleet_agents a ON a.id = chosen.id \
     LEFT JOIN pending ON pending.agent_id = a.id LEFT JOIN seen ON seen.agent_id = a.id \
     LEFT JOIN reported ON reported.agent_id = a.id ORDER BY a.id"
);

pub(crate) async fn agents(
    connection: &mut Connection,
    (project, id): (Option<ProjectId>, Option<AgentId>),
) -> Result<Vec<AgentOverview>, Failure> {
    let found = sqlx::query(AGENTS)
        .bind(project.map(|id| id.as_uuid()))
        .bind(id.map(|id| id.as_uuid()))
        .fetch_all(connection)
        .await?;
    let overview = |row: &Row| -> Result<AgentOverview, Fault> {
        Ok(AgentOverview {
            agent: Agent::read(row)?,
            pending: rows::get(row, "pending")?,
            degraded: rows::get(row, "degraded")?,
            failing: rows::get(row, "failing")?,
            last_report_at: rows::time_or_null(row, "last_report_at")?,
        })
    };
    found.iter().map(|row| hydrate(row, "id", overview)).collect()
}

/// The live stacks that an agent is to have.
pub(crate) async fn stacks(
    connection: &mut Connection,
    id: AgentId,
) -> Result<Vec<Stack>, Failure> {
    const STACKS: &str = concat!(
        desired!(),
        stack::select!(),
        "WHERE s.id IN (SELECT stack_id FROM desired) ORDER BY s.id"
    );
    let none: Option<uuid::Uuid> = None;
    let found = sqlx::query(STACKS).bind(none).bind(id.as_uuid()).fetch_all(connection).await?;
    found.iter().map(|row| hydrate(row, "id", Stack::read)).collect()
}

/// Every object of the stack that agents hold, with how healthy they see it.
pub(crate) async fn health(
    connection: &mut Connection,
    stack: StackId,
) -> Result<Vec<ObjectHealthCount>, Failure> {
    let found = sqlx::query(
        "SELECT o.id, sum(CASE WHEN x.status = 'healthy' THEN 1 ELSE 0 END) AS healthy, \
         sum(CASE WHEN x.status = 'degraded' THEN 1 ELSE 0 END) AS degraded, \
         sum(CASE WHEN x.status = 'failing' THEN 1 ELSE 0 END) AS failing \
         FROM deployment_objects o JOIN object_health x ON x.object_id = o.id \
         JOIN fleet_agents a ON a.id = x.agent_id AND a.deleted_at IS NULL \
         WHERE o.stack_id = $1 AND o.is_deletion_marker = 0 \
         GROUP BY o.id, o.sequence_id ORDER BY o.sequence_id DESC",
    )
    .bind(stack.as_uuid())
    .fetch_all(connection)
    .await?;
    let count = |row: &Row| -> Result<ObjectHealthCount, Fault> {
        Ok(ObjectHealthCount {
            object_id: DeploymentObjectId::new(rows::get(row, "id")?),
            healthy: rows::get(row, "healthy")?,
            degraded: rows::get(row, "degraded")?,
            failing: rows::get(row, "failing")?,
        })
    };
    found.iter().map(|row| hydrate(row, "id", count)).collect()
}
