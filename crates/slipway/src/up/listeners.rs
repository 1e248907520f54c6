//! The listeners of a control plane: that of the API and of nodes, and one for
//! probes if that is configured.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use slipway_controller::Shutdown;
use slipway_server::{Listening, Proxy, ServerState, Tls};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::config::{Config, ProxyHeader};
use crate::error::Error;

pub(super) async fn bind(config: &Config) -> Result<TcpListener, Error> {
    bind_to(config.listen, "--listen").await
}

async fn bind_to(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| {
        let address = address.to_string();
        match source.kind() {
            ErrorKind::AddrInUse => Error::PortInUse { address, flag },
            _ => Error::Listen { address, source },
        }
    })
}

pub(super) async fn bind_probes(config: &Config) -> Result<Option<TcpListener>, Error> {
    match config.probe_listen {
        Some(address) => bind_to(address, "--probe-listen").await.map(Some),
        None => Ok(None),
    }
}

/// The authorities that nodes are told to trust.
pub(super) fn authorities(config: &Config) -> Result<Option<String>, Error> {
    let Some(path) = &config.node_ca_file else { return Ok(None) };
    let unusable =
        |problem: String| Error::NodeAuthorities { path: path.display().to_string(), problem };
    let text = std::fs::read_to_string(path)
        .map_err(|error| unusable(format!("cannot be read: {error}")))?;
    // It becomes part of every document for a node.
    if text.contains("PRIVATE KEY") || !text.contains("BEGIN CERTIFICATE") {
        return Err(unusable("is no PEM file of certificates alone".to_owned()));
    }
    Ok(Some(text))
}

pub(super) fn listening(config: &Config, tls: Option<Arc<Tls>>) -> Listening {
    let proxy = config.behind_proxy.map(|header| match header {
        ProxyHeader::XForwardedFor => Proxy::XForwardedFor,
        ProxyHeader::Forwarded => Proxy::Forwarded,
    });
    Listening { tls, proxy }
}

/// Serves on both until shutdown, and reads the certificate again meanwhile. Each
/// is a task of its own, so that no flood of connections keeps probes waiting.
pub(super) async fn serve(
    listener: TcpListener,
    probes: Option<TcpListener>,
    listening: Listening,
    state: ServerState,
    shutdown: Shutdown,
) {
    let stopping = || {
        let mut shutdown = shutdown.clone();
        async move { shutdown.requested().await }
    };
    let mut tasks = JoinSet::new();
    if let Some(tls) = listening.tls.clone() {
        let stopping = stopping();
        tasks.spawn(async move {
            tokio::select! {
                () = tls.renew() => {}
                () = stopping => {}
            }
        });
    }
    if let Some(probes) = probes {
        let router = slipway_server::probe_router(state.clone());
        tasks.spawn(slipway_server::serve_probes(probes, router, stopping()));
    }
    let router = slipway_server::router(state);
    tasks.spawn(slipway_server::serve(listener, router, listening, stopping()));
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a listener did not end cleanly");
        }
    }
}
