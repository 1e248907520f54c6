//! Serving a listener until told to stop. Every connection has an end, whoever
//! is at its other side: a header must arrive in time, a body too
//! ([`crate::request`]), an answer must be taken ([`write_timeout`]),
//! and there are only so many connections at once.

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

/// What a connection, and all of them together, may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// For the header of a request, from the moment at which one may come: a
    /// connection that stays idle for this long is closed as well.
    header: Duration,
    /// For requests that are under way at the stop. Handlers run one
    /// transaction and no external action, so this is generous; what takes
    /// longer is a client that does not read its answer.
    drain: Duration,
    /// For a client to take the next bytes of its answer. Whoever takes none
    /// for this long is cut off; a stream is resumed by position.
    stall: Duration,
    /// Connections at once. Further ones wait in the kernel's queue.
    connections: usize,
    /// Connections that stay open for a next request. Those beyond are closed
    /// after the first, so that many nodes, each of which keeps its own, cannot
    /// lock out everybody else.
    lasting: usize,
}

/// A process gets 1024 file descriptors where nobody set anything; a quarter
/// of them is left to the database (16 connections), logs and local nodes.
const LIMITS: Limits = Limits {
    header: Duration::from_secs(10),
    drain: Duration::from_secs(10),
    stall: Duration::from_secs(30),
    connections: 768,
    lasting: 512,
};

/// Answers requests until `shutdown` resolves, then lets those under way
/// finish and takes no new ones.
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
            // This `accept` is the one that outlives errors: a machine out of
            // file descriptors is tried again a second later.
            (connection, _) = Listener::accept(&mut listener),
                if connections.len() < limits.connections =>
            {
                // Answers are small and written at once; waiting to fill a packet
                // only adds latency. One that cannot be tuned is served all the same.
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
        // They are aborted as the set is dropped.
        let (left, limit) = (connections.len(), limits.drain);
        tracing::warn!(left, "closed connections that did not finish within {limit:?}");
    }
}

fn protocol(limits: Limits, lasting: bool) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).keep_alive(lasting);
    http
}

/// One connection, to its end.
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
        // An error means that nobody can tell any more, which is a stop too.
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // A client that goes away or says nothing is its own affair.
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
