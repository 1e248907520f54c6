//! The store as the application sees it: one small port per domain, and what
//! the ports share. Decisions go through the `decide` methods: the store opens
//! the transaction, locks and loads the snapshot, calls the rule and writes its
//! commit. No method exposes a transaction, and no I/O but the database's
//! happens inside one. The other methods are reads, and the few writes that
//! decide nothing.

use std::sync::Arc;

use slipway_core::blocker::DeregistrationSeam;
use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use uuid::Uuid;

use super::{
    AccessStore, BrokerStore, CatalogStore, DeletionStore, EventStore, FilesStore, FleetStore,
    KindStore, NodeStore, OperationsStore, PlacementStore, RolloutStore, TenantStore,
    TopologyStore,
};
use crate::kind::StoredKind;

/// How many rows a list returns at most, and by default.
pub const PAGE_MAX: u32 = 500;
pub const PAGE_DEFAULT: u32 = 100;

/// The stores of all domains. One adapter implements them all.
#[derive(Debug, Clone)]
pub struct Stores {
    pub broker: Arc<dyn BrokerStore>,
    pub nodes: Arc<dyn NodeStore>,
    pub catalog: Arc<dyn CatalogStore>,
    pub placement: Arc<dyn PlacementStore>,
    pub deletion: Arc<dyn DeletionStore>,
    pub access: Arc<dyn AccessStore>,
    pub events: Arc<dyn EventStore>,
    pub files: Arc<dyn FilesStore>,
    pub fleet: Arc<dyn FleetStore>,
    pub operations: Arc<dyn OperationsStore>,
    pub rollouts: Arc<dyn RolloutStore>,
    pub tenants: Arc<dyn TenantStore>,
    pub topology: Arc<dyn TopologyStore>,
}

impl Stores {
    /// The rows of one kind.
    pub fn kind<K: StoredKind>(&self) -> &dyn KindStore<K> {
        K::store(self)
    }

    /// All ports of one adapter.
    pub fn of<S>(store: Arc<S>) -> Self
    where
        S: BrokerStore
            + NodeStore
            + CatalogStore
            + PlacementStore
            + DeletionStore
            + AccessStore
            + EventStore
            + FilesStore
            + FleetStore
            + OperationsStore
            + RolloutStore
            + TenantStore
            + TopologyStore
            + 'static,
    {
        Self {
            broker: Arc::clone(&store) as _,
            nodes: Arc::clone(&store) as _,
            catalog: Arc::clone(&store) as _,
            placement: Arc::clone(&store) as _,
            deletion: Arc::clone(&store) as _,
            access: Arc::clone(&store) as _,
            events: Arc::clone(&store) as _,
            files: Arc::clone(&store) as _,
            fleet: Arc::clone(&store) as _,
            operations: Arc::clone(&store) as _,
            rollouts: Arc::clone(&store) as _,
            tenants: Arc::clone(&store) as _,
            topology: store,
        }
    }
}

/// A pure function that the store calls inside the transaction, maybe twice (it
/// retries deadlocks), so it must only compute.
pub type Rule<'a, S, C = Commit> = dyn FnMut(&S) -> Result<C, Refusal> + Send + 'a;

/// Why the store failed. Nothing was written in any of these cases.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The decision was a dry run: it would have been written.
    #[error("nothing was written, since this is a dry run")]
    DryRun,
    /// No row has this key.
    #[error("no {kind} with this key exists")]
    NotFound { kind: &'static str },
    /// The row breaks an invariant and is quarantined.
    #[error("row {id} breaks an invariant: {reason}")]
    Corrupt { id: Uuid, reason: String },
    /// The database cannot be used now; the same call may work later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The database can be read but not written, until somebody changes that.
    #[error("the database is read-only: {0}")]
    ReadOnly(String),
    /// The database has no space left, until somebody adds some.
    #[error("the database is full: {0}")]
    Full(String),
    /// An error in our code or in the schema; a person must investigate.
    #[error("the database refused: {0}")]
    Internal(String),
}

impl Error {
    /// Whether it is a state of the database as a whole. The store logs one line
    /// when such a state begins and one when it ends; callers log nothing.
    pub const fn is_logged(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::ReadOnly(_) | Self::Full(_))
    }
}

/// A row of a batch that cannot be read; the rest of the batch is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptRow {
    pub id: Uuid,
    /// The resource of the row, if known: the next page of a list starts after it.
    pub resource_id: Option<ResourceId>,
    pub reason: String,
    /// What keeps the node of an attempt in teardown from being deregistered, if that is
    /// what cannot be read.
    pub seam: Option<DeregistrationSeam>,
}

/// A page of a list: rows after the cursor, in the order of their ids.
#[derive(Debug, Clone, Copy)]
pub struct Page<C> {
    pub after: Option<C>,
    pub limit: u32,
}
