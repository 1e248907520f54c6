//! The store of the room operations: the mode of the installation and the
//! replicas that obey it, periodic tasks, the database's clock, counts, and
//! retention.
//!
//! A periodic task is a row with the columns of a claim, so that it survives its
//! holder and cannot be done by two at once for longer than a lease. Each prune
//! removes a bounded number of rows in a transaction of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::error::Refusal;
use slipway_core::ids::{
    AuditEntryId, ClaimToken, ClusterId, InstallationId, ProvisionedResourceId, ResourceId,
    Revision,
};
use slipway_core::node::Reachability;
use slipway_core::rules::control::{Control, ControlCommit};
use slipway_core::time::Timestamp;

use super::store::{Error, Page};
use crate::seed::Seed;

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
pub struct WithheldAction {
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

/// A task as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub name: String,
    pub due_at: Timestamp,
    pub claimed_by: Option<String>,
    /// When it last ended, well or not.
    pub last_ended_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// The numbers of one moment. What is not in a map is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts by phase. Each resource has one that is not Deleted, or is
    /// deleted itself; the Deleted ones are those that are still kept.
    pub phases: BTreeMap<Phase, u64>,
    pub blockers: BTreeMap<BlockerCode, u64>,
    /// Registered nodes only.
    pub nodes: BTreeMap<Reachability, u64>,
}

/// What one step through the audit entries came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPruned {
    pub removed: u64,
    /// Where the next step goes on; `None` once what follows is too young.
    pub next: Option<AuditEntryId>,
}

port! {
/// What the application asks of the installation itself.
pub trait OperationsStore, intercepted by OperationsIntercept {
    /// The database answers.
    async fn ping(&self) -> Result<(), Error>;

    /// The id of this installation; drawn once, when the database was made.
    async fn installation(&self) -> Result<InstallationId, Error>;

    /// Inserts what is missing of the seed and touches nothing that is there.
    /// Answers the id of the seed's cluster, which is the older one's where the
    /// name was taken.
    async fn seed(&self, seed: &Seed) -> Result<ClusterId, Error>;

    /// One small read without a lock.
    async fn control_fetch(&self) -> Result<Control, Error>;

    /// Decides about the mode, its row locked. Hot transactions never touch it.
    async fn control_decide(&self, rule: &mut ControlRule<'_>) -> Result<(), Error>;

    /// The replicas that were heard of lately, in the order of their names.
    async fn replica_list(&self) -> Result<Vec<Replica>, Error>;

    /// What is withheld, or unreadable, in the order of the attempts' ids.
    async fn withheld_list(&self, page: Page<ProvisionedResourceId>) -> Result<Vec<WithheldAction>, Error>;

    /// How many resources the loop has yet to look at: due now, or claimed.
    async fn withheld_unchecked(&self) -> Result<u64, Error>;

    /// Makes sure that there is such a task and that it is due in no more than
    /// `within`.
    async fn task_ensure(&self, name: &str, within: Duration) -> Result<(), Error>;

    /// Ends the claims of an earlier life of this worker, which is known to be
    /// over: those tasks are due now, under a new claim token.
    async fn task_reclaim(&self, worker: &str) -> Result<(), Error>;

    /// Claims the task if it is due and nobody holds it.
    async fn task_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimToken>, Error>;

    /// Gives the task back, due again after `next`, or at once if it was woken
    /// meanwhile. `false` if the claim is no longer held; nothing is changed
    /// then.
    async fn task_release(
        &self,
        name: &str,
        claim: ClaimToken,
        next: Duration,
        error: Option<&str>,
    ) -> Result<bool, Error>;

    /// Makes the task due now.
    async fn task_wake(&self, name: &str) -> Result<(), Error>;

    /// In the order of their names.
    async fn task_list(&self) -> Result<Vec<Task>, Error>;

    /// Counts everything. This reads every attempt and every registered node,
    /// so whoever wants it often keeps the answer for a while.
    async fn counts(&self) -> Result<Counts, Error>;

    /// What it shows.
    async fn database_now(&self) -> Result<Timestamp, Error>;

    /// The clock went back by `jump`: what was to be due at a time is due that
    /// much earlier, and leases end that much earlier, but none that may have
    /// been given since, so none that ends within `lease`. Answers how many
    /// rows that concerned. Nothing that is due too early does harm: it is
    /// looked at and found to be in order.
    async fn schedule_pull_in(&self, jump: Duration, lease: Duration) -> Result<u64, Error>;

    /// Removes the history of attempts of resources that have been gone for
    /// longer than `keep`; of `limit` attempts at most. What is not gone, or
    /// has an open leak record, keeps all of its history.
    async fn history_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// Looks at up to `limit` audit entries after this one, in the order of
    /// their ids, which is that of time, and removes those older than `keep`
    /// whose subject is gone.
    async fn audit_prune(
        &self,
        keep: Duration,
        after: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<AuditPruned, Error>;
}
}
