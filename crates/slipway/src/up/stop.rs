//! What tells a control plane to stop.

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use super::Error;

/// Listens from now on; the future ends when it is time to stop: at SIGTERM,
/// SIGINT or SIGHUP, and at the end of standard input if that is asked for.
pub(super) fn signals(with_stdin: bool) -> Result<impl Future<Output = ()>, Error> {
    let listen = |kind| signal(kind).map_err(Error::io("wait for signals"));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hang_up = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
            () = end_of_stdin(), if with_stdin => {}
        }
    })
}

/// Whoever started this holds the other end for life.
async fn end_of_stdin() {
    let mut bytes = [0; 64];
    let mut stdin = tokio::io::stdin();
    while let Ok(1..) = stdin.read(&mut bytes).await {}
}
