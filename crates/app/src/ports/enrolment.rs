//! Enrolment's side of the store port: the decision that consumes a token and
//! gives an address, and the mesh as a node sees it.

use async_trait::async_trait;
use slipway_core::ids::NodeId;
use slipway_core::mesh::MeshCidr;
use slipway_core::node::Node;
use slipway_core::snapshot::EnrolSnapshot;
use slipway_core::token::SecretHash;

use super::store::{Error, Rule};

/// A node among its peers.
#[derive(Debug, Clone)]
pub struct MeshView {
    pub cidr: MeshCidr,
    pub node: Node,
    /// Other registered nodes of the project, in the order of their addresses.
    pub peers: Vec<Node>,
}

/// The part of the store that nodes come in through.
#[async_trait]
pub trait EnrolStore {
    /// Decides about the resource that the token leads to, its row locked, and
    /// then that of its project: whoever gives out addresses holds it, so two
    /// enrolments of a project come one after the other.
    async fn decide_enrolment(
        &self,
        token: SecretHash,
        nonce: Option<&str>,
        public_key: &[u8; 32],
        rule: &mut Rule<'_, EnrolSnapshot>,
    ) -> Result<(), Error>;

    /// The node with at most `limit` peers. `None` for an unknown one.
    async fn node_mesh(&self, id: NodeId, limit: u32) -> Result<Option<MeshView>, Error>;
}
