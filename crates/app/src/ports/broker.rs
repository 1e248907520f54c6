//! The store of the room broker: resources, their attempts, and the claims of
//! the loop. A decision locks and loads the resource, asks a pure rule, and
//! writes the commit that the rule answers.
//!
//! The loop records most of its ticks without a lock, on the condition that
//! nothing moved since the row was read ([`BrokerStore::attempt_record`]). What
//! missed its condition is decided again under lock by
//! [`BrokerStore::decide_many`].

use std::collections::HashSet;
use std::time::Duration;

use slipway_core::blocker::BlockerCode;
use slipway_core::catalog::label::LabelSelector;
use slipway_core::commit::{Recorded, Release};
use slipway_core::explanation::{AttemptLine, PhaseCount};
use slipway_core::ids::{
    ClaimToken, NodeId, Partition, ProjectId, ProvisionedResourceId, ResourceId,
};
use slipway_core::snapshot::{DeclareSnapshot, ResourceSnapshot};
use slipway_core::token::SecretHash;

use super::store::{CorruptRow, Error, Page, Rule};

pub use slipway_core::explanation::HistoryLine;

/// Names the resource that a decision is about. Each of them leads to the same
/// snapshot, with the resource row locked.
#[derive(Debug, Clone, Copy)]
pub enum ResourceKey {
    Resource(ResourceId),
    Attempt(ProvisionedResourceId),
    /// By the hash of a bootstrap token, also a consumed or revoked one.
    Token(SecretHash),
    Node(NodeId),
}

/// What a declaration refers to, to be resolved under lock.
#[derive(Debug, Clone)]
pub struct DeclareKey {
    /// Name or id.
    pub project: String,
    pub handle: String,
    pub blueprint: String,
    /// The newest published version if not named.
    pub version: Option<String>,
    /// Name or id; the project's only one if not named.
    pub credential: Option<String>,
}

/// What became of one decision of many.
pub type Decided = (ProvisionedResourceId, Result<(), Error>);

/// A claimed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    pub id: ProvisionedResourceId,
    pub claim_token: ClaimToken,
}

/// Which resources to list.
#[derive(Debug, Clone, Default)]
pub struct ResourceFilter {
    /// Name or id.
    pub project: Option<String>,
    pub handle: Option<String>,
    pub phase: Option<String>,
    /// All of these hold for its labels in effect.
    pub labels: Vec<LabelSelector>,
    pub blocked: Option<Blocked>,
    /// Include those whose deletion is done.
    pub show_deleted: bool,
}

/// Which blockers a resource must have to be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    By(BlockerCode),
    /// Whichever.
    ByAny,
}

/// Which attempts: those for which everything holds that is said here.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptFilter {
    pub attempt: Option<ProvisionedResourceId>,
    pub resource: Option<ResourceId>,
    pub project: Option<ProjectId>,
    pub partition: Option<Partition>,
    /// Only those with a blocker.
    pub blocked: bool,
}

/// A partition in which something is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverduePartition {
    /// `None` for rows that belong to no partition.
    pub partition: Option<Partition>,
    pub cluster: Option<String>,
    /// How long what is due longest has been waiting for a claim.
    pub overdue: Duration,
}

/// See [`Rule`].
pub type ResourceRule<'a> = Rule<'a, ResourceSnapshot>;
pub type DeclareRule<'a> = Rule<'a, DeclareSnapshot>;

port! {
/// What the application asks of resources and attempts.
pub trait BrokerStore, intercepted by BrokerIntercept {
    /// Declares: locks the project, resolves the references, asks the rule.
    async fn decide_declaration(
        &self,
        key: &DeclareKey,
        rule: &mut DeclareRule<'_>,
    ) -> Result<(), Error>;

    /// Decides about an existing resource, its row locked.
    async fn decide(&self, key: ResourceKey, rule: &mut ResourceRule<'_>) -> Result<(), Error>;

    /// Decides about each of these attempts (no id twice), their resource rows
    /// locked, and answers for each, in the given order. What is answered and
    /// written for one is what [`Self::decide`] would, and nothing that is
    /// wrong with one (refused, corrupt, gone, poisoned) touches another. The
    /// rule tells them apart by the snapshot, and may be asked about one again.
    /// An error of the whole means that the database cannot be used; nothing
    /// was written then.
    async fn decide_many(
        &self,
        attempts: &[ProvisionedResourceId],
        rule: &mut ResourceRule<'_>,
    ) -> Result<Vec<Decided>, Error>;

    /// Claims up to `limit` rows of this partition that are due and not claimed: a
    /// new claim token each, a lease, and the wake that was seen.
    async fn attempt_claim(
        &self,
        worker: &str,
        partition: Partition,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<Claimed>, Error>;

    /// Loads snapshots without locks, set-based. Order is not kept; a row that
    /// is gone is left out.
    async fn attempt_load(
        &self,
        ids: &[ProvisionedResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    /// Writes those whose conditions hold (no attempt twice), each whole or not
    /// at all, all of them in one transaction, and answers which. An error
    /// means that the database cannot be used.
    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error>;

    /// Gives claims back where they are still held; others are left alone.
    async fn attempt_release(&self, releases: &[Release]) -> Result<(), Error>;

    /// Holds a row that cannot be hydrated: a blocker on it alone, and the
    /// claim given back until the next sweep.
    async fn attempt_quarantine(
        &self,
        claimed: Claimed,
        reason: &str,
        recheck: Duration,
    ) -> Result<(), Error>;

    /// Gives those of these claims that this worker still holds a lease of this
    /// length from now on, and answers which they are. A claim that was given
    /// back or taken over is left alone. So is a row that somebody writes at
    /// this moment: it may be its release; the next renewal finds out.
    ///
    /// A wake that came under the claim is kept: it counts when the claim is
    /// given back, or runs out.
    async fn attempt_renew(
        &self,
        worker: &str,
        claims: &[Claimed],
        lease: Duration,
    ) -> Result<Vec<ProvisionedResourceId>, Error>;

    /// Ends the claims of an earlier life of this worker, which is known to be
    /// over: the rows are due now, under a new claim token, so that nothing of
    /// that life can write any more. Of every partition: whatever it served then, it
    /// is not at work on it now. Says how many.
    async fn attempt_reclaim(&self, worker: &str) -> Result<u64, Error>;

    /// Makes these attempts due, settled or not. What was proven of their
    /// absence is not touched: the tick that follows takes it back if it sees
    /// the object too, under its claim.
    async fn attempt_wake(&self, attempts: &[ProvisionedResourceId]) -> Result<(), Error>;

    /// Makes every row of this partition that is not settled for good due now. Takes
    /// in what has no partition and belongs there by its project's placement: a
    /// replica of an older version writes such rows, and every one of those is
    /// followed by a boot of this version. For the boot sweep.
    async fn attempt_wake_all(&self, partition: Partition) -> Result<u64, Error>;

    /// How long the row of this partition that is due longest has been waiting for a
    /// claim.
    async fn attempt_overdue(&self, partition: Partition) -> Result<Option<Duration>, Error>;

    /// Every partition in which something is due, in the order of their names.
    async fn partition_list_overdue(&self) -> Result<Vec<OverduePartition>, Error>;

    /// Who holds claims in this partition just now, and how many, by name.
    async fn partition_holders(&self, partition: Partition) -> Result<Vec<(String, u64)>, Error>;

    async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error>;

    async fn resource_list(
        &self,
        filter: &ResourceFilter,
        page: Page<ResourceId>,
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    /// Oldest first.
    async fn history_list(&self, id: ProvisionedResourceId) -> Result<Vec<HistoryLine>, Error>;

    /// The newest resources first, and of each its newest attempt first.
    async fn attempt_lines(&self, filter: AttemptFilter, limit: u32) -> Result<Vec<AttemptLine>, Error>;

    /// Those that are not yet proven gone, by phase, in the order of their names.
    async fn phase_counts(&self, filter: AttemptFilter) -> Result<Vec<PhaseCount>, Error>;
}
}
