//! Serves a listener until shutdown. Every connection is bounded, whatever its
//! client does: the header has a time limit, so has the body
//! ([`crate::request`]), writes time out ([`write_timeout`]), and the number of
//! connections is limited.

mod write_timeout;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use write_timeout::WriteTimeout;

/// Limits of one connection and of all together.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// For the header of a request, counted from when one may arrive: a
    /// connection that is idle for this long is closed as well.
    header: Duration,
    /// For requests in flight at shutdown. Handlers run one transaction and no
    /// outside action, so this is generous; only a client that does not read
    /// its answer takes longer.
    drain: Duration,
    /// For a client to take the next bytes of its answer. Without progress the
    /// connection is then closed; a stream is resumed by position.
    stall: Duration,
    /// Connections at once. Further ones wait in the kernel's queue.
    connections: usize,
    /// Connections that are kept alive for a next request. Further ones close
    /// after one request, so that many nodes, each with a connection of its
    /// own, cannot lock out everybody else.
    lasting: usize,
}

/// A process has 1024 file descriptors by default; a quarter is left for the
/// database (16 connections), logs and local nodes.
const LIMITS: Limits = Limits {
    header: Duration::from_secs(10),
    drain: Duration::from_secs(10),
    stall: Duration::from_secs(30),
    connections: 768,
    lasting: 512,
};

/// Serves until `shutdown` resolves; then accepts nothing new and lets requests
/// in flight finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) {
    serve_within(LIMITS, listener, router, shutdown).await;
}

async fn serve_within(
    limits: Limits,
    mut listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            // axum's `accept` survives errors: out of file descriptors, it
            // retries after a second.
            (connection, _) = Listener::accept(&mut listener),
                if connections.len() < limits.connections =>
            {
                // Answers are small and written at once; waiting to fill a
                // packet only adds latency. A failure here is harmless.
                if let Err(error) = connection.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                let lasting = connections.len() < limits.lasting;
                let http = protocol(limits, lasting);
                let connection = WriteTimeout::new(connection, limits.stall);
                connections.spawn(serve_connection(http, connection, router.clone(), stopping.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    stop.send_replace(true);
    let drained = timeout(limits.drain, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        // Dropping the set aborts them.
        let (left, limit) = (connections.len(), limits.drain);
        tracing::warn!(left, "closed connections that did not finish within {limit:?}");
    }
}

fn protocol(limits: Limits, lasting: bool) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).keep_alive(lasting);
    http
}

/// Serves one connection to its end.
async fn serve_connection(
    http: http1::Builder,
    connection: WriteTimeout<TcpStream>,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(http.serve_connection(TokioIo::new(connection), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // An error means that the sender is gone, which is a shutdown too.
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // A client that disconnects or stays silent is no fault of the server.
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
