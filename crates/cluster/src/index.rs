//! In-memory index of one kind on one cluster. A watch feeds it, observations
//! read it. It keeps a few facts per object so that thousands stay cheap.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use tokio::sync::{Notify, watch};

/// What an index keeps of an object.
pub trait Facts: fmt::Debug + Send + Sync + Sized + 'static {
    /// Whom a change of the object wakes.
    type Owner: fmt::Debug + Ord + Send + 'static;

    /// The facts of an object; `None` if it lacks what every server sends.
    fn parse(object: &DynamicObject) -> Option<Self>;

    fn resource_version(&self) -> u64;

    fn owner(&self) -> Option<Self::Owner>;

    /// Whether every decision about the object is the same with both.
    fn decides_as(&self, other: &Self) -> bool;
}

/// Owners whose object changed in a way that may change a decision.
#[derive(Debug)]
pub struct Changes<O> {
    owners: Mutex<BTreeSet<O>>,
    arrived: Notify,
}

impl<O> Default for Changes<O> {
    fn default() -> Self {
        Self { owners: Mutex::new(BTreeSet::new()), arrived: Notify::new() }
    }
}

impl<O: Ord> Changes<O> {
    fn add(&self, owners: impl IntoIterator<Item = O>) {
        let mut waiting = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let before = waiting.len();
        waiting.extend(owners);
        if waiting.len() > before {
            self.arrived.notify_one();
        }
    }

    /// Waits until there are owners, and takes all of them.
    pub async fn next(&self) -> Vec<O> {
        loop {
            let arrived = self.arrived.notified();
            let taken =
                std::mem::take(&mut *self.owners.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                return taken.into_iter().collect();
            }
            arrived.await;
        }
    }
}

/// Freshness of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexState {
    /// The first list is not complete.
    Starting,
    Current,
    /// The watch broke off, for this reason; the facts may be old.
    Broken(String),
}

/// The objects of one kind.
#[derive(Debug)]
pub struct Index<F: Facts> {
    objects: Mutex<Objects<F>>,
    /// The identity of the cluster that the watch began on.
    cluster: Mutex<Option<Box<str>>>,
    state: watch::Sender<IndexState>,
    changes: Arc<Changes<F::Owner>>,
}

/// How long the server's answer that an object is absent saves a second request:
/// longer than a whole batch takes from its observation to its last apply. In
/// this time the watch shows whatever object of ours is created, and an apply
/// that found nothing does not take fields over from other managers.
const FRESH: Duration = Duration::from_secs(3);

/// Number of noted absences from which on old ones are dropped.
const ABSENCES: usize = 1_024;

#[derive(Debug)]
struct Objects<F> {
    by_key: HashMap<Box<str>, Arc<F>>,
    /// Objects that the server reported as absent, and when it was asked.
    absent: HashMap<Box<str>, Instant>,
    /// The newest version that the watch has shown. If the answer to an action
    /// is not newer, the index knows the object already, maybe as deleted.
    newest: u64,
}

/// The key of an object in an index. Names contain no slash; an object of
/// cluster scope has an empty namespace.
pub fn object_key(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into()
}

impl<F: Facts> Index<F> {
    pub(crate) fn new(changes: Arc<Changes<F::Owner>>) -> Self {
        let objects = Objects { by_key: HashMap::new(), absent: HashMap::new(), newest: 0 };
        Self {
            objects: Mutex::new(objects),
            cluster: Mutex::default(),
            state: watch::Sender::new(IndexState::Starting),
            changes,
        }
    }

    fn objects(&self) -> MutexGuard<'_, Objects<F>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &str) -> Option<Arc<F>> {
        self.objects().by_key.get(key).cloned()
    }

    /// The facts of an object without a request: `None` where the server has to
    /// be asked, also because the index is not current.
    pub fn current(&self, key: &str) -> Option<Arc<F>> {
        // Read the state first: facts that become stale afterwards were current then.
        if self.state() == IndexState::Current { self.get(key) } else { None }
    }

    /// Notes that the server, asked at `asked_at`, has no such object.
    pub fn note_absent(&self, key: Box<str>, asked_at: Instant) {
        let mut objects = self.objects();
        if objects.absent.len() >= ABSENCES {
            objects.absent.retain(|_, asked_at| asked_at.elapsed() < FRESH);
        }
        objects.absent.insert(key, asked_at);
    }

    /// Whether a noted absence is fresh enough to create the object. Takes the
    /// note: only one caller may act on it.
    pub fn take_absent(&self, key: &str) -> bool {
        if self.state() != IndexState::Current {
            return false;
        }
        self.objects().absent.remove(key).is_some_and(|asked_at| asked_at.elapsed() < FRESH)
    }

    /// The identity of the cluster that the facts come from.
    pub fn cluster(&self) -> Option<Box<str>> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn len(&self) -> usize {
        self.objects().by_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn state(&self) -> IndexState {
        self.state.borrow().clone()
    }

    /// Waits until the first list is complete or has failed.
    pub async fn started(&self) {
        let mut states = self.state.subscribe();
        // Cannot fail: the sender is borrowed here.
        let _started = states.wait_for(|state| *state != IndexState::Starting).await.is_ok();
    }

    pub(crate) fn set_state(&self, state: IndexState) {
        self.state.send_if_modified(|current| {
            let changed = *current != state;
            *current = state;
            changed
        });
    }

    /// Records an object that the watch shows.
    pub(crate) fn observed(&self, key: Box<str>, facts: F) {
        let mut objects = self.objects();
        objects.newest = objects.newest.max(facts.resource_version());
        let known = objects.by_key.get(&key);
        if known.is_none_or(|known| known.resource_version() <= facts.resource_version()) {
            self.insert(&mut objects, key, facts);
        }
    }

    /// Records the answer to a request. The watch may have been faster.
    pub fn answered(&self, key: Box<str>, facts: F) {
        let mut objects = self.objects();
        let known = objects.by_key.get(&key).map_or(0, |known| known.resource_version());
        if facts.resource_version() > known.max(objects.newest) {
            // The caller continues with the answer; nobody has to be woken.
            objects.absent.remove(&key);
            objects.by_key.insert(key, Arc::new(facts));
        }
    }

    fn insert(&self, objects: &mut Objects<F>, key: Box<str>, facts: F) {
        objects.absent.remove(&key);
        let known = objects.by_key.get(&key);
        if !known.is_some_and(|known| known.decides_as(&facts)) {
            self.changes.add(facts.owner());
        }
        objects.by_key.insert(key, Arc::new(facts));
    }

    pub(crate) fn deleted(&self, key: &str, version: u64) {
        let mut objects = self.objects();
        objects.newest = objects.newest.max(version);
        if let Some(facts) = objects.by_key.remove(key) {
            self.changes.add(facts.owner());
        }
    }

    /// Replaces everything by a complete list of this cluster, also where the
    /// index had newer facts. A cluster that was restored from a backup counts
    /// its versions from there again, and the watch that begins at the list
    /// shows again what an action wrote after the list was made.
    pub(crate) fn replace(&self, cluster: &str, listed: HashMap<Box<str>, F>) {
        let mut objects = self.objects();
        let gone: Vec<_> =
            objects.by_key.keys().filter(|key| !listed.contains_key(*key)).cloned().collect();
        for key in gone {
            if let Some(facts) = objects.by_key.remove(&key) {
                self.changes.add(facts.owner());
            }
        }
        let newest = listed.values().map(Facts::resource_version).max();
        let went_back = listed.iter().any(|(key, facts)| {
            let known = objects.by_key.get(key);
            known.is_some_and(|known| known.resource_version() > facts.resource_version())
        });
        let before = if went_back { 0 } else { objects.newest };
        objects.newest = before.max(newest.unwrap_or_default());
        for (key, facts) in listed {
            self.insert(&mut objects, key, facts);
        }
        objects.by_key.shrink_to_fit();
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(cluster.into());
    }

    /// Whether a list shows a change or deletion that the watch should have shown
    /// by now: `listed` has the keys and versions of all objects, at `version`.
    pub(crate) fn lags(&self, listed: &HashMap<Box<str>, u64>, version: u64) -> bool {
        let objects = self.objects();
        let newer = listed.values().any(|listed| *listed > objects.newest);
        let ghosts = || objects.by_key.keys().any(|key| !listed.contains_key(key));
        newer || (objects.newest < version && ghosts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts whose decisions depend only on whether the object is ready.
    #[derive(Debug, PartialEq)]
    struct Ready(u64, bool);

    impl Facts for Ready {
        type Owner = u8;

        fn parse(_: &DynamicObject) -> Option<Self> {
            None
        }

        fn resource_version(&self) -> u64 {
            self.0
        }

        fn owner(&self) -> Option<u8> {
            Some(7)
        }

        fn decides_as(&self, other: &Self) -> bool {
            self.1 == other.1
        }
    }

    fn listed(facts: Ready) -> HashMap<Box<str>, Ready> {
        HashMap::from([(object_key("", "n"), facts)])
    }

    fn taken(changes: &Changes<u8>) -> usize {
        std::mem::take(&mut *changes.owners.lock().unwrap()).len()
    }

    fn version(index: &Index<Ready>) -> Option<u64> {
        index.get("/n").map(|facts| facts.resource_version())
    }

    #[test]
    fn whoever_has_to_look_is_told_and_nobody_else() {
        let changes = Arc::new(Changes::default());
        let index = Index::new(Arc::clone(&changes));
        index.observed(object_key("", "n"), Ready(1, false));
        assert_eq!(taken(&changes), 1, "new");
        index.observed(object_key("", "n"), Ready(2, false));
        assert_eq!(taken(&changes), 0, "touched");
        index.observed(object_key("", "n"), Ready(3, true));
        assert_eq!(taken(&changes), 1, "ready");
        index.observed(object_key("", "n"), Ready(2, false));
        assert_eq!((taken(&changes), version(&index)), (0, Some(3)), "late");
        index.deleted("/n", 4);
        assert_eq!(taken(&changes), 1, "gone");
        index.replace("c", listed(Ready(5, true)));
        assert_eq!(taken(&changes), 1, "listed");
        index.replace("c", HashMap::new());
        assert_eq!((taken(&changes), index.get("/n")), (1, None), "listed no more");
    }

    #[test]
    fn an_absence_is_believed_once_and_only_until_something_is_seen() {
        let index = Index::new(Arc::default());
        index.note_absent(object_key("", "n"), Instant::now());
        assert!(!index.take_absent("/n"), "the watch would not have shown what came since");
        index.set_state(IndexState::Current);
        assert!(index.take_absent("/n"));
        assert!(!index.take_absent("/n"), "somebody acts on it already");
        let shown: [fn(&Index<Ready>); 3] = [
            |index| index.observed(object_key("", "n"), Ready(5, true)),
            |index| index.answered(object_key("", "n"), Ready(6, true)),
            |index| index.replace("c", listed(Ready(7, true))),
        ];
        for shows in shown {
            index.note_absent(object_key("", "n"), Instant::now());
            shows(&index);
            assert!(!index.take_absent("/n"));
        }
        let long_ago = Instant::now().checked_sub(FRESH).unwrap();
        index.note_absent(object_key("", "n"), long_ago);
        assert!(!index.take_absent("/n"), "too old");
        for number in 0..2 * ABSENCES {
            index.note_absent(object_key("", &number.to_string()), long_ago);
        }
        assert!(index.objects().absent.len() <= ABSENCES);
    }

    #[test]
    fn an_answer_that_comes_late_brings_nothing_back() {
        let index = Index::new(Arc::default());
        index.observed(object_key("", "n"), Ready(5, true));
        index.deleted("/n", 7);
        index.answered(object_key("", "n"), Ready(6, true));
        assert_eq!(index.get("/n"), None);
        index.answered(object_key("", "n"), Ready(8, true));
        assert!(index.get("/n").is_some());
    }

    #[test]
    fn a_list_has_the_last_word_also_after_a_restore() {
        let index = Index::new(Arc::default());
        index.observed(object_key("", "n"), Ready(50, true));
        index.replace("c", listed(Ready(7, false)));
        assert_eq!(version(&index), Some(7));
        index.answered(object_key("", "n"), Ready(8, true));
        assert_eq!(version(&index), Some(8));
    }

    #[test]
    fn a_watch_that_shows_nothing_any_more_is_found_out() {
        let index = Index::new(Arc::default());
        index.observed(object_key("", "n"), Ready(5, true));
        let list = |version| HashMap::from([(object_key("", "n"), version)]);
        assert!(!index.lags(&list(5), 9), "nothing happened since");
        assert!(index.lags(&list(6), 9), "it was written since");
        assert!(index.lags(&HashMap::new(), 9), "it was deleted since");
        index.deleted("/n", 9);
        assert!(!index.lags(&list(5), 8), "the watch is ahead of the list");
    }
}
