//! A request to stop, that many can wait for.

use std::sync::Arc;

use tokio::sync::watch;

/// Stops runs before their next step. The jobs keep their states. A clone is the same
/// request.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Cancel {
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once it is cancelled.
    pub async fn cancelled(&self) {
        // The sender lives as long as this, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}
