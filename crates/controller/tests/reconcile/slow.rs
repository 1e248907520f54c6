//! A simulated substrate that is slow, never answers, or panics. It counts the
//! actions in progress.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::substrate::{Address, Error, Substrate};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::ClaimToken;
use slipway_render::RenderedComposite;

use crate::simulated::Simulated;

#[derive(Debug, Default)]
pub(crate) struct Slow {
    pub(crate) inner: Arc<Simulated>,
    /// How long an action takes.
    pub(crate) action: Duration,
    /// Observations never return.
    pub(crate) hangs: AtomicBool,
    /// Observations panic.
    pub(crate) blind: AtomicBool,
    /// Actions panic.
    pub(crate) panics: AtomicBool,
    pub(crate) under_way: AtomicUsize,
    /// The most actions in progress at once.
    pub(crate) most: AtomicUsize,
    /// The claim token of every apply, in order.
    pub(crate) claims: Mutex<Vec<ClaimToken>>,
}

/// Decrements the count on drop, also if the action is abandoned.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Slow {
    async fn take_time(&self) -> UnderWay<'_> {
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        let under_way = UnderWay(&self.under_way);
        self.most.fetch_max(now, Ordering::SeqCst);
        assert!(!self.panics.load(Ordering::SeqCst), "the engine is broken");
        tokio::time::sleep(self.action).await;
        under_way
    }
}

#[async_trait]
impl Substrate for Slow {
    fn engine(&self) -> Engine {
        Engine::Local
    }

    async fn identity(&self) -> Result<String, Error> {
        self.inner.identity().await
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        assert!(!self.blind.load(Ordering::SeqCst), "the engine cannot look");
        self.inner.observe(addresses).await
    }

    async fn apply(&self, rendered: &RenderedComposite) -> Result<CompositeReport, Error> {
        let _under_way = self.take_time().await;
        self.claims.lock().unwrap().push(rendered.claim_token());
        self.inner.apply(rendered).await
    }

    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error> {
        let _under_way = self.take_time().await;
        self.inner.delete(address, uid).await
    }
}
