//! Serving a listener until told to stop.

use std::future::{Future, IntoFuture};
use std::io;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How long requests that are under way may take after the stop. Handlers run
/// one transaction and no external action, so this is generous; what takes
/// longer is a client that does not read its answer.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// Answers requests until `shutdown` resolves, then lets those under way
/// finish and takes no new ones.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    // Answers are small and written at once; waiting to fill a packet only
    // adds latency. A connection that cannot be tuned is served all the same.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        // An error means that `stop` was dropped, which is the signal.
        let _ = stopped.await;
    });
    let mut server = std::pin::pin!(server.into_future());
    tokio::select! {
        ended = &mut server => return ended,
        () = shutdown => drop(stop),
    }
    match tokio::time::timeout(DRAIN_LIMIT, server).await {
        Ok(ended) => ended,
        Err(_) => {
            tracing::warn!("closed connections that did not finish within {DRAIN_LIMIT:?}");
            Ok(())
        }
    }
}
