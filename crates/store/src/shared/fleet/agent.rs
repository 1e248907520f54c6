//! The table of agents.

use slipway_app::fleet::port::{AgentKey, FleetFilter};
use slipway_app::ports::store::Page;
use slipway_core::fleet::FleetName;
use slipway_core::fleet::agent::{
    Agent, AgentSnapshot, AgentStatus, ClusterHealth, Heartbeat, HeldStack,
};
use slipway_core::fleet::generator::Generator;
use slipway_core::ids::{AgentId, DeletionId, ProjectId, Revision, StackId};
use sqlx::Row as _;
use uuid::Uuid;

use super::generator::open_project;
use super::page::{Query, after, as_id, fetch_one, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

/// The columns of an agent `a`.
macro_rules! agent_columns {
    () => {
        "a.id, a.revision, a.project_id, a.name, a.cluster_name, a.status, a.last_heartbeat, \
         a.k8s_reachable, a.k8s_api_latency_ms, a.k8s_reported_at, a.can_keep, a.deletion_id, \
         a.deleted_at, a.created_at, a.updated_at"
    };
}
pub(crate) use agent_columns;

macro_rules! select {
    () => {
        concat!("SELECT ", agent_columns!(), " FROM fleet_agents a ")
    };
}

impl Table for Agent {
    queries_by_id!(select!(), "a");

    fn page_query(filter: &FleetFilter, page: Page<AgentId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "WHERE a.id > $1 AND ($2 OR a.deleted_at IS NULL) \
             AND ($3 IS NULL OR a.project_id = $3) \
             AND ($4 IS NULL OR EXISTS (SELECT 1 FROM fleet_registrations r \
                WHERE r.agent_id = a.id AND r.generator_id = $4)) \
             AND ($5 IS NULL OR a.name = $5) AND ($6 IS NULL OR a.cluster_name = $6) \
             ORDER BY a.id LIMIT $7"
        ))
        .bind(after(page))
        .bind(filter.show_deleted)
        .bind(filter.project.map(|id| id.as_uuid()))
        .bind(filter.generator.map(|id| id.as_uuid()))
        .bind(filter.name.as_deref())
        .bind(filter.cluster_name.as_deref())
        .bind(i64::from(page.limit))
    }

    async fn load(connection: &mut Connection, key: &AgentKey) -> Result<AgentSnapshot, Failure> {
        let (mut project, mut held, mut generators) = (None, Vec::new(), Vec::new());
        let agent = match key {
            AgentKey::New { project: reference, name, cluster_name, generators: desired } => {
                project = open_project(connection, reference).await?;
                for id in desired {
                    generators
                        .extend(table::share::<Generator>(connection, &id.to_string()).await?);
                }
                match project {
                    Some(project) => by_names(connection, project, name, cluster_name).await?,
                    None => None,
                }
            }
            AgentKey::Existing(id) => table::lock::<Self>(connection, &id.to_string()).await?,
            AgentKey::Leaving(id) => {
                let found = table::lock::<Self>(connection, &id.to_string()).await?;
                if found.is_some() {
                    held = held_by(connection, *id).await?;
                }
                found
            }
        };
        Ok(AgentSnapshot { now: now(connection).await?, project, agent, held, generators })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        let reported = rows::time_or_null(row, "k8s_reported_at")?;
        let cluster = match reported {
            Some(at) => Some(ClusterHealth {
                is_reachable: rows::get::<Option<i32>>(row, "k8s_reachable")?.map(|on| on != 0),
                latency_millis: rows::get(row, "k8s_api_latency_ms")?,
                at,
            }),
            None => None,
        };
        let heartbeat = rows::time_or_null(row, "last_heartbeat")?;
        Ok(Self {
            id: AgentId::new(rows::get(row, "id")?),
            project_id: ProjectId::new(rows::get(row, "project_id")?),
            name: FleetName::from_stored(rows::get(row, "name")?),
            cluster_name: FleetName::from_stored(rows::get(row, "cluster_name")?),
            status: rows::member(row, "status", AgentStatus::parse)?,
            heartbeat: heartbeat.map(|at| Heartbeat { at, cluster }),
            can_keep: rows::get::<i32>(row, "can_keep")? != 0,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

async fn by_names(
    connection: &mut Connection,
    project: ProjectId,
    name: &str,
    cluster_name: &str,
) -> Result<Option<Agent>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE a.project_id = $1 AND a.name = $2 AND a.cluster_name = $3 AND a.deleted_at IS NULL"
    ));
    let query = query.bind(project.as_uuid()).bind(name).bind(cluster_name);
    fetch_one(connection, query, "id", Agent::read).await
}

/// What an agent was offered and did not report as removed.
async fn held_by(connection: &mut Connection, id: AgentId) -> Result<Vec<HeldStack>, Failure> {
    let found = sqlx::query(
        "SELECT s.id, s.name FROM holdings h JOIN stacks s ON s.id = h.stack_id \
         WHERE h.agent_id = $1 AND h.released_at IS NULL ORDER BY s.id",
    )
    .bind(id.as_uuid())
    .fetch_all(connection)
    .await?;
    let held = |row: &Row| {
        Ok(HeldStack { id: StackId::new(row.try_get("id")?), name: row.try_get("name")? })
    };
    found.iter().map(held).collect()
}

/// A heartbeat is no change of the row: its revision stays.
pub(crate) async fn heartbeat(
    connection: &mut Connection,
    (id, cluster, can_keep): (AgentId, Option<ClusterHealth>, bool),
) -> Result<bool, Failure> {
    let beat = sqlx::query(sql!(
        "UPDATE fleet_agents SET last_heartbeat = ",
        now,
        ", can_keep = $5, k8s_reachable = CASE WHEN $2 = 1 THEN $3 ELSE k8s_reachable END, \
         k8s_api_latency_ms = CASE WHEN $2 = 1 THEN $4 ELSE k8s_api_latency_ms END, \
         k8s_reported_at = CASE WHEN $2 = 1 THEN ",
        now,
        " ELSE k8s_reported_at END WHERE id = $1 AND deleted_at IS NULL"
    ))
    .bind(id.as_uuid())
    .bind(i32::from(cluster.is_some()))
    .bind(cluster.and_then(|cluster| cluster.is_reachable).map(i32::from))
    .bind(cluster.and_then(|cluster| cluster.latency_millis))
    .bind(i32::from(can_keep))
    .execute(connection)
    .await?;
    Ok(beat.rows_affected() == 1)
}

pub(crate) const MARKS: Marks = marks!(
    "fleet_agents",
    "name",
    "project_id",
    "(project_id, cluster_name) = \
     (SELECT x.project_id, x.cluster_name FROM fleet_agents x WHERE x.id = $2)"
);

pub(crate) const INSERT: RowSet<Agent> = insert_rows!(guarded, "fleet_agents", |row: &Agent| {
    id: uuid = row.id,
    project_id: uuid = row.project_id,
    name: text = row.name,
    cluster_name: text = row.cluster_name,
    status: text = row.status,
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

pub(crate) const UPDATE: RowSet<Agent> = update_rows!(dated, "fleet_agents" by id, |row: &Agent| {
    name: text = row.name,
    cluster_name: text = row.cluster_name,
    status: text = row.status,
});
