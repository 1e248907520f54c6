//! The store of workspaces: each of its decisions is a passage.

use async_trait::async_trait;
use slipway_app::broker::port::{DeclareKey, RedeclareKey};
use slipway_app::ports::TopologyStore;
use slipway_app::ports::store::{Error, Rule};
use slipway_app::topology::port::{ApplyKey, ApplySnapshot, DeclareServer, TopologyIntercept};
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::door::{DoorInput, Doored};
use slipway_core::ids::{GroupId, ResourceId};
use slipway_core::topology::scale::{GroupSnapshot, OfServer};

use super::{FatedStore, Passage};

#[async_trait]
impl TopologyIntercept for FatedStore {
    fn inner(&self) -> &dyn TopologyStore {
        &*self.inner.topology
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn workspace_apply(
        &self,
        key: &ApplyKey,
        rule: &mut Rule<'_, ApplySnapshot>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.topology.workspace_apply(key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn group_decide(
        &self,
        id: GroupId,
        rule: &mut Rule<'_, GroupSnapshot>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.topology.group_decide(id, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn server_declare(
        &self,
        group: GroupId,
        key: &DeclareKey,
        rule: &mut Rule<'_, DeclareServer>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.topology.server_declare(group, key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn server_decide_deletion(
        &self,
        id: ResourceId,
        input: DoorInput,
        rule: &mut Rule<'_, Doored<OfServer<ResourceSnapshot>>>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.topology.server_decide_deletion(id, input, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn server_decide_replacement(
        &self,
        key: &RedeclareKey,
        input: DoorInput,
        rule: &mut Rule<'_, Doored<OfServer<RedeclareSnapshot>>>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.topology.server_decide_replacement(key, input, &mut weighed).await;
        self.conclude(passage, outcome).await
    }
}
