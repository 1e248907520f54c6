//! The deletions loop: begins deletions whose grace is over, takes the deletions of
//! projects further (their resources first, then the project, done when its namespace is
//! gone), and purges what is past its retention. What counts as work is one periodic task, which one replica claims at a time; it
//! is due when the next grace ends. Two replicas that did this at the same time would do
//! no harm: every step is a decision under lock.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::deletion::run::{Passed, Runner};
use slipway_app::ports::store::Error;
use slipway_durable::{EarlierClaims, Lease};

use crate::driver::{Failure, Loop, Pacing};
use crate::periodic::{ClaimedTask, Tasks};

/// The loop over deletions.
#[derive(Debug)]
pub struct DeletionLoop {
    runner: Runner,
    tasks: Tasks,
}

impl DeletionLoop {
    pub const NAME: &'static str = Runner::TASK;
    pub const PACING: Pacing = Pacing { slots: 1, batch: 1, poll: Duration::from_millis(500) };
    const LEASE: Duration = Duration::from_secs(30);
    /// While members are being taken down.
    const WAITING: Duration = Duration::from_secs(1);
    /// While a mode withholds everything, or a refusal has to be resolved by a person.
    const REFUSED: Duration = Duration::from_secs(10);
    /// The longest time between two passes. Requests and the end of a grace come sooner.
    const INTERVAL: Duration = Duration::from_secs(60);

    pub fn new(runner: Runner, worker: String) -> Self {
        // It acts on the database alone, under lock.
        let earlier_claims = EarlierClaims::TakenBack;
        let stores = runner.context().stores.clone();
        Self { runner, tasks: Tasks::new(stores, worker, Self::LEASE, earlier_claims) }
    }

    /// Works, and returns the time until the next pass.
    async fn pass(&self) -> Result<Duration, Error> {
        let Passed { advanced, refused, withheld, waiting, purged } = self.runner.pass().await?;
        if advanced > 0 || purged > 0 {
            return Ok(Duration::ZERO);
        }
        let next = self.runner.context().stores.deletion.deletion_next_due().await?;
        let next = next.filter(|_| refused == 0 && !withheld).unwrap_or(Self::INTERVAL);
        let soonest = match (waiting, withheld || refused > 0) {
            (true, _) => Self::WAITING,
            (false, true) => Self::REFUSED,
            (false, false) => Self::INTERVAL,
        };
        Ok(next.min(soonest))
    }
}

#[async_trait]
impl Loop for DeletionLoop {
    type Item = ClaimedTask;

    fn lease(&self) -> Duration {
        self.tasks.lease()
    }

    async fn claim(&self, _limit: u32) -> Result<Vec<ClaimedTask>, Failure> {
        self.tasks.ensure(Self::NAME, Duration::ZERO).await?;
        Ok(self.tasks.claim(Self::NAME.to_owned()).await?.into_iter().collect())
    }

    async fn work(&self, items: Vec<ClaimedTask>, _lease: Lease) -> Vec<String> {
        let mut errors = Vec::new();
        for task in items {
            let (next, error) = match self.pass().await {
                Ok(next) => (next, None),
                Err(error) => (Self::REFUSED, Some(error.to_string())),
            };
            errors.extend(self.tasks.release(&task, next, error.into_iter().collect()).await);
        }
        errors
    }
}
