//! Reads nodes, stores their heartbeats, counts them.
//!
//! Lists go by id after a cursor, which is stable however the set changes
//! meanwhile.

use std::collections::BTreeMap;

use slipway_app::nodes::port::{Heartbeat, NodeNames};
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::ids::{DrainId, NodeId, ProjectId};
use slipway_core::nodes::node::{Drain, Node, Reachability, Reported};
use slipway_durable::claim::micros;
use sqlx::Row as _;
use uuid::Uuid;

use super::hydrate::node_columns;
use super::page::{after, fetch_one, fetch_page};
use super::{Connection, Row, hydrate, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

/// The node of an audit entry (or of another reference) belongs to a resource that is
/// not deleted.
macro_rules! node_of_live_resource {
    ($id:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM nodes n JOIN resources r ON r.id = n.resource_id \
             WHERE n.id = ",
            $id,
            " AND r.deleted_at IS NULL)"
        )
    };
}
pub(crate) use node_of_live_resource;

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: NodeId,
) -> Result<Option<Node>, Failure> {
    let statement = concat!("SELECT ", node_columns!(), " FROM nodes WHERE id = $1");
    fetch_one(connection, sqlx::query(statement).bind(id.as_uuid()), "id", hydrate::node).await
}

pub(crate) async fn list(
    connection: &mut Connection,
    page: Page<NodeId>,
) -> Result<Listed<Node>, Failure> {
    let query = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        " FROM nodes WHERE id > $1 ORDER BY id LIMIT $2"
    ))
    .bind(after(page))
    .bind(i64::from(page.limit));
    fetch_page(connection, query, (NodeId::KIND, "id"), page, hydrate::node).await
}

pub(crate) async fn list_in(
    connection: &mut Connection,
    (project, page): (ProjectId, Page<NodeId>),
) -> Result<Listed<Node>, Failure> {
    let query = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        " FROM nodes WHERE project_id = $1 AND id > $2 ORDER BY id LIMIT $3"
    ))
    .bind(project.as_uuid())
    .bind(after(page))
    .bind(i64::from(page.limit));
    fetch_page(connection, query, (NodeId::KIND, "id"), page, hydrate::node).await
}

pub(crate) async fn names(
    connection: &mut Connection,
    nodes: &[NodeId],
) -> Result<BTreeMap<NodeId, NodeNames>, Failure> {
    let list: IdList = nodes.iter().map(|id| id.as_uuid()).collect();
    let found = sqlx::query(sql!(
        "SELECT n.id, r.handle, p.name FROM nodes n JOIN resources r ON r.id = n.resource_id \
         JOIN projects p ON p.id = n.project_id WHERE n.id ",
        (one_of "$1")
    ))
    .bind(list)
    .fetch_all(&mut *connection)
    .await?;
    let pairs = found.iter().map(|row| {
        let names = NodeNames { resource: row.try_get("handle")?, project: row.try_get("name")? };
        Ok((NodeId::new(row.try_get("id")?), names))
    });
    pairs.collect()
}

/// Not a write of the node in the sense of its revision: the revision guards
/// decisions, and no decision depends on a heartbeat.
pub(crate) async fn heartbeat(
    connection: &mut Connection,
    (id, reported): (NodeId, &Reported),
) -> Result<Option<Heartbeat>, Failure> {
    let row = sqlx::query(sql!(
        "UPDATE nodes SET binary_version = coalesce($2, binary_version), \
         binary_checksum = coalesce($3, binary_checksum), \
         agent_status = coalesce($4, agent_status), last_heartbeat_at = ",
        now,
        " WHERE id = $1 AND deregistered_at IS NULL \
         RETURNING last_heartbeat_at, drain_id, drain_requested_at"
    ))
    .bind(id.as_uuid())
    .bind(reported.version.as_deref())
    .bind(reported.checksum.as_deref())
    .bind(reported.status.as_deref())
    .fetch_optional(&mut *connection)
    .await?;
    row.map(|row| {
        hydrate_heartbeat(&row).map_err(|fault| Failure::Corrupt { id: id.as_uuid(), fault })
    })
    .transpose()
}

fn hydrate_heartbeat(row: &Row) -> Result<Heartbeat, Fault> {
    let drain_id: Option<Uuid> = rows::get(row, "drain_id")?;
    let requested_at = rows::time_or_null(row, "drain_requested_at")?;
    Ok(Heartbeat {
        accepted_at: rows::time(row, "last_heartbeat_at")?,
        drain: drain_id
            .zip(requested_at)
            .map(|(id, requested_at)| Drain { id: DrainId::new(id), requested_at }),
    })
}

/// How many registered nodes there are of each reachability, by one scan.
pub(crate) async fn count(
    connection: &mut Connection,
) -> Result<BTreeMap<Reachability, u64>, Failure> {
    let row = sqlx::query(sql!(
        "SELECT count(*) AS registered, \
         count(*) FILTER (WHERE last_heartbeat_at IS NULL) AS silent, \
         count(*) FILTER (WHERE last_heartbeat_at > (SELECT ",
        now,
        (minus_micros "$1"),
        ")) AS healthy, count(*) FILTER (WHERE last_heartbeat_at < (SELECT ",
        now,
        (minus_micros "$2"),
        ")) AS unreachable FROM nodes WHERE deregistered_at IS NULL"
    ))
    .bind(micros(Reachability::STALE_AFTER))
    .bind(micros(Reachability::UNREACHABLE_AFTER))
    .fetch_one(connection)
    .await?;
    let number = |name| row.try_get::<i64, _>(name).map(|found| u64::try_from(found).unwrap_or(0));
    let (silent, healthy) = (number("silent")?, number("healthy")?);
    let unreachable = number("unreachable")?;
    let others = silent.saturating_add(healthy).saturating_add(unreachable);
    Ok(BTreeMap::from([
        (Reachability::Unknown, silent),
        (Reachability::Healthy, healthy),
        (Reachability::Unreachable, unreachable),
        (Reachability::Stale, number("registered")?.saturating_sub(others)),
    ]))
}
