//! The proxy: its rules, what it holds, and its log.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::connection;
use super::fault::{Choice, Fault, Odds, Rule};
use super::http::Request;
use crate::kube::KubeEnvironment;
use crate::kube::parts::file;

/// The proxy. It ends when this is dropped, with every request that it holds.
pub struct FaultProxy {
    url: String,
    server_url: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// One request of a client, and what became of it.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// When the proxy had the whole request.
    pub received: Instant,
    pub fault: Option<Fault>,
    /// Each time that the request was sent to the server.
    pub forwarded: Vec<Forwarding>,
}

/// A request on its way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    pub at: Instant,
    /// What the server answered; `None` before that, and if it did not.
    pub status: Option<u16>,
}

impl Exchange {
    /// The answers of the server so far.
    pub fn statuses(&self) -> Vec<u16> {
        self.forwarded.iter().filter_map(|forwarded| forwarded.status).collect()
    }
}

impl FaultProxy {
    /// A proxy without faults, on a port of its own.
    ///
    /// # Panics
    /// When it cannot be started; the message says why.
    pub async fn before(kubernetes: &KubeEnvironment) -> Self {
        match Self::start(kubernetes).await {
            Ok(proxy) => proxy,
            Err(error) => panic!("no proxy before the API server: {error:#}"),
        }
    }

    async fn start(kubernetes: &KubeEnvironment) -> anyhow::Result<Self> {
        let server_url = kubernetes.url();
        let target = server_url.trim_start_matches("https://").parse().context(kubernetes.url())?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen")?;
        let url = format!("https://{}", listener.local_addr().context("read the address")?);
        let shared = Arc::new(Shared {
            acceptor: acceptor(kubernetes)?,
            connector: connector(kubernetes)?,
            target,
            state: Mutex::default(),
            tasks: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { url, server_url, shared, accepting })
    }

    /// Where clients connect, instead of [`KubeEnvironment::url`].
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same kubeconfig, through the proxy.
    pub fn redirect(&self, kubeconfig: &str) -> String {
        kubeconfig.replace(&self.server_url, &self.url)
    }

    /// Adds a rule. Of several that match a request the oldest applies.
    pub fn add(&self, rule: Rule) {
        self.shared.state().choice.add(rule);
    }

    /// Draws the fault of each request that no rule matches. The stream is a
    /// function of the seed and is used in the order in which requests arrive.
    pub fn randomize(&self, seed: u64, writes: Odds, reads: Odds) {
        self.shared.state().choice.randomize(seed, writes, reads);
    }

    /// No more faults: forgets all rules and odds. What the proxy holds stays
    /// until [`FaultProxy::release`].
    pub fn clear(&self) {
        self.shared.state().choice = Choice::default();
    }

    /// How many requests wait for [`FaultProxy::release`].
    pub fn waiting(&self) -> usize {
        self.shared.state().waiting.len()
    }

    /// Forwards the requests that wait now, in the order in which they came, each
    /// after the server answered the one before. Returns their number.
    pub async fn release(&self) -> usize {
        let waiting = std::mem::take(&mut self.shared.state().waiting);
        let count = waiting.len();
        for go in waiting {
            let (answered, until_answered) = oneshot::channel();
            if go.send(answered).is_ok() {
                // The other side drops its end; nothing is ever sent.
                let _ended = until_answered.await;
            }
        }
        count
    }

    /// Every request so far, in the order in which they came.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.state().exchanges.clone()
    }

    /// How many requests got which fault, by [`Fault::name`].
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        let state = self.shared.state();
        for fault in state.exchanges.iter().filter_map(|exchange| exchange.fault.as_ref()) {
            *counts.entry(fault.name()).or_default() += 1;
        }
        counts
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        lock(&self.shared.tasks).abort_all();
    }
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultProxy").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What the connections share.
pub(super) struct Shared {
    pub(super) acceptor: TlsAcceptor,
    pub(super) connector: TlsConnector,
    pub(super) target: SocketAddr,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    choice: Choice,
    /// The sender that is sent to a request is dropped when it was answered.
    waiting: Vec<oneshot::Sender<oneshot::Sender<()>>>,
    exchanges: Vec<Exchange>,
}

impl Shared {
    /// Logs a request, and chooses its fault. Its number is that of its exchange.
    pub(super) fn receive(&self, request: &Request) -> (usize, Option<Fault>) {
        let mut state = self.state();
        let fault = state.choice.of(&request.method, &request.path);
        state.exchanges.push(Exchange {
            method: request.method.clone(),
            path: request.path.clone(),
            received: Instant::now(),
            fault: fault.clone(),
            forwarded: Vec::new(),
        });
        (state.exchanges.len() - 1, fault)
    }

    /// Logs that a request goes to the server; returns which time this is.
    pub(super) fn forwarding(&self, number: usize) -> usize {
        let forwarded = &mut self.state().exchanges[number].forwarded;
        forwarded.push(Forwarding { at: Instant::now(), status: None });
        forwarded.len() - 1
    }

    pub(super) fn answered(&self, number: usize, time: usize, status: u16) {
        self.state().exchanges[number].forwarded[time].status = Some(status);
    }

    /// Waits for [`FaultProxy::release`]; drop the sender when the server answered.
    pub(super) async fn wait_for_release(&self) -> Option<oneshot::Sender<()>> {
        let (go, released) = oneshot::channel();
        self.state().waiting.push(go);
        released.await.ok()
    }

    /// Runs a task until the proxy is dropped.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Fails only when this process is out of file descriptors; the test notices.
    while let Ok((stream, _)) = listener.accept().await {
        shared.spawn(connection::serve(Arc::clone(&shared), stream));
    }
}

fn acceptor(kubernetes: &KubeEnvironment) -> anyhow::Result<TlsAcceptor> {
    let path = |name: &str| kubernetes.folder().join(name);
    let chain = vec![CertificateDer::from_pem_file(path(file::SERVER)).context(file::SERVER)?];
    let key = PrivateKeyDer::from_pem_file(path(file::SERVER_KEY)).context(file::SERVER_KEY)?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn connector(kubernetes: &KubeEnvironment) -> anyhow::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(kubernetes.authority().as_bytes())?)?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Ignores poisoning: the guarded values stay consistent when a test panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
