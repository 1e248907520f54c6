//! What tells a control plane to stop.

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Error;

/// SIGTERM, SIGINT and SIGHUP, and the end of standard input if that is asked
/// for. Heard from the moment at which this is made.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// Only for the first: Ctrl-C reaches whoever started this as well, whose
    /// end is then no second request.
    with_stdin: bool,
}

impl Signals {
    pub(super) fn listen(with_stdin: bool) -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::io("wait for signals"));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
            with_stdin,
        })
    }

    /// Returns at the next of them. The first means to finish what is under
    /// way, a second one not to.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
            () = end_of_stdin(), if self.with_stdin => {}
        }
        self.with_stdin = false;
    }
}

/// Whoever started this holds the other end for life.
async fn end_of_stdin() {
    let mut bytes = [0; 64];
    let mut stdin = tokio::io::stdin();
    while let Ok(1..) = stdin.read(&mut bytes).await {}
}
