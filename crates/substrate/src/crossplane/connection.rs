//! The client of a cluster, made anew when its credentials change, without a
//! restart: the file is looked at before each use, which costs one `stat`.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;

use super::access::{Access, Fingerprint};
use super::trouble;

/// The namespace whose uid is the identity of a cluster: it is there from the
/// beginning and cannot be deleted.
const IDENTITY_NAMESPACE: &str = "kube-system";

#[derive(Debug)]
pub(super) struct Connection {
    access: Access,
    current: Mutex<Option<Current>>,
    /// Counts the clients; watches begin anew with the next one.
    generation: watch::Sender<u64>,
}

#[derive(Clone)]
struct Current {
    client: Client,
    fingerprint: Option<Fingerprint>,
    digest: Option<u64>,
    generation: u64,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Current").field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(access: Access) -> Arc<Self> {
        Arc::new(Self { access, current: Mutex::new(None), generation: watch::Sender::new(0) })
    }

    pub(super) fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The client for what the credentials are now. Those that cannot be read
    /// in the middle of being replaced leave the client as it was.
    pub(super) async fn client(&self) -> Result<Client, String> {
        self.numbered_client().await.map(|(client, _)| client)
    }

    /// The same with the number of its generation.
    pub(super) async fn numbered_client(&self) -> Result<(Client, u64), String> {
        let fingerprint = self.access.fingerprint().await;
        let current = self.lock().clone();
        match current {
            Some(current) if current.fingerprint == fingerprint => {
                Ok((current.client, current.generation))
            }
            Some(current) => match self.renew(fingerprint).await {
                Ok(renewed) => Ok(renewed),
                Err(error) => {
                    tracing::warn!(error, "the new credentials of a cluster cannot be used yet");
                    Ok((current.client, current.generation))
                }
            },
            None => self.renew(fingerprint).await,
        }
    }

    /// Looks whether there are other credentials after the server refused these:
    /// a file may have been replaced within the grain of its times. The same
    /// ones make no new client, since that would begin every watch anew.
    pub(super) async fn doubt(&self) {
        let fingerprint = self.access.fingerprint().await;
        let digest = self.access.digest().await;
        let known = self.lock().as_ref().is_some_and(|current| current.digest == digest);
        if known {
            return;
        }
        if let Err(error) = self.renew(fingerprint).await {
            tracing::warn!(error, "the credentials of a cluster cannot be read again");
        }
    }

    async fn renew(&self, fingerprint: Option<Fingerprint>) -> Result<(Client, u64), String> {
        // Before the file is read for use: one that is replaced in between
        // differs from this, and is noticed.
        let digest = self.access.digest().await;
        let config = self.access.load().await?;
        let client = Client::try_from(config)
            .map_err(|error| format!("no client can be made for the cluster: {error}"))?;
        let mut current = self.lock();
        let generation = current.as_ref().map_or(1, |current| current.generation.wrapping_add(1));
        *current = Some(Current { client: client.clone(), fingerprint, digest, generation });
        self.generation.send_replace(generation);
        Ok((client, generation))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which cluster this is, asked now.
    pub(super) async fn identity(&self) -> Result<String, String> {
        let client = self.client().await?;
        let namespaces = Api::<Namespace>::all(client);
        match trouble::within(namespaces.get_metadata(IDENTITY_NAMESPACE)).await {
            Ok(namespace) => namespace
                .uid()
                .ok_or_else(|| format!("the namespace {IDENTITY_NAMESPACE} has no uid")),
            Err(error) => {
                if trouble::is_unauthorized(&error) {
                    self.doubt().await;
                }
                Err(trouble::describe("ask which cluster this is", &error))
            }
        }
    }
}
