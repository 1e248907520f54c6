//! Keeps a context for the person who starts a control plane on their own machine, so that
//! the next command works without any export.
//!
//! Only for that person: not in a pod, not as a service, not behind a proxy, and not where
//! other machines can reach the listener, since such a control plane is operated, and its key
//! belongs where its operators keep secrets. Being the child of the first process tells
//! nothing: that may be the shell of a container, or whoever took over a background job.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use rustix::process::{Pid, getpid};
use slipway_cli::{ClientOptions, LocalServer, Remembered, remember_local};
use slipway_core::secret::Secret;

use crate::config::Config;

/// A start waits no longer for whoever changes the contexts just now.
const LIMIT: Duration = Duration::from_secs(5);

/// Writes the context of this control plane at its first start, when `drawn` has its key, and
/// keeps the address up to date later. A context that cannot be written stops no start.
pub(super) async fn remember(
    config: &Config,
    client: &ClientOptions,
    address: SocketAddr,
    drawn: Option<&str>,
) -> Option<Remembered> {
    let is_local = address.ip().to_canonical().is_loopback() && config.behind_proxy.is_none();
    if config.no_context || !is_local || is_service() {
        return None;
    }
    // The name in a certificate is seldom an address.
    let named = config.public_url.clone().filter(|_| config.tls.is_some());
    let server = LocalServer {
        url: named.unwrap_or_else(|| config.url_at(address)),
        key: drawn.map(Secret::new),
        ca_file: config.node_ca_file.clone(),
        data_dir: config.data_dir.clone(),
    };
    let client = client.clone();
    let keeping = tokio::task::spawn_blocking(move || remember_local(&client, &server));
    let problem = match tokio::time::timeout(LIMIT, keeping).await {
        Ok(Ok(Ok(kept))) => return kept,
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "another command holds the lock of the contexts".to_owned(),
    };
    // Without a new key there may be none to keep up to date.
    if drawn.is_some() {
        tracing::warn!("no context is written, export the key instead: {problem}");
    }
    None
}

/// Whether nobody sits before it: it is the first process of a container, in a pod, or its
/// log goes to the journal.
fn is_service() -> bool {
    let is_first = getpid() == Pid::INIT;
    is_first || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() || logs_to_journal()
}

/// As systemd says how to find out: the variable names the device and the inode of the
/// stream, and is inherited by what is no service.
fn logs_to_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(found) = std::fs::metadata("/proc/self/fd/2") else { return false };
    stream == format!("{}:{}", found.dev(), found.ino())
}
