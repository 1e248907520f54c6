//! The high-water mark: the highest counter of this installation, in a ConfigMap
//! on the cluster. If the mark is ahead of the database's counter, the database
//! was restored to an earlier state.
//!
//! *Guarantees:*
//! * The mark only grows, whoever writes: a write names the version that it
//!   read, and a create fails where the mark exists. Content that is no number is
//!   an error and never overwritten.
//! * This engine acts on a cluster only after a heartbeat of this process compared
//!   the mark of that cluster with the database. So a restored database is
//!   recognised before anything happens there, also if the cluster was unreachable
//!   at the start, and if a kubeconfig leads to another cluster since.
//! * An idle installation writes nothing: the heartbeat asks for a higher mark
//!   only after an action (`slipway_app::operations::control::heartbeat`), and a mark
//!   that is known to be high enough needs no request.
//!
//! *Caveat:* an idle installation reads the mark once per sweep and not with every
//! heartbeat. It reads only by lists, so the mark is read by a list, too.

use std::sync::{Mutex as SyncMutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use slipway_app::ports::substrate::{Error as Problem, HighWaterMark as Answer};
use slipway_cluster::{
    Connection, DynamicObject, Error, Listing, ObjectRef, Reason, Version, api_resource,
};
use tokio::sync::{Mutex, MutexGuard};

use super::FIELD_MANAGER;
use super::management::VERIFIED_FOR;

/// The namespace of the mark, unless another one is configured.
pub(super) const SYSTEM_NAMESPACE: &str = "slipway-system";

/// The key in the ConfigMap.
const COUNTER: &str = "heartbeat";

/// A cluster that does not answer must not delay the heartbeat, by which
/// replicas show that they live. Shorter than a heartbeat interval of two
/// seconds and a lease of three seconds together allow.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// Attempts when another replica writes the mark between our read and our write.
const RETRIES: usize = 4;

/// The mark of one installation on one cluster.
#[derive(Debug)]
pub(super) struct HighWaterMark {
    object: ObjectRef,
    /// How long an answer is reused.
    every: Duration,
    state: Mutex<State>,
    /// The identity of the cluster whose mark a heartbeat of this process compared
    /// with the database.
    compared: SyncMutex<Option<String>>,
}

/// The last answers of the cluster.
#[derive(Debug, Default)]
struct State {
    /// The client that received the answers. Other credentials may lead to
    /// another cluster, about whose mark these answers say nothing.
    generation: u64,
    read: Option<(Instant, Result<Option<i64>, Problem>)>,
    /// The identity of the cluster on which the mark was read last.
    cluster: Option<String>,
    /// The cluster has at least this mark.
    reached: Option<i64>,
    /// The last refusal of a write, which is reused for a while.
    refused: Option<(Instant, Problem)>,
}

impl HighWaterMark {
    pub(super) fn new(namespace: &str, installation: &str, every: Duration) -> Self {
        let object = ObjectRef {
            resource: api_resource("v1", "ConfigMap", "configmaps"),
            namespace: Some(namespace.to_owned()),
            name: format!("slipway-high-water-mark-{installation}"),
        };
        Self { object, every, state: Mutex::default(), compared: SyncMutex::default() }
    }

    pub(super) fn namespace(&mut self, namespace: &str) {
        self.object.namespace = Some(namespace.to_owned());
    }

    /// Refuses a change until the mark of this cluster was compared.
    pub(super) fn require_compared(&self, cluster: &str) -> Result<(), Error> {
        if self.lock_compared().as_deref() == Some(cluster) {
            return Ok(());
        }
        Err(Error::refused(format!(
            "nothing is done on this cluster before its high-water mark {} was compared with the database, since that may have been restored to an earlier state; the loop `heartbeat` in `GET /api/v1/loops` and the log say why the mark cannot be read",
            self.object
        )))
    }

    /// A heartbeat compared the mark that was read last.
    pub(super) async fn compared(&self, connection: &Connection) {
        let cluster = self.state(connection).await.cluster.clone();
        *self.lock_compared() = cluster;
    }

    fn lock_compared(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, without the answers to an earlier client.
    async fn state(&self, connection: &Connection) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().await;
        let generation = connection.generation();
        if state.generation != generation {
            *state = State { generation, ..State::default() };
        }
        state
    }

    /// The mark on this cluster, by an answer that is at most one sweep old.
    pub(super) async fn read(
        &self,
        connection: &Connection,
        fresh: bool,
    ) -> Result<Answer, Problem> {
        let mut state = self.state(connection).await;
        if let Some((at, answer)) = &state.read
            && at.elapsed() < self.every
            && (!fresh || answer.is_err())
        {
            return answer.clone().map(|value| Answer { value, fresh: false });
        }
        let (keep, answer) = self.within("read", self.fetch(connection)).await;
        // The first request may have made a new client.
        state.generation = connection.generation();
        let answer = answer.and_then(|(cluster, found)| {
            state.cluster = Some(cluster);
            found.as_ref().map(counter_in).transpose().map_err(Problem::Failed)
        });
        if let Ok(found) = &answer {
            // May be lower than before, or none: somebody deleted the mark.
            state.reached = *found;
        }
        state.read = keep.then(|| (Instant::now(), answer.clone()));
        answer.map(|value| Answer { value, fresh: true })
    }

    /// Raises the mark to this counter, or keeps a higher one.
    pub(super) async fn raise(&self, connection: &Connection, counter: i64) -> Result<(), Problem> {
        let mut state = self.state(connection).await;
        if state.reached.is_some_and(|reached| reached >= counter) {
            return Ok(());
        }
        if let Some((at, problem)) = &state.refused
            && at.elapsed() < self.every
        {
            return Err(problem.clone());
        }
        let (keep, answer) = self.within("write", self.grow(connection, counter)).await;
        state.refused = None;
        match answer {
            Ok(reached) => {
                state.reached = Some(reached);
                state.read = Some((Instant::now(), Ok(Some(reached))));
                Ok(())
            }
            Err(problem) => {
                state.refused = keep.then(|| (Instant::now(), problem.clone()));
                // The next heartbeat reads again, and then tries to raise again.
                state.read = None;
                Err(problem)
            }
        }
    }

    /// The answer, and whether to reuse it for a while: a server that refused
    /// would refuse again, and one that did not answer is asked again.
    async fn within<T>(
        &self,
        verb: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> (bool, Result<T, Problem>) {
        match tokio::time::timeout(TIMEOUT, request).await {
            Ok(Ok(answer)) => (true, Ok(answer)),
            Ok(Err(error)) => {
                let answered = !error.is_no_answer() && *error.reason() != Reason::Unauthorized;
                let problem = format!("high-water mark: {error}");
                let outage = error.is_outage();
                (answered, Err(if outage { Problem::Unanswered } else { Problem::Failed }(problem)))
            }
            Err(_) => {
                let limit = TIMEOUT.as_millis();
                let object = &self.object;
                let problem = format!(
                    "could not {verb} the high-water mark {object}: the API server did not answer within {limit} ms"
                );
                (false, Err(Problem::Unanswered(problem)))
            }
        }
    }

    /// Raises the mark and returns the value that the cluster has now.
    async fn grow(&self, connection: &Connection, counter: i64) -> Result<i64, Error> {
        for _ in 0..RETRIES {
            let found = connection.get(&self.object).await?;
            let known = found.as_ref().map(counter_in).transpose().map_err(Error::refused)?;
            if let Some(known) = known.filter(|known| *known >= counter) {
                return Ok(known);
            }
            match self.put(connection, found, counter).await {
                Ok(()) => return Ok(counter),
                Err(error) if error.is_conflict() => {}
                Err(error) if *error.reason() == Reason::NotFound => {
                    let namespace = self.object.namespace.as_deref().unwrap_or_default();
                    return Err(error.with_hint(&format!(
                        ": there is no namespace {namespace}; create it, or name another in `system_namespace`"
                    )));
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::no_answer(format!("other replicas keep writing {}", self.object)))
    }

    async fn put(
        &self,
        connection: &Connection,
        found: Option<DynamicObject>,
        counter: i64,
    ) -> Result<(), Error> {
        let body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.object.name,
                "namespace": self.object.namespace,
                "labels": { "app.kubernetes.io/managed-by": "slipway" },
            },
            "data": { COUNTER: counter.to_string() },
        });
        let Some(found) = found else {
            return connection.create_applied(&self.object, &body, FIELD_MANAGER).await.map(|_| ());
        };
        let read = Version::of(&found.metadata)
            .ok_or_else(|| Error::refused(format!("{} has no uid", self.object)))?;
        connection.update(&self.object, &read, &body, FIELD_MANAGER).await.map(|_| ())
    }

    /// The mark, and the identity of the cluster that has it. `None` if there is no
    /// mark, also because its namespace is missing.
    async fn fetch(
        &self,
        connection: &Connection,
    ) -> Result<(String, Option<DynamicObject>), Error> {
        let cluster = connection.identity_within(VERIFIED_FOR).await?;
        let generation = connection.generation();
        let listing = Listing {
            namespace: self.object.namespace.as_deref(),
            name: Some(&self.object.name),
            ..Listing::all(&self.object.resource)
        };
        let found = connection.list(listing).await?.pop();
        if connection.generation() != generation {
            return Err(Error::no_answer("the credentials changed meanwhile; it is read again"));
        }
        Ok((cluster, found))
    }
}

/// The counter in the ConfigMap. Content that is no number is an error: to treat it
/// as a first start would hide a restore.
fn counter_in(found: &DynamicObject) -> Result<i64, String> {
    let counter = found.data["data"][COUNTER].as_str().and_then(|text| text.trim().parse().ok());
    counter.ok_or_else(|| {
        format!(
            "high-water mark: the ConfigMap {}/{} holds no number under `{COUNTER}`; delete it only if the database was never restored",
            found.metadata.namespace.as_deref().unwrap_or_default(),
            found.metadata.name.as_deref().unwrap_or_default(),
        )
    })
}
