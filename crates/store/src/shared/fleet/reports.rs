//! The tables of reports and of the health of objects. Agents repeat themselves with every
//! poll, so each is a statement of its own that decides nothing.

use std::time::Duration;

use slipway_core::fleet::report::{HealthStatus, NewReport, ObjectHealth, Report, ReportStatus};
use slipway_core::ids::{AgentId, DeploymentObjectId, ProjectId};
use slipway_durable::claim::micros;
use slipway_durable::database::End;
use uuid::Uuid;

use super::page::{fetch_one, hydrate};
use super::{Connection, Row, offers, rows};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select {
    () => {
        "SELECT r.id, r.agent_id, r.object_id, r.event_type, r.status, r.message, r.first_at, \
         r.last_at, r.count, a.deleted_at FROM agent_reports r \
         JOIN fleet_agents a ON a.id = r.agent_id "
    };
}

fn report(row: &Row) -> Result<Report, Fault> {
    Ok(Report {
        id: rows::get(row, "id")?,
        agent_id: AgentId::new(rows::get(row, "agent_id")?),
        object_id: DeploymentObjectId::new(rows::get(row, "object_id")?),
        event_type: rows::get(row, "event_type")?,
        status: rows::member(row, "status", ReportStatus::parse)?,
        message: rows::get(row, "message")?,
        first_at: rows::time(row, "first_at")?,
        last_at: rows::time(row, "last_at")?,
        count: rows::get(row, "count")?,
        deleted_at: rows::time_or_null(row, "deleted_at")?,
    })
}

/// Only about an object of a stack that the agent was offered, now or before.
pub(crate) async fn record(
    connection: &mut Connection,
    new: &NewReport,
) -> Result<End<Option<Report>>, Failure> {
    const RECORD: &str = sql!(
        "INSERT INTO agent_reports (id, agent_id, object_id, event_type, status, message, \
         first_at, last_at) SELECT $1, $2, $3, $4, $5, $6, ",
        now,
        ", ",
        now,
        " WHERE EXISTS (SELECT 1 FROM deployment_objects o \
            JOIN holdings h ON h.stack_id = o.stack_id WHERE o.id = $3 AND h.agent_id = $2 \
            AND (o.agent_id IS NULL OR o.agent_id = $2)) \
         ON CONFLICT (agent_id, object_id, event_type, status) DO UPDATE SET \
         last_at = excluded.last_at, message = excluded.message, \
         count = agent_reports.count + 1"
    );
    let (agent, object) = (new.agent_id.as_uuid(), new.object_id.as_uuid());
    let recorded = sqlx::query(RECORD)
        .bind(new.id)
        .bind(agent)
        .bind(object)
        .bind(&new.event_type)
        .bind(new.status.as_str())
        .bind(new.message.as_deref())
        .execute(&mut *connection)
        .await?;
    if recorded.rows_affected() == 0 {
        return Ok(End::Rollback(None));
    }
    if new.status == ReportStatus::Success {
        offers::release(connection, new.agent_id, new.object_id).await?;
    }
    let query = sqlx::query(concat!(
        select!(),
        "WHERE r.agent_id = $1 AND r.object_id = $2 AND r.event_type = $3 AND r.status = $4"
    ));
    let query = query.bind(agent).bind(object).bind(&new.event_type).bind(new.status.as_str());
    Ok(End::Commit(fetch_one(connection, query, "id", report).await?))
}

pub(crate) async fn list(
    connection: &mut Connection,
    (agent, project, limit): (Option<AgentId>, Option<ProjectId>, u32),
) -> Result<Vec<Report>, Failure> {
    let found = sqlx::query(concat!(
        select!(),
        "WHERE a.deleted_at IS NULL AND ($1 IS NULL OR r.agent_id = $1) \
         AND ($2 IS NULL OR a.project_id = $2) ORDER BY r.last_at DESC, r.id LIMIT $3"
    ))
    .bind(agent.map(|id| id.as_uuid()))
    .bind(project.map(|id| id.as_uuid()))
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", report)).collect()
}

pub(crate) async fn fetch(
    connection: &mut Connection,
    (id, within): (Uuid, Option<ProjectId>),
) -> Result<Option<Report>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE r.id = $1 AND a.deleted_at IS NULL AND ($2 IS NULL OR a.project_id = $2)"
    ));
    let query = query.bind(id).bind(within.map(|id| id.as_uuid()));
    fetch_one(connection, query, "id", report).await
}

/// The newest of each object counts, whatever order the answers arrive in.
pub(crate) async fn health(
    connection: &mut Connection,
    health: &[ObjectHealth],
) -> Result<End<u64>, Failure> {
    const RECORD: &str = concat!(
        "INSERT INTO object_health (id, agent_id, object_id, status, summary, checked_at) \
         SELECT given.id, given.agent_id, given.object_id, given.status, given.summary, \
         given.checked_at FROM ",
        rows_from_json!(
            id: uuid, agent_id: uuid, object_id: uuid, status: text, summary: json,
            checked_at: time
        ),
        " WHERE EXISTS (SELECT 1 FROM deployment_objects o \
            JOIN holdings h ON h.stack_id = o.stack_id WHERE o.id = given.object_id \
            AND h.agent_id = given.agent_id) \
         ON CONFLICT (agent_id, object_id) DO UPDATE SET status = excluded.status, \
         summary = excluded.summary, checked_at = excluded.checked_at \
         WHERE object_health.checked_at <= excluded.checked_at RETURNING id"
    );
    let rows: Vec<_> = health
        .iter()
        .map(|row| {
            json_row!(
                id: uuid = row.id,
                agent_id: uuid = row.agent_id,
                object_id: uuid = row.object_id,
                status: text = row.status,
                summary: json = row.summary,
                checked_at: time = row.checked_at,
            )
        })
        .collect();
    if rows.is_empty() {
        return Ok(End::Rollback(0));
    }
    let query = sqlx::query(RECORD).bind(sqlx::types::Json(&rows));
    let written = query.fetch_all(connection).await?.len();
    Ok(End::Commit(u64::try_from(written).unwrap_or_default()))
}

fn health_of(row: &Row) -> Result<ObjectHealth, Fault> {
    Ok(ObjectHealth {
        id: rows::get(row, "id")?,
        agent_id: AgentId::new(rows::get(row, "agent_id")?),
        object_id: DeploymentObjectId::new(rows::get(row, "object_id")?),
        status: rows::member(row, "status", HealthStatus::parse)?,
        summary: rows::json_or_null(row, "summary")?,
        checked_at: rows::time(row, "checked_at")?,
    })
}

pub(crate) async fn health_list(
    connection: &mut Connection,
    object: DeploymentObjectId,
) -> Result<Vec<ObjectHealth>, Failure> {
    let found = sqlx::query(
        "SELECT d.id, d.agent_id, d.object_id, d.status, d.summary, d.checked_at \
         FROM object_health d JOIN fleet_agents a ON a.id = d.agent_id AND a.deleted_at IS NULL \
         WHERE d.object_id = $1 ORDER BY d.agent_id",
    )
    .bind(object.as_uuid())
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", health_of)).collect()
}

/// Removes reports that were last repeated longer than `keep` ago, `limit` at most.
pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, limit): (Duration, u32),
) -> Result<End<u64>, Failure> {
    let removed = sqlx::query(sql!(
        "DELETE FROM agent_reports WHERE id IN (SELECT id FROM agent_reports WHERE last_at <= ",
        now,
        (minus_micros "$1"),
        " ORDER BY last_at LIMIT $2)"
    ))
    .bind(micros(keep))
    .bind(i64::from(limit))
    .execute(connection)
    .await?
    .rows_affected();
    Ok(if removed > 0 { End::Commit(removed) } else { End::Rollback(0) })
}
