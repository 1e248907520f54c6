//! The store of the broker domain: resources, their attempts, and the claims of
//! the loop. A decision locks and loads the resource, calls a pure rule, and
//! writes the commit that the rule returns.
//!
//! The loop records most of its ticks without a lock, on the condition that the
//! row did not change since it was read ([`BrokerStore::attempt_record`]).
//! Where the condition fails, [`BrokerStore::decide_many`] decides again under
//! lock.

use std::collections::HashSet;
use std::time::Duration;

use slipway_core::blocker::{BlockerCode, DeregistrationSeam};
use slipway_core::broker::history::HistoryBounds;
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use slipway_core::catalog::label::LabelSelector;
use slipway_core::commit::{Commit, Recorded, Release};
use slipway_core::deletion::door::{DoorInput, Doored};
use slipway_core::error::Refusal;
use slipway_core::ids::{
    ClaimToken, NodeId, Partition, ProjectId, ProvisionedResourceId, ResourceId,
};
use slipway_core::nodes::token::SecretHash;
use slipway_core::operations::explanation::{AttemptLine, PhaseCount};

use crate::ports::store::{CorruptRow, Error, Page, Rule};

pub use slipway_core::operations::explanation::HistoryLine;

/// Identifies the resource of a decision. Every variant leads to the same
/// snapshot, with the resource row locked.
#[derive(Debug, Clone, Copy)]
pub enum ResourceKey {
    Resource(ResourceId),
    Attempt(ProvisionedResourceId),
    /// By the hash of a bootstrap token, also a consumed or revoked one.
    Token(SecretHash),
    Node(NodeId),
}

/// The references of a declaration, to be resolved under lock.
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

/// The resource whose declaration is corrected.
#[derive(Debug, Clone)]
pub struct RedeclareKey {
    pub resource: ResourceId,
    /// The version that it already has if not named.
    pub version: Option<String>,
    pub of: Redeclared,
}

/// What is corrected, and so what has to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redeclared {
    /// The attempt in use.
    InUse,
    /// The same, and another attempt is made beside it, whose node needs a name of its own.
    WithSurge,
    /// The attempt beside the one in use, if there is one.
    Beside,
}

/// The result of one decision of many.
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
    /// Slug or id.
    pub blueprint: Option<String>,
    /// The resource's labels in effect must match all of these.
    pub labels: Vec<LabelSelector>,
    pub blocked: Option<Blocked>,
    /// A resource that is due for longer than this without a claim counts as blocked by
    /// `cluster_not_served`, which no loop can record.
    pub unserved_after: Option<Duration>,
    /// Include resources whose deletion is complete.
    pub show_deleted: bool,
}

/// Which blockers a resource must have to be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    By(BlockerCode),
    /// By at least one, whichever it is.
    ByAny,
}

/// Which attempts to list; all conditions must hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptFilter {
    pub attempt: Option<ProvisionedResourceId>,
    pub resource: Option<ResourceId>,
    pub project: Option<ProjectId>,
    pub partition: Option<Partition>,
    /// The number of the attempt among those of its resource.
    pub number: Option<i32>,
    /// Only those that are or were in use.
    pub in_use: bool,
    /// Only those with a blocker.
    pub blocked: bool,
    /// Only those of its resource with a smaller number.
    pub before: Option<i32>,
}

/// A partition with due rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverduePartition {
    pub partition: Partition,
    pub cluster: String,
    /// How long the longest due row has been waiting for a claim.
    pub overdue: Duration,
}

/// The result of one step through the histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryTrimmed {
    pub removed: u64,
    /// The attempt with which the next step begins; `None` after the last one.
    pub next: Option<ProvisionedResourceId>,
}

/// See [`Rule`].
pub type ResourceRule<'a> = Rule<'a, ResourceSnapshot>;
pub type ResourceDeletionRule<'a> = Rule<'a, Doored<ResourceSnapshot>>;
pub type DeclareRule<'a> = Rule<'a, DeclareSnapshot>;

/// The same about the key with this number.
pub type DeclarationsRule<'a> =
    dyn FnMut(usize, &DeclareSnapshot) -> Result<Commit, Refusal> + Send + 'a;
pub type RedeclareRule<'a> = Rule<'a, RedeclareSnapshot>;
pub type ReplaceRule<'a> = Rule<'a, Doored<RedeclareSnapshot>>;

port! {
/// Everything about resources and attempts.
pub trait BrokerStore, intercepted by BrokerIntercept {
    /// Locks the project, resolves the references, calls the rule.
    async fn decide_declaration(
        &self,
        key: &DeclareKey,
        rule: &mut DeclareRule<'_>,
    ) -> Result<(), Error>;

    /// The same for many declarations, each as if it were alone, in their order; few
    /// transactions for all of them. The rule gets the number of the key.
    async fn decide_declarations(
        &self,
        keys: &[DeclareKey],
        rule: &mut DeclarationsRule<'_>,
    ) -> Result<Vec<Result<(), Error>>, Error>;

    /// Decides about an existing resource, its row locked.
    async fn decide(&self, key: ResourceKey, rule: &mut ResourceRule<'_>) -> Result<(), Error>;

    /// The same, with what its corrected declaration is checked against.
    async fn decide_redeclaration(&self, key: &RedeclareKey, rule: &mut RedeclareRule<'_>) -> Result<(), Error>;

    /// The same at the door that a deletion passes.
    async fn decide_replacement(
        &self,
        key: &RedeclareKey,
        input: DoorInput,
        rule: &mut ReplaceRule<'_>,
    ) -> Result<(), Error>;

    /// Decides about the deletion of one resource.
    async fn decide_deletion(
        &self,
        id: ResourceId,
        input: DoorInput,
        rule: &mut ResourceDeletionRule<'_>,
    ) -> Result<(), Error>;

    /// Current attempts of live resources of a project that its deletion has not begun to
    /// take down, `limit` at most.
    async fn attempt_staying(
        &self,
        project: ProjectId,
        limit: u32,
    ) -> Result<Vec<ProvisionedResourceId>, Error>;

    /// Decides about each of these attempts (no id twice), their resource rows
    /// locked, and returns the results in the given order. For each it returns
    /// and writes what [`Self::decide`] would; a problem with one (refused,
    /// corrupt, gone, poisoned) affects no other. The rule tells them apart by
    /// the snapshot, and may be called again for one. An error of the whole
    /// call means that the database cannot be used; then nothing was written.
    async fn decide_many(
        &self,
        attempts: &[ProvisionedResourceId],
        rule: &mut ResourceRule<'_>,
    ) -> Result<Vec<Decided>, Error>;

    /// Claims up to `limit` rows of this partition that are due and unclaimed.
    /// Each gets a new claim token, a lease, and the wake counter that was
    /// read.
    async fn attempt_claim(
        &self,
        worker: &str,
        partition: Partition,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<Claimed>, Error>;

    /// Loads snapshots without locks, set-based, in any order. Leaves out rows
    /// that are gone.
    async fn attempt_load(
        &self,
        ids: &[ProvisionedResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    /// Writes the records whose conditions hold (no attempt twice), each
    /// completely or not at all, all in one transaction, and returns which it
    /// wrote. An error means that the database cannot be used.
    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error>;

    /// Releases those of these claims that are still ours.
    async fn attempt_release(&self, releases: &[Release]) -> Result<(), Error>;

    /// Quarantines a row that cannot be hydrated: adds a blocker to it alone
    /// ([`slipway_core::blocker::of_unreadable`]) and releases the claim, due again at the
    /// next sweep.
    async fn attempt_quarantine(
        &self,
        claimed: Claimed,
        reason: &str,
        seam: Option<DeregistrationSeam>,
        recheck: Duration,
    ) -> Result<(), Error>;

    /// Extends the lease of those claims that this worker still has, to this
    /// length from now, and returns which they are. Leaves a claim alone that
    /// was released or taken over. Also leaves a row alone that somebody writes
    /// at this moment: that may be its release; the next renewal finds out.
    ///
    /// A wake that came during the claim is kept: it counts when the claim is
    /// released or expires.
    async fn attempt_renew(
        &self,
        worker: &str,
        claims: &[Claimed],
        lease: Duration,
    ) -> Result<Vec<ProvisionedResourceId>, Error>;

    /// Ends the claims of an earlier process of this worker in this partition.
    /// The process is known to be over, and so are its actions there. The rows
    /// are due now, under a new claim token, so that the earlier process cannot
    /// write any more. Called before this process claims there. Returns how many.
    async fn attempt_reclaim(&self, worker: &str, partition: Partition) -> Result<u64, Error>;

    /// Makes these attempts due, settled or not. Keeps their proof of absence:
    /// the following tick revokes it under its claim if it also observes the
    /// object.
    async fn attempt_wake(&self, attempts: &[ProvisionedResourceId]) -> Result<(), Error>;

    /// Makes every row of this partition due now that is not settled for good,
    /// for the sweep at boot.
    async fn attempt_wake_all(&self, partition: Partition) -> Result<u64, Error>;

    /// How long the longest due row of this partition has been waiting for a claim.
    async fn attempt_overdue(&self, partition: Partition) -> Result<Option<Duration>, Error>;

    /// Every partition with due rows, in the order of their names.
    async fn partition_list_overdue(&self) -> Result<Vec<OverduePartition>, Error>;

    /// The workers with claims in this partition now, by name, and how many each.
    async fn partition_holders(&self, partition: Partition) -> Result<Vec<(String, u64)>, Error>;

    async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error>;

    /// These resources with their current attempts; unknown ids are left out.
    async fn resource_load(
        &self,
        ids: &[ResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    /// The resources, not deleted, that have these handles in these projects.
    async fn resource_named(
        &self,
        handles: &[(ProjectId, String)],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    async fn resource_list(
        &self,
        filter: &ResourceFilter,
        page: Page<ResourceId>,
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    /// The lines before this number, newest first; without a number, the newest.
    async fn history_list(
        &self,
        id: ProvisionedResourceId,
        page: Page<i64>,
    ) -> Result<Vec<HistoryLine>, Error>;

    /// Walks over `limit` attempts from this one on, in the order of their ids, to
    /// the first whose history has more than what is kept, and removes up to
    /// `limit` of its lines, of each kind. An announced change leaves the history
    /// and stays in the audit.
    async fn history_trim(
        &self,
        kept: HistoryBounds,
        from: Option<ProvisionedResourceId>,
        limit: u32,
    ) -> Result<HistoryTrimmed, Error>;

    /// Removes the history of attempts whose resource has been gone for longer
    /// than `keep`; of `limit` attempts at most. A resource that is not gone,
    /// or has an open leak record, keeps all of its history.
    async fn history_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// The newest resources first, and of each its newest attempt first.
    async fn attempt_lines(&self, filter: AttemptFilter, limit: u32) -> Result<Vec<AttemptLine>, Error>;

    /// Attempts not yet proven gone, counted by phase, in the order of phase names.
    async fn phase_counts(&self, filter: AttemptFilter) -> Result<Vec<PhaseCount>, Error>;
}
}
