//! Reads without a decision: one resource, nodes, deletions. `list.rs` lists resources.
//!
//! Lists go by id after a cursor, which is stable however the set changes
//! meanwhile. Related rows are loaded for the whole page at once.

use slipway_app::nodes::port::Heartbeat;
use slipway_app::ports::Listed;
use slipway_app::ports::store::{CorruptRow, Page};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::{DeletionId, DrainId, NodeId, ProvisionedResourceId, ResourceId};
use slipway_core::nodes::node::{Drain, Node, Reported};
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{after, fetch_one, fetch_page};
use super::{Connection, Row, deletion, nodes, rows, snapshot};
use crate::blueprints::Blueprints;
use crate::failure::Failure;
use crate::fault::Fault;

pub(crate) const DELETIONS: &str =
    concat!(deletion_columns!(), "WHERE id > $1 ORDER BY id LIMIT $2");

/// A page of attempts, each a snapshot or an unreadable row.
pub(crate) type Snapshots = Vec<Result<ResourceSnapshot, CorruptRow>>;

pub(crate) async fn attempt_load(
    connection: &mut Connection,
    (blueprints, ids): (&Blueprints, &[ProvisionedResourceId]),
) -> Result<Snapshots, Failure> {
    let loaded = snapshot::load(blueprints, connection, ids).await?;
    Ok(loaded
        .into_iter()
        .map(|(id, loaded)| {
            loaded.map_err(|fault| CorruptRow {
                id: id.as_uuid(),
                resource_id: None,
                reason: fault.to_string(),
            })
        })
        .collect())
}

pub(crate) async fn resource_fetch(
    connection: &mut Connection,
    (blueprints, id): (&Blueprints, ResourceId),
) -> Result<Option<ResourceSnapshot>, Failure> {
    let current = sqlx::query(
        "SELECT id FROM provisioned_resources WHERE resource_id = $1 \
         ORDER BY attempt DESC LIMIT 1",
    )
    .bind(id.as_uuid())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(current) = current else {
        return Ok(None);
    };
    let attempt = ProvisionedResourceId::new(current.try_get("id")?);
    let loaded = snapshot::load(blueprints, connection, &[attempt]).await?;
    loaded
        .into_iter()
        .next()
        .map(|(id, loaded)| loaded.map_err(|fault| Failure::Corrupt { id: id.as_uuid(), fault }))
        .transpose()
}

pub(crate) async fn deletion_fetch(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<Option<Deletion>, Failure> {
    let query = sqlx::query(concat!(deletion_columns!(), "WHERE id = $1")).bind(id.as_uuid());
    fetch_one(connection, query, "d_id", deletion::hydrate::deletion).await
}

pub(crate) async fn deletion_list(
    connection: &mut Connection,
    page: Page<DeletionId>,
) -> Result<Listed<Deletion>, Failure> {
    let query = sqlx::query(DELETIONS).bind(after(page)).bind(i64::from(page.limit));
    fetch_page(connection, query, (DeletionId::KIND, "d_id"), page, deletion::hydrate::deletion)
        .await
}

pub(crate) async fn node_fetch(
    connection: &mut Connection,
    id: NodeId,
) -> Result<Option<Node>, Failure> {
    let statement = concat!("SELECT ", node_columns!(), " FROM nodes WHERE id = $1");
    fetch_one(connection, sqlx::query(statement).bind(id.as_uuid()), "id", nodes::hydrate::node)
        .await
}

pub(crate) async fn node_list(
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
    fetch_page(connection, query, (NodeId::KIND, "id"), page, nodes::hydrate::node).await
}

/// Not a write of the node in the sense of its revision: the revision guards
/// decisions, and no decision depends on a heartbeat.
pub(crate) async fn node_heartbeat(
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
    row.map(|row| heartbeat(&row).map_err(|fault| Failure::Corrupt { id: id.as_uuid(), fault }))
        .transpose()
}

fn heartbeat(row: &Row) -> Result<Heartbeat, Fault> {
    let drain_id: Option<Uuid> = rows::get(row, "drain_id")?;
    let requested_at = rows::time_or_null(row, "drain_requested_at")?;
    Ok(Heartbeat {
        accepted_at: rows::time(row, "last_heartbeat_at")?,
        drain: drain_id
            .zip(requested_at)
            .map(|(id, requested_at)| Drain { id: DrainId::new(id), requested_at }),
    })
}
