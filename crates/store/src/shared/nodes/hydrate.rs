//! Hydrates nodes and bootstrap tokens from rows, by the names of their columns.

use slipway_core::ids::{
    BootstrapTokenId, DrainId, NodeId, ProjectId, ProvisionedResourceId, ResourceId, Revision,
};
use slipway_core::nodes::node::{DeregisteredHow, Deregistration, Drain, Node, Reported};
use slipway_core::nodes::token::{BootstrapToken, Consumption, SecretHash, TokenKind};
use uuid::Uuid;

use super::{Row, mesh, rows};
use crate::fault::Fault;

/// The columns of a node, by name: a statement prepared with `*` breaks, or
/// answers something else, when a newer version adds a column.
macro_rules! node_columns {
    () => {
        "id, revision, project_id, resource_id, provisioned_resource_id, bootstrap_token_id, \
         hostname, public_key, key_hash, former_key_hash, capabilities, registered_at, last_heartbeat_at, \
         drain_id, drain_requested_at, deregistered_at, deregistered_how, deregistered_by, \
         deregistered_reason, mesh_host, mesh_ip, binary_version, binary_checksum, agent_status"
    };
}
pub(crate) use node_columns;

pub(crate) fn token(row: &Row) -> Result<BootstrapToken, Fault> {
    let consumed = match rows::time_or_null(row, "t_consumed_at")? {
        None => None,
        Some(at) => {
            let node: Option<Uuid> = rows::get(row, "t_consumed_by_node_id")?;
            let public_key = rows::bytes32_or_null(row, "t_consumed_public_key")?;
            Some(Consumption {
                at,
                nonce: rows::get(row, "t_consumed_nonce")?,
                node_id: NodeId::new(rows::required(node, "t_consumed_by_node_id")?),
                public_key: rows::required(public_key, "t_consumed_public_key")?,
            })
        }
    };
    let hash: Vec<u8> = rows::get(row, "t_hash")?;
    Ok(BootstrapToken {
        id: BootstrapTokenId::new(rows::get(row, "t_id")?),
        project_id: ProjectId::new(rows::get(row, "t_project_id")?),
        provisioned_resource_id: ProvisionedResourceId::new(rows::get(
            row,
            "t_provisioned_resource_id",
        )?),
        kind: rows::member(row, "t_kind", TokenKind::parse)?,
        hash: SecretHash::from_slice(&hash)
            .ok_or_else(|| Fault::new("t_hash", "must have 32 bytes"))?,
        issued_at: rows::time(row, "t_issued_at")?,
        expires_at: rows::time(row, "t_expires_at")?,
        hard_expires_at: rows::time(row, "t_hard_expires_at")?,
        consumed,
        revoked_at: rows::time_or_null(row, "t_revoked_at")?,
        issued_by: rows::get(row, "t_issued_by")?,
    })
}

pub(crate) fn node(row: &Row) -> Result<Node, Fault> {
    let drain = match rows::get::<Option<Uuid>>(row, "drain_id")? {
        None => None,
        Some(id) => {
            let requested_at = rows::time_or_null(row, "drain_requested_at")?;
            Some(Drain {
                id: DrainId::new(id),
                requested_at: rows::required(requested_at, "drain_requested_at")?,
            })
        }
    };
    let deregistration = match rows::time_or_null(row, "deregistered_at")? {
        None => None,
        Some(at) => {
            let by: Option<String> = rows::get(row, "deregistered_by")?;
            Some(Deregistration {
                at,
                how: rows::member(row, "deregistered_how", DeregisteredHow::parse)?,
                by: rows::required(by, "deregistered_by")?,
                reason: rows::get(row, "deregistered_reason")?,
            })
        }
    };
    let hash = |column: &'static str| match rows::get::<Option<Vec<u8>>>(row, column)? {
        None => Ok(None),
        Some(bytes) => SecretHash::from_slice(&bytes)
            .map(Some)
            .ok_or_else(|| Fault::new(column, "must have 32 bytes")),
    };
    Ok(Node {
        id: NodeId::new(rows::get(row, "id")?),
        project_id: ProjectId::new(rows::get(row, "project_id")?),
        resource_id: ResourceId::new(rows::get(row, "resource_id")?),
        provisioned_resource_id: ProvisionedResourceId::new(rows::get(
            row,
            "provisioned_resource_id",
        )?),
        bootstrap_token_id: BootstrapTokenId::new(rows::get(row, "bootstrap_token_id")?),
        hostname: rows::get(row, "hostname")?,
        public_key: rows::bytes32(row, "public_key")?,
        key_hash: hash("key_hash")?,
        former_key_hash: hash("former_key_hash")?,
        capabilities: rows::json(row, "capabilities")?,
        mesh: mesh::address(row)?,
        reported: Reported {
            version: rows::get(row, "binary_version")?,
            checksum: rows::get(row, "binary_checksum")?,
            status: rows::get(row, "agent_status")?,
        },
        revision: Revision(rows::get(row, "revision")?),
        registered_at: rows::time(row, "registered_at")?,
        last_heartbeat_at: rows::time_or_null(row, "last_heartbeat_at")?,
        drain,
        deregistration,
    })
}
