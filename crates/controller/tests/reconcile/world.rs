//! A control plane without its HTTP: a real store, the resource loop, and a
//! simulated substrate, with the verbs that tests use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use slipway_app::access::authorise::Caller;
use slipway_app::broker::converge::Engines;
use slipway_app::broker::declare::{self, Declare};
use slipway_app::broker::port::Claimed;
use slipway_app::broker::{delete, read};
use slipway_app::context::{Settings, Wakes};
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::events::port::PositionedEvent;
use slipway_app::nodes::enrol::{self, Register, Registered};
use slipway_app::nodes::{force, node};
use slipway_app::operations::explain;
use slipway_app::ports::meter::Unmetered;
use slipway_app::ports::store::Page;
use slipway_app::ports::templates::NoTemplates;
use slipway_app::ports::{Clock, Entropy, Stores};
use slipway_app::seed::{LocalNames, Seed};
use slipway_app::{Context, Error};
use slipway_controller::driver::Loop;
use slipway_controller::resources::ResourceLoop;
use slipway_core::blocker::{BlockerCode, Deadlines};
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::parameters::ParameterSchema;
use slipway_core::ids::{Partition, ProvisionedResourceId, ResourceId};
use slipway_core::nodes::node::Reported;
use slipway_core::nodes::token::TokenLifetimes;
use slipway_core::secret::Secret;
use slipway_core::time::Timestamp;
use slipway_durable::{Lease, Moment};
use slipway_render::cloud_init::bootstrap_token_in;
use slipway_render::composite::injected;
use slipway_render::local_node::NodeSettings;
use slipway_store::StoreConfig;
use slipway_testkit::memory;
use slipway_testkit::postgres::{self, TestDatabase};
use uuid::Uuid;

use crate::simulated::{Behaviour, Simulated};

const LEASE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Machine;

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "a test's clock adapter")]
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp::ZERO.plus(now)
    }
}

impl Entropy for Machine {
    fn uuid(&self) -> Uuid {
        #[expect(clippy::disallowed_methods, reason = "a test's entropy adapter")]
        Uuid::now_v7()
    }

    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }
}

/// Keeps the database alive for as long as the test runs.
enum Owner {
    Folder { _folder: tempfile::TempDir },
    Database { _database: TestDatabase },
}

pub(crate) struct World {
    pub(crate) context: Context,
    pub(crate) partition: Partition,
    pub(crate) substrate: Arc<Simulated>,
    pub(crate) resources: ResourceLoop,
    pub(crate) caller: Caller,
    pub(crate) node_settings: NodeSettings,
    /// The URL of the database.
    pub(crate) url: String,
    /// Nodes that [`World::ready`] has enrolled: each has its own key.
    nodes: AtomicU8,
    _keeper: Owner,
}

impl World {
    /// One world per available database.
    pub(crate) async fn each(test: &str) -> Vec<Self> {
        let mut worlds = vec![Self::sqlite().await];
        worlds.extend(Self::postgres(test).await);
        worlds
    }

    pub(crate) async fn sqlite() -> Self {
        let folder = memory::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("slipway.db").display());
        Self::on(&url, Owner::Folder { _folder: folder }).await
    }

    /// `None` without PostgreSQL.
    pub(crate) async fn postgres(test: &str) -> Option<Self> {
        let database = postgres::shared(test).await?.database("reconcile").await;
        let url = database.url().to_owned();
        Some(Self::on(&url, Owner::Database { _database: database }).await)
    }

    async fn on(url: &str, keeper: Owner) -> Self {
        // Each connection plans every statement for itself; one test needs two
        // connections at most.
        let config = StoreConfig { max_connections: 2, ..StoreConfig::new(url) };
        let store: Stores = slipway_store::open(config).await.unwrap();
        let context = Context {
            stores: store.clone(),
            clock: Arc::new(Machine),
            entropy: Arc::new(Machine),
            wakes: Wakes::default(),
            meter: Arc::new(Unmetered),
            templates: Arc::new(NoTemplates),
            tenants: Arc::new(slipway_app::tenants::targets::NoTargets),
            inventories: slipway_app::topology::inventory::Inventories::default(),
            settings: Settings {
                claimed_within: LEASE,
                deadlines: Deadlines {
                    deregistering: Duration::from_millis(200),
                    ..Deadlines::default()
                },
                token_lifetimes: TokenLifetimes::default(),
                token_environment: "test".to_owned(),
                namespace_prefix: slipway_core::placement::cluster::NamespacePrefix::from_stored(
                    "slipway-project-".to_owned(),
                ),
                deletion: slipway_core::deletion::door::Defaults::default(),
                brake: slipway_core::deletion::brake::Limits::OFF,
            },
        };
        let seed = Seed::local(
            &Machine,
            LocalNames {
                project: "default".to_owned(),
                cluster: "local".to_owned(),
                substrate_uid: "simulated".to_owned(),
                namespace_prefix: "slipway-project-".to_owned(),
            },
        );
        let mut seed = seed.unwrap();
        let mut schema = seed.blueprint.parameter_schema.document().clone();
        // One that can change in place.
        let size = serde_json::json!({ "name": "size", "type": "integer" });
        schema["parameters"].as_array_mut().unwrap().push(size);
        seed.blueprint.parameter_schema = ParameterSchema::read(schema).unwrap();
        let partition = store.operations.seed(&seed).await.unwrap().into();
        let substrate = Arc::new(Simulated::default());
        substrate.behave(Behaviour { comes_up: true, ..Behaviour::default() });
        let settings = NodeSettings {
            installation: store.operations.installation().await.unwrap(),
            public_url: "http://127.0.0.1:1".to_owned(),
            heartbeat_interval_ms: 1_000,
            orphan_after_ms: 1_000,
            node_image: None,
            authorities: None,
        };
        let engines =
            Engines::new(settings.clone()).serving(partition, "local", Arc::clone(&substrate) as _);
        let resources = ResourceLoop::new(
            context.clone(),
            engines,
            "test".to_owned(),
            partition,
            LEASE,
            Duration::from_millis(300),
        );
        let caller = Caller::trusted("test");
        Self {
            context,
            partition,
            substrate,
            resources,
            caller,
            node_settings: settings,
            url: url.to_owned(),
            nodes: AtomicU8::new(0),
            _keeper: keeper,
        }
    }

    /// A second project, placed on a cluster of the same name.
    pub(crate) async fn assign(&self, name: &str) -> Partition {
        let seed = Seed::local(
            &Machine,
            LocalNames {
                project: name.to_owned(),
                cluster: name.to_owned(),
                substrate_uid: "simulated".to_owned(),
                namespace_prefix: "slipway-project-".to_owned(),
            },
        );
        self.context.stores.operations.seed(&seed.unwrap()).await.unwrap().into()
    }

    pub(crate) async fn declare(&self, handle: &str) -> ResourceId {
        self.declare_in("default", handle).await
    }

    pub(crate) async fn declare_in(&self, project: &str, handle: &str) -> ResourceId {
        let input = Declare {
            project: Some(project.to_owned()),
            handle: handle.to_owned(),
            blueprint: "local-node".to_owned(),
            parameters: BTreeMap::new(),
            ..Declare::default()
        };
        declare::declare(&self.context, &self.caller, input).await.unwrap()
    }

    pub(crate) async fn delete(&self, id: ResourceId) {
        delete::delete(&self.context, &self.caller, id, DeleteOptions::default()).await.unwrap();
    }

    pub(crate) async fn force(&self, id: ResourceId, reason: &str) {
        force::force_drain(&self.context, &self.caller, id, reason).await.unwrap();
    }

    pub(crate) async fn get(&self, id: ResourceId) -> ResourceSnapshot {
        read::resource(&self.context, &self.caller, id).await.unwrap()
    }

    /// An attempt by its own id, even if another attempt followed it.
    pub(crate) async fn get_attempt(&self, id: ProvisionedResourceId) -> ResourceSnapshot {
        let mut loaded = self.context.stores.broker.attempt_load(&[id]).await.unwrap();
        loaded.remove(0).unwrap()
    }

    pub(crate) async fn name(&self, id: ResourceId) -> String {
        self.get(id).await.attempt.xr_name().to_owned()
    }

    /// Runs ticks until the resource satisfies the condition.
    pub(crate) async fn run_until(
        &self,
        id: ResourceId,
        what: &str,
        wanted: impl Fn(&ResourceSnapshot) -> bool,
    ) -> ResourceSnapshot {
        let started = Instant::now();
        loop {
            let seen = self.get(id).await;
            if wanted(&seen) {
                return seen;
            }
            assert!(
                started.elapsed() < TIMEOUT,
                "waited for {what}, but it is {} with {:?}",
                seen.attempt.phase(),
                seen.blockers
            );
            if self.round().await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    pub(crate) async fn run_until_phase(&self, id: ResourceId, phase: Phase) -> ResourceSnapshot {
        self.run_until(id, phase.as_str(), |seen| seen.attempt.phase() == phase).await
    }

    pub(crate) async fn run_until_blocked(
        &self,
        id: ResourceId,
        code: BlockerCode,
    ) -> ResourceSnapshot {
        self.run_until(id, code.as_str(), |seen| seen.blockers.iter().any(|b| b.code == code)).await
    }

    /// Claims once and works on it; returns how many were claimed.
    pub(crate) async fn round(&self) -> usize {
        let asked_before = Moment::now();
        let claimed = self.resources.claim(50).await.unwrap();
        let count = claimed.len();
        if count > 0 {
            let errors = self.resources.work(claimed, Lease::new(asked_before, LEASE)).await;
            assert_eq!(errors, Vec::<String>::new());
        }
        count
    }

    /// Waits until something is due for this loop, and claims it.
    pub(crate) async fn claim_when_due(&self, resources: &ResourceLoop) -> Vec<Claimed> {
        let started = Instant::now();
        loop {
            let claimed = resources.claim(50).await.unwrap();
            if !claimed.is_empty() {
                return claimed;
            }
            assert!(started.elapsed() < TIMEOUT, "nothing became due");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The token that the live object carries.
    pub(crate) fn token(&self, name: &str) -> Secret {
        let object = self.substrate.object(name).expect("the object exists").object;
        bootstrap_token_in(&injected(&object).unwrap()).unwrap()
    }

    /// Enrols as the node agent inside the object would.
    pub(crate) async fn enrol(&self, token: &Secret, key: u8) -> Result<Registered, Error> {
        let register = Register {
            token: token.clone(),
            public_key: BASE64.encode(&[key; 32]),
            hostname: Some("sim".to_owned()),
            capabilities: vec!["drain".to_owned()],
            nonce: None,
            project_id: None,
            resource_handle: None,
            requested_resource_id: None,
            reported: Reported::default(),
        };
        enrol::enrol(&self.context, register).await
    }

    /// Brings a resource to Ready.
    pub(crate) async fn ready(&self, handle: &str) -> ResourceId {
        let id = self.declare(handle).await;
        self.run_until_phase(id, Phase::Enrolling).await;
        let token = self.token(&self.name(id).await);
        let key = self.nodes.fetch_add(1, Ordering::Relaxed) + 1;
        self.enrol(&token, key).await.unwrap();
        self.run_until_phase(id, Phase::Ready).await;
        id
    }

    /// Acknowledges the drain of a resource's node.
    pub(crate) async fn acknowledge(&self, id: ResourceId) {
        let draining =
            |seen: &ResourceSnapshot| seen.node.as_ref().is_some_and(|node| node.drain.is_some());
        let seen = self.run_until(id, "a drain request", draining).await;
        let found = seen.node.unwrap();
        node::acknowledge_drain(&self.context, found.id, found.drain.unwrap().id).await.unwrap();
    }

    /// All events of a resource, by type, in order of position; positions are dense.
    pub(crate) async fn events(&self, id: ResourceId) -> Vec<String> {
        while self.context.stores.events.outbox_relay(100).await.unwrap() > 0 {}
        let page = Page { after: None, limit: 500 };
        let events: Vec<PositionedEvent> =
            self.context.stores.events.event_list(page).await.unwrap();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event.position, i64::try_from(index).unwrap() + 1, "positions are dense");
        }
        let attempt = self.get(id).await.attempt.id().as_uuid();
        let mine = events.into_iter().filter(|event| event.aggregate_id == attempt);
        mine.map(|event| event.event_type.replace("broker.ProvisionedResource", "")).collect()
    }

    /// The phases of a resource so far.
    pub(crate) async fn walk(&self, id: ResourceId) -> Vec<String> {
        let explained = explain::resource(&self.context, &self.caller, id).await.unwrap();
        explained.history.into_iter().map(|line| line.to).collect()
    }
}
