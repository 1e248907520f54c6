//! The beat: says every few seconds that this replica lives and which mode it
//! obeys, ends a freeze whose time has come, and compares the database with
//! the witness outside. There is no leader: every replica beats, and the
//! counter is the same one. What a beat is, is in
//! `slipway_app::usecases::control`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::gate::Gate;
use slipway_app::usecases::control;
use slipway_app::usecases::converge::Engines;
use slipway_durable::Lease;

use crate::driver::Loop;

/// The loop that beats.
#[derive(Debug)]
pub struct Beat {
    context: Context,
    engines: Engines,
    gate: Arc<Gate>,
    worker: String,
    lease: Duration,
}

impl Beat {
    pub const NAME: &'static str = "beat";
    pub const INTERVAL: Duration = control::BEAT_INTERVAL;

    pub const fn new(
        context: Context,
        engines: Engines,
        gate: Arc<Gate>,
        worker: String,
        lease: Duration,
    ) -> Self {
        Self { context, engines, gate, worker, lease }
    }
}

#[async_trait]
impl Loop for Beat {
    type Item = ();

    /// A beat leaves nothing to work on.
    async fn claim(&self, _limit: u32) -> Result<Vec<()>, String> {
        let Self { context, engines, gate, worker, lease } = self;
        let beaten = control::beat(context, engines, gate, worker, *lease).await;
        beaten.map(|_| Vec::new()).map_err(|error| error.to_string())
    }

    async fn work(&self, _items: Vec<()>, _lease: Lease) -> Vec<String> {
        Vec::new()
    }
}
