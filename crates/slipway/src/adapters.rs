//! The adapters that are too small for a crate: the system's clock, its random
//! source, the log, and the standard input.

use std::time::{SystemTime, UNIX_EPOCH};

use slipway_app::ports::{Clock, Entropy};
use slipway_core::time::Timestamp;
use tokio::io::AsyncReadExt as _;
use tracing_subscriber::EnvFilter;
use uuid::Uuid;

use crate::config::LogFormat;

/// The machine's wall clock.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the clock adapter")]
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::ZERO.plus(elapsed)
    }
}

/// The operating system's random source.
#[derive(Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn uuid(&self) -> Uuid {
        #[expect(clippy::disallowed_methods, reason = "this is the entropy adapter")]
        Uuid::now_v7()
    }

    fn fill(&self, bytes: &mut [u8]) {
        // Without randomness there are no secrets, so the process cannot go
        // on; on Linux this can only fail before the pool is seeded.
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}

/// Without `RUST_LOG`. The Kubernetes client logs every request that fails as an error,
/// and the database driver warns about each connection that broke; `slipway_cluster` and
/// the gateway log once that a cluster or the database does not answer.
const DEFAULT_LOG: &str =
    "info,kube_client=off,kube_runtime=off,sqlx_core::pool=error,sqlx::pool=error";

/// Logs go to stderr, filtered by `RUST_LOG`.
pub(crate) fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_LOG));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
}

/// Returns when standard input ends. The process that started this one keeps the other end open
/// until it ends.
pub(crate) async fn end_of_stdin() {
    let mut bytes = [0; 64];
    let mut stdin = tokio::io::stdin();
    while let Ok(1..) = stdin.read(&mut bytes).await {}
}
