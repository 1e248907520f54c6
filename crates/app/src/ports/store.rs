//! The store port. Decisions go through [`Store::decide`], for many resources
//! at once [`Store::decide_many`], and [`Store::decide_declaration`]: the store
//! opens the transaction, locks and loads the snapshot, calls the rule, writes
//! its commit and answers. No
//! method hands out a transaction, and no I/O but the database's happens
//! inside one. The rest are reads, and the few writes that decide nothing.

use std::time::Duration;

use async_trait::async_trait;
use slipway_core::blocker::BlockerCode;
use slipway_core::catalog::label::LabelSelector;
use slipway_core::commit::{Commit, Release};
use slipway_core::deletion::Deletion;
use slipway_core::error::Refusal;
use slipway_core::ids::{
    ApiKeyId, ClaimToken, ClusterId, DeletionId, InstallationId, Lane, NodeId,
    ProvisionedResourceId, ResourceId,
};
use slipway_core::node::{Drain, Node, Reported};
use slipway_core::snapshot::{DeclareSnapshot, ResourceSnapshot};
use slipway_core::time::Timestamp;
use slipway_core::token::SecretHash;
use uuid::Uuid;

pub use super::events::PositionedEvent;
pub use slipway_core::explanation::HistoryLine;

use super::{
    AuditStore, CatalogStore, ControlStore, DatabaseClock, DeliveryStore, EnrolStore, EventStore,
    ExplainStore, FleetStore, KeyStore, LaneStore, LeakStore, Listed, RecordStore, RenewalStore,
    RetentionStore, ScopeStore, StandingStore, SubscriptionStore, TaskStore, TokenStore,
};
use crate::seed::Seed;

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

/// A pure function that is called inside the transaction, maybe twice (a
/// deadlock is retried), so it computes and does nothing else.
pub type Rule<'a, S, C = Commit> = dyn FnMut(&S) -> Result<C, Refusal> + Send + 'a;
pub type ResourceRule<'a> = Rule<'a, ResourceSnapshot>;
pub type DeclareRule<'a> = Rule<'a, DeclareSnapshot>;

/// What became of one decision of many.
pub type Decided = (ProvisionedResourceId, Result<(), Error>);

/// Why the store did not do it. Whatever it was, nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No row has this key.
    #[error("no {kind} with this key exists")]
    NotFound { kind: &'static str },
    /// The row breaks an invariant and is held.
    #[error("row {id} breaks an invariant: {reason}")]
    Corrupt { id: Uuid, reason: String },
    /// The database cannot be used now; the same call may work later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// It can be read and not written, until somebody changes that.
    #[error("the database is read-only: {0}")]
    ReadOnly(String),
    /// It has no room for more, until somebody gives it some.
    #[error("the database is full: {0}")]
    Full(String),
    /// A fault of ours or of the schema; a person must look.
    #[error("the database refused: {0}")]
    Internal(String),
}

/// A row of a batch that cannot be used; the rest of the batch can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptRow {
    pub id: Uuid,
    /// The resource it belongs to, where that is known: a list goes on behind it.
    pub resource_id: Option<ResourceId>,
    pub reason: String,
}

/// A claimed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    pub id: ProvisionedResourceId,
    pub claim_token: ClaimToken,
}

/// A page of a list: rows after the cursor, in the order of their ids.
#[derive(Debug, Clone, Copy)]
pub struct Page<C> {
    pub after: Option<C>,
    pub limit: u32,
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

/// An API key's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub name: String,
    pub short: String,
    pub hash: SecretHash,
    pub role: String,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// The answer to a heartbeat of a registered node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    pub accepted_at: Timestamp,
    pub drain: Option<Drain>,
}

/// The database, as the application sees it.
#[async_trait]
pub trait Store:
    AuditStore
    + CatalogStore
    + ControlStore
    + DatabaseClock
    + DeliveryStore
    + EnrolStore
    + EventStore
    + ExplainStore
    + FleetStore
    + KeyStore
    + LaneStore
    + LeakStore
    + RecordStore
    + RenewalStore
    + RetentionStore
    + ScopeStore
    + StandingStore
    + SubscriptionStore
    + TaskStore
    + TokenStore
{
    /// The database answers.
    async fn ping(&self) -> Result<(), Error>;

    /// The id of this installation; drawn once, when the database was made.
    async fn installation(&self) -> Result<InstallationId, Error>;

    /// Inserts what is missing of the seed and touches nothing that is there.
    /// Answers the id of the seed's cluster, which is the older one's where the
    /// name was taken.
    async fn seed(&self, seed: &Seed) -> Result<ClusterId, Error>;

    // ---- decisions

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
    /// written for one is what [`Store::decide`] would, and nothing that is
    /// wrong with one (refused, corrupt, gone, poisoned) touches another. The
    /// rule tells them apart by the snapshot, and may be asked about one again.
    /// An error of the whole means that the database cannot be used; nothing
    /// was written then.
    ///
    /// This default decides one by one; an adapter overrides it with one
    /// transaction and statements for the whole set.
    async fn decide_many(
        &self,
        attempts: &[ProvisionedResourceId],
        rule: &mut ResourceRule<'_>,
    ) -> Result<Vec<Decided>, Error> {
        let mut decided = Vec::with_capacity(attempts.len());
        for attempt in attempts {
            decided.push((*attempt, self.decide(ResourceKey::Attempt(*attempt), &mut *rule).await));
        }
        Ok(decided)
    }

    // ---- the loop's side

    /// Claims up to `limit` rows of this lane that are due and not claimed: a
    /// new claim token each, a lease, and the wake that was seen.
    async fn attempt_claim(
        &self,
        worker: &str,
        lane: Lane,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<Claimed>, Error>;

    /// Loads snapshots without locks, set-based. Order is not kept; a row that
    /// is gone is left out.
    async fn attempt_load(
        &self,
        ids: &[ProvisionedResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    /// Gives claims back where they are still held; others are left alone.
    async fn attempt_release(&self, releases: &[Release]) -> Result<(), Error>;

    /// Holds a row that cannot be hydrated: a blocker on it alone, and the
    /// claim given back until the next sweep.
    async fn attempt_hold(
        &self,
        claimed: Claimed,
        reason: &str,
        recheck: Duration,
    ) -> Result<(), Error>;

    /// Ends the claims of an earlier life of this worker, which is known to be
    /// over: the rows are due now, under a new claim token, so that nothing of
    /// that life can write any more. Of every lane: whatever it served then, it
    /// is not at work on it now. Says how many.
    async fn attempt_reclaim(&self, worker: &str) -> Result<u64, Error>;

    /// Makes every row of this lane that is not settled for good due now. Takes
    /// in what has no lane and belongs there by its project's placement: a
    /// replica of an older version writes such rows, and every one of those is
    /// followed by a boot of this version. For the boot sweep.
    async fn attempt_wake_all(&self, lane: Lane) -> Result<u64, Error>;

    /// How long the row of this lane that is due longest has been waiting for a
    /// claim.
    async fn attempt_overdue(&self, lane: Lane) -> Result<Option<Duration>, Error>;

    // ---- registry

    /// Notes a heartbeat of a registered node and what it says of itself (what it
    /// does not say stays). `None` if it is not registered.
    async fn node_heartbeat(
        &self,
        id: NodeId,
        reported: &Reported,
    ) -> Result<Option<Heartbeat>, Error>;

    async fn node_fetch(&self, id: NodeId) -> Result<Option<Node>, Error>;

    async fn node_list(&self, page: Page<NodeId>) -> Result<Listed<Node>, Error>;

    // ---- reads

    async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error>;

    async fn resource_list(
        &self,
        filter: &ResourceFilter,
        page: Page<ResourceId>,
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error>;

    /// Oldest first.
    async fn history_list(&self, id: ProvisionedResourceId) -> Result<Vec<HistoryLine>, Error>;

    async fn deletion_fetch(&self, id: DeletionId) -> Result<Option<Deletion>, Error>;

    async fn deletion_list(&self, page: Page<DeletionId>) -> Result<Listed<Deletion>, Error>;

    // ---- keys

    async fn api_key_find(&self, short: &str) -> Result<Option<ApiKey>, Error>;

    /// Inserts, or replaces the one of the same name.
    async fn api_key_put(&self, key: &ApiKey) -> Result<(), Error>;

    /// How many keys can be used.
    async fn api_key_count(&self) -> Result<u64, Error>;
}
