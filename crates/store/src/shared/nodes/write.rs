//! Writes nodes and bootstrap tokens, by sets.

use serde_json::json;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::nodes::NodesWrite;
use slipway_core::nodes::node::Node;
use slipway_core::nodes::token::{BootstrapToken, SecretHash};
use slipway_core::{ErrorKind, Refusal};
use sqlx::types::Json;

use super::json_values::{JsonBytes, JsonTime};
use super::row_set::RowSet;
use super::{Connection, machines, mesh, writes};
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
    gone_machines: Vec<ProvisionedResourceId>,
}

impl<'a> Writes<'a> {
    pub(crate) fn add(&mut self, write: &'a NodesWrite) {
        match write {
            NodesWrite::NodeInsert(node) => self.new_nodes.push(node),
            NodesWrite::NodeUpdate(node) => self.nodes.push(node),
            NodesWrite::TokenUpdate(token) => self.tokens.push(token),
            NodesWrite::TokenInsert(token) => self.new_tokens.push(token),
            NodesWrite::MachineRemove(attempt) => self.gone_machines.push(*attempt),
        }
    }

    /// A consumed token refers to its node, so nodes go first.
    pub(crate) async fn apply(&self, connection: &mut Connection) -> Result<(), Failure> {
        for node in &self.new_nodes {
            node_insert(connection, node).await?;
        }
        nodes_update(connection, &self.nodes).await?;
        tokens_update(connection, &self.tokens).await?;
        TOKENS_INSERT.write(connection, &self.new_tokens).await?;
        machines::remove(connection, &self.gone_machines).await
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
const NODES_UPDATE: RowSet<Node> = update_rows!(dated, "nodes" by id, |node: &Node| {
    hostname: text = node.hostname,
    key_hash: bytes = node.key_hash.as_ref().map(SecretHash::as_bytes),
    former_key_hash: bytes = node.former_key_hash.as_ref().map(SecretHash::as_bytes),
    capabilities: json = node.capabilities,
    drain_id: uuid = node.drain.map(|drain| drain.id),
    drain_requested_at: time = node.drain.map(|drain| drain.requested_at),
    deregistered_at: time = node.deregistration.as_ref().map(|gone| gone.at),
    deregistered_how: text = node.deregistration.as_ref().map(|gone| gone.how),
    deregistered_by: text = node.deregistration.as_ref().map(|gone| &gone.by),
    deregistered_reason: text = node.deregistration.as_ref().map(|gone| &gone.reason),
});

async fn nodes_update(connection: &mut Connection, nodes: &[&Node]) -> Result<(), Failure> {
    let stale = |node: &Node| writes::stale("node", node.id, node.revision);
    NODES_UPDATE.write_guarded(connection, nodes, stale).await?;
    let left = nodes.iter().filter(|node| node.deregistration.is_some());
    let left: Vec<_> = left.map(|node| node.id.as_uuid()).collect();
    Ok(mesh::release(connection, left).await?)
}

const TOKENS_INSERT: RowSet<BootstrapToken> = insert_rows!(plain, "bootstrap_tokens", |token: &BootstrapToken| {
    id: uuid = token.id,
    project_id: uuid = token.project_id,
    provisioned_resource_id: uuid = token.provisioned_resource_id,
    kind: text = token.kind,
    hash: bytes = token.hash.as_bytes(),
    issued_at: time = token.issued_at,
    expires_at: time = token.expires_at,
    hard_expires_at: time = token.hard_expires_at,
    issued_by: text = token.issued_by,
});

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

/// Moves the beginnings of waits that a clock that went back left in the future: a wait
/// would end that much later.
pub(crate) const STARTS: [&str; 3] = [
    sql!("UPDATE nodes SET registered_at = ", now, " WHERE registered_at > ", now),
    sql!("UPDATE nodes SET last_heartbeat_at = ", now, " WHERE last_heartbeat_at > ", now),
    sql!("UPDATE nodes SET drain_requested_at = ", now, " WHERE drain_requested_at > ", now),
];
