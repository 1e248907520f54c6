//! The store of the nodes domain: the registry, bootstrap tokens for display,
//! and the decision that consumes a token and assigns an address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use slipway_core::ids::{
    BootstrapTokenId, NodeId, Partition, ProjectId, ProvisionedResourceId, ResourceId,
};
use slipway_core::nodes::enrol::EnrolSnapshot;
use slipway_core::nodes::machine::Machine;
use slipway_core::nodes::mesh::MeshCidr;
use slipway_core::nodes::node::{Drain, Node, Reported};
use slipway_core::nodes::token::{BootstrapToken, SecretHash};
use slipway_core::time::Timestamp;

use crate::ports::listed::Listed;
use crate::ports::store::{Error, Page, Rule};

/// The answer to a heartbeat of a registered node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    pub accepted_at: Timestamp,
    pub drain: Option<Drain>,
}

/// The names of what a node belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNames {
    /// The handle.
    pub resource: String,
    pub project: String,
}

/// A node among its peers.
#[derive(Debug, Clone)]
pub struct MeshView {
    pub cidr: MeshCidr,
    pub node: Node,
    /// Other registered nodes of the project, in the order of their addresses.
    pub peers: Vec<Peer>,
}

/// What a node learns of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub id: NodeId,
    pub hostname: String,
    pub public_key: [u8; 32],
    pub ip: IpAddr,
}

port! {
/// Everything about nodes and tokens.
pub trait NodeStore, intercepted by NodeIntercept {
    /// Decides about the resource of the token. Locks its row and then one free
    /// address of its project, and waits for no other enrolment unless both want
    /// the last address, one nonce or one key. The rule runs again if the pool of
    /// addresses had to grow, or if another enrolment took the nonce or the key.
    async fn decide_enrolment(
        &self,
        token: SecretHash,
        nonce: Option<&str>,
        public_key: &[u8; 32],
        rule: &mut Rule<'_, EnrolSnapshot>,
    ) -> Result<(), Error>;

    /// The node with at most `limit` peers. `None` for an unknown one.
    async fn node_mesh(&self, id: NodeId, limit: u32) -> Result<Option<MeshView>, Error>;

    /// Stores a heartbeat of a registered node and its report (fields that it
    /// leaves out stay as they are). `None` if the node is not registered.
    async fn node_heartbeat(
        &self,
        id: NodeId,
        reported: &Reported,
    ) -> Result<Option<Heartbeat>, Error>;

    async fn node_fetch(&self, id: NodeId) -> Result<Option<Node>, Error>;

    async fn node_list(&self, page: Page<NodeId>) -> Result<Listed<Node>, Error>;

    async fn node_list_in(
        &self,
        project: ProjectId,
        page: Page<NodeId>,
    ) -> Result<Listed<Node>, Error>;

    /// The names of what these nodes belong to, including what is deleted.
    async fn node_names(&self, nodes: &[NodeId]) -> Result<BTreeMap<NodeId, NodeNames>, Error>;

    /// The machines of these attempts that are not gone.
    async fn machine_load(
        &self,
        attempts: &[ProvisionedResourceId],
    ) -> Result<Vec<Machine>, Error>;

    /// Makes the machine of an attempt, or updates it; leaves one alone that is to be gone,
    /// or that was written under a newer claim. Returns it as it is then.
    async fn machine_put(&self, partition: Partition, machine: &Machine) -> Result<Machine, Error>;

    /// The machine is to be gone. It is at once, unless a person has to say so.
    async fn machine_release(&self, attempt: ProvisionedResourceId) -> Result<(), Error>;

    /// Those of a cluster, in the order of their attempts.
    async fn machine_list(
        &self,
        partition: Partition,
        page: Page<ProvisionedResourceId>,
    ) -> Result<Listed<Machine>, Error>;

    async fn token_fetch(&self, id: BootstrapTokenId) -> Result<Option<BootstrapToken>, Error>;

    /// Those of all attempts of a resource, in the order of their ids.
    async fn token_list(
        &self,
        resource: ResourceId,
        page: Page<BootstrapTokenId>,
    ) -> Result<Listed<BootstrapToken>, Error>;
}
}
