//! Where events go: a subscriber of this process, or a broker outside.

use std::fmt;

use async_trait::async_trait;

use super::events::PositionedEvent;

/// Why a sink did not take what it was given. Shown to people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Takes events, at least once each and in the order of their positions.
///
/// What was taken may come again: after a crash between delivery and the write
/// of the cursor, or after an answer that was lost. It then has the same id and
/// the same position. A worker that was paused in the middle of a delivery for
/// longer than its lease may even deliver late, beside its successor; a sink
/// that must not see that drops what is not after the last position it took.
#[async_trait]
pub trait EventSink: fmt::Debug + Send + Sync {
    /// The name of its subscription, under which the cursor is kept.
    fn name(&self) -> &str;

    /// Returns once all of them are as safe as the sink can make them. An error
    /// means that the same events are given again.
    async fn publish(&self, events: &[PositionedEvent]) -> Result<(), Error>;
}
