//! The client of a cluster, replaced without a restart when its credentials
//! change: every use checks the file first, which costs one `stat`. The
//! connection also knows the identity of the cluster that answers.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;

use crate::access::{Access, Fingerprint};
use crate::error::{self, Error, Reason};
use crate::reachability::Reachability;

/// The namespace whose uid is the identity of a cluster: it exists from the
/// beginning and cannot be deleted.
const IDENTITY_NAMESPACE: &str = "kube-system";

/// A connection to one cluster.
#[derive(Debug)]
pub struct Connection {
    access: RwLock<Access>,
    current: Mutex<Option<Current>>,
    /// Counts the clients; watches begin again with the next one.
    generation: watch::Sender<u64>,
    identity: Mutex<Option<Identity>>,
    reachability: Reachability,
    /// The last problem with new credentials that was logged.
    unusable: Mutex<Option<String>>,
}

#[derive(Clone)]
struct Current {
    client: Client,
    fingerprint: Option<Fingerprint>,
    digest: Option<u64>,
    generation: u64,
}

/// The last known identity of the cluster.
#[derive(Debug, Clone)]
struct Identity {
    uid: String,
    /// The client that asked. An identity says nothing about another client,
    /// which may have been made for another cluster.
    generation: u64,
    asked_at: Instant,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Current").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// Refuses a cluster that is not the registered one.
pub fn require_identity(found: &str, registered: Option<&str>) -> Result<(), Error> {
    match registered {
        Some(registered) if registered != found => Err(Error::refused(format!(
            "this is another cluster: it has the identity {found}, and {registered} was registered"
        ))),
        _ => Ok(()),
    }
}

impl Connection {
    /// A connection to the cluster that the log calls by this name. Sends nothing:
    /// an unreachable cluster must not keep a process from starting.
    pub fn new(access: Access, cluster: &str) -> Arc<Self> {
        Arc::new(Self {
            access: RwLock::new(access),
            current: Mutex::new(None),
            generation: watch::Sender::new(0),
            identity: Mutex::new(None),
            reachability: Reachability::new(cluster.to_owned()),
            unusable: Mutex::new(None),
        })
    }

    /// The name of the cluster in the log.
    pub(crate) fn cluster(&self) -> &str {
        self.reachability.cluster()
    }

    /// Reaches the cluster by another way from the next request on.
    pub fn reach_by(&self, access: Access) {
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = access;
    }

    fn access(&self) -> Access {
        self.access.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of the present client.
    pub fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Notifies when the client is replaced.
    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The client for the present credentials. While the file is being replaced
    /// and cannot be read, the previous client stays.
    pub(crate) async fn client(&self) -> Result<Client, Error> {
        self.numbered_client().await.map(|(client, _)| client)
    }

    /// The same with the number of its generation.
    pub(crate) async fn numbered_client(&self) -> Result<(Client, u64), Error> {
        let fingerprint = self.access().fingerprint().await;
        let current = self.lock().clone();
        match current {
            Some(current) if current.fingerprint == fingerprint => {
                Ok((current.client, current.generation))
            }
            Some(current) => match self.renew(fingerprint).await {
                Ok(renewed) => Ok(renewed),
                Err(error) => {
                    self.log_unusable(&error);
                    Ok((current.client, current.generation))
                }
            },
            None => self.renew(fingerprint).await.map_err(|problem| {
                self.reachability.did_not_answer(&problem);
                Error::no_answer(problem)
            }),
        }
    }

    /// The answer to the attempt to do `what`, or its classified error.
    pub(crate) async fn answer<T>(
        &self,
        what: &str,
        answer: Result<T, kube::Error>,
    ) -> Result<T, Error> {
        match answer {
            Ok(answer) => {
                self.reachability.answered();
                Ok(answer)
            }
            Err(error) => Err(self.classify(what, &error).await),
        }
    }

    /// Classifies an error. If the credentials were refused, reads them again.
    pub(crate) async fn classify(&self, what: &str, error: &kube::Error) -> Error {
        let error = Error::classify(what, error);
        if error.is_outage() {
            self.reachability.did_not_answer(&error.to_string());
        } else {
            self.reachability.answered();
        }
        if *error.reason() == Reason::Unauthorized {
            self.recheck_credentials().await;
        }
        error
    }

    /// Replaces the client if the content of the file differs: a file may have
    /// been replaced within the resolution of its times. Equal content makes no
    /// new client, because that would begin every watch again.
    async fn recheck_credentials(&self) {
        let fingerprint = self.access().fingerprint().await;
        let digest = self.access().digest().await;
        let known = self.lock().as_ref().is_some_and(|current| current.digest == digest);
        if known {
            return;
        }
        if let Err(error) = self.renew(fingerprint).await {
            self.log_unusable(&error);
        }
    }

    /// Every use of the connection tries the new credentials; the log has each
    /// problem once.
    fn log_unusable(&self, error: &str) {
        let mut logged = self.unusable.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.as_deref() != Some(error) {
            let cluster = self.cluster();
            tracing::warn!(
                cluster,
                error,
                "the new credentials of a cluster cannot be used; the earlier ones stay in use"
            );
            *logged = Some(error.to_owned());
        }
    }

    async fn renew(&self, fingerprint: Option<Fingerprint>) -> Result<(Client, u64), String> {
        // Taken before the file is read for use: a file that is replaced in
        // between differs from this digest, and the next check notices it.
        let digest = self.access().digest().await;
        let config = self.access().load().await?;
        let client = Client::try_from(config)
            .map_err(|error| format!("no client can be made for the cluster: {error}"))?;
        let mut current = self.lock();
        let generation = current.as_ref().map_or(1, |current| current.generation.wrapping_add(1));
        *current = Some(Current { client: client.clone(), fingerprint, digest, generation });
        self.generation.send_replace(generation);
        *self.unusable.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok((client, generation))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the server now which cluster it is. Every conclusion that an object
    /// is absent needs this answer.
    pub async fn identity(&self) -> Result<String, Error> {
        let asked_at = Instant::now();
        let (client, generation) = self.numbered_client().await?;
        let namespaces = Api::<Namespace>::all(client);
        let answer = error::within(namespaces.get_metadata(IDENTITY_NAMESPACE)).await;
        let answer = self.answer("ask which cluster this is", answer).await.and_then(|found| {
            let problem =
                || Error::refused(format!("the namespace {IDENTITY_NAMESPACE} has no uid"));
            found.uid().ok_or_else(problem)
        });
        *self.known_identity() = match &answer {
            Ok(uid) => Some(Identity { uid: uid.clone(), generation, asked_at }),
            // After an error the server may be another one.
            Err(_) => None,
        };
        answer
    }

    /// The identity of the cluster, by an answer that is younger than `age`.
    ///
    /// *Guarantees:* the present client received the answer: a replaced
    /// kubeconfig leads to a new client, which asks before its first use.
    /// *Caveat:* if the address leads to another cluster under the same
    /// credentials, that is noticed when the answer has aged, when a watch begins
    /// again, or when somebody calls [`Self::identity`]. So this answer suffices
    /// for reads, and never to conclude that an object is absent.
    pub async fn identity_within(&self, age: Duration) -> Result<String, Error> {
        let (_, generation) = self.numbered_client().await?;
        let known = self.known_identity().clone();
        match known {
            Some(known) if known.generation == generation && known.asked_at.elapsed() < age => {
                Ok(known.uid)
            }
            _ => self.identity().await,
        }
    }

    /// Makes the next reader ask again, because something unexpected happened.
    pub fn forget_identity(&self) {
        *self.known_identity() = None;
    }

    fn known_identity(&self) -> std::sync::MutexGuard<'_, Option<Identity>> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
