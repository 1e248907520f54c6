//! The substrate of one life of the control plane: every action is a passage
//! and is noted in the journal.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use slipway_app::ports::Stores;
use slipway_app::ports::substrate::{Address, Error, InventoryPage, InventoryRequest, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{GroupId, ProvisionedResourceId};
use slipway_render::RenderedComposite;
use slipway_render::cloud_init::bootstrap_token_in;
use slipway_render::composite::{LABEL_PROVISIONED_RESOURCE, injected};

use super::fate::{Fate, Fault};
use super::journal::Journal;
use super::order;
use crate::simulated::Simulated;

/// Something that happens right before the next apply, between the decision for
/// it and its effect.
#[derive(Default)]
pub(super) struct Interference(Mutex<Option<BoxFuture<'static, ()>>>);

impl Interference {
    pub(super) fn set(&self, what: BoxFuture<'static, ()>) {
        *self.0.lock().unwrap() = Some(what);
    }

    fn take(&self) -> Option<BoxFuture<'static, ()>> {
        self.0.lock().unwrap().take()
    }
}

impl std::fmt::Debug for Interference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interference")
    }
}

#[derive(Debug)]
pub(super) struct FatedSubstrate {
    pub(super) inner: Arc<Simulated>,
    pub(super) fate: Arc<Fate>,
    pub(super) journal: Arc<Journal>,
    pub(super) interference: Arc<Interference>,
    /// The store without faults: the actual state, not this life's view of it.
    pub(super) truth: Stores,
}

impl FatedSubstrate {
    /// The node goes before its substrate: when an object is made or deleted,
    /// the attempt has no registered node. A server comes and goes in the order of
    /// its workspace.
    async fn check(&self, attempt: ProvisionedResourceId, what: &str) {
        match self.truth.broker.attempt_load(&[attempt]).await.as_deref() {
            Ok([Ok(snapshot)]) => {
                if snapshot.node.as_ref().is_some_and(|node| node.is_registered()) {
                    self.journal.violation(format!("{what} while the node is registered"));
                }
                for wrong in order::check(&self.truth, &self.inner, snapshot, what).await {
                    self.journal.violation(wrong);
                }
            }
            other => self.journal.violation(format!("{what}, but the row reads {other:?}")),
        }
    }

    /// The fault before an action: an error, or whether it is performed twice.
    async fn before(&self, name: &str) -> Result<bool, Error> {
        match self.fate.meet(format!("{name}/before")) {
            Some(Fault::Crash) => self.fate.die().await,
            Some(Fault::Fail) => Err(Error::Failed("a fault struck".to_owned())),
            Some(Fault::Twice) => Ok(true),
            None => Ok(false),
        }
    }

    async fn after(&self, name: &str) -> Result<(), Error> {
        if self.fate.survive(format!("{name}/after")).await {
            return Err(Error::Unanswered("the answer was lost".to_owned()));
        }
        Ok(())
    }
}

fn attempt_of(composite: &RenderedComposite) -> ProvisionedResourceId {
    let label = &composite.expose_object()["metadata"]["labels"][LABEL_PROVISIONED_RESOURCE];
    label.as_str().unwrap().parse().unwrap()
}

#[async_trait]
impl Substrate for FatedSubstrate {
    fn engine(&self) -> Engine {
        self.inner.engine()
    }

    async fn identity(&self) -> Result<String, Error> {
        self.fate.alive().await;
        self.inner.identity().await
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        self.fate.alive().await;
        self.inner.observe(addresses).await
    }

    async fn apply(&self, composite: &RenderedComposite) -> Result<CompositeReport, Error> {
        self.fate.alive().await;
        if let Some(interference) = self.interference.take() {
            interference.await;
        }
        let created = self.inner.object(composite.name()).is_none();
        let action = if created { "action:create" } else { "action:update" };
        let attempt = attempt_of(composite);
        let name = self.fate.name_of_action(action, attempt.as_uuid());
        let twice = self.before(&name).await?;
        let seen = {
            let claim = composite.claim_token();
            let _acting = self.journal.act(self.fate.life, attempt, action, Some(claim));
            if created {
                self.check(attempt, action).await;
            }
            let document = injected(composite.expose_object());
            if let Some(token) = document.as_ref().and_then(bootstrap_token_in) {
                self.journal.injected(token);
            }
            let seen = self.inner.apply(composite).await?;
            if twice { self.inner.apply(composite).await? } else { seen }
        };
        self.after(&name).await?;
        Ok(seen)
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        const ACTION: &str = "action:delete";
        self.fate.alive().await;
        let attempt = address.provisioned_resource_id;
        let name = self.fate.name_of_action(ACTION, attempt.as_uuid());
        let twice = self.before(&name).await?;
        {
            let _acting = self.journal.act(self.fate.life, attempt, ACTION, None);
            self.check(attempt, ACTION).await;
            self.inner.delete(address, uid).await?;
            if twice {
                self.inner.delete(address, uid).await?;
            }
        }
        self.after(&name).await
    }

    async fn group_inventory(
        &self,
        group: GroupId,
        request: &InventoryRequest,
    ) -> Result<InventoryPage, Error> {
        self.fate.alive().await;
        self.inner.group_inventory(group, request).await
    }
}
