//! Live events for many readers at the database cost of one.
//!
//! While there are readers, one poller reads new events and keeps the latest in
//! memory. Streams take events from there and query the database only for older
//! ones. Without readers no poller runs.
//!
//! A stream has no queue: the connection pulls from it, so nothing is read
//! ahead for a slow reader. A connection closes if its reader stops reading
//! (see `serve`), and the reader resumes by position.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slipway_app::Context;
use slipway_app::access::authorise::Caller;
use slipway_app::events::port::PositionedEvent;
use slipway_app::ports::store::{self, Page};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ApiKeyId, ProjectId};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::rate::retry_after;

/// Limits of all streams of a process together.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// Streams at once. Each takes one of the 768 connections.
    pub streams: usize,
    /// Of these, streams of one key.
    pub of_key: usize,
    /// Of these, streams of all keys that are bound to one project: its admin
    /// may make any number of keys.
    pub of_project: usize,
    /// Events kept for readers that are up to date: about a kilobyte each, so a
    /// mebibyte. A reader further behind queries the database.
    pub recent: usize,
    /// Interval of polling for events that another replica numbered.
    pub poll: Duration,
    /// How long a stream lasts. The key is checked when it begins, so this is
    /// how long a revoked key can still read; the reader resumes at once.
    pub lasting: Duration,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            streams: 128,
            of_key: 16,
            of_project: 64,
            recent: 1_024,
            poll: Duration::from_millis(200),
            lasting: Duration::from_secs(15 * 60),
        }
    }
}

/// Events per batch, from memory or from the database.
const BATCH: u32 = 100;

/// Seconds after which a key that has its share of streams may ask again.
const AFTER_SHARE: u64 = 5;

/// Pause after a failed read of the database.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// The streams of this process. Cheap to clone.
#[derive(Clone)]
pub struct EventStreams(Arc<Hub>);

struct Hub {
    context: Context,
    limits: StreamLimits,
    open: Mutex<Open>,
    recent: Mutex<Recent>,
    /// The last position known to this process.
    head: watch::Sender<i64>,
    stopping: watch::Receiver<bool>,
}

/// The open streams, counted.
#[derive(Debug, Default)]
struct Open {
    all: usize,
    of_holder: HashMap<Holder, usize>,
}

/// Who has a share of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Key(ApiKeyId),
    Project(ProjectId),
}

impl Holder {
    fn of(caller: &Caller) -> Vec<Self> {
        let project = caller.project.map(Self::Project);
        caller.key_id.map(Self::Key).into_iter().chain(project).collect()
    }
}

/// The right to one stream, until it is dropped.
pub(crate) struct StreamPermit {
    hub: Arc<Hub>,
    holders: Vec<Holder>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.hub.open();
        open.all -= 1;
        for holder in &self.holders {
            if let Entry::Occupied(mut count) = open.of_holder.entry(*holder) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }
}

/// The latest events without a gap, up to `head`.
#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<Arc<PositionedEvent>>,
    head: i64,
    readers: usize,
    polled: bool,
}

/// What the hub has for a reader at a position.
enum Next {
    Events(Vec<Arc<PositionedEvent>>),
    /// The reader is up to date.
    Nothing,
    /// The hub does not have what follows, any more or yet.
    Elsewhere,
}

impl Recent {
    fn next(&self, after: i64) -> Next {
        let Some(first) = self.events.front().map(|event| event.position) else {
            return if after >= self.head { Next::Nothing } else { Next::Elsewhere };
        };
        if after >= self.head {
            return Next::Nothing;
        }
        match usize::try_from(after + 1 - first) {
            Ok(skipped) => {
                let events = self.events.iter().skip(skipped).take(BATCH as usize);
                Next::Events(events.map(Arc::clone).collect())
            }
            Err(_) => Next::Elsewhere,
        }
    }

    fn append(&mut self, events: Vec<PositionedEvent>, most: usize) {
        for event in events {
            self.head = event.position;
            self.events.push_back(Arc::new(event));
        }
        let surplus = self.events.len().saturating_sub(most);
        self.events.drain(..surplus);
    }
}

impl EventStreams {
    /// `stopping` becomes true when the process shuts down; every stream then
    /// ends, so that none delays the shutdown.
    pub fn new(context: Context, limits: StreamLimits, stopping: watch::Receiver<bool>) -> Self {
        Self(Arc::new(Hub {
            context,
            open: Mutex::default(),
            limits,
            recent: Mutex::default(),
            head: watch::Sender::new(0),
            stopping,
        }))
    }

    /// Number of open streams.
    pub(crate) fn open(&self) -> usize {
        self.0.open().all
    }

    /// Reserves one more stream for the caller.
    pub(crate) fn reserve(&self, caller: &Caller) -> Result<StreamPermit, Refusal> {
        let instead = "or read GET /api/v1/events page by page";
        let limits = self.0.limits;
        let mut open = self.0.open();
        let holders = Holder::of(caller);
        for holder in &holders {
            let (whose, share) = match holder {
                Holder::Key(_) => ("this key", limits.of_key),
                Holder::Project(_) => ("the keys of this project", limits.of_project),
            };
            if open.of_holder.get(holder).is_some_and(|count| *count >= share) {
                let problem = format!(
                    "{share} streams of {whose} are open, which is the share; close one, {instead}"
                );
                return Err(
                    Refusal::new(ErrorKind::RateLimited, problem).with(retry_after(AFTER_SHARE))
                );
            }
        }
        if open.all >= limits.streams {
            let all = open.all;
            return Err(Refusal::new(
                ErrorKind::Unavailable,
                format!(
                    "{all} streams are open, which is the limit; try again in a moment, {instead}"
                ),
            ));
        }
        open.all += 1;
        for holder in &holders {
            *open.of_holder.entry(*holder).or_default() += 1;
        }
        drop(open);
        Ok(StreamPermit { hub: Arc::clone(&self.0), holders })
    }

    /// A stream of the events after the position.
    pub(crate) fn subscribe(&self, after: i64, permit: StreamPermit) -> EventStream {
        let hub = Arc::clone(&self.0);
        let head = hub.head.subscribe();
        let stopping = hub.stopping.clone();
        let ends_at = Instant::now() + hub.limits.lasting;
        hub.enter();
        EventStream { hub, position: after, head, stopping, ends_at, _permit: permit }
    }
}

impl fmt::Debug for EventStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStreams").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

impl Hub {
    /// A poisoned lock is usable: events are only ever appended and trimmed.
    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A poisoned lock is usable: counts change in steps that cannot panic.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reader; the first one starts the poller.
    fn enter(self: &Arc<Self>) {
        let mut recent = self.recent();
        recent.readers += 1;
        if !std::mem::replace(&mut recent.polled, true) {
            tokio::spawn(Arc::clone(self).poll());
        }
    }

    fn leave(&self) {
        self.recent().readers -= 1;
        // Wake the poller, so that it notices at once if no reader is left.
        self.context.wakes.streams.notify_one();
    }

    /// Whether the poller ends. Decided under the lock that `enter` takes, so a
    /// later reader finds `polled` unset and starts a new poller.
    fn ends(&self) -> bool {
        let mut recent = self.recent();
        // An error means that the sender is gone, which counts as a shutdown.
        let told = *self.stopping.borrow() || self.stopping.has_changed().is_err();
        let over = recent.readers == 0 || told;
        if over {
            // Without a poller, later events would leave a gap.
            *recent = Recent { readers: recent.readers, ..Recent::default() };
        }
        over
    }

    async fn poll(self: Arc<Self>) {
        let mut known = false;
        while !self.ends() {
            let pause = match self.read_head(known).await {
                // A full page: read the next one at once.
                Ok(true) => Duration::ZERO,
                Ok(false) => self.limits.poll,
                Err(error) => {
                    if !error.is_logged() {
                        tracing::warn!(%error, "cannot read events to stream; trying again");
                    }
                    AFTER_FAULT
                }
            };
            known |= pause != AFTER_FAULT;
            let mut stopping = self.stopping.clone();
            tokio::select! {
                () = self.context.wakes.streams.notified() => {}
                () = sleep(pause) => {}
                _ = stopping.changed() => {}
            }
        }
    }

    /// Reads new events; answers whether there may be more. The first call only
    /// reads the last position.
    async fn read_head(&self, known: bool) -> Result<bool, store::Error> {
        if !known {
            let last = self.context.stores.events.event_span().await?.last;
            self.recent().head = last;
            self.head.send_replace(last);
            return Ok(true);
        }
        let after = self.recent().head;
        let page = Page { after: Some(after), limit: BATCH };
        let events = self.context.stores.events.event_list(page).await?;
        let full = events.len() >= BATCH as usize;
        // A gap: events were pruned before this poller read them, which takes
        // an outage as long as their retention. Drop the events before the gap.
        if events.first().is_some_and(|event| event.position != after + 1) {
            self.recent().events.clear();
        }
        if !events.is_empty() {
            let mut recent = self.recent();
            recent.append(events, self.limits.recent);
            let head = recent.head;
            drop(recent);
            self.head.send_replace(head);
        }
        Ok(full)
    }
}

/// The stream of one reader.
pub(crate) struct EventStream {
    hub: Arc<Hub>,
    position: i64,
    head: watch::Receiver<i64>,
    stopping: watch::Receiver<bool>,
    ends_at: Instant,
    _permit: StreamPermit,
}

impl EventStream {
    /// Waits for the next events. `None` ends the stream: the process stops,
    /// the stream has reached its time limit, the database does not answer, or
    /// the next events were pruned. The reader then resumes by position, and
    /// learns there if they were pruned.
    pub(crate) async fn next(&mut self) -> Option<Vec<Arc<PositionedEvent>>> {
        loop {
            if *self.stopping.borrow() || Instant::now() >= self.ends_at {
                return None;
            }
            self.head.borrow_and_update();
            let next = self.hub.recent().next(self.position);
            let events = match next {
                Next::Events(events) => events,
                Next::Elsewhere => self.read().await?,
                Next::Nothing => Vec::new(),
            };
            if let Some(last) = events.last() {
                self.position = last.position;
                return Some(events);
            }
            tokio::select! {
                changed = self.head.changed() => changed.ok()?,
                () = sleep_until(self.ends_at) => return None,
                _ = self.stopping.changed() => return None,
            }
        }
    }

    /// Reads events that the hub does not have.
    async fn read(&self) -> Option<Vec<Arc<PositionedEvent>>> {
        let page = Page { after: Some(self.position), limit: BATCH };
        match self.hub.context.stores.events.event_list(page).await {
            Ok(events) if events.first().is_some_and(|e| e.position == self.position + 1) => {
                Some(events.into_iter().map(Arc::new).collect())
            }
            Ok(_) => {
                tracing::info!(position = self.position, "a stream ends: its events are pruned");
                None
            }
            Err(error) => {
                if !error.is_logged() {
                    tracing::warn!(%error, "a stream ends: its events cannot be read");
                }
                None
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.hub.leave();
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("position", &self.position).finish_non_exhaustive()
    }
}
