//! The store of the operations domain: the mode of the installation and the
//! replicas that obey it, periodic tasks, the database's clock, and counts.
//!
//! A periodic task is a row with the columns of a claim: it survives its
//! worker, and two workers cannot run it at once for longer than a lease.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::error::Refusal;
use slipway_core::ids::{
    ClaimToken, ClusterId, InstallationId, ProvisionedResourceId, ResourceId, Revision,
};
use slipway_core::nodes::node::Reachability;
use slipway_core::operations::control::{Control, ControlCommit, LockedControl};
use slipway_core::subject::SubjectKind;
use slipway_core::time::Timestamp;

use crate::ports::store::{Error, Page};
use crate::seed::Seed;

/// A pure function that the store calls inside the transaction, maybe twice.
/// `None` changes nothing.
pub type ControlRule<'a> =
    dyn FnMut(&LockedControl) -> Result<Option<ControlCommit>, Refusal> + Send + 'a;

/// A replica, as of its last heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    pub worker: String,
    pub seen_at: Timestamp,
    /// For how long after `seen_at` something of it may follow.
    pub outlives: Duration,
    pub acknowledged: Revision,
}

/// What the loop would do to one resource, or that it cannot tell.
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

/// The state of a periodic task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub name: String,
    pub due_at: Timestamp,
    pub claimed_by: Option<String>,
    /// When it last ended, whether it succeeded or not.
    pub last_ended_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// All counts at one moment. A key that a map lacks counts zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts by phase. A resource that is not deleted has one attempt that
    /// is not Deleted; Deleted attempts count as long as their rows are kept.
    pub phases: BTreeMap<Phase, u64>,
    /// Those that are stored, and attempts that nobody claims as `cluster_not_served`.
    pub blockers: BTreeMap<BlockerCode, u64>,
    /// Registered nodes only.
    pub nodes: BTreeMap<Reachability, u64>,
    /// Rows of the kinds that are deleted softly: live ones, and deleted ones that are not
    /// purged.
    pub rows: BTreeMap<SubjectKind, (u64, u64)>,
    /// How long the purge that is due for longest has been due.
    pub purge_overdue: Duration,
}

port! {
/// Everything about the installation itself.
pub trait OperationsStore, intercepted by OperationsIntercept {
    /// Succeeds if the database answers.
    async fn ping(&self) -> Result<(), Error>;

    /// The id of this installation, generated once with the database.
    async fn installation(&self) -> Result<InstallationId, Error>;

    /// Inserts the rows of the seed that are missing and changes none that
    /// exist. Returns the id of the seed's cluster, or of an existing cluster
    /// with its name.
    async fn seed(&self, seed: &Seed) -> Result<ClusterId, Error>;

    /// One small read without a lock.
    async fn control_fetch(&self) -> Result<Control, Error>;

    /// Decides about the mode, its row locked. Hot transactions never touch it.
    async fn control_decide(&self, rule: &mut ControlRule<'_>) -> Result<(), Error>;

    /// The replicas with a recent heartbeat, in the order of their names.
    async fn replica_list(&self) -> Result<Vec<Replica>, Error>;

    /// Withheld actions and unreadable substrates, in the order of the attempts' ids.
    async fn withheld_list(&self, page: Page<ProvisionedResourceId>) -> Result<Vec<WithheldAction>, Error>;

    /// How many resources the loop has yet to observe: due now, or claimed.
    async fn withheld_unchecked(&self) -> Result<u64, Error>;

    /// Creates the task if it is missing, and makes it due within `within`. A
    /// claimed task keeps its due time: its holder sets the next one.
    async fn task_ensure(&self, name: &str, within: Duration) -> Result<(), Error>;

    /// Ends the claim of an earlier process of this worker on the task. The
    /// process is known to be over, and so are its actions. The task is due now,
    /// under a new claim token. Called before this process claims it.
    async fn task_reclaim(&self, name: &str, worker: &str) -> Result<(), Error>;

    /// Claims the task if it is due and unclaimed.
    async fn task_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimToken>, Error>;

    /// Renews the claim of this worker. `false` if it was lost; then nothing
    /// changes.
    async fn task_renew(
        &self,
        name: &str,
        worker: &str,
        claim: ClaimToken,
        lease: Duration,
    ) -> Result<bool, Error>;

    /// Releases the task, due again after `next`, or at once if it was woken
    /// meanwhile. `false` if the claim was lost; then nothing changes.
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
    /// so a frequent caller should cache the result for a while.
    async fn counts(&self, unserved_after: Duration) -> Result<Counts, Error>;

    /// The time of the database's clock.
    async fn database_now(&self) -> Result<Timestamp, Error>;

    /// The clock went back by `jump`: makes due times and ends of leases that
    /// much earlier, and moves beginnings of waits that lie in the future to now.
    /// Leaves leases alone that end within `lease`, since they may have been
    /// granted after the jump; none ends later. Returns the number of rows. A row
    /// that is due too early does no harm: its tick finds it in order.
    async fn schedule_pull_in(&self, jump: Duration, lease: Duration) -> Result<u64, Error>;
}
}
