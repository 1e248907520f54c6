//! The store's side of the mode: one row, the replicas that obey it, and what
//! is withheld because of it. Also the installation's own keys, which are
//! installed under the lock of the same row.

use std::time::Duration;

use async_trait::async_trait;
use slipway_core::audit::Actor;
use slipway_core::error::Refusal;
use slipway_core::ids::{ProvisionedResourceId, ResourceId, Revision};
use slipway_core::rules::control::{Control, ControlCommit};
use slipway_core::time::Timestamp;

use super::store::{ApiKey, Error, Page};

/// A pure function that is called inside the transaction, maybe twice. `None`
/// changes nothing.
pub type ControlRule<'a> =
    dyn FnMut(&Control) -> Result<Option<ControlCommit>, Refusal> + Send + 'a;

/// A replica, as the database last heard of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    pub worker: String,
    pub seen_at: Timestamp,
    pub lease: Duration,
    pub acknowledged: Revision,
}

/// What the loop would do to one resource, or cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLine {
    pub provisioned_resource_id: ProvisionedResourceId,
    pub resource_id: ResourceId,
    pub project: String,
    pub handle: String,
    pub phase: String,
    /// `apply`, `delete` or `drain`; none if the substrate cannot be read.
    pub action: Option<String>,
    pub since: Timestamp,
    pub message: String,
}

/// When a key is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// Only if no key at all can be used.
    First,
    /// In the place of the one of the same name.
    Replace,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    Inserted,
    Replaced,
    /// The very same key is there already, usable.
    Unchanged,
    /// Another key is there, and it was to be the first.
    Occupied,
    /// This very text was revoked or rotated away, and stays so.
    Withdrawn,
}

/// Mode, replicas and keys.
#[async_trait]
pub trait ControlStore {
    /// One small read without a lock.
    async fn control_fetch(&self) -> Result<Control, Error>;

    /// Decides about the mode, its row locked. Hot transactions never touch it.
    async fn control_decide(&self, rule: &mut ControlRule<'_>) -> Result<(), Error>;

    /// The replicas that were heard of lately, in the order of their names.
    async fn replica_list(&self) -> Result<Vec<Replica>, Error>;

    /// What is withheld, or unreadable, in the order of the attempts' ids.
    async fn plan_list(&self, page: Page<ProvisionedResourceId>) -> Result<Vec<PlanLine>, Error>;

    /// How many resources the loop has yet to look at: due now, or claimed.
    async fn plan_open(&self) -> Result<u64, Error>;

    /// Installs a key and writes an audit entry, in one transaction. Replicas
    /// that start together on an empty database do so one after the other.
    async fn api_key_install(
        &self,
        key: &ApiKey,
        when: Install,
        actor: &Actor,
    ) -> Result<Installed, Error>;
}
