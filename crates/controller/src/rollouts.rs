//! The loop over roll-outs: observes the members in work, and begins the next ones. While
//! members are in work it keeps its claim and looks again as soon as this replica has worked
//! on resources; those that another replica has worked on it finds by asking again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::Stores;
use slipway_app::ports::store::Error;
use slipway_app::rollouts::run::{Passed, Runner};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::periodic::{PASS_LEASE, Pass, PassLoop};

/// The loop over roll-outs.
pub type RolloutLoop = PassLoop<RolloutPass>;

/// While members become healthy that other replicas work on.
const WAITING: Duration = Duration::from_millis(250);
/// Between two passes in which nothing happened, however much else is worked on.
const SHORTEST: Duration = Duration::from_millis(20);
/// While a mode withholds everything.
const WITHHELD: Duration = Duration::from_secs(10);
/// Without a roll-out. A start comes sooner.
const INTERVAL: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub struct RolloutPass {
    runner: Runner,
    stops: AtomicBool,
}

impl RolloutPass {
    pub const fn new(runner: Runner) -> Self {
        Self { runner, stops: AtomicBool::new(false) }
    }

    fn ticked(&self) -> &Arc<Notify> {
        &self.runner.context().wakes.ticked
    }
}

#[async_trait]
impl Pass for RolloutPass {
    const NAME: &'static str = Runner::TASK;
    const POLL: Duration = Duration::from_millis(250);
    const AFTER_FAULT: Duration = WITHHELD;

    fn stores(&self) -> &Stores {
        &self.runner.context().stores
    }

    async fn pass(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        loop {
            let Passed { advanced, waiting, withheld } = self.runner.pass().await?;
            let over = self.stops.load(Ordering::Relaxed) || began.elapsed() > PASS_LEASE / 3;
            match (advanced > 0, waiting) {
                (true, _) if over => return Ok(Duration::ZERO),
                (false, true) if over => return Ok(WAITING),
                (true, _) => {}
                (false, true) => {
                    sleep(SHORTEST).await;
                    drop(timeout(WAITING, self.ticked().notified()).await);
                }
                (false, false) => return Ok(if withheld { WITHHELD } else { INTERVAL }),
            }
        }
    }

    fn wind_down(&self) {
        self.stops.store(true, Ordering::Relaxed);
        self.ticked().notify_one();
    }
}
