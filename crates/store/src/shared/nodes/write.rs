//! Writes nodes and bootstrap tokens, by sets.

use serde::Serialize;
use serde_json::json;
use slipway_core::nodes::NodesWrite;
use slipway_core::nodes::node::Node;
use slipway_core::nodes::token::BootstrapToken;
use slipway_core::{ErrorKind, Refusal};
use sqlx::types::Json;
use uuid::Uuid;

use super::json_values::{JsonBytes, JsonTime};
use super::{Connection, mesh, writes};
use crate::failure::Failure;
use crate::micros::Micros;

/// The writes of a set of commits.
#[derive(Default)]
pub(crate) struct Writes<'a> {
    /// One for each enrolment, which enrols one node.
    new_nodes: Vec<&'a Node>,
    nodes: Vec<&'a Node>,
    tokens: Vec<&'a BootstrapToken>,
    new_tokens: Vec<&'a BootstrapToken>,
}

impl<'a> Writes<'a> {
    pub(crate) fn add(&mut self, write: &'a NodesWrite) {
        match write {
            NodesWrite::NodeInsert(node) => self.new_nodes.push(node),
            NodesWrite::NodeUpdate(node) => self.nodes.push(node),
            NodesWrite::TokenUpdate(token) => self.tokens.push(token),
            NodesWrite::TokenInsert(token) => self.new_tokens.push(token),
        }
    }

    /// A consumed token refers to its node, so nodes go first.
    pub(crate) async fn apply(&self, connection: &mut Connection) -> Result<(), Failure> {
        for node in &self.new_nodes {
            node_insert(connection, node).await?;
        }
        nodes_update(connection, &self.nodes).await?;
        tokens_update(connection, &self.tokens).await?;
        tokens_insert(connection, &self.new_tokens).await
    }
}

/// Its keys are unique: an enrolment that violates one is decided again.
async fn node_insert(connection: &mut Connection, node: &Node) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO nodes (id, revision, project_id, resource_id, provisioned_resource_id, \
         bootstrap_token_id, hostname, public_key, key_hash, capabilities, registered_at, \
         mesh_host, mesh_ip, binary_version, binary_checksum, agent_status) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
    )
    .bind(node.id.as_uuid())
    .bind(node.revision.0)
    .bind(node.project_id.as_uuid())
    .bind(node.resource_id.as_uuid())
    .bind(node.provisioned_resource_id.as_uuid())
    .bind(node.bootstrap_token_id.as_uuid())
    .bind(&node.hostname)
    .bind(&node.public_key[..])
    .bind(node.key_hash.as_ref().map(|hash| &hash.as_bytes()[..]))
    .bind(Json(&node.capabilities))
    .bind(Micros::from(node.registered_at))
    .bind(node.mesh.host)
    .bind(node.mesh.ip.to_string())
    .bind(node.reported.version.as_deref())
    .bind(node.reported.checksum.as_deref())
    .bind(node.reported.status.as_deref())
    .execute(&mut *connection)
    .await?;
    mesh::take(connection, node).await
}

/// Does not touch the heartbeat, which has its own statement and no part in
/// decisions, nor the address, which a node keeps for life.
async fn nodes_update(connection: &mut Connection, nodes: &[&Node]) -> Result<(), Failure> {
    const UPDATE: &str = concat!(
        "UPDATE nodes SET hostname = given.hostname, key_hash = given.key_hash, \
         capabilities = given.capabilities, drain_id = given.drain_id, \
         drain_requested_at = given.drain_requested_at, deregistered_at = given.deregistered_at, \
         deregistered_how = given.deregistered_how, deregistered_by = given.deregistered_by, \
         deregistered_reason = given.deregistered_reason, revision = nodes.revision + 1, \
         updated_at = ",
        sql!(greatest, "(", now),
        ", updated_at) FROM ",
        rows_from_json!(
            id: uuid,
            revision: bigint,
            hostname: text,
            key_hash: bytes,
            capabilities: json,
            drain_id: uuid,
            drain_requested_at: time,
            deregistered_at: time,
            deregistered_how: text,
            deregistered_by: text,
            deregistered_reason: text,
        ),
        " WHERE nodes.id = given.id AND nodes.revision = given.revision RETURNING nodes.id",
    );
    let row = |node: &Node| {
        let deregistration = node.deregistration.as_ref();
        let row = json!({
            "id": node.id,
            "revision": node.revision,
            "hostname": node.hostname,
            "key_hash": node.key_hash.as_ref().map(|hash| JsonBytes::from(&hash.as_bytes()[..])),
            "capabilities": node.capabilities,
            "drain_id": node.drain.map(|drain| drain.id),
            "drain_requested_at": node.drain.map(|drain| JsonTime::from(drain.requested_at)),
            "deregistered_at": deregistration.map(|gone| JsonTime::from(gone.at)),
            "deregistered_how": deregistration.map(|gone| gone.how.as_str()),
            "deregistered_by": deregistration.map(|gone| &gone.by),
            "deregistered_reason": deregistration.and_then(|gone| gone.reason.as_ref()),
        });
        (node.id.as_uuid(), row)
    };
    let refusal = |node: &Node| writes::stale("node", node.id, node.revision);
    writes::write_guarded(connection, UPDATE, nodes, row, refusal).await?;
    let left = nodes.iter().filter(|node| node.deregistration.is_some());
    let left: Vec<_> = left.map(|node| node.id.as_uuid()).collect();
    Ok(mesh::release(connection, left).await?)
}

#[derive(Serialize)]
struct TokenRow<'a> {
    id: Uuid,
    project_id: Uuid,
    provisioned_resource_id: Uuid,
    kind: &'static str,
    hash: JsonBytes,
    issued_at: JsonTime,
    expires_at: JsonTime,
    hard_expires_at: JsonTime,
    issued_by: Option<&'a str>,
}

async fn tokens_insert(
    connection: &mut Connection,
    tokens: &[&BootstrapToken],
) -> Result<(), Failure> {
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| TokenRow {
            id: token.id.as_uuid(),
            project_id: token.project_id.as_uuid(),
            provisioned_resource_id: token.provisioned_resource_id.as_uuid(),
            kind: token.kind.as_str(),
            hash: token.hash.as_bytes()[..].into(),
            issued_at: token.issued_at.into(),
            expires_at: token.expires_at.into(),
            hard_expires_at: token.hard_expires_at.into(),
            issued_by: token.issued_by.as_deref(),
        })
        .collect();
    const INSERT: &str = concat!(
        "INSERT INTO bootstrap_tokens (id, project_id, provisioned_resource_id, kind, hash, \
         issued_at, expires_at, hard_expires_at, issued_by) SELECT given.id, \
         given.project_id, given.provisioned_resource_id, given.kind, given.hash, \
         given.issued_at, given.expires_at, given.hard_expires_at, given.issued_by FROM ",
        rows_from_json!(
            id: uuid,
            project_id: uuid,
            provisioned_resource_id: uuid,
            kind: text,
            hash: bytes,
            issued_at: time,
            expires_at: time,
            hard_expires_at: time,
            issued_by: text,
        ),
    );
    Ok(writes::write(connection, INSERT, &rows).await?)
}

/// A token has no revision; its consumption must not be overwritten. Once a
/// node has consumed it, only a write that names that node succeeds.
async fn tokens_update(
    connection: &mut Connection,
    tokens: &[&BootstrapToken],
) -> Result<(), Failure> {
    const UPDATE: &str = concat!(
        "UPDATE bootstrap_tokens SET expires_at = given.expires_at, \
         consumed_at = given.consumed_at, consumed_nonce = given.consumed_nonce, \
         consumed_by_node_id = given.consumed_by_node_id, \
         consumed_public_key = given.consumed_public_key, revoked_at = given.revoked_at FROM ",
        rows_from_json!(
            id: uuid,
            expires_at: time,
            consumed_at: time,
            consumed_nonce: text,
            consumed_by_node_id: uuid,
            consumed_public_key: bytes,
            revoked_at: time,
        ),
        " WHERE bootstrap_tokens.id = given.id \
         AND (bootstrap_tokens.consumed_by_node_id IS NULL \
         OR bootstrap_tokens.consumed_by_node_id = given.consumed_by_node_id) \
         RETURNING bootstrap_tokens.id",
    );
    let row = |token: &BootstrapToken| {
        let consumed = token.consumed.as_ref();
        let row = json!({
            "id": token.id,
            "expires_at": JsonTime::from(token.expires_at),
            "consumed_at": consumed.map(|consumed| JsonTime::from(consumed.at)),
            "consumed_nonce": consumed.and_then(|consumed| consumed.nonce.as_ref()),
            "consumed_by_node_id": consumed.map(|consumed| consumed.node_id),
            "consumed_public_key":
                consumed.map(|consumed| JsonBytes::from(&consumed.public_key[..])),
            "revoked_at": token.revoked_at.map(JsonTime::from),
        });
        (token.id.as_uuid(), row)
    };
    writes::write_guarded(connection, UPDATE, tokens, row, |token| {
        Refusal::new(
            ErrorKind::TokenConsumed,
            format!("bootstrap token {} was used by another node; issue a new one", token.id),
        )
    })
    .await
}
