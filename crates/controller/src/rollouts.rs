//! The loop over roll-outs: observes the members in work, and begins the next ones. What
//! counts as work is one periodic task, which one replica claims at a time. Two replicas that
//! did this at the same time would do no harm: every step is a decision under lock.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::store::Error;
use slipway_app::rollouts::run::{Passed, Runner};
use slipway_durable::{EarlierClaims, Lease};

use crate::driver::{Failure, Loop, Pacing};
use crate::periodic::{ClaimedTask, Tasks};

/// The loop over roll-outs.
#[derive(Debug)]
pub struct RolloutLoop {
    runner: Runner,
    tasks: Tasks,
}

impl RolloutLoop {
    pub const NAME: &'static str = Runner::TASK;
    pub const PACING: Pacing = Pacing { slots: 1, batch: 1, poll: Duration::from_millis(250) };
    const LEASE: Duration = Duration::from_secs(30);
    /// While members become healthy. Nobody tells when one is.
    const WAITING: Duration = Duration::from_millis(250);
    /// While a mode withholds everything.
    const WITHHELD: Duration = Duration::from_secs(10);
    /// Without a roll-out. A start comes sooner.
    const INTERVAL: Duration = Duration::from_secs(60);

    pub fn new(runner: Runner, worker: String) -> Self {
        // It acts on the database alone, under lock.
        let earlier_claims = EarlierClaims::TakenBack;
        let stores = runner.context().stores.clone();
        Self { runner, tasks: Tasks::new(stores, worker, Self::LEASE, earlier_claims) }
    }

    /// Works, and returns the time until the next pass.
    async fn pass(&self) -> Result<Duration, Error> {
        let Passed { advanced, waiting, withheld } = self.runner.pass().await?;
        Ok(match (advanced > 0, waiting, withheld) {
            (true, ..) => Duration::ZERO,
            (false, true, _) => Self::WAITING,
            (false, false, true) => Self::WITHHELD,
            (false, false, false) => Self::INTERVAL,
        })
    }
}

#[async_trait]
impl Loop for RolloutLoop {
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
                Err(error) => (Self::WITHHELD, Some(error.to_string())),
            };
            errors.extend(self.tasks.release(&task, next, error.into_iter().collect()).await);
        }
        errors
    }
}
