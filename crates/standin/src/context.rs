//! What every part of a running stand-in shares.

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

/// Requests at once. Beyond this an API server on two cores only queues.
const REQUESTS: usize = 48;

/// A control plane that takes longer is asked again.
const DEADLINE: Duration = Duration::from_secs(10);

/// Shared by everything that runs.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) options: Arc<Options>,
    pub(crate) journal: Arc<Journal>,
    /// For agents within this process.
    pub(crate) http: reqwest::Client,
    /// Where the directories of agents that are processes are.
    pub(crate) agent_folder: PathBuf,
    requests: Arc<Semaphore>,
}

impl Context {
    pub(crate) fn new(
        client: Client,
        options: Options,
        agent_folder: PathBuf,
    ) -> anyhow::Result<Self> {
        // An error says that a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || reqwest::Client::builder().no_proxy().timeout(DEADLINE);
        // A machine without certificates can still speak plain HTTP.
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

    /// The right to make requests, for as long as it is held.
    pub(crate) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // `None` only for a semaphore that was closed, which nobody does.
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
