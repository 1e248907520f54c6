//! The server on a loopback port, and a client that asks it over one kept-alive connection, as
//! the command line does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_app::access::authenticate;
use slipway_app::deletion::leaks::Finder;
use slipway_core::access::audit::Actor;
use slipway_core::access::rate::Rate;
use slipway_core::secret::Secret;
use slipway_server::{
    EventStreams, Listening, LoopsView, Metrics, NodeSettings, RateLimits, ServerState,
    StreamLimits, router, serve,
};
use slipway_wire::operations::{LoopStatus, Probe};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::plane::Plane;

/// The key of an admin.
pub(crate) const KEY: &str = "slipway_12345678_abcdefghijkmnopqrstuvwxyz";

/// More than a bench asks: the limit of a key is not what is measured.
const UNLIMITED: Rate = Rate { per_second: 1_000_000, burst: 1_000_000 };

/// Ends with its last clone.
#[derive(Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
    address: String,
    _stop: watch::Sender<bool>,
}

impl Http {
    pub(crate) async fn serve(plane: &Plane) -> anyhow::Result<Self> {
        let context = plane.context.clone();
        let actor = Actor::new("bench");
        authenticate::install_admin_key(&context, "bench", &Secret::new(KEY), &actor).await?;
        let (stop, mut stopping) = watch::channel(false);
        let finder =
            Finder::new(context.clone(), plane.engines(), Arc::default(), Duration::from_secs(30));
        let state = ServerState {
            finder,
            node_settings: NodeSettings {
                signing_public_key: String::new(),
                signing_key_id: String::new(),
                public_url: String::new(),
                authorities: None,
            },
            loops: Arc::new(NoLoops),
            metrics: Arc::new(Metrics::with_loops().0),
            streams: EventStreams::new(context.clone(), StreamLimits::default(), stopping.clone()),
            key_rates: Arc::new(RateLimits::of_keys(UNLIMITED)),
            node_rates: Arc::new(RateLimits::of_nodes(UNLIMITED)),
            context,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}/api/v1", listener.local_addr()?);
        let stopped = async move {
            // It ends when the sender is dropped.
            while stopping.changed().await.is_ok() {}
        };
        tokio::spawn(serve(listener, router(state), Listening::default(), stopped));
        // An error means that a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(1).build()?;
        Ok(Self { client, address, _stop: stop })
    }

    /// Asks as somebody with this key for what may have changed since this tag: the status.
    pub(crate) async fn get(&self, path: &str, key: &str, tag: &str) -> anyhow::Result<u16> {
        let request = self.client.get(format!("{}{path}", self.address)).bearer_auth(key);
        let answer = request.header("If-None-Match", format!("\"{tag}\"")).send().await?;
        let status = answer.status().as_u16();
        answer.bytes().await?;
        Ok(status)
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        let request = self.client.post(format!("{}{path}", self.address)).bearer_auth(KEY);
        let answer = request.json(body).send().await?;
        let status = answer.status();
        let bytes = answer.bytes().await?;
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&bytes));
        Ok(serde_json::from_slice(&bytes)?)
    }
}

#[derive(Debug)]
struct NoLoops;

#[async_trait]
impl LoopsView for NoLoops {
    fn statuses(&self) -> Vec<LoopStatus> {
        Vec::new()
    }

    async fn probes(&self, _within: Duration) -> Vec<Probe> {
        Vec::new()
    }
}
