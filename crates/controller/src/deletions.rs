//! The deletions loop: begins deletions whose grace is over, takes the deletions of
//! projects further (their resources first, then the project, done when its namespace is
//! gone), and purges what is past its retention. Its task is due when the next grace ends.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::deletion::run::{Passed, Runner};
use slipway_app::ports::Stores;
use slipway_app::ports::store::Error;

use crate::periodic::{Pass, PassLoop};

/// The loop over deletions.
pub type DeletionLoop = PassLoop<Runner>;

/// While members are being taken down.
const WAITING: Duration = Duration::from_secs(1);
/// The same for servers, each of which may let others go.
const SERVERS: Duration = Duration::from_millis(250);
/// While a mode withholds everything, or a refusal has to be resolved by a person.
const REFUSED: Duration = Duration::from_secs(10);
/// The longest time between two passes. Requests and the end of a grace come sooner.
const INTERVAL: Duration = Duration::from_secs(60);

#[async_trait]
impl Pass for Runner {
    const NAME: &'static str = Self::TASK;
    const POLL: Duration = Duration::from_millis(500);
    const AFTER_FAULT: Duration = REFUSED;

    fn stores(&self) -> &Stores {
        &self.context().stores
    }

    async fn pass(&self) -> Result<Duration, Error> {
        let Passed { advanced, refused, withheld, waiting, purged, servers } =
            Self::pass(self).await?;
        if advanced > 0 || purged > 0 {
            return Ok(Duration::ZERO);
        }
        let next = self.context().stores.deletion.deletion_next_due().await?;
        let next = next.filter(|_| refused == 0 && !withheld).unwrap_or(INTERVAL);
        let soonest = match (waiting, withheld || refused > 0) {
            (true, _) if servers => SERVERS,
            (true, _) => WAITING,
            (false, true) => REFUSED,
            (false, false) => INTERVAL,
        };
        Ok(next.min(soonest))
    }
}
