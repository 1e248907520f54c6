//! Implements the port `NodeStore`: the registry and bootstrap tokens.

use std::collections::BTreeMap;

use slipway_app::nodes::port::{Heartbeat, MeshView, NodeNames};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{Listed, NodeStore};
use slipway_core::ids::{
    BootstrapTokenId, NodeId, Partition, ProjectId, ProvisionedResourceId, ResourceId,
};
use slipway_core::nodes::enrol::EnrolSnapshot;
use slipway_core::nodes::machine::Machine;
use slipway_core::nodes::node::{Node, Reported};
use slipway_core::nodes::token::{BootstrapToken, SecretHash};

use super::{Backend, enrol, machines, mesh, reads, tokens};

port! {
    NodeStore {
        read node_mesh(id: NodeId, limit: u32) -> Option<MeshView> = mesh::view;
        statement node_heartbeat(id: NodeId, reported: &Reported)
            -> Option<Heartbeat> = reads::heartbeat;
        read node_fetch(id: NodeId) -> Option<Node> = reads::fetch;
        read node_list(page: Page<NodeId>) -> Listed<Node> = reads::list;
        read node_list_in(project: ProjectId, page: Page<NodeId>) -> Listed<Node> = reads::list_in;
        read node_names(nodes: &[NodeId]) -> BTreeMap<NodeId, NodeNames> = reads::names;
        read machine_load(attempts: &[ProvisionedResourceId]) -> Vec<Machine> = machines::load;
        write machine_put(partition: Partition, machine: &Machine) -> Machine = machines::put;
        write machine_release(attempt: ProvisionedResourceId) -> () = machines::release;
        read machine_list(partition: Partition, page: Page<ProvisionedResourceId>)
            -> Listed<Machine> = machines::list;
        read token_fetch(id: BootstrapTokenId) -> Option<BootstrapToken> = tokens::fetch;
        read token_list(resource: ResourceId, page: Page<BootstrapTokenId>)
            -> Listed<BootstrapToken> = tokens::list;
    }
    by_hand {
        async fn decide_enrolment(
            &self,
            token: SecretHash,
            nonce: Option<&str>,
            public_key: &[u8; 32],
            rule: &mut Rule<'_, EnrolSnapshot>,
        ) -> Result<(), Error> {
            enrol::decide_enrolment(self, token, nonce, public_key, rule).await
        }
    }
}
