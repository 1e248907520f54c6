//! The deletions loop: begins deletions whose grace is over, takes the deletions of
//! projects further (their resources first, then the project, done when its namespace is
//! gone), and purges what is past its retention. Its task is due when the next grace ends.
//! While a workspace is taken down it keeps its claim and looks again as soon as this replica
//! has worked on resources: a server that is gone may let others go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::deletion::run::{Passed, Runner};
use slipway_app::ports::Stores;
use slipway_app::ports::store::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::periodic::{PASS_LEASE, Pass, PassLoop};

/// The loop over deletions.
pub type DeletionLoop = PassLoop<DeletionPass>;

/// While members are being taken down.
const WAITING: Duration = Duration::from_secs(1);
/// The same for servers that other replicas work on, each of which may let others go.
const SERVERS: Duration = Duration::from_millis(250);
/// Between two passes over servers in which nothing happened, however much else is worked on.
const SHORTEST: Duration = Duration::from_millis(20);
/// While a mode withholds everything, or a refusal has to be resolved by a person.
const REFUSED: Duration = Duration::from_secs(10);
/// The longest time between two passes. Requests and the end of a grace come sooner.
const INTERVAL: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub struct DeletionPass {
    runner: Runner,
    stops: AtomicBool,
}

impl DeletionPass {
    pub const fn new(runner: Runner) -> Self {
        Self { runner, stops: AtomicBool::new(false) }
    }

    fn servers_moved(&self) -> &Arc<Notify> {
        &self.runner.context().wakes.teardowns
    }
}

#[async_trait]
impl Pass for DeletionPass {
    const NAME: &'static str = Runner::TASK;
    const POLL: Duration = Duration::from_millis(500);
    const AFTER_FAULT: Duration = REFUSED;

    fn stores(&self) -> &Stores {
        &self.runner.context().stores
    }

    async fn pass(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        loop {
            let Passed { advanced, refused, withheld, waiting, purged, servers } =
                self.runner.pass().await?;
            let over = self.stops.load(Ordering::Relaxed) || began.elapsed() > PASS_LEASE / 3;
            let stays = servers && waiting && !over && !withheld && refused == 0;
            if advanced > 0 || purged > 0 {
                if stays {
                    continue;
                }
                return Ok(Duration::ZERO);
            }
            if stays {
                sleep(SHORTEST).await;
                drop(timeout(SERVERS, self.servers_moved().notified()).await);
                continue;
            }
            let next = self.stores().deletion.deletion_next_due().await?;
            let next = next.filter(|_| refused == 0 && !withheld).unwrap_or(INTERVAL);
            let soonest = match (waiting, withheld || refused > 0) {
                (true, _) if servers => SERVERS,
                (true, _) => WAITING,
                (false, true) => REFUSED,
                (false, false) => INTERVAL,
            };
            return Ok(next.min(soonest));
        }
    }

    fn wind_down(&self) {
        self.stops.store(true, Ordering::Relaxed);
        self.servers_moved().notify_one();
    }
}
