//! Runs a loop of this process with the driver of `slipway_durable`, and
//! records its activity in a [`Status`].

use std::sync::Arc;

use slipway_app::ports::store::Error;
use slipway_app::ports::{Clock, Entropy};
use slipway_durable::driver::Host;
pub use slipway_durable::driver::{Failure, Loop, Pacing, Shutdown};
use tokio::sync::Notify;

use crate::status::Status;

/// An error of the store as the failure of a loop.
#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
pub(crate) fn failure(error: Error) -> Failure {
    Failure { is_logged: error.is_logged(), message: error.to_string() }
}

/// Dependencies of the driver.
#[derive(Debug, Clone)]
pub struct Dependencies {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub wake: Arc<Notify>,
}

/// Runs the loop until shutdown, then waits for running work.
pub async fn drive<L: Loop>(
    work: Arc<L>,
    pacing: Pacing,
    Dependencies { clock, entropy, wake }: Dependencies,
    status: Arc<Status>,
    shutdown: Shutdown,
) {
    let host = Arc::new(Process { clock, entropy, status });
    slipway_durable::driver::drive(work, pacing, wake, host, shutdown).await;
}

#[derive(Debug)]
struct Process {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    status: Arc<Status>,
}

impl Host for Process {
    fn activated(&self, claimed: usize) {
        self.status.activated(self.clock.now(), claimed);
    }

    fn failed(&self, error: String) {
        self.status.failed(error);
    }

    fn jitter(&self) -> f64 {
        self.entropy.jitter()
    }
}
