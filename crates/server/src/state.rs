//! What the handlers are given. Built once, by the binary; cheap to clone.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::usecases::leaks::Finder;
use slipway_wire::api::{LoopStatus, Probe};

use crate::events::EventStreams;
use crate::metrics::Metrics;
use crate::rate::RateLimits;

/// The application and what is peculiar to its HTTP surface.
#[derive(Debug, Clone)]
pub struct ServerState {
    pub context: Context,
    pub node_settings: NodeSettings,
    pub loops: Arc<dyn LoopsView>,
    /// Looks for what no row claims.
    pub finder: Finder,
    pub metrics: Arc<Metrics>,
    pub streams: EventStreams,
    pub rates: Arc<RateLimits>,
}

/// What every node is told when it registers.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// The ed25519 key that signs what is sent to nodes: 32 bytes, base64.
    pub signing_public_key: String,
    /// Names that key, so that it can be replaced by another.
    pub signing_key_id: String,
}

/// The loops as the API shows them. The server must not know the controller,
/// so the binary brings the two together through this.
#[async_trait]
pub trait LoopsView: fmt::Debug + Send + Sync {
    fn statuses(&self) -> Vec<LoopStatus>;

    /// The probes of the loops; the database's is the server's own. Their
    /// texts are shown to callers without a key.
    async fn probes(&self) -> Vec<Probe>;
}
