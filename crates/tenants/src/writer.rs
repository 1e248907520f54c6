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
            let written = self.store.write(&changes).await;
            for (answer, written) in answers.into_iter().zip(written) {
                // Whoever is gone meanwhile lost its claim or its process.
                let _ = answer.send(written);
            }
        }
    }

    /// The changes that waited longest, one of each job: two of one job are written in
    /// their order.
    fn next_set(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.queue();
        let mut ids = HashSet::new();
        let (mut set, mut later) = (Vec::new(), Vec::new());
        for waiting in queue.waiting.drain(..) {
            let is_first = set.len() < MOST && ids.insert(waiting.change.id.clone());
            if is_first { set.push(waiting) } else { later.push(waiting) }
        }
        queue.waiting = later;
        (!set.is_empty()).then_some(set)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the sets that may be written at the same time. It is given back when the task
/// ends, also by a panic of the store; a change that came at this moment gets a new task.
struct Slot<'a>(&'a Arc<Writer>);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        match Handle::try_current() {
            Ok(runtime) if !queue.waiting.is_empty() => {
                runtime.spawn(Arc::clone(self.0).drain());
            }
            _ => queue.writing -= 1,
        }
    }
}
