//! Serves a listener until shutdown. Every connection is bounded, whatever its
//! client does: its first request and every header have a time limit, so has the
//! body ([`crate::request`]), and writes time out ([`write_timeout`]). The
//! listener accepts at once, always, so that no connection waits behind idle
//! ones; [`slots`] says which one yields when there are too many.

mod peer;
mod service;
mod slots;
mod tls;
mod validity;
mod write_timeout;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use peer::Peer;
pub use peer::Proxy;
use service::ConnectionService;
pub(crate) use service::{count_for_key, refuse_overload};
use slots::{Slot, SlotLimits, Slots};
pub use tls::{Tls, TlsError, TlsFiles};
use write_timeout::WriteTimeout;

/// Limits of one connection and of all together.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// From the connection to the end of the first header, with TLS to that of
    /// the handshake and of the header.
    first: Duration,
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
    /// For a client that was answered before its request was read to notice and
    /// to stop sending.
    linger: Duration,
    slots: SlotLimits,
    /// Connections that are kept alive for a next request. Further ones close
    /// after one request, so that many nodes, each with a connection of its
    /// own, cannot lock out everybody else.
    lasting: usize,
}

/// A process has 1024 file descriptors by default; a quarter is left for
/// probes, the database (16 connections), logs and local nodes. One peer gets
/// at most half of the connections.
const LIMITS: Limits = Limits {
    first: Duration::from_secs(5),
    header: Duration::from_secs(10),
    drain: Duration::from_secs(10),
    stall: Duration::from_secs(30),
    linger: Duration::from_secs(2),
    slots: SlotLimits {
        connections: 768,
        connections_of_peer: 384,
        requests_of_peer: 384,
        requests_of_key: 128,
        requests: 704,
    },
    lasting: 512,
};

/// Behind a proxy its connections are those of everybody. It opens some ahead of
/// their use and keeps them for a minute or so: one that we close first may break
/// a request that it sends at that moment.
const BEHIND_PROXY: Limits = Limits {
    first: Duration::from_secs(75),
    header: Duration::from_secs(75),
    slots: SlotLimits { connections_of_peer: LIMITS.slots.connections, ..LIMITS.slots },
    ..LIMITS
};

/// Probes are asked by a few machines, one request each.
const PROBES: Limits = Limits {
    slots: SlotLimits {
        connections: 32,
        connections_of_peer: 16,
        requests_of_peer: 16,
        requests_of_key: 16,
        requests: 32,
    },
    lasting: 16,
    ..LIMITS
};

/// What a listener serves with.
#[derive(Debug, Clone, Default)]
pub struct Listening {
    /// Plain HTTP without.
    pub tls: Option<Arc<Tls>>,
    /// Whether a proxy is in front, and how it names its clients.
    pub proxy: Option<Proxy>,
}

/// Serves until `shutdown` resolves; then accepts nothing new and lets requests
/// in flight finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    listening: Listening,
    shutdown: impl Future<Output = ()> + Send,
) {
    let limits = if listening.proxy.is_some() { BEHIND_PROXY } else { LIMITS };
    serve_within(limits, listener, router, listening, shutdown).await;
}

/// Serves probes and metrics on a listener of their own, in plain HTTP.
pub async fn serve_probes(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) {
    serve_within(PROBES, listener, router, Listening::default(), shutdown).await;
}

async fn serve_within(
    limits: Limits,
    mut listener: TcpListener,
    router: Router,
    listening: Listening,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (stop, stopping) = watch::channel(false);
    let slots = Slots::new(limits.slots);
    let mut connections = JoinSet::new();
    let mut pressure = Pressure::default();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            // axum's `accept` survives errors: out of file descriptors, it
            // retries after a second.
            (socket, address) = Listener::accept(&mut listener) => {
                let peer = Peer::from(address.ip());
                let lasting = slots.taken() < limits.lasting;
                let slot = slots.take(peer);
                pressure.report(slots.closed());
                let Some(slot) = slot else { continue };
                // Answers are small and written at once; waiting to fill a
                // packet only adds latency. A failure here is harmless.
                if let Err(error) = socket.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                let connection = Connection {
                    limits,
                    http: protocol(limits, lasting),
                    router: router.clone(),
                    peer,
                    proxy: listening.proxy,
                    slot: Arc::new(slot),
                    stopping: stopping.clone(),
                };
                let tls = listening.tls.clone();
                connections.spawn(connection.serve_socket(socket, tls));
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

/// Says that connections are closed because there are too many, once a minute.
#[derive(Debug, Default)]
struct Pressure {
    reported: u64,
    at: Option<Instant>,
}

impl Pressure {
    const PAUSE: Duration = Duration::from_secs(60);

    fn report(&mut self, closed: u64) {
        let due = self.at.is_none_or(|at| at.elapsed() >= Self::PAUSE);
        if closed > self.reported && due {
            let since = closed - self.reported;
            tracing::warn!(
                closed = since,
                "too many connections: those without a request are closed for new ones"
            );
            (self.reported, self.at) = (closed, Some(Instant::now()));
        }
    }
}

fn protocol(limits: Limits, lasting: bool) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).keep_alive(lasting);
    http
}

/// One connection, to its end.
struct Connection {
    limits: Limits,
    http: http1::Builder,
    router: Router,
    peer: Peer,
    proxy: Option<Proxy>,
    slot: Arc<Slot>,
    stopping: watch::Receiver<bool>,
}

impl Connection {
    async fn serve_socket(self, socket: TcpStream, tls: Option<Arc<Tls>>) {
        let first = Instant::now() + self.limits.first;
        let socket = WriteTimeout::new(socket, self.limits.stall);
        let Some(tls) = tls else { return self.serve(socket, first).await };
        let shaken = tokio::select! {
            () = self.slot.displaced() => return,
            shaken = timeout_at(first, tls.acceptor().accept(socket)) => shaken,
        };
        match shaken {
            Ok(Ok(stream)) => self.serve(stream, first).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake was not finished in time"),
        }
    }

    async fn serve<S>(mut self, stream: S, first: Instant)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let unread = Arc::new(AtomicBool::new(false));
        let service = ConnectionService {
            router: TowerToHyperService::new(self.router),
            slot: Arc::clone(&self.slot),
            peer: self.peer,
            proxy: self.proxy,
            unread: Arc::clone(&unread),
        };
        let mut connection = self.http.serve_connection(TokioIo::new(stream), service);
        let mut first = pin!(sleep_until(first));
        let (mut is_first, mut stops) = (true, false);
        let ended = loop {
            tokio::select! {
                () = self.slot.displaced() => return,
                () = &mut first, if is_first => {
                    if self.slot.is_new() {
                        return;
                    }
                    is_first = false;
                }
                // An error means that the sender is gone, which is a shutdown too.
                _ = self.stopping.changed(), if !stops => stops = true,
                ended = poll_fn(|context| connection.poll_without_shutdown(context)) => break ended,
            }
            if stops {
                Pin::new(&mut connection).graceful_shutdown();
            }
        };
        match ended {
            Ok(()) => {
                let mut stream = connection.into_parts().io.into_inner();
                let linger = unread.load(Ordering::Relaxed).then_some(self.limits.linger);
                let closing = close(&mut stream, linger);
                tokio::select! {
                    () = self.slot.displaced() => {}
                    () = closing => {}
                }
            }
            // A client that disconnects or stays silent is no fault of the server.
            Err(error) => tracing::debug!(%error, "a connection ended early"),
        }
    }
}

/// Closes a connection. One with bytes that nobody read would be reset, and the
/// answer be lost with it; so they are read for a while, until the client closes.
async fn close(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), linger: Option<Duration>) {
    if let Err(error) = stream.shutdown().await {
        tracing::debug!(%error, "a connection could not be closed in order");
        return;
    }
    let Some(limit) = linger else { return };
    let mut bytes = [0; 4096];
    let reading = async { while matches!(stream.read(&mut bytes).await, Ok(1..)) {} };
    if timeout(limit, reading).await.is_err() {
        tracing::debug!("a client went on sending after its answer");
    }
}

#[cfg(test)]
mod tests;
