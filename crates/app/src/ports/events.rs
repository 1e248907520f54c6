//! The outbox as the application sees it: numbering, reading, and what is known
//! of its ends.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use slipway_core::ids::{EventId, ProjectId, Revision};
use slipway_core::rules::positions::Span;
use slipway_core::time::Timestamp;
use uuid::Uuid;

use super::store::{Error, Page};

/// An event that has its position.
#[derive(Debug, Clone, PartialEq)]
pub struct PositionedEvent {
    /// The stable message id: the same however often it is delivered.
    pub id: EventId,
    pub position: i64,
    pub event_type: String,
    pub aggregate_id: Uuid,
    pub project_id: ProjectId,
    pub revision: Revision,
    pub occurred_at: Timestamp,
    pub payload: Value,
}

/// Events that were committed and have no position yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Counted up to 10,000; what is more is said to be so many.
    pub waiting: u64,
    /// How long ago the oldest of them happened.
    pub oldest: Option<Duration>,
}

#[async_trait]
pub trait EventStore: fmt::Debug + Send + Sync {
    /// Gives the next dense positions to up to `limit` events, in commit
    /// order; says how many.
    async fn outbox_relay(&self, limit: u32) -> Result<u64, Error>;

    async fn outbox_backlog(&self) -> Result<Backlog, Error>;

    /// Events after the position, in order. Without one, from the oldest that
    /// is kept.
    async fn event_list(&self, page: Page<i64>) -> Result<Vec<PositionedEvent>, Error>;

    /// Which events are kept. Whoever wants to know that a list has no hole
    /// asks for the list first and for this afterwards: events that were
    /// pruned before the list was read are then known to be.
    async fn event_span(&self) -> Result<Span, Error>;
}
