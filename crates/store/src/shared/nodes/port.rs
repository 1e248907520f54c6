//! Implements the port `NodeStore`: the registry and bootstrap tokens.

use async_trait::async_trait;
use slipway_app::nodes::port::{Heartbeat, MeshView};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{Listed, NodeStore};
use slipway_core::ids::{BootstrapTokenId, NodeId, ProjectId, ResourceId};
use slipway_core::nodes::enrol::EnrolSnapshot;
use slipway_core::nodes::node::{Node, Reported};
use slipway_core::nodes::token::{BootstrapToken, SecretHash};

use super::{Backend, enrol, mesh, reads, tokens};

#[async_trait]
impl NodeStore for Backend {
    async fn decide_enrolment(
        &self,
        token: SecretHash,
        nonce: Option<&str>,
        public_key: &[u8; 32],
        rule: &mut Rule<'_, EnrolSnapshot>,
    ) -> Result<(), Error> {
        enrol::decide_enrolment(self, token, nonce, public_key, rule).await
    }

    async fn node_mesh(&self, id: NodeId, limit: u32) -> Result<Option<MeshView>, Error> {
        self.read((id, limit), mesh::view).await
    }

    async fn node_heartbeat(
        &self,
        id: NodeId,
        reported: &Reported,
    ) -> Result<Option<Heartbeat>, Error> {
        self.statement((id, reported), reads::heartbeat).await
    }

    async fn node_fetch(&self, id: NodeId) -> Result<Option<Node>, Error> {
        self.read(id, reads::fetch).await
    }

    async fn node_list(&self, page: Page<NodeId>) -> Result<Listed<Node>, Error> {
        self.read(page, reads::list).await
    }

    async fn node_list_in(
        &self,
        project: ProjectId,
        page: Page<NodeId>,
    ) -> Result<Listed<Node>, Error> {
        self.read((project, page), reads::list_in).await
    }

    async fn token_fetch(&self, id: BootstrapTokenId) -> Result<Option<BootstrapToken>, Error> {
        self.read(id, tokens::fetch).await
    }

    async fn token_list(
        &self,
        resource: ResourceId,
        page: Page<BootstrapTokenId>,
    ) -> Result<Listed<BootstrapToken>, Error> {
        self.read((resource, page), tokens::list).await
    }
}
