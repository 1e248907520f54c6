//! Enrolment under faults: a passage like every other decision.

use async_trait::async_trait;
use slipway_app::ports::EnrolStore;
use slipway_app::ports::enrolment::MeshView;
use slipway_app::ports::store::{Error, Rule};
use slipway_core::ids::NodeId;
use slipway_core::snapshot::EnrolSnapshot;
use slipway_core::token::SecretHash;

use super::store::{FatedStore, Passage};

#[async_trait]
impl EnrolStore for FatedStore {
    async fn decide_enrolment(
        &self,
        token: SecretHash,
        nonce: Option<&str>,
        public_key: &[u8; 32],
        rule: &mut Rule<'_, EnrolSnapshot>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &EnrolSnapshot| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.decide_enrolment(token, nonce, public_key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn node_mesh(&self, id: NodeId, limit: u32) -> Result<Option<MeshView>, Error> {
        self.fate.alive().await;
        self.inner.node_mesh(id, limit).await
    }
}
