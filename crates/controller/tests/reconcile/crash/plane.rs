//! A control plane that performs one run, in as many lives as its faults
//! require, with the verbs in which the scenarios are written.
//!
//! All lives use the same database and the same substrate. Each life has its
//! own context, its own loop and its own interceptors; a crash drops whatever
//! it was doing. A caller that waited for an answer gets none and asks the next
//! life again, as a client or an agent would.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use slipway_app::Context;
use slipway_app::broker::converge::Engines;
use slipway_app::broker::declare::{self, Declare};
use slipway_app::broker::port::ResourceFilter;
use slipway_app::broker::update::{self, Changes};
use slipway_app::broker::{delete, replace, retry};
use slipway_app::context::Wakes;
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::deletion::restore::{self, RestoreOptions};
use slipway_app::nodes::enrol::{self, Register};
use slipway_app::nodes::{force, node, tokens};
use slipway_app::ports::Stores;
use slipway_app::ports::store::Page;
use slipway_app::topology::inventory::Inventories;
use slipway_controller::driver::Loop;
use slipway_controller::resources::ResourceLoop;
use slipway_core::ErrorKind;
use slipway_core::blocker::Deadlines;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::redeclare::Corrections;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::{DeletionId, DrainId, NodeId, ProvisionedResourceId, ResourceId};
use slipway_core::nodes::node::Reported;
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;
use slipway_durable::{Lease, Moment};

use super::fate::{Fate, Fault, Point};
use super::journal::Journal;
use super::store::FatedStore;
use super::substrate::{FatedSubstrate, Interference};
use crate::world::World;

/// How the next life gets the work of a dead one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Succession {
    /// The same worker starts again and reclaims its rows.
    Restart,
    /// Another worker claims the rows when the lease has expired.
    Takeover,
}

/// Also the sweep: the interval of observing settled resources, and the longest
/// delay before a failed action is retried.
const SWEEP: Duration = Duration::from_millis(40);
/// How long after Deleted absence is proven again. No worker of a run can be
/// late, so there is no need to wait for a lease.
const SECOND_PROOF: Duration = Duration::from_millis(10);
/// The lease that the loop assumes. The time limit of an action follows from
/// it, and must not depend on the load of the machine.
const LEASE: Duration = Duration::from_secs(30);
/// The lease in the database instead, in runs that wait for its end. A worker
/// that assumes a longer lease than it has would be dangerous beside another;
/// here a life begins only after the previous one has ended.
const SHORT_LEASE: Duration = Duration::from_millis(200);
const IDLE_LEAST: Duration = Duration::from_millis(2);
const IDLE_MOST: Duration = Duration::from_millis(50);
/// Of one step. The longest intended wait is a backoff of a second. Rarely it
/// is a lease: PostgreSQL may execute a claim that was in flight when its life
/// ended, after the next life has reclaimed the rows.
const TIMEOUT: Duration = Duration::from_secs(45);

pub(super) struct Plane<'a> {
    pub(super) world: &'a World,
    pub(super) journal: Arc<Journal>,
    pub(super) interference: Arc<Interference>,
    /// One fate per life so far.
    pub(super) fates: Vec<Arc<Fate>>,
    /// The faults of the first life, the second, and so on; later lives have none.
    path: Vec<(Point, Fault)>,
    succession: Succession,
    armed: bool,
    second_proof: Duration,
    sweep: Duration,
    life: Option<Life>,
    /// The keys of the agents that enrolled.
    pub(super) keys: BTreeSet<[u8; 32]>,
    /// Names the run in failure messages.
    title: String,
}

pub(super) struct Life {
    pub(super) context: Context,
    resources: ResourceLoop,
    fate: Arc<Fate>,
    journal: Arc<Journal>,
    /// Whether errors are expected because the database is made to fail.
    forgiving: bool,
    booted: AtomicBool,
}

impl Life {
    async fn boot(&self) {
        while !self.booted.load(Ordering::Relaxed) {
            match self.resources.boot_sweep().await {
                Ok(_) => self.booted.store(true, Ordering::Relaxed),
                Err(error) => self.note_error(&error.to_string()),
            }
        }
    }

    /// A machine that is too busy to give us a connection in time is no trouble of ours: the
    /// loop tries again, and the checks of the run hold all the same.
    fn note_error(&self, error: &str) {
        let is_busy = error.contains("pool timed out while waiting for an open connection");
        if !self.forgiving && !is_busy {
            self.journal.violation(format!("life {} had trouble: {error}", self.fate.life));
        }
    }

    /// Claims, works, relays; returns whether there was anything to do.
    pub(super) async fn round(&self) -> bool {
        let asked_before = Moment::now();
        let claimed = match self.resources.claim(50).await {
            Ok(claimed) => claimed,
            Err(error) => {
                self.note_error(&error.message);
                return false;
            }
        };
        let busy = !claimed.is_empty();
        if busy {
            for error in self.resources.work(claimed, Lease::new(asked_before, LEASE)).await {
                self.note_error(&error);
            }
            self.journal.ended(self.fate.life);
        }
        if let Err(error) = self.context.stores.events.outbox_relay(100).await {
            self.note_error(&error.to_string());
        }
        busy
    }
}

impl<'a> Plane<'a> {
    pub(super) fn new(
        world: &'a World,
        succession: Succession,
        path: Vec<(Point, Fault)>,
        title: String,
    ) -> Self {
        Self {
            world,
            journal: Arc::default(),
            interference: Arc::default(),
            fates: Vec::new(),
            path,
            succession,
            armed: false,
            second_proof: SECOND_PROOF,
            sweep: SWEEP,
            life: None,
            keys: BTreeSet::new(),
            title,
        }
    }

    /// Ends the preparation: from here on passages are points.
    pub(super) fn arm(&mut self) {
        self.armed = true;
        if let Some(life) = &self.life {
            life.fate.arm();
        }
    }

    /// Other scenarios cover the points of what follows.
    pub(super) fn disarm(&mut self) {
        self.armed = false;
        if let Some(life) = &self.life {
            life.fate.disarm();
        }
    }

    /// Defers the second proof of absence until the test advances the time, so
    /// that it happens at a defined moment and not in the middle of something
    /// else. The sweep interval becomes as long, so that settled resources stay
    /// settled meanwhile.
    pub(super) fn prove_when_told(&mut self) {
        assert!(self.life.is_none(), "a life that has begun goes on as it began");
        self.second_proof = LEASE;
        self.sweep = LEASE;
    }

    /// Observes settled resources less often, in runs with several of them.
    pub(super) fn sweep_every(&mut self, sweep: Duration) {
        assert!(self.life.is_none(), "a life that has begun goes on as it began");
        self.sweep = sweep;
    }

    /// The longest time until a settled resource is observed again: a sweep
    /// plus a quarter of jitter.
    pub(super) fn longest_rest(&self) -> Duration {
        self.sweep * 5 / 4
    }

    pub(super) fn is_forgiving(&self) -> bool {
        self.path.iter().any(|(_, fault)| *fault == Fault::Fail)
    }

    fn conceive(&mut self) -> Life {
        let number = self.fates.len();
        let planned = self.path.get(number).cloned();
        let fate = Arc::new(Fate::new(number, planned, self.armed, Arc::clone(&self.journal)));
        self.fates.push(Arc::clone(&fate));
        let world = self.world;
        let truth = world.context.stores.clone();
        let forgiving = self.is_forgiving();
        let (worker, lease) = match self.succession {
            // Even its own worker has to wait for the end of a claim whose answer was lost.
            Succession::Restart if forgiving => ("worker".to_owned(), SHORT_LEASE),
            Succession::Restart => ("worker".to_owned(), LEASE),
            Succession::Takeover => (format!("worker-{number}"), SHORT_LEASE),
        };
        let stores = Stores::of(Arc::new(FatedStore {
            inner: truth.clone(),
            lease,
            fate: Arc::clone(&fate),
            journal: Arc::clone(&self.journal),
        }));
        let substrate = Arc::new(FatedSubstrate {
            inner: Arc::clone(&world.substrate),
            fate: Arc::clone(&fate),
            journal: Arc::clone(&self.journal),
            interference: Arc::clone(&self.interference),
            truth,
        });
        let mut settings = world.context.settings.clone();
        // Blockers for missed deadlines would be commits that depend on the
        // speed of the machine.
        settings.deadlines = Deadlines::default();
        let inventories = Inventories::default();
        let wakes = Wakes::default();
        let context = Context { stores, wakes, settings, inventories, ..world.context.clone() };
        let engines =
            Engines::new(world.node_settings.clone()).serving(world.partition, "local", substrate);
        context.inventories.connect(engines.clone(), LEASE / 3);
        let resources =
            ResourceLoop::new(context.clone(), engines, worker, world.partition, LEASE, self.sweep)
                .with_second_proof_after(self.second_proof);
        Life {
            context,
            resources,
            fate,
            journal: Arc::clone(&self.journal),
            forgiving,
            booted: AtomicBool::new(false),
        }
    }

    /// Performs something in the current life, and again from the beginning in
    /// the next one if this one ends first.
    async fn attend<T>(&mut self, performed: impl AsyncFn(&Life) -> T) -> T {
        loop {
            let life = self.life.take().unwrap_or_else(|| self.conceive());
            let life = &*self.life.insert(life);
            let outcome = tokio::select! {
                biased;
                () = life.fate.died() => None,
                value = async { life.boot().await; performed(life).await } => Some(value),
            };
            if let Some(value) = outcome {
                return value;
            }
            self.journal.ended(life.fate.life);
            self.life = None;
        }
    }

    /// Retries while the database is reported unavailable.
    pub(super) async fn request<T>(
        &mut self,
        ask: impl AsyncFn(&Life) -> Result<T, slipway_app::Error>,
    ) -> Result<T, ErrorKind> {
        self.attend(async |life| {
            loop {
                match ask(life).await {
                    Ok(value) => return Ok(value),
                    Err(error) if life.forgiving && error.kind() == ErrorKind::Unavailable => {}
                    Err(error) => return Err(error.kind()),
                }
            }
        })
        .await
    }

    /// Runs the loop until the resource satisfies the condition.
    pub(super) async fn until(
        &mut self,
        id: ResourceId,
        what: &str,
        wanted: impl Fn(&ResourceSnapshot) -> bool,
    ) -> ResourceSnapshot {
        let world = self.world;
        self.until_seen(what, async || world.get(id).await, wanted).await
    }

    async fn until_seen(
        &mut self,
        what: &str,
        look: impl AsyncFn() -> ResourceSnapshot,
        wanted: impl Fn(&ResourceSnapshot) -> bool,
    ) -> ResourceSnapshot {
        let (world, armed, title) = (self.world, self.armed, self.title.clone());
        let started = Instant::now();
        self.attend(async |life| {
            loop {
                let seen = look().await;
                if wanted(&seen) {
                    return seen;
                }
                assert!(
                    started.elapsed() < TIMEOUT,
                    "{title}: waited for {what} in life {}, but it is {} with {:?}; due {:?}, now {:?}",
                    life.fate.life,
                    seen.attempt.phase(),
                    seen.blockers,
                    seen.due_at,
                    seen.now,
                );
                if life.round().await {
                    continue;
                }
                if armed || seen.attempt.phase() == Phase::Deleted {
                    // Nothing can be claimed before it is due; polling more
                    // often made this slow.
                    let due = seen.due_at.map_or(IDLE_MOST, |due| due.since(seen.now));
                    tokio::time::sleep(due.clamp(IDLE_LEAST, IDLE_MOST)).await;
                } else {
                    // Preparation need not prove that the row becomes due by itself.
                    world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
                }
            }
        })
        .await
    }

    pub(super) async fn until_phase(&mut self, id: ResourceId, phase: Phase) -> ResourceSnapshot {
        self.until(id, phase.as_str(), |seen| seen.attempt.phase() == phase).await
    }

    /// Runs the loop until the resource is Deleted and its absence is proven again.
    pub(super) async fn until_gone(&mut self, id: ResourceId) {
        let attempt = self.until_phase(id, Phase::Deleted).await.attempt.id();
        self.until_proven(attempt).await;
    }

    /// The same, but without faults once it is Deleted: other scenarios cover the rest.
    pub(super) async fn until_gone_in_peace(&mut self, id: ResourceId) {
        let attempt = self.until_phase(id, Phase::Deleted).await.attempt.id();
        self.disarm();
        self.until_proven(attempt).await;
    }

    /// Takes an attempt, which may have a successor.
    pub(super) async fn until_proven(&mut self, attempt: ProvisionedResourceId) {
        let world = self.world;
        let look = async || world.get_attempt(attempt).await;
        let proven = |seen: &ResourceSnapshot| seen.attempt.absence_proven_at().is_some();
        self.until_seen("the second proof of absence", look, proven).await;
    }

    /// A client whose answer was lost finds its resource by the handle.
    pub(super) async fn declare(&mut self, handle: &str) -> ResourceId {
        let world = self.world;
        let declared = self
            .request(async |life| {
                let input = Declare {
                    handle: handle.to_owned(),
                    blueprint: "local-node".to_owned(),
                    parameters: BTreeMap::new(),
                    ..Declare::default()
                };
                declare::declare(&life.context, &world.caller, input).await
            })
            .await;
        match declared {
            Ok(id) => id,
            Err(ErrorKind::HandleTaken) => {
                let filter =
                    ResourceFilter { handle: Some(handle.to_owned()), ..ResourceFilter::default() };
                let page = Page { after: None, limit: 2 };
                let found = world.context.stores.broker.resource_list(&filter, page).await.unwrap();
                let [Ok(snapshot)] = &found[..] else { panic!("{handle}: {found:?}") };
                snapshot.resource.id
            }
            Err(kind) => panic!("declaring {handle} was refused: {kind}"),
        }
    }

    pub(super) async fn delete(&mut self, id: ResourceId) {
        let world = self.world;
        self.request(async |life| {
            delete::delete(&life.context, &world.caller, id, DeleteOptions::default()).await
        })
        .await
        .unwrap();
    }

    /// Makes the resource of a deletion anew.
    pub(super) async fn restore(&mut self, id: DeletionId) {
        let world = self.world;
        self.request(async |life| {
            let options = RestoreOptions { redeclare: true, ..RestoreOptions::default() };
            restore::restore(&life.context, &world.caller, id, options).await.map(drop)
        })
        .await
        .unwrap();
    }

    /// Acts as the agent inside the object: it enrols with the token in the
    /// object, and with the same key until it gets an answer.
    pub(super) async fn enrol(&mut self, id: ResourceId, number: u8) -> NodeId {
        let name = self.world.name(id).await;
        let token = self.world.token(&name);
        self.enrol_with(id, number, &token).await
    }

    pub(super) async fn enrol_with(
        &mut self,
        id: ResourceId,
        number: u8,
        token: &Secret,
    ) -> NodeId {
        let key = public_key(id, number);
        self.keys.insert(key);
        self.request(async |life| {
            enrol::enrol(&life.context, mk_register(token, key)).await.map(|known| known.node_id)
        })
        .await
        .unwrap()
    }

    pub(super) async fn heartbeat(&mut self, node: NodeId) {
        let said = Reported::default();
        self.request(async |life| node::heartbeat(&life.context, node, &said).await).await.unwrap();
    }

    /// The agent receives the drain request and acknowledges it. If its answer
    /// was lost, the control plane no longer knows it when it repeats the call.
    pub(super) async fn acknowledge(&mut self, id: ResourceId) {
        let (node, drain) = self.until_draining(id).await;
        let said = self
            .request(async |life| node::acknowledge_drain(&life.context, node, drain).await)
            .await;
        assert!(matches!(said, Ok(()) | Err(ErrorKind::NodeNotFound)), "{said:?}");
    }

    pub(super) async fn retry(&mut self, id: ResourceId) {
        let world = self.world;
        let parameters = BTreeMap::from([("busy_seconds".to_owned(), serde_json::json!(1))]);
        let corrections = Corrections { version: None, parameters };
        let why = "the quota was raised";
        let retried = self
            .request(async |life| {
                retry::retry(&life.context, &world.caller, id, why, &corrections).await
            })
            .await;
        assert!(matches!(retried, Ok(()) | Err(ErrorKind::NothingToRetry)), "{retried:?}");
    }

    /// What every update asks for.
    pub(super) fn changes() -> Changes {
        let parameters = BTreeMap::from([("size".to_owned(), serde_json::json!(4))]);
        Changes { parameters, ..Changes::default() }
    }

    pub(super) async fn update(&mut self, id: ResourceId) {
        let world = self.world;
        let updated = self
            .request(async |life| {
                let (context, any) = (&life.context, Expected::Any);
                update::update(context, &world.caller, id, Self::changes(), any).await
            })
            .await;
        updated.unwrap();
    }

    pub(super) async fn replace(&mut self, id: ResourceId) {
        let world = self.world;
        let parameters = BTreeMap::from([("busy_seconds".to_owned(), serde_json::json!(1))]);
        let corrections = Corrections { version: None, parameters };
        let replaced = self
            .request(async |life| {
                let (context, any) = (&life.context, Expected::Any);
                let order = replace::Order::OldGoesFirst;
                replace::replace(context, &world.caller, id, None, &corrections, order, any).await
            })
            .await;
        // Asked again after its answer was lost.
        assert!(matches!(replaced, Ok(()) | Err(ErrorKind::Leaving)), "{replaced:?}");
    }

    pub(super) async fn surge(&mut self, id: ResourceId) {
        let world = self.world;
        let parameters = BTreeMap::from([("busy_seconds".to_owned(), serde_json::json!(1))]);
        let corrections = Corrections { version: None, parameters };
        let surged = self
            .request(async |life| {
                let (context, any) = (&life.context, Expected::Any);
                let order = replace::Order::Surge;
                replace::replace(context, &world.caller, id, None, &corrections, order, any).await
            })
            .await;
        // Asked again after its answer was lost.
        assert!(matches!(surged, Ok(()) | Err(ErrorKind::SurgeUnderWay)), "{surged:?}");
    }

    pub(super) async fn abort(&mut self, id: ResourceId) {
        let world = self.world;
        let aborted = self
            .request(async |life| {
                replace::abort(&life.context, &world.caller, id, None, Expected::Any).await
            })
            .await;
        assert!(matches!(aborted, Ok(()) | Err(ErrorKind::NothingToAbort)), "{aborted:?}");
    }

    /// Runs the loop until this attempt satisfies the condition.
    pub(super) async fn until_attempt(
        &mut self,
        attempt: ProvisionedResourceId,
        what: &str,
        wanted: impl Fn(&ResourceSnapshot) -> bool,
    ) -> ResourceSnapshot {
        let world = self.world;
        self.until_seen(what, async || world.get_attempt(attempt).await, wanted).await
    }

    /// The agent of this attempt receives the drain request and acknowledges it.
    pub(super) async fn acknowledge_of(&mut self, attempt: ProvisionedResourceId) {
        let asked =
            |seen: &ResourceSnapshot| seen.node.as_ref().is_some_and(|node| node.drain.is_some());
        let node = self.until_attempt(attempt, "a drain request", asked).await.node.unwrap();
        let drain = node.drain.unwrap().id;
        let said = self
            .request(async |life| node::acknowledge_drain(&life.context, node.id, drain).await)
            .await;
        assert!(matches!(said, Ok(()) | Err(ErrorKind::NodeNotFound)), "{said:?}");
    }

    /// A person whose answer was lost asks again, for another token.
    pub(super) async fn reenrol(&mut self, id: ResourceId) -> Secret {
        let world = self.world;
        let why = "its disk was full";
        let issued = self
            .request(async |life| {
                tokens::reenrol(&life.context, &world.caller, id, why, None, None).await
            })
            .await;
        let (_, token) = issued.unwrap();
        self.journal.injected(token.clone());
        token
    }

    pub(super) async fn force(&mut self, id: ResourceId) {
        self.until_draining(id).await;
        let world = self.world;
        let forced = self
            .request(async |life| {
                force::force_drain(&life.context, &world.caller, id, "it is frozen").await
            })
            .await;
        assert!(matches!(forced, Ok(()) | Err(ErrorKind::NothingToForce)), "{forced:?}");
    }

    pub(super) async fn until_draining(&mut self, id: ResourceId) -> (NodeId, DrainId) {
        let asked =
            |seen: &ResourceSnapshot| seen.node.as_ref().is_some_and(|node| node.drain.is_some());
        let node = self.until(id, "a drain request", asked).await.node.unwrap();
        (node.id, node.drain.unwrap().id)
    }

    /// Assigns positions to all events, in however many lives it takes.
    pub(super) async fn relay_all(&mut self) {
        self.attend(
            async |life| {
                while !matches!(life.context.stores.events.outbox_relay(100).await, Ok(0)) {}
            },
        )
        .await;
    }
}

/// The key of this agent of a resource. It is unique in the project, also across scenarios.
fn public_key(id: ResourceId, number: u8) -> [u8; 32] {
    let mut key = [number; 32];
    key[..16].copy_from_slice(id.as_uuid().as_bytes());
    key
}

pub(super) fn mk_register(token: &Secret, key: [u8; 32]) -> Register {
    Register {
        token: token.clone(),
        public_key: BASE64.encode(&key),
        hostname: Some("sim".to_owned()),
        capabilities: vec!["drain".to_owned()],
        nonce: None,
        project_id: None,
        resource_handle: None,
        requested_resource_id: None,
        reported: Reported::default(),
    }
}
