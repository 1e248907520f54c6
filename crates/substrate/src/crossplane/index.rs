//! What stands on a cluster of one kind, in memory: fed by a watch, read by
//! observations. Holds facts, not objects, so that thousands cost little.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use slipway_core::ids::ProvisionedResourceId;
use tokio::sync::{Notify, watch};

use super::fold::Entry;

/// Attempts whose composite changed in a way that may change a decision.
#[derive(Debug, Default)]
pub(super) struct Changes {
    ids: Mutex<BTreeSet<ProvisionedResourceId>>,
    arrived: Notify,
}

impl Changes {
    fn add(&self, ids: impl IntoIterator<Item = ProvisionedResourceId>) {
        let mut waiting = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let before = waiting.len();
        waiting.extend(ids);
        if waiting.len() > before {
            self.arrived.notify_one();
        }
    }

    /// Waits for the next ones, and takes all there are.
    pub(super) async fn next(&self) -> Vec<ProvisionedResourceId> {
        loop {
            let arrived = self.arrived.notified();
            let taken =
                std::mem::take(&mut *self.ids.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                return taken.into_iter().collect();
            }
            arrived.await;
        }
    }
}

/// Whether the index can be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// The first list is not complete.
    Starting,
    Current,
    /// The watch broke off, for this reason; what is here may be old.
    Broken(String),
}

/// The objects of one kind.
#[derive(Debug)]
pub(super) struct Index {
    objects: Mutex<Objects>,
    /// The identity of the cluster that the watch was begun on.
    cluster: Mutex<Option<Box<str>>>,
    standing: watch::Sender<Standing>,
    changes: Arc<Changes>,
}

/// How long the server's word that an object is absent spares a second question:
/// longer than a whole batch takes from its observation to its last apply. Until
/// then whatever of ours is made there is shown by the watch, and what is
/// another's is not overruled by an apply that found nothing.
const FRESH: Duration = Duration::from_secs(3);

/// Absences that are remembered before old ones are forgotten.
const REMEMBERED: usize = 1_024;

#[derive(Debug, Default)]
struct Objects {
    by_place: HashMap<Box<str>, Arc<Entry>>,
    /// What the server said to be absent, and when it was asked.
    absent: HashMap<Box<str>, Instant>,
    /// The newest version that the watch has shown. What an action brings that
    /// is not newer is known already, maybe as deleted.
    seen: u64,
}

/// Names hold no slash. What has no namespace has an empty one.
pub(super) fn place(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into()
}

impl Index {
    pub(super) fn new(changes: Arc<Changes>) -> Self {
        Self {
            objects: Mutex::default(),
            cluster: Mutex::default(),
            standing: watch::Sender::new(Standing::Starting),
            changes,
        }
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, place: &str) -> Option<Arc<Entry>> {
        self.objects().by_place.get(place).cloned()
    }

    /// What is known of it without asking: `None` where the server has to be
    /// asked, also because the index cannot be believed.
    pub(super) fn current(&self, place: &str) -> Option<Arc<Entry>> {
        // The standing first: what breaks off after it was read was right then.
        if self.standing() == Standing::Current { self.get(place) } else { None }
    }

    /// The server was asked at `asked` and said that nothing is there.
    pub(super) fn said_absent(&self, place: Box<str>, asked: Instant) {
        let mut objects = self.objects();
        if objects.absent.len() >= REMEMBERED {
            objects.absent.retain(|_, asked| asked.elapsed() < FRESH);
        }
        objects.absent.insert(place, asked);
    }

    /// Whether the server's word that nothing is there is good enough to make
    /// something. Taken once: whoever is answered so acts on it.
    pub(super) fn take_absent(&self, place: &str) -> bool {
        if self.standing() != Standing::Current {
            return false;
        }
        self.objects().absent.remove(place).is_some_and(|asked| asked.elapsed() < FRESH)
    }

    pub(super) fn cluster(&self) -> Option<Box<str>> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn stands_on(&self, cluster: &str) {
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(cluster.into());
    }

    pub(super) fn len(&self) -> usize {
        self.objects().by_place.len()
    }

    pub(super) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    pub(super) fn standings(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    pub(super) fn stand(&self, standing: Standing) {
        self.standing.send_if_modified(|current| {
            let changed = *current != standing;
            *current = standing;
            changed
        });
    }

    /// What the watch shows.
    pub(super) fn seen(&self, place: Box<str>, entry: Entry) {
        let mut objects = self.objects();
        objects.seen = objects.seen.max(entry.resource_version);
        let known = objects.by_place.get(&place);
        if known.is_none_or(|known| known.resource_version <= entry.resource_version) {
            self.insert(&mut objects, place, entry);
        }
    }

    /// What an action was answered. The watch may have been faster.
    pub(super) fn brought(&self, place: Box<str>, entry: Entry) {
        let mut objects = self.objects();
        let known = objects.by_place.get(&place).map_or(0, |known| known.resource_version);
        if entry.resource_version > known.max(objects.seen) {
            // Whoever acted goes on from the answer; nobody has to be woken.
            objects.absent.remove(&place);
            objects.by_place.insert(place, Arc::new(entry));
        }
    }

    fn insert(&self, objects: &mut Objects, place: Box<str>, entry: Entry) {
        objects.absent.remove(&place);
        let known = objects.by_place.get(&place);
        if !known.is_some_and(|known| known.decides_as(&entry)) {
            self.changes.add(entry.owner);
        }
        objects.by_place.insert(place, Arc::new(entry));
    }

    pub(super) fn gone(&self, place: &str, version: u64) {
        let mut objects = self.objects();
        objects.seen = objects.seen.max(version);
        if let Some(entry) = objects.by_place.remove(place) {
            self.changes.add(entry.owner);
        }
    }

    /// A whole list takes the place of what was known, also where that was newer:
    /// a cluster that was restored from a backup counts from there again, and
    /// what an action brought after the list was made is shown by the watch that
    /// begins at it.
    pub(super) fn replace(&self, listed: HashMap<Box<str>, Entry>) {
        let mut objects = self.objects();
        let gone: Vec<_> =
            objects.by_place.keys().filter(|place| !listed.contains_key(*place)).cloned().collect();
        for place in gone {
            if let Some(entry) = objects.by_place.remove(&place) {
                self.changes.add(entry.owner);
            }
        }
        let newest = listed.values().map(|entry| entry.resource_version).max();
        let went_back = listed.iter().any(|(place, entry)| {
            let known = objects.by_place.get(place);
            known.is_some_and(|known| known.resource_version > entry.resource_version)
        });
        let before = if went_back { 0 } else { objects.seen };
        objects.seen = before.max(newest.unwrap_or_default());
        for (place, entry) in listed {
            self.insert(&mut objects, place, entry);
        }
        objects.by_place.shrink_to_fit();
    }

    /// Whether a list shows what the watch should have shown by now and did
    /// not: `listed` are the places and versions of all objects, at `version`.
    pub(super) fn lags(&self, listed: &HashMap<Box<str>, u64>, version: u64) -> bool {
        let objects = self.objects();
        let newer = listed.values().any(|listed| *listed > objects.seen);
        let ghosts = || objects.by_place.keys().any(|place| !listed.contains_key(place));
        newer || (objects.seen < version && ghosts())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OWNER: &str = "00000000-0000-0000-0000-00000000000a";

    fn entry(version: u64, ready: &str) -> Entry {
        let object = json!({
            "apiVersion": "a/v1", "kind": "K",
            "metadata": {
                "name": "n", "uid": "u", "resourceVersion": version.to_string(),
                "labels": { "slipway.dev/provisioned-resource": OWNER },
            },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        });
        Entry::of(&serde_json::from_value(object).unwrap()).unwrap()
    }

    fn taken(changes: &Changes) -> usize {
        std::mem::take(&mut *changes.ids.lock().unwrap()).len()
    }

    #[test]
    fn whoever_has_to_look_is_told_and_nobody_else() {
        let changes = Arc::new(Changes::default());
        let index = Index::new(Arc::clone(&changes));
        index.seen(place("", "n"), entry(1, "False"));
        assert_eq!(taken(&changes), 1, "new");
        index.seen(place("", "n"), entry(2, "False"));
        assert_eq!(taken(&changes), 0, "touched");
        index.seen(place("", "n"), entry(3, "True"));
        assert_eq!(taken(&changes), 1, "ready");
        index.seen(place("", "n"), entry(2, "False"));
        assert_eq!((taken(&changes), index.get("/n").unwrap().resource_version), (0, 3), "late");
        index.gone("/n", 4);
        assert_eq!(taken(&changes), 1, "gone");
        index.replace(HashMap::from([(place("", "n"), entry(5, "True"))]));
        assert_eq!(taken(&changes), 1, "listed");
        index.replace(HashMap::new());
        assert_eq!((taken(&changes), index.get("/n")), (1, None), "listed no more");
    }

    #[test]
    fn an_absence_is_believed_once_and_only_until_something_is_seen() {
        let index = Index::new(Arc::default());
        index.said_absent(place("", "n"), Instant::now());
        assert!(!index.take_absent("/n"), "the watch would not have shown what came since");
        index.stand(Standing::Current);
        assert!(index.take_absent("/n"));
        assert!(!index.take_absent("/n"), "somebody acts on it already");
        let seen: [fn(&Index); 3] = [
            |index| index.seen(place("", "n"), entry(5, "True")),
            |index| index.brought(place("", "n"), entry(6, "True")),
            |index| index.replace(HashMap::from([(place("", "n"), entry(7, "True"))])),
        ];
        for shows in seen {
            index.said_absent(place("", "n"), Instant::now());
            shows(&index);
            assert!(!index.take_absent("/n"));
        }
        let long_ago = Instant::now().checked_sub(FRESH).unwrap();
        index.said_absent(place("", "n"), long_ago);
        assert!(!index.take_absent("/n"), "too old");
        for number in 0..2 * REMEMBERED {
            index.said_absent(place("", &number.to_string()), long_ago);
        }
        assert!(index.objects().absent.len() <= REMEMBERED);
    }

    #[test]
    fn an_answer_that_comes_late_brings_nothing_back() {
        let index = Index::new(Arc::default());
        index.seen(place("", "n"), entry(5, "True"));
        index.gone("/n", 7);
        index.brought(place("", "n"), entry(6, "True"));
        assert_eq!(index.get("/n"), None);
        index.brought(place("", "n"), entry(8, "True"));
        assert!(index.get("/n").is_some());
    }

    #[test]
    fn a_list_has_the_last_word_also_after_a_restore() {
        let index = Index::new(Arc::default());
        index.seen(place("", "n"), entry(50, "True"));
        index.replace(HashMap::from([(place("", "n"), entry(7, "False"))]));
        assert_eq!(index.get("/n").unwrap().resource_version, 7);
        index.brought(place("", "n"), entry(8, "True"));
        assert_eq!(index.get("/n").unwrap().resource_version, 8);
    }

    #[test]
    fn a_watch_that_shows_nothing_any_more_is_found_out() {
        let index = Index::new(Arc::default());
        index.seen(place("", "n"), entry(5, "True"));
        let list = |version| HashMap::from([(place("", "n"), version)]);
        assert!(!index.lags(&list(5), 9), "nothing happened since");
        assert!(index.lags(&list(6), 9), "it was written since");
        assert!(index.lags(&HashMap::new(), 9), "it was deleted since");
        index.gone("/n", 9);
        assert!(!index.lags(&list(5), 8), "the watch is ahead of the list");
    }
}
