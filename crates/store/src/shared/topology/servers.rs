//! Servers, read from the rows of resources by the columns that say whose they are.

use std::collections::BTreeSet;

use slipway_app::topology::port::AttemptRow;
use slipway_core::Phase;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{
    GroupId, Partition, ProjectId, ProvisionedResourceId, ResourceId, WorkspaceId,
};
use slipway_core::subject::SubjectKind;
use slipway_core::time::Timestamp;
use slipway_core::topology::inventory::Known;
use slipway_core::topology::role::NodeRole;
use slipway_core::topology::scale::{ControlPlanes, Counts};
use slipway_core::topology::server::{Leaving, Server};
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{count, hydrate};
use super::{Connection, Row, group, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// The attempt in use of each server that is not deleted: the last one.
macro_rules! in_use {
    () => {
        "FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id \
         AND a.attempt = (SELECT max(n.attempt) FROM provisioned_resources n \
            WHERE n.resource_id = r.id AND n.in_use <> 0) "
    };
}

/// Whether a server stands for one of those that its group must keep. A resource has a second
/// attempt that is not Deleted only while it has a surge, so only then is the one in use looked
/// for: a gate counts many servers. A test and not a join, so that no planner begins with the
/// Ready attempts of all groups.
macro_rules! is_counted {
    () => {
        "r.deleted_at IS NULL AND r.deletion_id IS NULL \
         AND EXISTS (SELECT 1 FROM provisioned_resources a WHERE a.resource_id = r.id \
            AND a.status = 'Ready' AND (r.surge_to IS NULL OR (a.in_use <> 0 AND NOT EXISTS \
            (SELECT 1 FROM provisioned_resources n WHERE n.resource_id = a.resource_id \
            AND n.in_use <> 0 AND n.attempt > a.attempt))))"
    };
}

/// The servers of a workspace, in the order in which they were made.
pub(crate) async fn of_workspace(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<Vec<Server>, Failure> {
    let found = sqlx::query(concat!(
        "SELECT r.id, r.handle, r.group_id, r.created_at, a.id AS attempt_id, a.status, \
         d.kind AS leaving, CASE WHEN r.surge_to IS NULL THEN 0 ELSE 1 END AS surging, \
         CASE WHEN EXISTS (SELECT 1 FROM blockers b WHERE b.subject_id = a.id \
            AND b.subject_kind = 'provisioned_resource') THEN 1 ELSE 0 END AS blocked ",
        in_use!(),
        "LEFT JOIN deletions d ON d.id = r.deletion_id \
         WHERE r.workspace_id = $1 AND r.deleted_at IS NULL ORDER BY r.id"
    ))
    .bind(workspace.as_uuid())
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", server)).collect()
}

fn server(row: &Row) -> Result<Server, Fault> {
    let leaving: Option<String> = rows::get(row, "leaving")?;
    let of_attempt = SubjectKind::ProvisionedResource.as_str();
    Ok(Server {
        id: ResourceId::new(rows::get(row, "id")?),
        name: rows::get(row, "handle")?,
        group_id: GroupId::new(rows::get(row, "group_id")?),
        attempt_id: ProvisionedResourceId::new(rows::get(row, "attempt_id")?),
        phase: rows::member(row, "status", Phase::parse)?,
        leaving: match leaving.as_deref() {
            None => Leaving::Nothing,
            Some(kind) if kind == of_attempt => Leaving::Attempt,
            Some(_) => Leaving::Server,
        },
        surging: rows::get::<i32>(row, "surging")? != 0,
        blocked: rows::get::<i32>(row, "blocked")? != 0,
        created_at: rows::time(row, "created_at")?,
    })
}

/// How far the gates count: nothing that they ask is about more servers than this.
const COUNTED_MAX: i64 = 20_000;

/// What the gates ask about the other servers, and when that was. `but` is the server that the
/// decision is about; of those that are Ready it counts one more than are `enough`. The group is
/// locked meanwhile, and the others of the workspace wait for it, so this is one statement.
pub(crate) async fn counts(
    connection: &mut Connection,
    (workspace, group, role): (WorkspaceId, GroupId, NodeRole),
    but: Option<ResourceId>,
    enough: u32,
) -> Result<(Counts, Timestamp), Failure> {
    let but = but.map(ResourceId::as_uuid).unwrap_or_default();
    let limit = i64::from(enough).saturating_add(1).min(COUNTED_MAX);
    let row = sqlx::query(concat!(
        sql!("SELECT ", now, " AS now, "),
        "count(CASE WHEN s.deletion_id IS NOT NULL OR s.surge_to IS NOT NULL THEN 1 END) \
            AS under_way, \
         count(CASE WHEN s.deletion_id IS NULL OR coalesce((SELECT d.kind FROM deletions d \
            WHERE d.id = s.deletion_id), 'provisioned_resource') = 'provisioned_resource' \
            THEN 1 END) AS staying, \
         (SELECT count(*) FROM (SELECT r.id FROM resources r WHERE r.group_id = $1 \
            AND r.id <> $2 AND ",
        is_counted!(),
        " LIMIT $3) enough) AS counted \
         FROM resources s WHERE s.group_id = $1 AND s.deleted_at IS NULL AND s.id <> $2"
    ))
    .bind(group.as_uuid())
    .bind(but)
    .bind(limit)
    .fetch_one(&mut *connection)
    .await?;
    let number = |column: &str| {
        row.try_get::<i64, _>(column).map(|found| u32::try_from(found).unwrap_or(u32::MAX))
    };
    let control_planes = match role {
        NodeRole::ControlPlane => control_planes(connection, workspace, but).await?,
        NodeRole::Worker | NodeRole::LoadBalancer => ControlPlanes::default(),
    };
    let (mut load_balancers, mut backends) = (0, 0);
    if role == NodeRole::LoadBalancer {
        load_balancers = of_role(connection, workspace, NodeRole::LoadBalancer, but, 1).await?;
        // What is behind them only matters to the last one.
        if load_balancers == 0 {
            backends = of_role(connection, workspace, NodeRole::Worker, but, COUNTED_MAX).await?;
        }
    }
    let counts = Counts {
        others: number("staying")?,
        others_counted: number("counted")?,
        under_way: number("under_way")? > 0,
        load_balancers,
        backends,
        control_planes,
    };
    Ok((counts, row.try_get::<Micros, _>("now")?.into()))
}

/// The control planes of a workspace beside one, in whatever group.
async fn control_planes(
    connection: &mut Connection,
    workspace: WorkspaceId,
    but: Uuid,
) -> Result<ControlPlanes, Failure> {
    let row = sqlx::query(
        "SELECT count(*) AS found FROM resources r WHERE r.workspace_id = $1 \
         AND r.server_role = $2 AND r.id <> $3 AND r.deleted_at IS NULL \
         AND (r.deletion_id IS NOT NULL OR r.surge_to IS NOT NULL)",
    )
    .bind(workspace.as_uuid())
    .bind(NodeRole::ControlPlane.as_str())
    .bind(but)
    .fetch_one(&mut *connection)
    .await?;
    Ok(ControlPlanes {
        declared: group::control_planes(connection, workspace).await?,
        others: of_role(connection, workspace, NodeRole::ControlPlane, but, COUNTED_MAX).await?,
        under_way: row.try_get::<i64, _>("found")? > 0,
    })
}

/// Counted servers of a workspace with this role, as far as the limit.
async fn of_role(
    connection: &mut Connection,
    workspace: WorkspaceId,
    role: NodeRole,
    but: Uuid,
    limit: i64,
) -> Result<u32, Failure> {
    let row = sqlx::query(concat!(
        "SELECT count(*) AS found FROM (SELECT r.id FROM resources r \
         WHERE r.workspace_id = $1 AND r.server_role = $2 AND r.id <> $3 AND ",
        is_counted!(),
        " LIMIT $4) counted"
    ))
    .bind(workspace.as_uuid())
    .bind(role.as_str())
    .bind(but)
    .bind(limit)
    .fetch_one(connection)
    .await?;
    let found: i64 = row.try_get("found")?;
    Ok(u32::try_from(found).unwrap_or(u32::MAX))
}

/// The attempts of the servers of a group, for the comparison with an inventory. A server is not
/// deleted before all of its attempts are.
pub(crate) async fn attempts(
    connection: &mut Connection,
    group: GroupId,
) -> Result<Vec<AttemptRow>, Failure> {
    let found = sqlx::query(
        "SELECT a.id, a.status, r.handle, a.partition, b.engine FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id \
         JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
         JOIN blueprints b ON b.id = v.blueprint_id \
         WHERE r.group_id = $1 AND r.deleted_at IS NULL ORDER BY a.id",
    )
    .bind(group.as_uuid())
    .fetch_all(connection)
    .await?;
    let known = |row: &Row| {
        Ok(AttemptRow {
            known: Known {
                id: ProvisionedResourceId::new(rows::get(row, "id")?),
                server: rows::get(row, "handle")?,
                phase: rows::member(row, "status", Phase::parse)?,
            },
            partition: Partition::new(rows::get(row, "partition")?),
            engine: rows::member(row, "engine", Engine::parse)?,
        })
    };
    found.iter().map(|row| hydrate(row, "id", known)).collect()
}

/// The names that resources and nodes of the project have.
pub(crate) async fn names_taken(
    connection: &mut Connection,
    project: ProjectId,
    but: WorkspaceId,
) -> Result<BTreeSet<String>, Failure> {
    let found = sqlx::query(
        "SELECT r.handle FROM resources r WHERE r.project_id = $1 AND r.deleted_at IS NULL \
         AND (r.workspace_id IS NULL OR r.workspace_id <> $2) \
         UNION SELECT a.hostname AS handle FROM provisioned_resources a \
         WHERE a.project_id = $1 AND a.status <> 'Deleted' AND a.hostname IS NOT NULL",
    )
    .bind(project.as_uuid())
    .bind(but.as_uuid())
    .fetch_all(connection)
    .await?;
    Ok(found.iter().map(|row| row.try_get("handle")).collect::<Result<_, _>>()?)
}

/// Servers of a workspace that are not deleted, which keep its teardown running.
pub(crate) async fn live(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<i64, sqlx::Error> {
    let statement =
        "SELECT count(*) AS found FROM resources WHERE workspace_id = $1 AND deleted_at IS NULL";
    count(connection, statement, workspace.as_uuid()).await
}

/// Servers whose attempts in this partition are not proven gone, which keep its cluster.
pub(crate) async fn of_partition(
    connection: &mut Connection,
    partition: Partition,
) -> Result<i64, sqlx::Error> {
    let statement = "SELECT count(DISTINCT r.id) AS found FROM provisioned_resources a \
         JOIN resources r ON r.id = a.resource_id AND r.workspace_id IS NOT NULL \
         AND r.deleted_at IS NULL WHERE a.partition = $1";
    count(connection, statement, partition.as_uuid()).await
}
