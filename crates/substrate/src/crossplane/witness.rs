//! The witness: the highest beat of this installation, in a ConfigMap of its
//! cluster. A database that was restored to an earlier state is recognised by a
//! witness that knows a later beat.
//!
//! *Guarantees:* it only grows, whoever writes: a write names the version that
//! it read, and making it anew is refused where it exists.
//! *Caveat:* the cluster is asked once a sweep and not at every beat, because
//! an idle installation asks next to nothing of a cluster. What was restored to
//! a state of less than a sweep ago is not recognised here; a witness that is
//! behind proves nothing and does no harm.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::sync::Mutex;

use super::connection::Connection;
use super::{FIELD_MANAGER, trouble};

/// The namespace in which it is, unless another one is configured.
pub(super) const SYSTEM_NAMESPACE: &str = "slipway-system";

/// The key in the ConfigMap.
const BEAT: &str = "beat";

/// A cluster that does not answer must not hold up the beat, by which replicas
/// say that they live. Shorter than the beat's interval of two seconds and a
/// lease of three would together allow.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// How often a write is tried again after another replica wrote in between.
const RETRIES: usize = 4;

/// The witness of one installation on one cluster.
#[derive(Debug)]
pub(super) struct Witness {
    namespace: String,
    name: String,
    /// How long an answer is good.
    every: Duration,
    last: Mutex<Last>,
}

/// What the cluster said last, and when. Kept apart: one that may be read and
/// not written is both.
#[derive(Debug, Default)]
struct Last {
    read: Option<(Instant, Result<Option<i64>, String>)>,
    written: Option<(Instant, Result<(), String>)>,
}

/// Why it could not be read or written.
struct Trouble {
    problem: String,
    /// The server answered, and will say the same when it is asked again soon.
    answered: bool,
}

impl Witness {
    pub(super) fn new(namespace: &str, installation: &str, every: Duration) -> Self {
        let name = format!("slipway-witness-{installation}");
        Self { namespace: namespace.to_owned(), name, every, last: Mutex::default() }
    }

    pub(super) fn namespace(&mut self, namespace: &str) {
        namespace.clone_into(&mut self.namespace);
    }

    /// The highest beat that is known of this cluster.
    pub(super) async fn read(&self, connection: &Connection) -> Result<Option<i64>, String> {
        let mut last = self.last.lock().await;
        if let Some((at, said)) = &last.read
            && at.elapsed() < self.every
        {
            return said.clone();
        }
        let read = async { Ok(self.fetch(connection).await?.and_then(|found| beat_in(&found))) };
        let (keep, said) = self.within(read).await;
        last.read = keep.then(|| (Instant::now(), said.clone()));
        said
    }

    /// Writes this beat, or leaves a higher one.
    pub(super) async fn write(&self, connection: &Connection, beat: i64) -> Result<(), String> {
        let mut last = self.last.lock().await;
        if let Some((at, said)) = &last.written
            && at.elapsed() < self.every
        {
            return said.clone();
        }
        let (keep, said) = self.within(self.grow(connection, beat)).await;
        last.written = keep.then(|| (Instant::now(), said.clone()));
        said
    }

    /// The answer, and whether it is good for a while.
    async fn within<T>(
        &self,
        asked: impl Future<Output = Result<T, Trouble>>,
    ) -> (bool, Result<T, String>) {
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(answer)) => (true, Ok(answer)),
            Ok(Err(trouble)) => (trouble.answered, Err(trouble.problem)),
            Err(_) => {
                let limit = PATIENCE.as_millis();
                (false, Err(format!("the API server did not answer within {limit} ms")))
            }
        }
    }

    async fn grow(&self, connection: &Connection, beat: i64) -> Result<(), Trouble> {
        for _ in 0..RETRIES {
            let found = self.fetch(connection).await?;
            if found.as_ref().and_then(beat_in).is_some_and(|known| known >= beat) {
                return Ok(());
            }
            let api = self.api(connection).await?;
            let refused = match self.put(&api, found, beat).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !trouble::is_conflict(&refused) {
                return Err(self.trouble(connection, "write", &refused).await);
            }
        }
        let problem = format!("other replicas keep writing the witness {}", self.shown());
        Err(Trouble { problem, answered: false })
    }

    async fn put(
        &self,
        api: &Api<ConfigMap>,
        found: Option<ConfigMap>,
        beat: i64,
    ) -> Result<(), kube::Error> {
        let mut body: ConfigMap = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": { "app.kubernetes.io/managed-by": "slipway" },
            },
            "data": { BEAT: beat.to_string() },
        }))
        .map_err(kube::Error::SerdeError)?;
        let Some(found) = found else {
            // An apply would take over one that was made in between.
            let parameters = PostParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            return api.create(&parameters, &body).await.map(|_| ());
        };
        body.metadata.resource_version = found.resource_version();
        body.metadata.uid = found.uid();
        // Over the one that made it, which Kubernetes holds for another manager
        // than the one that applies, of whatever name.
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        api.patch(&self.name, &parameters, &Patch::Apply(&body)).await.map(|_| ())
    }

    /// `None` if there is none, also because its namespace is missing.
    async fn fetch(&self, connection: &Connection) -> Result<Option<ConfigMap>, Trouble> {
        let api = self.api(connection).await?;
        match api.get_opt(&self.name).await {
            Ok(found) => Ok(found),
            Err(error) => Err(self.trouble(connection, "read", &error).await),
        }
    }

    async fn api(&self, connection: &Connection) -> Result<Api<ConfigMap>, Trouble> {
        let client = connection.client().await;
        let client = client.map_err(|problem| Trouble { problem, answered: false })?;
        Ok(Api::namespaced(client, &self.namespace))
    }

    async fn trouble(&self, connection: &Connection, verb: &str, error: &kube::Error) -> Trouble {
        if trouble::is_unauthorized(error) {
            connection.doubt().await;
        }
        let what = format!("{verb} the witness {}", self.shown());
        let problem = if trouble::is_gone(error, "namespaces", &self.namespace) {
            let namespace = &self.namespace;
            format!(
                "could not {what}: there is no namespace {namespace}; create it, or name another in `system_namespace`"
            )
        } else {
            trouble::describe(&what, error)
        };
        let answered = !trouble::is_silence(error) && !trouble::is_unauthorized(error);
        Trouble { problem, answered }
    }

    fn shown(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The beat that it holds. One that cannot be read is overwritten: it tells
/// nothing, and would tell nothing for ever.
fn beat_in(found: &ConfigMap) -> Option<i64> {
    found.data.as_ref()?.get(BEAT)?.parse().ok()
}
