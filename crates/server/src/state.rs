//! The state that handlers receive. The binary builds it once; cheap to clone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::deletion::leaks::Finder;
use slipway_core::ids::{ApiKeyId, NodeId};
use slipway_wire::operations::{LoopStatus, Probe};

use crate::events::EventStreams;
use crate::metrics::Metrics;
use crate::rate::RateLimits;

/// The application, and what only its HTTP surface needs.
#[derive(Debug, Clone)]
pub struct ServerState {
    pub context: Context,
    pub node_settings: NodeSettings,
    pub loops: Arc<dyn LoopsView>,
    /// Scans for leaks.
    pub finder: Finder,
    pub metrics: Arc<Metrics>,
    pub streams: EventStreams,
    pub key_rates: Arc<RateLimits<ApiKeyId>>,
    pub node_rates: Arc<RateLimits<NodeId>>,
}

/// Settings for nodes: what each receives when it registers, and how it gets here.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// The ed25519 key that signs messages to nodes: 32 bytes, base64.
    pub signing_public_key: String,
    /// Names the key, so that it can be rotated.
    pub signing_key_id: String,
    /// Where nodes reach this server.
    pub public_url: String,
    /// What they have to trust besides the authorities of their machine, in PEM.
    pub authorities: Option<String>,
}

/// The loops as the API shows them. The server must not know the controller, so
/// the binary connects the two through this trait.
#[async_trait]
pub trait LoopsView: fmt::Debug + Send + Sync {
    fn statuses(&self) -> Vec<LoopStatus>;

    /// The probes of the loops, within this time; the server adds that of the database.
    /// Callers without a key see their texts.
    async fn probes(&self, within: Duration) -> Vec<Probe>;
}
