//! What roll-outs of stacks read: the agents that are associated with a stack, found from its
//! side, and what is known of them about its newest object.

use std::collections::HashMap;

use slipway_core::Timestamp;
use slipway_core::fleet::report::{HealthStatus, ReportStatus};
use slipway_core::fleet::rollout::{AssociatedAgent, LastReport, MemberFact};
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{AgentId, StackId};
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{hydrate, now};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

/// Whether the agent `a` is associated with the stack `$1`.
macro_rules! is_associated {
    () => {
        "EXISTS (SELECT 1 FROM fleet_registrations r JOIN stacks s \
            ON s.generator_id = r.generator_id WHERE s.id = $1 AND r.agent_id = a.id) \
         AND (EXISTS (SELECT 1 FROM fleet_targets t \
            WHERE t.stack_id = $1 AND t.agent_id = a.id) \
         OR EXISTS (SELECT 1 FROM fleet_labels sl JOIN fleet_labels al ON al.label = sl.label \
            WHERE sl.owner_id = $1 AND al.owner_id = a.id) \
         OR EXISTS (SELECT 1 FROM fleet_annotations sa JOIN fleet_annotations aa \
            ON aa.key = sa.key AND aa.value = sa.value \
            WHERE sa.owner_id = $1 AND aa.owner_id = a.id))"
    };
}

/// The active agents that are associated with a stack, by name, with their labels.
pub(crate) async fn associated(
    connection: &mut Connection,
    stack: &Stack,
) -> Result<Vec<AssociatedAgent>, Failure> {
    let found = sqlx::query(concat!(
        "SELECT a.id, a.name FROM fleet_agents a WHERE a.project_id = $2 \
         AND a.deleted_at IS NULL AND a.status = 'ACTIVE' AND ",
        is_associated!(),
        " ORDER BY a.name, a.id"
    ))
    .bind(stack.id.as_uuid())
    .bind(stack.project_id.as_uuid())
    .fetch_all(&mut *connection)
    .await?;
    let ids: Vec<Uuid> =
        found.iter().map(|row| row.try_get("id")).collect::<Result<_, sqlx::Error>>()?;
    let tagged = sqlx::query(sql!(
        "SELECT owner_id, label FROM fleet_labels WHERE owner_id ",
        (one_of "$1"),
        " ORDER BY label"
    ))
    .bind(IdList(ids))
    .fetch_all(connection)
    .await?;
    let mut labels: HashMap<Uuid, Vec<String>> = HashMap::new();
    for row in &tagged {
        labels.entry(row.try_get("owner_id")?).or_default().push(row.try_get("label")?);
    }
    let agent = |row: &Row| {
        let id: Uuid = row.try_get("id")?;
        Ok(AssociatedAgent {
            id: AgentId::new(id),
            name: row.try_get("name")?,
            labels: labels.remove(&id).unwrap_or_default(),
        })
    };
    Ok(found.iter().map(agent).collect::<Result<_, sqlx::Error>>()?)
}

/// What is known of these agents about the newest object of a stack, or what it is for each of
/// them. That something drifted is no word about the object; that it cannot be rendered is.
pub(crate) async fn facts(
    connection: &mut Connection,
    (stack, agents): (StackId, &[AgentId]),
) -> Result<(Timestamp, Vec<MemberFact>), Failure> {
    const FACTS: &str = concat!(
        "SELECT a.id, CASE WHEN a.deleted_at IS NULL AND ",
        is_associated!(),
        " THEN 1 ELSE 0 END AS associated, p.status, p.message, p.last_at, h.status AS health, \
         f.problem, f.made_at \
         FROM fleet_agents a \
         LEFT JOIN deployment_objects n ON n.id = (SELECT x.id FROM deployment_objects x \
            WHERE x.stack_id = $1 AND x.agent_id IS NULL AND x.withdrawn_at IS NULL \
            ORDER BY x.sequence_id DESC LIMIT 1) \
         LEFT JOIN fleet_renderings f ON f.base_id = n.id AND f.agent_id = a.id \
         LEFT JOIN agent_reports p ON p.id = (SELECT x.id FROM agent_reports x \
            WHERE x.agent_id = a.id AND x.object_id = coalesce(f.object_id, n.id) \
            AND x.event_type <> 'DRIFT' ORDER BY x.last_at DESC, x.id DESC LIMIT 1) \
         LEFT JOIN object_health h ON h.agent_id = a.id \
            AND h.object_id = coalesce(f.object_id, n.id) WHERE a.id ",
        sql!((one_of "$2"))
    );
    let ids: IdList = agents.iter().copied().collect();
    let found = sqlx::query(FACTS).bind(stack.as_uuid()).bind(ids);
    let found = found.fetch_all(&mut *connection).await?;
    let facts = found.iter().map(|row| hydrate(row, "id", fact)).collect::<Result<_, _>>()?;
    Ok((now(connection).await?, facts))
}

fn fact(row: &Row) -> Result<MemberFact, Fault> {
    let problem: Option<String> = rows::get(row, "problem")?;
    let report = match (problem, rows::get::<Option<Micros>>(row, "last_at")?) {
        (Some(problem), _) => Some(LastReport {
            status: ReportStatus::Failure,
            message: Some(problem),
            at: rows::time(row, "made_at")?,
        }),
        (None, Some(at)) => Some(LastReport {
            status: rows::member(row, "status", ReportStatus::parse)?,
            message: rows::get(row, "message")?,
            at: at.into(),
        }),
        (None, None) => None,
    };
    let health = match rows::get::<Option<String>>(row, "health")? {
        Some(_) => Some(rows::member(row, "health", HealthStatus::parse)?),
        None => None,
    };
    Ok(MemberFact {
        agent_id: AgentId::new(rows::get(row, "id")?),
        is_associated: rows::get::<i32>(row, "associated")? != 0,
        report,
        health,
    })
}
