//! A control plane without its HTTP: a store, the shipped loops, and the
//! instant substrate.

use std::sync::Arc;
use std::time::Duration;

use slipway_app::access::authorise::Caller;
use slipway_app::broker::converge::Engines;
use slipway_app::context::{Settings, Wakes};
use slipway_app::nodes::enrol::{self, Register};
use slipway_app::ports::meter::Unmetered;
use slipway_app::ports::templates::NoTemplates;
use slipway_app::ports::{Clock, Entropy};
use slipway_app::rollouts::run::Runner;
use slipway_app::seed::{LocalNames, Seed};
use slipway_app::{Context, deletion, topology};
use slipway_controller::deletions::{DeletionLoop, DeletionPass};
use slipway_controller::driver::Dependencies;
use slipway_controller::relay::Relay;
use slipway_controller::resources::{Batching, ResourceLoop};
use slipway_controller::rollouts::{RolloutLoop, RolloutPass};
use slipway_controller::workspaces::{WorkspaceLoop, WorkspacePass};
use slipway_controller::{Pacing, Shutdown, Status, drive};
use slipway_core::blocker::Deadlines;
use slipway_core::deletion::brake::Limits;
use slipway_core::deletion::door::Defaults;
use slipway_core::ids::Partition;
use slipway_core::nodes::node::Reported;
use slipway_core::nodes::token::TokenLifetimes;
use slipway_core::secret::Secret;
use slipway_core::time::Timestamp;
use slipway_render::local_node::NodeSettings;
use slipway_store::StoreConfig;
use slipway_tenants::JobStore;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::database::{CONNECTIONS, Database};
use crate::substrate::Instant;

/// How often the sweep observes a settled resource, unless a bench sets another
/// interval: the default of `reconcile_interval`.
pub(crate) const SWEEP: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Machine;

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the clock adapter of the benchmarks")]
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::ZERO.plus(now.unwrap_or_default())
    }
}

impl Entropy for Machine {
    fn uuid(&self) -> Uuid {
        #[expect(clippy::disallowed_methods, reason = "the entropy adapter of the benchmarks")]
        Uuid::now_v7()
    }

    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}

/// One replica.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    pub(crate) context: Context,
    pub(crate) substrate: Arc<Instant>,
    pub(crate) partition: Partition,
    engines: Engines,
    name: String,
}

impl Plane {
    /// Opens a replica on this database. Replicas share the substrate.
    pub(crate) async fn open(
        name: &str,
        database: &Database,
        substrate: &Arc<Instant>,
    ) -> anyhow::Result<Self> {
        let context = context(database).await?;
        let store = context.stores.clone();
        let names = LocalNames {
            project: "default".to_owned(),
            cluster: "local".to_owned(),
            substrate_uid: "instant".to_owned(),
            namespace_prefix: "slipway-project-".to_owned(),
        };
        let partition = store.operations.seed(&Seed::local(&Machine, names)?).await?.into();
        let settings = NodeSettings {
            installation: store.operations.installation().await?,
            public_url: "http://127.0.0.1:1".to_owned(),
            heartbeat_interval_ms: 10_000,
            orphan_after_ms: 600_000,
            node_image: None,
            authorities: None,
        };
        let engines =
            Engines::new(settings).serving(partition, "local", Arc::clone(substrate) as _);
        Ok(Self {
            context,
            substrate: Arc::clone(substrate),
            partition,
            engines,
            name: name.to_owned(),
        })
    }

    pub(crate) fn engines(&self) -> Engines {
        self.engines.clone()
    }

    /// Starts the resource loop and the relay with their shipped pacing.
    pub(crate) fn start(&self, batching: Batching, sweep: Duration) -> Running {
        let (stop, shutdown) = Shutdown::channel();
        let pacing = ResourceLoop::PACING;
        let resources = ResourceLoop::new(
            self.context.clone(),
            self.engines.clone(),
            self.name.clone(),
            self.partition,
            ResourceLoop::LEASE,
            sweep,
        )
        .with_batching(batching);
        let status = Arc::new(Status::new(ResourceLoop::NAME));
        let others = shutdown.clone();
        let mut tasks = JoinSet::new();
        let wake = resources.wake();
        tasks.spawn(drive(
            Arc::new(resources),
            pacing,
            self.dependencies(wake),
            Arc::clone(&status),
            shutdown.clone(),
        ));
        tasks.spawn(drive(
            Arc::new(Relay::new(self.context.stores.clone())),
            Pacing { slots: 1, batch: 1, ..pacing },
            self.dependencies(Arc::clone(&self.context.wakes.outbox)),
            Arc::new(Status::new(Relay::NAME)),
            shutdown,
        ));
        Running { stop, tasks, status, shutdown: others }
    }

    fn dependencies(&self, wake: Arc<Notify>) -> Dependencies {
        Dependencies {
            clock: Arc::clone(&self.context.clock),
            entropy: Arc::clone(&self.context.entropy),
            wake,
        }
    }

    /// Enrols a node, as the node inside the object does when it boots.
    pub(crate) async fn enrol(&self, token: Secret) -> anyhow::Result<()> {
        let mut public_key = [0; 32];
        self.context.entropy.fill(&mut public_key);
        let register = Register {
            token,
            public_key: data_encoding::BASE64.encode(&public_key),
            hostname: Some("bench".to_owned()),
            capabilities: vec!["drain".to_owned()],
            nonce: None,
            project_id: None,
            resource_handle: None,
            requested_resource_id: None,
            reported: Reported::default(),
        };
        enrol::enrol(&self.context, register).await?;
        Ok(())
    }
}

/// The ports and settings of one replica on this database.
pub(crate) async fn context(database: &Database) -> anyhow::Result<Context> {
    Ok(context_of(&database.url()).await?.0)
}

/// The same by its address, and the jobs of tenants.
pub(crate) async fn context_of(url: &str) -> anyhow::Result<(Context, Arc<dyn JobStore>)> {
    let mut config = StoreConfig::new(url.to_owned());
    config.max_connections = CONNECTIONS;
    let (stores, jobs) = slipway_store::open_with_jobs(config).await?;
    let context = Context {
        stores,
        clock: Arc::new(Machine),
        entropy: Arc::new(Machine),
        wakes: Wakes::default(),
        meter: Arc::new(Unmetered),
        templates: Arc::new(NoTemplates),
        tenants: Arc::new(slipway_app::tenants::targets::NoTargets),
        inventories: topology::inventory::Inventories::default(),
        settings: Settings {
            deadlines: Deadlines::default(),
            claimed_within: ResourceLoop::LEASE * 2,
            token_lifetimes: TokenLifetimes::default(),
            token_environment: "bench".to_owned(),
            namespace_prefix: slipway_core::placement::cluster::NamespacePrefix::from_stored(
                "slipway-project-".to_owned(),
            ),
            deletion: Defaults::default(),
            brake: Limits::OFF,
        },
    };
    Ok((context, jobs))
}

pub(crate) fn operator() -> Caller {
    Caller::trusted("bench")
}

/// Running loops.
#[derive(Debug)]
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    shutdown: Shutdown,
    pub(crate) status: Arc<Status>,
}

impl Running {
    /// With the loop over roll-outs, in its shipped pacing.
    pub(crate) fn with_rollouts(mut self, plane: &Plane) -> Self {
        let runner = Runner::new(plane.context.clone(), Arc::default());
        let rollouts = RolloutLoop::new(RolloutPass::new(runner), plane.name.clone());
        self.tasks.spawn(drive(
            Arc::new(rollouts),
            RolloutLoop::PACING,
            plane.dependencies(Arc::clone(&plane.context.wakes.rollouts)),
            Arc::new(Status::new(RolloutLoop::NAME)),
            self.shutdown.clone(),
        ));
        self
    }

    /// With the loops over workspaces and deletions, in their shipped pacing.
    pub(crate) fn with_workspaces(mut self, plane: &Plane) -> Self {
        let runner = topology::run::Runner::new(plane.context.clone(), Arc::default());
        let workspaces = WorkspaceLoop::new(WorkspacePass::new(runner), plane.name.clone());
        self.tasks.spawn(drive(
            Arc::new(workspaces),
            WorkspaceLoop::PACING,
            plane.dependencies(Arc::clone(&plane.context.wakes.workspaces)),
            Arc::new(Status::new(WorkspaceLoop::NAME)),
            self.shutdown.clone(),
        ));
        let runner = deletion::run::Runner::new(plane.context.clone(), Arc::default());
        self.tasks.spawn(drive(
            Arc::new(DeletionLoop::new(DeletionPass::new(runner), plane.name.clone())),
            DeletionLoop::PACING,
            plane.dependencies(Arc::clone(&plane.context.wakes.deletions)),
            Arc::new(Status::new(DeletionLoop::NAME)),
            self.shutdown.clone(),
        ));
        self
    }

    /// Stops them, and fails if one of them reported an error.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended?;
        }
        let status = self.status.snapshot();
        let error = status.last_error.unwrap_or_default();
        anyhow::ensure!(status.failed == 0, "{} ticks failed: {error}", status.failed);
        Ok(())
    }
}
