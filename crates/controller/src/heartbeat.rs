//! The heartbeat loop: every few seconds it records that this replica is alive
//! and which mode it obeys, ends a freeze that is over, and compares the
//! database with the high-water marks outside. There is no leader: every
//! replica sends heartbeats, and all share one counter.
//! `slipway_app::operations::control` implements the heartbeat.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::broker::converge::Engines;
use slipway_app::operations::control::{self, HeartbeatError};
use slipway_app::permits::Permits;
use slipway_app::ports::substrate::Error as SubstrateError;

use crate::driver::{Failure, Loop, failure};

/// The loop that sends heartbeats.
#[derive(Debug)]
pub struct ReplicaHeartbeat {
    context: Context,
    engines: Engines,
    permits: Arc<Permits>,
    worker: String,
    lease: Duration,
}

impl ReplicaHeartbeat {
    pub const NAME: &'static str = "heartbeat";
    pub const INTERVAL: Duration = control::HEARTBEAT_INTERVAL;

    pub const fn new(
        context: Context,
        engines: Engines,
        permits: Arc<Permits>,
        worker: String,
        lease: Duration,
    ) -> Self {
        Self { context, engines, permits, worker, lease }
    }
}

#[async_trait]
impl Loop for ReplicaHeartbeat {
    type Item = ();

    /// The heartbeat happens here and leaves nothing for `work`.
    async fn claim(&self, _limit: u32) -> Result<Vec<()>, Failure> {
        let Self { context, engines, permits, worker, lease } = self;
        let counted = control::heartbeat(context, engines, permits, worker, *lease).await;
        counted.map(|_| Vec::new()).map_err(|error| match error {
            HeartbeatError::Store(error) => failure(error),
            // The connection to the cluster logs its outage.
            HeartbeatError::HighWaterMark(ref cause) => Failure {
                is_logged: matches!(cause, SubstrateError::Unanswered(_)),
                message: error.to_string(),
            },
        })
    }
}
