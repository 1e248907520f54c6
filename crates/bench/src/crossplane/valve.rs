//! A valve in front of the resource loop, so that rows can exist before the
//! clock starts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::broker::port::Claimed;
use slipway_controller::driver::{Failure, Loop};
use slipway_controller::resources::ResourceLoop;
use slipway_durable::Lease;

/// Claims nothing while it is closed.
#[derive(Debug)]
pub(super) struct Valve {
    pub(super) inner: ResourceLoop,
    closed: AtomicBool,
}

impl Valve {
    pub(super) const fn new(inner: ResourceLoop) -> Self {
        Self { inner, closed: AtomicBool::new(false) }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn open(&self) {
        self.closed.store(false, Ordering::Relaxed);
        self.inner.wake().notify_one();
    }
}

#[async_trait]
impl Loop for Valve {
    type Item = Claimed;

    fn lease(&self) -> Duration {
        self.inner.lease()
    }

    fn wind_down(&self) {
        self.inner.wind_down();
    }

    async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, Failure> {
        if self.closed.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        self.inner.claim(limit).await
    }

    async fn work(&self, items: Vec<Claimed>, lease: Lease) -> Vec<String> {
        self.inner.work(items, lease).await
    }
}
