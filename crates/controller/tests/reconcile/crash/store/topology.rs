//! The store of workspaces: each of its decisions is a passage.

use std::collections::BTreeSet;

use async_trait::async_trait;
use slipway_app::broker::port::{DeclareKey, RedeclareKey};
use slipway_app::ports::TopologyStore;
use slipway_app::ports::store::{Error, Rule};
use slipway_app::topology::port::{
    ApplyKey, ApplySnapshot, DecidedServer, DeclareServer, ServerRule, TopologyIntercept,
};
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::Commit;
use slipway_core::deletion::door::{Defaults, DoorInput, Doored};
use slipway_core::ids::{GroupId, ResourceId, WorkspaceId};
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

    /// A batch is one commit with the names of all that it takes down. They are determined first,
    /// by a run that writes nothing.
    async fn server_take_down(
        &self,
        workspace: WorkspaceId,
        servers: &[ResourceId],
        defaults: Defaults,
        rule: &mut ServerRule<'_>,
    ) -> Result<Vec<DecidedServer>, Error> {
        self.fate.alive().await;
        let mut names = BTreeSet::new();
        let mut foreseen = |snapshot: &_| {
            let commit = rule(snapshot)?;
            if !commit.is_empty() {
                names.insert(self.fate.name_of(&commit));
            }
            Ok(Commit::default())
        };
        let inner = &self.inner.topology;
        inner.server_take_down(workspace, servers, defaults, &mut foreseen).await?;
        for name in &names {
            self.before(name).await?;
        }
        let decided = inner.server_take_down(workspace, servers, defaults, rule).await?;
        for name in &names {
            self.after(name).await?;
        }
        Ok(decided)
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
