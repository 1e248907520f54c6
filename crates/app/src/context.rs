//! The ports and settings that every use-case receives. The binary builds them once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use slipway_core::blocker::Deadlines;
use slipway_core::deletion::brake::Limits;
use slipway_core::deletion::door::Defaults;
use slipway_core::nodes::token::TokenLifetimes;
use slipway_core::placement::cluster::NamespacePrefix;
use tokio::sync::Notify;

use crate::ports::{Clock, Entropy, Meter, Stores, TemplateRenderer};
use crate::tenants::targets::TenantTargets;
use crate::topology::inventory::Inventories;

#[derive(Debug, Clone)]
pub struct Context {
    pub stores: Stores,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub wakes: Wakes,
    pub meter: Arc<dyn Meter>,
    pub templates: Arc<dyn TemplateRenderer>,
    /// Where tenants live.
    pub tenants: Arc<dyn TenantTargets>,
    /// What providers list of the servers of workspaces.
    pub inventories: Inventories,
    pub settings: Settings,
}

/// Settings of the domain.
#[derive(Debug, Clone)]
pub struct Settings {
    pub deadlines: Deadlines,
    /// A resource that is due for longer than this without a claim means that
    /// nobody serves its cluster: one lease, which a dead worker may leave
    /// behind, plus one sweep.
    pub claimed_within: Duration,
    pub token_lifetimes: TokenLifetimes,
    /// The `<env>` in tokens and node keys.
    pub token_environment: String,
    /// Of clusters that are registered without one.
    pub namespace_prefix: NamespacePrefix,
    /// Grace and retention where nobody says otherwise.
    pub deletion: Defaults,
    /// How much one caller deletes before somebody has to say that it is meant.
    pub brake: Limits,
}

/// Tells the loops of this process that something may have become due. Other
/// replicas find it by polling; a lost wake costs a poll, never an event.
#[derive(Debug, Clone, Default)]
pub struct Wakes {
    attempts: Arc<Mutex<Vec<Arc<Notify>>>>,
    pub outbox: Arc<Notify>,
    /// The relay numbered new events: for the subscribers, and for the streams.
    pub subscribers: Arc<Notify>,
    pub streams: Arc<Notify>,
    /// The shared objects of a project may have to be created, changed or removed.
    pub placement: Arc<Notify>,
    placement_waits: Arc<AtomicBool>,
    /// A cluster was registered that this process may be able to serve.
    pub clusters: Arc<Notify>,
    /// A deletion may have to begin, go on or end.
    pub deletions: Arc<Notify>,
    /// A roll-out may have to begin or go on.
    pub rollouts: Arc<Notify>,
    /// What agents of Fleet are offered may have changed: for those that wait for it.
    pub offers: Arc<Notify>,
    /// Resources were observed or changed: a member of a roll-out may be healthy by now.
    pub ticked: Arc<Notify>,
    /// A workspace may have too few or too many servers.
    pub workspaces: Arc<Notify>,
    /// Resources were observed or changed: a server may be Ready by now.
    pub servers: Arc<Notify>,
    /// The same: a server of a workspace that is taken down may be gone by now.
    pub teardowns: Arc<Notify>,
    /// A job of a tenant is due.
    pub tenant_jobs: Arc<Notify>,
    /// A task of a tenant is due.
    pub tenant_tasks: Arc<Notify>,
}

impl Wakes {
    /// Call after a commit: a resource may be due, an event may wait for the relay.
    pub fn wake(&self) {
        let attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.iter().for_each(|listener| listener.notify_one());
        self.outbox.notify_one();
    }

    /// The same, and what an agent of Fleet is offered may have changed.
    pub fn wake_offers(&self) {
        self.wake();
        self.offers.notify_waiters();
    }

    /// The same, and a job or a task of a tenant is due.
    pub fn wake_tenants(&self) {
        self.wake();
        self.tenant_jobs.notify_one();
        self.tenant_tasks.notify_one();
    }

    /// Registers a listener for one loop over resources. Each partition has its
    /// own: one shared `notify_one` could wake the wrong loop and leave the
    /// right one to its poll, and `notify_waiters` stores no permit, so a busy
    /// loop would miss it.
    pub fn listen(&self) -> Arc<Notify> {
        let listener = Arc::new(Notify::new());
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.push(Arc::clone(&listener));
        listener
    }

    /// The shared objects of a project may have to be created, changed or
    /// removed: its cluster gets a pass now instead of at the next interval.
    pub fn wake_placement(&self) {
        self.placement_waits.store(true, Ordering::Relaxed);
        self.placement.notify_one();
    }

    /// Whether [`Self::wake_placement`] was called since the last call of this.
    pub fn placement_waits(&self) -> bool {
        self.placement_waits.swap(false, Ordering::Relaxed)
    }

    /// The relay numbered events, so readers can fetch them.
    pub fn relayed(&self) {
        self.subscribers.notify_one();
        self.streams.notify_one();
    }
}
