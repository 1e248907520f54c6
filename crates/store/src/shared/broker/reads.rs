//! Reads without a decision: resources, nodes, deletions.
//!
//! Lists go by id after a cursor, which is stable however the set changes
//! meanwhile. Related rows are loaded for the whole page at once.

use std::collections::HashMap;

use slipway_app::broker::port::{Blocked, ResourceFilter};
use slipway_app::nodes::port::Heartbeat;
use slipway_app::ports::Listed;
use slipway_app::ports::store::{CorruptRow, Page};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::{DeletionId, DrainId, NodeId, ProvisionedResourceId, ResourceId};
use slipway_core::nodes::node::{Drain, Node, Reported};
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::page::{after, as_id, fetch_one, fetch_page};
use super::{Connection, Db, Row, deletion, nodes, rows, snapshot};
use crate::blueprints::Blueprints;
use crate::failure::Failure;
use crate::fault::Fault;

pub(crate) const DELETIONS: &str =
    concat!(deletion_columns!(), "WHERE id > $1 ORDER BY id LIMIT $2");

/// A page of attempts, each a snapshot or an unreadable row.
type Snapshots = Vec<Result<ResourceSnapshot, CorruptRow>>;

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

pub(crate) async fn resource_list(
    connection: &mut Connection,
    (blueprints, filter, page): (&Blueprints, &ResourceFilter, Page<ResourceId>),
) -> Result<Snapshots, Failure> {
    let mut query: QueryBuilder<Db> = QueryBuilder::new(
        "SELECT a.id, r.id AS resource_id FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id \
         WHERE a.attempt = (SELECT max(latest.attempt) FROM provisioned_resources latest \
            WHERE latest.resource_id = r.id)",
    );
    if let Some(after) = page.after {
        query.push(" AND r.id > ").push_bind(after.as_uuid());
    }
    if let Some(project) = &filter.project {
        query
            .push(" AND r.project_id IN (SELECT id FROM projects WHERE (name = ")
            .push_bind(project)
            .push(" AND deleted_at IS NULL) OR id = ")
            .push_bind(as_id(project))
            .push(")");
    }
    if let Some(handle) = &filter.handle {
        query.push(" AND r.handle = ").push_bind(handle);
    }
    if let Some(phase) = &filter.phase {
        query.push(" AND a.status = ").push_bind(phase);
    }
    for selector in &filter.labels {
        // The resource's label overrides the project's, as in the rule of core.
        let key = selector.key.as_str();
        query
            .push(" AND EXISTS (SELECT 1 FROM projects p WHERE p.id = r.project_id AND coalesce(r.labels ->> ")
            .push_bind(key)
            .push(", p.labels ->> ")
            .push_bind(key);
        match &selector.value {
            Some(value) => query.push(") = ").push_bind(value).push(")"),
            None => query.push(") IS NOT NULL)"),
        };
    }
    if let Some(blocked) = filter.blocked {
        query
            .push(" AND EXISTS (SELECT 1 FROM blockers k WHERE k.subject_id = a.id AND k.subject_kind = ")
            .push_bind(ProvisionedResourceId::KIND);
        if let Blocked::By(code) = blocked {
            query.push(" AND k.code = ").push_bind(code.as_str());
        }
        query.push(")");
    }
    if !filter.show_deleted {
        query.push(" AND r.deleted_at IS NULL");
    }
    query.push(" ORDER BY r.id LIMIT ").push_bind(i64::from(page.limit));

    let mut resources = HashMap::new();
    let mut ids = Vec::new();
    for row in query.build().fetch_all(&mut *connection).await? {
        let id = ProvisionedResourceId::new(row.try_get("id")?);
        resources.insert(id, ResourceId::new(row.try_get("resource_id")?));
        ids.push(id);
    }
    let loaded = snapshot::load(blueprints, connection, &ids).await?;
    Ok(loaded
        .into_iter()
        .map(|(id, loaded)| {
            loaded.map_err(|fault| CorruptRow {
                id: id.as_uuid(),
                resource_id: resources.get(&id).copied(),
                reason: fault.to_string(),
            })
        })
        .collect())
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
