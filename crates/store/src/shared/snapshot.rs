//! Loading what a decision may know, for one attempt or for many by the same
//! three statements.
//!
//! A snapshot that will be decided on is loaded after its resource row was
//! locked, by statements of their own: under READ COMMITTED each statement sees
//! what was committed before it began, so nothing older than the lock is read.

use std::collections::HashMap;

use slipway_core::blocker::Blocker;
use slipway_core::ids::{ClaimToken, ProvisionedResourceId};
use slipway_core::node::Node;
use slipway_core::snapshot::ResourceSnapshot;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::{Connection, Row, rows};
use crate::fault::Fault;
use crate::id_list::IdList;

/// The snapshot of one attempt, or what is wrong with its rows.
pub(super) type Loaded = Result<ResourceSnapshot, Fault>;

macro_rules! snapshot_columns {
    () => {
        "a.id AS a_id, a.resource_id AS a_resource_id, a.project_id AS a_project_id, \
         a.blueprint_version_id AS a_blueprint_version_id, \
         a.cloud_credential_id AS a_cloud_credential_id, a.attempt AS a_attempt, \
         a.status AS a_status, a.phase_since AS a_phase_since, \
         a.failure_reason AS a_failure_reason, a.xr_name AS a_xr_name, \
         a.bootstrap_token_id AS a_bootstrap_token_id, \
         a.parameter_values AS a_parameter_values, a.lane AS a_lane, \
         a.deletion_requested_at AS a_deletion_requested_at, a.observed AS a_observed, \
         a.unsettled_since AS a_unsettled_since, a.absence_proven_at AS a_absence_proven_at, \
         a.failures AS a_failures, a.due_at AS a_due_at, a.claim_token AS a_claim_token, \
         a.revision AS a_revision, a.created_at AS a_created_at, a.updated_at AS a_updated_at, \
         r.id AS r_id, r.project_id AS r_project_id, r.handle AS r_handle, \
         r.labels AS r_labels, r.revision AS r_revision, r.deletion_id AS r_deletion_id, \
         r.deleted_at AS r_deleted_at, r.created_at AS r_created_at, \
         r.updated_at AS r_updated_at, \
         v.id AS v_id, v.blueprint_id AS v_blueprint_id, b.slug AS v_slug, \
         v.version AS v_version, b.engine AS v_engine, \
         v.parameter_schema AS v_parameter_schema, \
         v.injection_strategy AS v_injection_strategy, v.mesh_role AS v_mesh_role, \
         v.provider_kinds AS v_provider_kinds, \
         s.cluster_id AS p_cluster_id, c.name AS p_cluster, s.namespace AS p_namespace, \
         s.namespace_phase AS p_namespace_phase, c.substrate_uid AS p_substrate_uid, \
         t.id AS t_id, t.project_id AS t_project_id, \
         t.provisioned_resource_id AS t_provisioned_resource_id, t.kind AS t_kind, \
         t.hash AS t_hash, t.issued_at AS t_issued_at, t.expires_at AS t_expires_at, \
         t.hard_expires_at AS t_hard_expires_at, t.consumed_at AS t_consumed_at, \
         t.consumed_nonce AS t_consumed_nonce, \
         t.consumed_by_node_id AS t_consumed_by_node_id, \
         t.consumed_public_key AS t_consumed_public_key, t.revoked_at AS t_revoked_at, \
         d.id AS d_id, d.kind AS d_kind, d.target_id AS d_target_id, d.state AS d_state, \
         d.requested_by AS d_requested_by, d.reason AS d_reason, d.members AS d_members, \
         d.revision AS d_revision, d.requested_at AS d_requested_at, d.done_at AS d_done_at, \
         d.restorable_until AS d_restorable_until"
    };
}

macro_rules! snapshot_tables {
    () => {
        " FROM provisioned_resources a \
         JOIN resources r ON r.id = a.resource_id \
         JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
         JOIN blueprints b ON b.id = v.blueprint_id \
         LEFT JOIN cluster_assignments s ON s.project_id = a.project_id \
         LEFT JOIN clusters c ON c.id = s.cluster_id \
         LEFT JOIN bootstrap_tokens t ON t.id = a.bootstrap_token_id \
         LEFT JOIN deletions d ON d.id = r.deletion_id "
    };
}

/// Loads the snapshots of these attempts, in the given order; unknown ids are
/// left out.
pub(super) async fn load(
    connection: &mut Connection,
    ids: &[ProvisionedResourceId],
) -> Result<Vec<(ProvisionedResourceId, Loaded)>, sqlx::Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let list: IdList = ids.iter().map(|id| id.as_uuid()).collect();
    let nodes = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        sql!(" FROM nodes WHERE provisioned_resource_id ", (one_of "$1"))
    ))
    .bind(list)
    .fetch_all(&mut *connection)
    .await?;
    load_around(connection, ids, &nodes).await
}

/// The same with the resources locked by the caller and the nodes locked here,
/// in one order (not by id alone: that order invites a walk over all nodes).
/// Reading and locking them is one statement: what
/// it answers is what was locked, also after a wait, and a node that it does
/// not see could only come from a decision about the same resource.
pub(super) async fn load_locked(
    connection: &mut Connection,
    ids: &[ProvisionedResourceId],
) -> Result<Vec<(ProvisionedResourceId, Loaded)>, sqlx::Error> {
    let list: IdList = ids.iter().map(|id| id.as_uuid()).collect();
    let nodes = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        sql!(
            " FROM nodes WHERE provisioned_resource_id ",
            (one_of "$1"),
            " ORDER BY provisioned_resource_id, id",
            for_update
        )
    ))
    .bind(list)
    .fetch_all(&mut *connection)
    .await?;
    load_around(connection, ids, &nodes).await
}

async fn load_around(
    connection: &mut Connection,
    ids: &[ProvisionedResourceId],
    nodes: &[Row],
) -> Result<Vec<(ProvisionedResourceId, Loaded)>, sqlx::Error> {
    let list: IdList = ids.iter().map(|id| id.as_uuid()).collect();
    let attempts = sqlx::query(concat!(
        "SELECT ",
        sql!(now),
        " AS now, ",
        snapshot_columns!(),
        snapshot_tables!(),
        sql!("WHERE a.id ", (one_of "$1")),
    ))
    .bind(list.clone())
    .fetch_all(&mut *connection)
    .await?;
    let mut nodes = last_nodes(nodes)?;
    let mut blockers = blockers(connection, list).await?;

    let mut snapshots = HashMap::with_capacity(attempts.len());
    for row in &attempts {
        let id: Uuid = row.try_get("a_id")?;
        let node = nodes.remove(&id).transpose();
        let blockers = blockers.remove(&id).unwrap_or(Ok(Vec::new()));
        snapshots.insert(id, node.and_then(|node| snapshot(row, node, blockers?)));
    }
    let loaded =
        ids.iter().filter_map(|id| Some((*id, snapshots.remove(&id.as_uuid())?))).collect();
    Ok(loaded)
}

fn snapshot(row: &Row, node: Option<Node>, blockers: Vec<Blocker>) -> Loaded {
    let observed: Option<Json<serde_json::Value>> = rows::get(row, "a_observed")?;
    Ok(ResourceSnapshot {
        now: rows::time(row, "now")?,
        resource: rows::resource(row)?,
        attempt: rows::attempt(row)?,
        blueprint: rows::blueprint_version(row)?,
        placement: rows::placement(row)?,
        token: rows::token(row)?,
        presented: None,
        node,
        deletion: rows::deletion(row)?,
        blockers,
        claim_token: ClaimToken(rows::get(row, "a_claim_token")?),
        failures: rows::get(row, "a_failures")?,
        observed: observed.map(|observed| observed.0),
        due_at: rows::time_or_null(row, "a_due_at")?,
    })
}

/// The node that enrolled last, for each attempt. An attempt has few nodes in
/// its life, so the earlier ones are read and passed over. One that cannot be
/// read stands in for all of its attempt.
fn last_nodes(rows: &[Row]) -> Result<HashMap<Uuid, Result<Node, Fault>>, sqlx::Error> {
    let mut last: HashMap<Uuid, Result<Node, Fault>> = HashMap::with_capacity(rows.len());
    for row in rows {
        let attempt = row.try_get("provisioned_resource_id")?;
        let node = rows::node(row);
        let later = match (last.get(&attempt), &node) {
            (Some(Ok(known)), Ok(node)) => {
                (known.registered_at, known.id) < (node.registered_at, node.id)
            }
            (Some(Err(_)), _) => false,
            (None, _) | (_, Err(_)) => true,
        };
        if later {
            last.insert(attempt, node);
        }
    }
    Ok(last)
}

async fn blockers(
    connection: &mut Connection,
    attempts: IdList,
) -> Result<HashMap<Uuid, Result<Vec<Blocker>, Fault>>, sqlx::Error> {
    let found = sqlx::query(sql!(
        "SELECT subject_id, code, since, message, evidence, next_retry_at FROM blockers \
         WHERE subject_kind = $1 AND subject_id ",
        (one_of "$2"),
        " ORDER BY subject_id, code"
    ))
    .bind(ProvisionedResourceId::KIND)
    .bind(attempts)
    .fetch_all(connection)
    .await?;
    let mut blockers: HashMap<Uuid, Result<Vec<Blocker>, Fault>> = HashMap::new();
    for row in &found {
        let of_subject = blockers.entry(row.try_get("subject_id")?).or_insert(Ok(Vec::new()));
        match (of_subject.as_mut(), rows::blocker(row)) {
            (Ok(list), Ok(blocker)) => list.push(blocker),
            (Ok(_), Err(fault)) => *of_subject = Err(fault),
            (Err(_), _) => {}
        }
    }
    Ok(blockers)
}
