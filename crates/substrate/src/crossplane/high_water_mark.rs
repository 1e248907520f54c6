//! The high-water mark: the highest counter of this installation, in a ConfigMap
//! on the cluster. If the mark is ahead of the database's counter, the database
//! was restored to an earlier state.
//!
//! *Guarantees:*
//! * The mark only grows, whoever writes: a write names the version that it
//!   read, and a create fails where the mark exists.
//! * This engine acts only after a heartbeat of this process compared the mark
//!   with the database. So a restored database is recognised before anything
//!   happens on the cluster, also if the cluster was unreachable at the start.
//! * An idle installation writes nothing: the heartbeat asks for a higher mark
//!   only after an action (`slipway_app::operations::control::heartbeat`), and a mark
//!   that is known to be high enough needs no request.
//!
//! *Caveat:* the mark is read once per sweep and not with every heartbeat. An
//! idle installation reads only by lists, so the mark is read by a list, too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use slipway_app::ports::substrate::Error as SubstrateError;
use slipway_cluster::{
    Connection, DynamicObject, Error, Listing, ObjectRef, Reason, Version, api_resource,
};
use tokio::sync::{Mutex, MutexGuard};

use super::FIELD_MANAGER;

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
    /// A heartbeat of this process compared the mark with the database.
    compared: AtomicBool,
}

/// The last answers of the cluster.
#[derive(Debug, Default)]
struct State {
    /// The client that received the answers. Other credentials may lead to
    /// another cluster, about whose mark these answers say nothing.
    generation: u64,
    read: Option<(Instant, Result<Option<i64>, String>)>,
    /// This process has read the mark.
    was_read: bool,
    /// The cluster has at least this mark.
    reached: Option<i64>,
    /// The last refusal of a write, which is reused for a while.
    refused: Option<(Instant, String)>,
}

impl HighWaterMark {
    pub(super) fn new(namespace: &str, installation: &str, every: Duration) -> Self {
        let object = ObjectRef {
            resource: api_resource("v1", "ConfigMap", "configmaps"),
            namespace: Some(namespace.to_owned()),
            name: format!("slipway-high-water-mark-{installation}"),
        };
        Self { object, every, state: Mutex::default(), compared: AtomicBool::new(false) }
    }

    pub(super) fn namespace(&mut self, namespace: &str) {
        self.object.namespace = Some(namespace.to_owned());
    }

    /// Refuses an action until the mark of the cluster was compared.
    pub(super) fn require_compared(&self) -> Result<(), SubstrateError> {
        if self.compared.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(SubstrateError::Failed(format!(
            "nothing is done on this cluster before its high-water mark {} was compared with the database, since that may have been restored to an earlier state; the loop `heartbeat` in `GET /api/v1/loops` and the log say why the mark cannot be read",
            self.object
        )))
    }

    /// The state, without the answers to an earlier client.
    async fn state(&self, connection: &Connection) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().await;
        let generation = connection.generation();
        if state.generation != generation {
            *state = State { generation, was_read: state.was_read, ..State::default() };
        }
        state
    }

    /// The mark on this cluster, by an answer that is at most one sweep old.
    pub(super) async fn read(&self, connection: &Connection) -> Result<Option<i64>, String> {
        let mut state = self.state(connection).await;
        if let Some((at, answer)) = &state.read
            && at.elapsed() < self.every
        {
            return answer.clone();
        }
        let (keep, answer) = self.within("read", self.fetch(connection)).await;
        let answer = answer.map(|found| found.as_ref().and_then(counter_in));
        if let Ok(found) = &answer {
            state.was_read = true;
            // May be lower than before, or none: somebody deleted the mark.
            state.reached = *found;
        }
        state.read = keep.then(|| (Instant::now(), answer.clone()));
        answer
    }

    /// Raises the mark to this counter, or keeps a higher one. The heartbeat
    /// calls this after it compared the mark that it had read.
    pub(super) async fn raise(&self, connection: &Connection, counter: i64) -> Result<(), String> {
        let mut state = self.state(connection).await;
        if state.was_read {
            self.compared.store(true, Ordering::Release);
        }
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
                // The next heartbeat compares this value.
                state.was_read = true;
                state.read = Some((Instant::now(), Ok(Some(reached))));
                Ok(())
            }
            Err(problem) => {
                state.refused = keep.then(|| (Instant::now(), problem.clone()));
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
    ) -> (bool, Result<T, String>) {
        match tokio::time::timeout(TIMEOUT, request).await {
            Ok(Ok(answer)) => (true, Ok(answer)),
            Ok(Err(error)) => {
                let answered = !matches!(error.reason(), Reason::NoAnswer | Reason::Unauthorized);
                (answered, Err(format!("high-water mark: {error}")))
            }
            Err(_) => {
                let limit = TIMEOUT.as_millis();
                let object = &self.object;
                let problem = format!(
                    "could not {verb} the high-water mark {object}: the API server did not answer within {limit} ms"
                );
                (false, Err(problem))
            }
        }
    }

    /// Raises the mark and returns the value that the cluster has now.
    async fn grow(&self, connection: &Connection, counter: i64) -> Result<i64, Error> {
        for _ in 0..RETRIES {
            let found = connection.get(&self.object).await?;
            if let Some(known) = found.as_ref().and_then(counter_in)
                && known >= counter
            {
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

    /// `None` if there is no mark, also because its namespace is missing.
    async fn fetch(&self, connection: &Connection) -> Result<Option<DynamicObject>, Error> {
        let listing = Listing {
            namespace: self.object.namespace.as_deref(),
            name: Some(&self.object.name),
            ..Listing::all(&self.object.resource)
        };
        Ok(connection.list(listing).await?.pop())
    }
}

/// The counter in the ConfigMap. A value that is no number counts as none and is
/// overwritten: it says nothing now and never would.
fn counter_in(found: &DynamicObject) -> Option<i64> {
    found.data["data"][COUNTER].as_str()?.parse().ok()
}
