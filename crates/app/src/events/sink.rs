//! The destination of events: a subscriber in this process, or an outside broker.

use std::fmt;

use async_trait::async_trait;

use crate::events::port::PositionedEvent;

/// Why a sink did not accept events. Shown to people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Accepts events, at least once each and in the order of their positions.
///
/// An accepted event may come again, with the same id and the same position:
/// after a crash between delivery and the write of the cursor, or after a lost
/// answer. A worker that was paused during a delivery for longer than its lease
/// may even deliver late, concurrently with its successor. A sink that must not
/// see that drops events that are not after the last position it accepted.
#[async_trait]
pub trait EventSink: fmt::Debug + Send + Sync {
    /// The name of its subscription, under which the cursor is kept.
    fn name(&self) -> &str;

    /// Returns once all events are as durable as the sink can make them. After
    /// an error the same events come again.
    async fn publish(&self, events: &[PositionedEvent]) -> Result<(), Error>;
}
