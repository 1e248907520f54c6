//! The store as the application sees it: one small port per room, and what the
//! ports share. Decisions go through the `decide` methods: the store opens the
//! transaction, locks and loads the snapshot, calls the rule, writes its commit
//! and answers. No method hands out a transaction, and no I/O but the database's
//! happens inside one. The rest are reads, and the few writes that decide
//! nothing.

use std::sync::Arc;

use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use uuid::Uuid;

use super::{
    AccessStore, BrokerStore, CatalogStore, DeletionStore, EventStore, NodeStore, OperationsStore,
    PlacementStore,
};

/// The stores of all rooms. One adapter implements them all.
#[derive(Debug, Clone)]
pub struct Stores {
    pub broker: Arc<dyn BrokerStore>,
    pub nodes: Arc<dyn NodeStore>,
    pub catalog: Arc<dyn CatalogStore>,
    pub placement: Arc<dyn PlacementStore>,
    pub deletion: Arc<dyn DeletionStore>,
    pub access: Arc<dyn AccessStore>,
    pub events: Arc<dyn EventStore>,
    pub operations: Arc<dyn OperationsStore>,
}

impl Stores {
    /// All rooms of one adapter.
    pub fn of<S>(store: Arc<S>) -> Self
    where
        S: BrokerStore
            + NodeStore
            + CatalogStore
            + PlacementStore
            + DeletionStore
            + AccessStore
            + EventStore
            + OperationsStore
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
            operations: store,
        }
    }
}

/// A pure function that is called inside the transaction, maybe twice (a
/// deadlock is retried), so it computes and does nothing else.
pub type Rule<'a, S, C = Commit> = dyn FnMut(&S) -> Result<C, Refusal> + Send + 'a;

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

/// A page of a list: rows after the cursor, in the order of their ids.
#[derive(Debug, Clone, Copy)]
pub struct Page<C> {
    pub after: Option<C>,
    pub limit: u32,
}
