//! The relay: gives committed events their positions, dense and in commit
//! order. What counts as work is an outbox row without a position; nothing else
//! numbers them.

use async_trait::async_trait;
use slipway_app::context::Wakes;
use slipway_app::ports::Stores;

use crate::driver::{Failure, Loop, failure};

/// The loop over the outbox.
#[derive(Debug)]
pub struct Relay {
    store: Stores,
    wakes: Wakes,
}

impl Relay {
    pub const NAME: &'static str = "outbox-relay";
    const BATCH: u32 = 500;

    pub fn new(store: Stores) -> Self {
        Self { store, wakes: Wakes::default() }
    }

    /// The same relay, which also wakes the readers of this process.
    #[must_use]
    pub fn waking(self, wakes: Wakes) -> Self {
        Self { wakes, ..self }
    }
}

#[async_trait]
impl Loop for Relay {
    type Item = ();

    /// Numbering is one statement under the lock of the head row, so it happens
    /// here and leaves nothing for `work`. Empties the outbox before it
    /// returns.
    async fn claim(&self, _limit: u32) -> Result<Vec<()>, Failure> {
        loop {
            let numbered = self.store.events.outbox_relay(Self::BATCH).await;
            let numbered = numbered.map_err(failure)?;
            if numbered > 0 {
                self.wakes.relayed();
            }
            if numbered < u64::from(Self::BATCH) {
                return Ok(Vec::new());
            }
        }
    }
}
