//! The context that every part of a running stand-in shares.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::journal::Journal;
use crate::options::Options;

/// Concurrent requests. Beyond this an API server on two cores only queues.
const REQUESTS: usize = 48;

/// A request to the control plane is retried after this time.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) options: Arc<Options>,
    pub(crate) journal: Arc<Journal>,
    /// For in-process agents.
    pub(crate) http: reqwest::Client,
    /// Contains the directories of agents that are processes.
    pub(crate) agent_folder: PathBuf,
    requests: Arc<Semaphore>,
}

impl Context {
    pub(crate) fn new(
        client: Client,
        options: Options,
        agent_folder: PathBuf,
    ) -> anyhow::Result<Self> {
        // An error means that a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || reqwest::Client::builder().no_proxy().timeout(DEADLINE);
        // A machine without root certificates can still use plain HTTP.
        let http = builder()
            .build()
            .or_else(|_| builder().tls_certs_only([]).build())
            .context("cannot make a client of the node protocol")?;
        Ok(Self {
            client,
            journal: Arc::new(Journal::open(options.journal.as_deref())?),
            options: Arc::new(options),
            http,
            agent_folder,
            requests: Arc::new(Semaphore::new(REQUESTS)),
        })
    }

    /// The permit for requests; released on drop.
    pub(crate) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // `None` only for a closed semaphore, and this one is never closed.
        self.requests.acquire().await.ok()
    }

    pub(crate) fn api(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }
}
