//! The signals that stop a control plane.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::adapters::end_of_stdin;
use crate::error::Error;

/// SIGTERM, SIGINT and SIGHUP, and the end of standard input if that is
/// configured. Received from the moment this is created.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// Only for the first request: Ctrl-C also ends the process that started this
    /// one, and the end of standard input that follows is no second request.
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

    /// Returns at the next request to stop. After the first, work under way is
    /// finished; after the second, it is not.
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
