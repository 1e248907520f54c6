//! The loop over workspaces: declares what is missing, takes down what is too much, and wakes
//! servers whose dependencies are there. While servers come it keeps its claim and looks again as
//! soon as this replica has worked on resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::Stores;
use slipway_app::ports::store::Error;
use slipway_app::topology::run::{Passed, Runner};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::periodic::{PASS_LEASE, Pass, PassLoop};

/// The loop over workspaces.
pub type WorkspaceLoop = PassLoop<WorkspacePass>;

/// While servers come that other replicas work on.
const WAITING: Duration = Duration::from_millis(500);
/// Between two passes in which nothing happened, however much else is worked on.
const SHORTEST: Duration = Duration::from_millis(50);
/// While a mode withholds everything, or a gate refuses.
const REFUSED: Duration = Duration::from_secs(10);
/// While every workspace has what it should have. A change of one comes sooner; a server that
/// is lost is found after this time at the latest.
const INTERVAL: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Debug)]
pub struct WorkspacePass {
    runner: Runner,
    stops: AtomicBool,
}

impl WorkspacePass {
    pub const fn new(runner: Runner) -> Self {
        Self { runner, stops: AtomicBool::new(false) }
    }

    fn servers_moved(&self) -> &Arc<Notify> {
        &self.runner.context().wakes.servers
    }
}

#[async_trait]
impl Pass for WorkspacePass {
    const NAME: &'static str = Runner::TASK;
    const POLL: Duration = Duration::from_millis(250);
    const AFTER_FAULT: Duration = REFUSED;

    fn stores(&self) -> &Stores {
        &self.runner.context().stores
    }

    async fn pass(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        loop {
            let Passed { advanced, refused, withheld, waiting, woken: _ } =
                self.runner.pass().await?;
            let over = self.stops.load(Ordering::Relaxed) || began.elapsed() > PASS_LEASE / 3;
            match (advanced > 0, waiting) {
                (true, _) if over => return Ok(Duration::ZERO),
                (true, _) => {}
                (false, _) if withheld || refused > 0 => return Ok(REFUSED),
                (false, true) if over => return Ok(WAITING),
                (false, true) => {
                    sleep(SHORTEST).await;
                    drop(timeout(WAITING, self.servers_moved().notified()).await);
                }
                (false, false) => return Ok(INTERVAL),
            }
        }
    }

    fn wind_down(&self) {
        self.stops.store(true, Ordering::Relaxed);
        self.servers_moved().notify_one();
    }
}
