//! Writes the changes of many jobs of this process together.
//!
//! *Expected flow:* a change that comes while nothing is being written is written at once.
//! Those that come meanwhile wait together and are the next set: one statement and one flush
//! of the disk for all of them.
//!
//! *Guarantees:* [`Writer::write`] answers when the change is durable or refused. A refused
//! change takes no other with it. While the database is away a change is tried again as long
//! as the caller waits; one whose commit lost its answer finds itself written.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slipway_durable::Backoff;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::change::Change;
use crate::job::Job;
use crate::store::JobStore;
use crate::{Error, random};

/// Changes in one statement.
const MOST: usize = 512;

const RETRY: Backoff = Backoff { base: Duration::from_millis(20), max: Duration::from_secs(2) };

pub(crate) struct Writer {
    store: Arc<dyn JobStore>,
    /// Sets that may be written at the same time.
    parallel: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    writing: usize,
    /// The jobs whose changes are being written. A further change of one waits until then, so that
    /// an older change never overtakes a newer one.
    in_flight: HashSet<String>,
}

impl Queue {
    fn is_ready(&self, waiting: &Waiting) -> bool {
        !self.in_flight.contains(&waiting.change.id)
    }
}

struct Waiting {
    change: Change,
    answer: oneshot::Sender<Result<Job, Error>>,
}

impl Writer {
    pub(crate) fn new(store: Arc<dyn JobStore>, parallel: usize) -> Self {
        Self { store, parallel: parallel.max(1), queue: Mutex::default() }
    }

    /// Writes the change; see the module. It never gives up by itself: the caller drops it
    /// when its lease is over.
    pub(crate) async fn write(self: &Arc<Self>, change: Change) -> Result<Job, Error> {
        let mut failures = 0;
        loop {
            match self.enqueue(change.clone()).await {
                // The task that wrote it is gone, perhaps after the commit.
                Err(_) => {}
                Ok(Err(error)) if error.is_temporary() => {
                    tracing::debug!(%error, job = change.id, "a change is written again");
                }
                Ok(answer) => return answer,
            }
            failures += 1;
            tokio::time::sleep(RETRY.delay(failures, random::jitter())).await;
        }
    }

    fn enqueue(self: &Arc<Self>, change: Change) -> oneshot::Receiver<Result<Job, Error>> {
        let (answer, answered) = oneshot::channel();
        let mut queue = self.queue();
        queue.waiting.push(Waiting { change, answer });
        if queue.writing < self.parallel {
            queue.writing += 1;
            tokio::spawn(Arc::clone(self).drain());
        }
        answered
    }

    /// Writes sets until nobody waits.
    async fn drain(self: Arc<Self>) {
        let _slot = Slot(&self);
        while let Some(set) = self.next_set() {
            let (changes, answers): (Vec<_>, Vec<_>) =
                set.into_iter().map(|Waiting { change, answer }| (change, answer)).unzip();
            let in_flight = InFlight { writer: &self, changes: &changes };
            let written = self.store.write(&changes).await;
            // Whoever has its answer may write the next change of its job.
            drop(in_flight);
            for (answer, written) in answers.into_iter().zip(written) {
                // Whoever is gone meanwhile lost its claim or its process.
                let _ = answer.send(written);
            }
        }
    }

    /// The changes that waited longest, one of each job that has none in flight: two of one job are
    /// written in their order. Whoever writes the first comes back for the second.
    fn next_set(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.queue();
        let mut ids = HashSet::new();
        let (mut set, mut later) = (Vec::new(), Vec::new());
        for waiting in std::mem::take(&mut queue.waiting) {
            let id = &waiting.change.id;
            let is_first =
                set.len() < MOST && !queue.in_flight.contains(id) && ids.insert(id.clone());
            if is_first { set.push(waiting) } else { later.push(waiting) }
        }
        queue.waiting = later;
        queue.in_flight.extend(set.iter().map(|waiting: &Waiting| waiting.change.id.clone()));
        (!set.is_empty()).then_some(set)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes that are being written, until this is dropped, also by a panic of the store.
struct InFlight<'a> {
    writer: &'a Writer,
    changes: &'a [Change],
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut queue = self.writer.queue();
        for change in self.changes {
            queue.in_flight.remove(&change.id);
        }
    }
}

/// One of the sets that may be written at the same time. It is given back when the task
/// ends, also by a panic of the store; a change that came at this moment gets a new task.
struct Slot<'a>(&'a Arc<Writer>);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        match Handle::try_current() {
            Ok(runtime) if queue.waiting.iter().any(|waiting| queue.is_ready(waiting)) => {
                runtime.spawn(Arc::clone(self.0).drain());
            }
            _ => queue.writing -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{MemoryStore, NewJob};

    fn mk_change(id: &str, metadata: &str) -> Change {
        let job = NewJob::new(id, "tenant").as_job(SystemTime::UNIX_EPOCH);
        let metadata = [("n".to_owned(), metadata.to_owned())].into();
        Change { metadata: Some(metadata), ..Change::of(&job) }
    }

    fn taken(set: Option<&Vec<Waiting>>) -> Vec<String> {
        let number = |waiting: &Waiting| {
            let metadata = waiting.change.metadata.as_ref().expect("some");
            format!("{} {}", waiting.change.id, metadata["n"])
        };
        set.into_iter().flatten().map(number).collect()
    }

    /// Several sets are written at the same time, but never two changes of one job.
    #[test]
    fn a_job_has_one_change_in_flight() {
        let writer = Writer::new(Arc::new(MemoryStore::new()), 4);
        for (id, n) in [("a", "1"), ("b", "1"), ("a", "2"), ("a", "3"), ("b", "2")] {
            let (answer, _) = oneshot::channel();
            writer.queue().waiting.push(Waiting { change: mk_change(id, n), answer });
        }
        let changes = |set: &Vec<Waiting>| -> Vec<Change> {
            set.iter().map(|waiting| waiting.change.clone()).collect()
        };
        let first = writer.next_set();
        assert_eq!(taken(first.as_ref()), ["a 1", "b 1"]);
        assert_eq!(taken(writer.next_set().as_ref()), [""; 0], "both are being written");
        let written = first.as_ref().map(changes).expect("a set");
        drop(InFlight { writer: &writer, changes: &written[..1] });
        let second = writer.next_set();
        assert_eq!(taken(second.as_ref()), ["a 2"], "b is still being written");
        drop(InFlight { writer: &writer, changes: &written });
        let written = second.as_ref().map(changes).expect("a set");
        drop(InFlight { writer: &writer, changes: &written });
        assert_eq!(taken(writer.next_set().as_ref()), ["a 3", "b 2"]);
        assert!(writer.queue().waiting.is_empty());
    }
}
