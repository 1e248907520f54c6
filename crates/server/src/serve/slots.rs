//! The table of open connections: who gets one, and which one yields when there
//! is none left.
//!
//! Only a connection whose request has arrived is protected. All others (new,
//! idle, in the middle of a request) cost their clients nothing to open and so
//! yield to a newcomer: the one that has waited longest, of the peer that has most
//! connections. What it waits for must not count: an order among these would be
//! one that an attacker can stay behind, while every other client of the same
//! address begins with a new connection. So idle connections keep nobody out, from
//! whatever address they come, and many nodes behind one address may use what
//! nobody else needs.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ApiKeyId;
use tokio::sync::Notify;

use super::peer::Peer;
use crate::rate::retry_after;

#[derive(Debug, Clone, Copy)]
pub(super) struct SlotLimits {
    /// Connections at once.
    pub(super) connections: usize,
    /// Connections of one peer.
    pub(super) connections_of_peer: usize,
    /// Requests of one peer that are answered or arrive.
    pub(super) requests_of_peer: usize,
    /// Requests of one key that are answered, from whatever peers.
    pub(super) requests_of_key: usize,
    /// Requests that are answered at once. Fewer than connections, so that one
    /// too many gets an answer that says so, and probes get theirs.
    pub(super) requests: usize,
}

/// What a connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It has not sent a request yet.
    New,
    /// It may send a next request.
    Idle,
    /// The head of a request is here, its body is not.
    Arriving,
    /// Never yields.
    Answering,
}

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct Slots {
    limits: SlotLimits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<u64, Entry>,
    /// Connections that had to yield, or got no slot.
    closed: u64,
    /// Counts connections and changes of activity, which orders them.
    moment: u64,
}

#[derive(Debug)]
struct Entry {
    peer: Peer,
    activity: Activity,
    since: u64,
    /// The peer whose request it serves; behind a proxy not the connection's.
    request_of: Option<Peer>,
    /// The key that its request was admitted with.
    key: Option<ApiKeyId>,
    displaced: Arc<Notify>,
}

/// The slot of one connection, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    id: u64,
    displaced: Arc<Notify>,
}

impl Slots {
    pub(super) fn new(limits: SlotLimits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default() })
    }

    pub(super) fn taken(&self) -> usize {
        self.table().entries.len()
    }

    /// How many connections were closed because there were too many.
    pub(super) fn closed(&self) -> u64 {
        self.table().closed
    }

    /// A slot for a new connection, if need be that of another one. `None` if
    /// none may yield: the connection is to be closed.
    pub(super) fn take(self: &Arc<Self>, peer: Peer) -> Option<Slot> {
        let mut table = self.table();
        let own = table.entries.values().filter(|entry| entry.peer == peer).count();
        let peer_full = own >= self.limits.connections_of_peer;
        if peer_full || table.entries.len() >= self.limits.connections {
            table.closed += 1;
            let id = table.yielding(own, |entry| !peer_full || entry.peer == peer)?;
            if let Some(entry) = table.entries.remove(&id) {
                entry.displaced.notify_one();
            }
        }
        let (id, displaced) = (table.next_moment(), Arc::default());
        let entry = Entry {
            peer,
            activity: Activity::New,
            since: id,
            request_of: None,
            key: None,
            displaced: Arc::clone(&displaced),
        };
        table.entries.insert(id, entry);
        Some(Slot { slots: Arc::clone(self), id, displaced })
    }

    /// The table is consistent between two statements of its methods.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// The connection that yields. Never one of a peer with fewer connections
    /// than the newcomer's.
    fn yielding(&self, own: usize, may: impl Fn(&Entry) -> bool) -> Option<u64> {
        let mut of_peer: HashMap<Peer, usize> = HashMap::new();
        for entry in self.entries.values() {
            *of_peer.entry(entry.peer).or_default() += 1;
        }
        self.entries
            .iter()
            .filter(|(_, entry)| entry.activity != Activity::Answering && may(entry))
            .filter(|(_, entry)| of_peer[&entry.peer] >= own)
            .min_by_key(|(_, entry)| (Reverse(of_peer[&entry.peer]), entry.since))
            .map(|(id, _)| *id)
    }
}

impl Slot {
    /// The head of a request is here. An error if there are too many requests;
    /// the request has to be answered with it.
    pub(super) fn begin(&self, peer: Peer, arrived: bool) -> Result<(), Refusal> {
        let limits = self.slots.limits;
        let mut table = self.slots.table();
        let others = table.entries.values().filter(|entry| entry.request_of == Some(peer)).count();
        let answering = |entry: &&Entry| entry.activity == Activity::Answering;
        let answered = table.entries.values().filter(answering).count();
        let activity = if arrived { Activity::Answering } else { Activity::Arriving };
        table.change(self.id, activity);
        table.serve_for(self.id, Some(peer));
        if others >= limits.requests_of_peer {
            return Err(Refusal::new(
                ErrorKind::RateLimited,
                format!(
                    "{others} requests of this address are being answered, which is the limit; \
                     try again in a moment"
                ),
            )
            .with(retry_after(1)));
        }
        if answered >= limits.requests {
            return Err(Refusal::new(
                ErrorKind::Unavailable,
                format!("{answered} requests are being answered, which is the limit"),
            ));
        }
        Ok(())
    }

    /// The request was admitted with this key. An error if the key has too many:
    /// whoever reads long answers slowly would take every connection.
    pub(super) fn admitted(&self, key: ApiKeyId) -> Result<(), Refusal> {
        let mut table = self.slots.table();
        let others = table.entries.values().filter(|entry| entry.key == Some(key)).count();
        if others >= self.slots.limits.requests_of_key {
            return Err(Refusal::new(
                ErrorKind::RateLimited,
                format!(
                    "{others} requests of this key are being answered, which is the limit; try \
                     again in a moment"
                ),
            )
            .with(retry_after(1)));
        }
        if let Some(entry) = table.entries.get_mut(&self.id) {
            entry.key = Some(key);
        }
        Ok(())
    }

    /// The request is here as a whole.
    pub(super) fn arrived(&self) {
        self.slots.table().change(self.id, Activity::Answering);
    }

    /// The answer is sent, or nobody waits for it any more.
    pub(super) fn finished(&self) {
        let mut table = self.slots.table();
        table.change(self.id, Activity::Idle);
        table.serve_for(self.id, None);
    }

    /// Whether no request came yet.
    pub(super) fn is_new(&self) -> bool {
        let table = self.slots.table();
        table.entries.get(&self.id).is_none_or(|entry| entry.activity == Activity::New)
    }

    /// Returns when the slot went to another connection.
    pub(super) async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Table {
    /// Does nothing for a connection that was displaced.
    fn change(&mut self, id: u64, activity: Activity) {
        let since = self.next_moment();
        if let Some(entry) = self.entries.get_mut(&id) {
            (entry.activity, entry.since) = (activity, since);
        }
    }

    /// Whose request it serves from now on; its key is not known yet.
    fn serve_for(&mut self, id: u64, peer: Option<Peer>) {
        if let Some(entry) = self.entries.get_mut(&id) {
            (entry.request_of, entry.key) = (peer, None);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.table().entries.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::FutureExt;

    use super::*;

    const FEW: SlotLimits = SlotLimits {
        connections: 6,
        connections_of_peer: 4,
        requests_of_peer: 2,
        requests_of_key: 2,
        requests: 5,
    };

    fn peer(number: u8) -> Peer {
        std::net::IpAddr::from(Ipv4Addr::new(10, 0, 0, number)).into()
    }

    fn is_displaced(slot: &Slot) -> bool {
        slot.displaced().now_or_never().is_some()
    }

    fn take(slots: &Arc<Slots>, number: u8) -> Slot {
        slots.take(peer(number)).expect("a slot")
    }

    #[test]
    fn the_longest_idle_of_the_largest_peer_yields() {
        let slots = Slots::new(FEW);
        let flood: Vec<_> = (0..4).map(|_| take(&slots, 1)).collect();
        let others: Vec<_> = (2..4).map(|number| take(&slots, number)).collect();
        let newcomer = take(&slots, 4);
        assert!(is_displaced(&flood[0]), "the oldest of the largest peer");
        assert!(!flood[1..].iter().chain(&others).chain([&newcomer]).any(is_displaced));
        assert_eq!((slots.taken(), slots.closed()), (FEW.connections, 1));
        // Dropping what was displaced frees nothing a second time.
        drop(flood);
        assert_eq!(slots.taken(), 3);
    }

    #[test]
    fn a_peer_at_its_limit_displaces_only_its_own() {
        let slots = Slots::new(FEW);
        let other = take(&slots, 2);
        let flood: Vec<_> = (0..4).map(|_| take(&slots, 1)).collect();
        let fifth = take(&slots, 1);
        assert!(is_displaced(&flood[0]) && !is_displaced(&other) && !is_displaced(&fifth));
        for slot in flood[1..].iter().chain([&fifth]) {
            let _refused_or_not = slot.begin(peer(1), true);
        }
        assert!(slots.take(peer(1)).is_none(), "all of its connections have a request");
        assert!(slots.take(peer(3)).is_some(), "which is no matter of others");
        assert_eq!(slots.closed(), 2, "the first, and the last of its peer");
    }

    /// Whatever it waits for; and an answer never yields.
    #[test]
    fn the_one_that_has_waited_longest_yields() {
        let slots = Slots::new(SlotLimits { connections: 4, ..FEW });
        let [answering, arriving, idle, new] = [(); 4].map(|()| take(&slots, 1));
        answering.begin(peer(7), true).unwrap();
        idle.begin(peer(8), true).unwrap();
        idle.finished();
        arriving.begin(peer(9), false).unwrap();
        let mut newcomers = Vec::new();
        for (yields, name) in [(&new, "new"), (&idle, "idle"), (&arriving, "arriving")] {
            let newcomer = take(&slots, 1);
            assert!(is_displaced(yields), "{name}");
            newcomers.push(newcomer);
        }
        assert!(!newcomers.iter().any(is_displaced), "they came last");
        for newcomer in &newcomers {
            let _refused_or_not = newcomer.begin(peer(1), true);
        }
        assert!(slots.take(peer(1)).is_none());
        assert!(!is_displaced(&answering));
    }

    /// Otherwise a peer with many requests would take the connections of those
    /// with few.
    #[test]
    fn nobody_yields_to_a_larger_peer() {
        let slots = Slots::new(FEW);
        let busy: Vec<_> = (0..3).map(|_| take(&slots, 1)).collect();
        for slot in &busy {
            let _refused_or_not = slot.begin(peer(1), true);
        }
        let few: Vec<_> = (2..5).map(|number| take(&slots, number)).collect();
        assert!(slots.take(peer(1)).is_none());
        assert!(!few.iter().any(is_displaced));
    }

    #[test]
    fn a_key_has_its_share_from_whatever_peers() {
        let slots = Slots::new(FEW);
        let key = |number| ApiKeyId::new(uuid::Uuid::from_u128(number));
        let all: Vec<_> = (1..=4).map(|number| take(&slots, number)).collect();
        for (slot, number) in all.iter().zip(1..) {
            slot.begin(peer(number), true).unwrap();
        }
        all[0].admitted(key(1)).unwrap();
        all[1].admitted(key(1)).unwrap();
        assert_eq!(all[2].admitted(key(1)).unwrap_err().kind, ErrorKind::RateLimited);
        all[2].admitted(key(2)).unwrap();
        all[0].finished();
        all[3].admitted(key(1)).unwrap();
    }

    #[test]
    fn too_many_requests_are_told_so() {
        let slots = Slots::new(SlotLimits { connections_of_peer: 6, ..FEW });
        let proxied: Vec<_> = (0..6).map(|_| take(&slots, 1)).collect();
        proxied[0].begin(peer(20), true).unwrap();
        proxied[1].begin(peer(20), false).unwrap();
        let refusal = proxied[2].begin(peer(20), true).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RateLimited);
        proxied[1].finished();
        proxied[2].finished();
        proxied[1].begin(peer(20), true).unwrap();
        for (number, slot) in proxied[2..5].iter().enumerate() {
            slot.begin(peer(30 + u8::try_from(number).unwrap()), true).unwrap();
        }
        let refusal = proxied[5].begin(peer(40), true).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::Unavailable, "of all peers together");
    }
}
