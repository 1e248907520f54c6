//! A control plane without its HTTP on a real API server: the shipped loops,
//! the Crossplane engine, the placement loop, and the stand-in beside them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::{Map, Value, json};
use slipway_app::Context;
use slipway_app::broker::converge::Engines;
use slipway_app::broker::declare::{self, Declare};
use slipway_app::broker::read;
use slipway_app::catalog::{blueprints, clouds, credentials, projects};
use slipway_app::operations::control;
use slipway_app::permits::Permits;
use slipway_app::placement::clusters;
use slipway_app::placement::reconcile::{ManagementRegistry, PlacementReconciler};
use slipway_app::ports::Substrate;
use slipway_controller::driver::Dependencies;
use slipway_controller::placement::PlacementLoop;
use slipway_controller::resources::ResourceLoop;
use slipway_controller::watches::watch_engine;
use slipway_controller::{Shutdown, Status, drive};
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint::SubmittedContent;
use slipway_core::ids::{InstallationId, ResourceId};
use slipway_core::precondition::Expected;
use slipway_render::NodeSettings;
use slipway_render::shared::PlacementSettings;
use slipway_standin::Options as Standin;
use slipway_substrate::crossplane::{Access, CrossplaneConfig, CrossplaneSubstrate};
use slipway_testkit::kube::{ADMIN, KubeEnvironment, OTHER_ADMIN, Options};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::documents::{self, GROUP};
use super::valve::Valve;
use crate::database::Database;
use crate::plane::{SWEEP, context, operator};

const PROJECT: &str = "bench";
const CLUSTER: &str = "bench";
const BLUEPRINT: &str = "server";
const PROVIDER: &str = "hetzner";

pub(super) struct World {
    kubernetes: KubeEnvironment,
    _database: Database,
    context: Context,
    client: Client,
    pub(super) kubeconfig: PathBuf,
    pub(super) installation: InstallationId,
    pub(super) namespace: String,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    /// The resource loop, once it runs.
    pub(super) resources: Option<Arc<Valve>>,
    standin: tokio::task::JoinHandle<()>,
}

impl World {
    pub(super) async fn start() -> anyhow::Result<Self> {
        // On a disk, as in a real cluster.
        let options = Options { durable: true, ..Options::default() };
        let kubernetes = KubeEnvironment::start(options)
            .await?
            .context("there is no Kubernetes here; `cargo xtask test kube` provides it")?;
        let client = kubernetes.client(ADMIN).await?;
        let kubeconfig = kubernetes.kubeconfig_file(ADMIN)?;
        let other = kubernetes.client(OTHER_ADMIN).await?;
        let options = Standin {
            install: true,
            providers: vec![PROVIDER.to_owned()],
            bare: true,
            ..Standin::default()
        };
        let standin = tokio::spawn(async move {
            if let Err(error) = slipway_standin::run(other, options).await {
                println!("the stand-in ended: {error:#}");
            }
        });
        let database = Database::sqlite()?;
        let context = context(&database).await?;
        let installation = context.stores.operations.installation().await?;
        define(&client).await?;
        let (stop, shutdown) = Shutdown::channel();
        let mut world = Self {
            kubernetes,
            _database: database,
            context,
            client,
            kubeconfig,
            installation,
            namespace: String::new(),
            stop,
            tasks: JoinSet::new(),
            resources: None,
            standin,
        };
        let cluster = world.furnish().await?;
        world.serve(cluster, &shutdown).await?;
        world.wait_until_placed().await?;
        Ok(world)
    }

    /// Creates everything that a declaration needs.
    async fn furnish(&self) -> anyhow::Result<slipway_core::ids::ClusterId> {
        let (context, caller) = (&self.context, &operator());
        clouds::create(context, caller, "cloud", PROVIDER, Map::new(), None).await?;
        let input = credentials::CreateCredential {
            cloud: "cloud".to_owned(),
            name: "main".to_owned(),
            kv_mount: None,
            kv_path: None,
        };
        let credential = credentials::create(context, caller, input, None).await?;
        let labels = BTreeMap::new();
        let draft = projects::Draft { name: PROJECT, labels, mesh_cidr: None, protected: false };
        projects::create(context, caller, draft, None).await?;
        credentials::assign(context, caller, PROJECT, credential).await?;
        let wanted = clusters::ClusterRequest {
            name: CLUSTER,
            engine: "crossplane",
            namespace_prefix: None,
            region: None,
            access: Some("kubeconfig/bench"),
            protected: false,
        };
        let cluster = clusters::create(context, caller, wanted, None).await?;
        clusters::assign(context, caller, PROJECT, Some(CLUSTER), None, Expected::Any).await?;
        let input = blueprints::CreateBlueprint {
            slug: BLUEPRINT.to_owned(),
            display_name: "Server".to_owned(),
            description: String::new(),
            engine: "crossplane".to_owned(),
            protected: false,
        };
        blueprints::create(context, caller, input, None).await?;
        let given = SubmittedContent {
            version: "v1".to_owned(),
            xrd: documents::definition().to_string(),
            composition: documents::composition().to_string(),
            parameters: Some(json!({ "parameters": [{ "name": "size", "type": "integer" }] })),
            injection_strategy: "cloud-init-user-data".to_owned(),
            // Enrolment has a benchmark of its own.
            mesh_role: Some("standalone".to_owned()),
            provider_kinds: vec![PROVIDER.to_owned()],
            install_definitions: false,
            surge: false,
        };
        blueprints::publish(context, caller, BLUEPRINT, given, None).await?;
        Ok(cluster)
    }

    /// Starts the loops as `slipway up` does for a cluster.
    async fn serve(
        &mut self,
        cluster: slipway_core::ids::ClusterId,
        shutdown: &Shutdown,
    ) -> anyhow::Result<()> {
        let engine = Arc::new(CrossplaneSubstrate::new(CrossplaneConfig {
            cluster: "bench".to_owned(),
            access: Access::Kubeconfig(self.kubeconfig.clone()),
            installation: self.installation,
            sweep: SWEEP,
        }));
        let settings = NodeSettings {
            installation: self.installation,
            public_url: "http://127.0.0.1:1".to_owned(),
            heartbeat_interval_ms: 10_000,
            orphan_after_ms: 600_000,
            node_image: None,
            authorities: None,
        };
        let substrate: Arc<dyn Substrate> = Arc::clone(&engine) as _;
        let engines =
            Engines::new(settings).serving(cluster.into(), CLUSTER, Arc::clone(&substrate));
        let permits = Arc::<Permits>::default();
        // An engine does not act before the first heartbeat. This cluster has
        // no namespace for the high-water mark.
        match control::heartbeat(&self.context, &engines, &permits, "bench", ResourceLoop::LEASE)
            .await
        {
            Ok(_) | Err(control::HeartbeatError::HighWaterMark(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let resources = ResourceLoop::new(
            self.context.clone(),
            engines,
            "bench".to_owned(),
            cluster.into(),
            ResourceLoop::LEASE,
            SWEEP,
        )
        .with_permits(Arc::clone(&permits));
        let dependencies = |wake| Dependencies {
            clock: Arc::clone(&self.context.clock),
            entropy: Arc::clone(&self.context.entropy),
            wake,
        };
        let wake = resources.wake();
        let resources = Arc::new(Valve::new(resources));
        self.resources = Some(Arc::clone(&resources));
        self.tasks.spawn(drive(
            resources,
            ResourceLoop::PACING,
            dependencies(wake),
            Arc::new(Status::new(ResourceLoop::NAME)),
            shutdown.clone(),
        ));
        let registry = ManagementRegistry::default();
        registry.add(cluster, engine);
        let settings = PlacementSettings {
            installation: self.installation,
            subjects: Vec::new(),
            role: PlacementSettings::DEFAULT_ROLE.to_owned(),
            quota: BTreeMap::new(),
            secret_store: PlacementSettings::DEFAULT_SECRET_STORE.to_owned(),
        };
        let placement = PlacementReconciler::new(self.context.clone(), settings, permits, "bench");
        self.tasks.spawn(drive(
            Arc::new(PlacementLoop::new(placement, registry, "bench".to_owned(), SWEEP)),
            PlacementLoop::PACING,
            dependencies(Arc::clone(&self.context.wakes.placement)),
            Arc::new(Status::new(PlacementLoop::NAME)),
            shutdown.clone(),
        ));
        self.tasks.spawn(watch_engine(self.context.clone(), substrate, shutdown.clone()));
        Ok(())
    }

    /// Waits for the namespace, and through a first resource for the provider.
    async fn wait_until_placed(&mut self) -> anyhow::Result<()> {
        let assignment = clusters::assignment(&self.context, &operator(), PROJECT).await?;
        self.namespace = assignment.namespace;
        let first = self.declare("first", 1).await?;
        self.until(&first, Phase::Ready).await
    }

    /// Declares resources while the valve is closed.
    pub(super) async fn declare_ahead(
        &self,
        prefix: &str,
        count: u32,
    ) -> anyhow::Result<Vec<ResourceId>> {
        let resources = self.resources.as_ref().context("nothing is served")?;
        resources.close();
        self.declare(prefix, count).await
    }

    /// Opens the valve.
    pub(super) fn begin(&self) {
        self.resources.iter().for_each(|resources| resources.open());
    }

    pub(super) async fn declare(
        &self,
        prefix: &str,
        count: u32,
    ) -> anyhow::Result<Vec<ResourceId>> {
        let declared = stream::iter(0..count).map(|number| {
            let input = Declare {
                project: Some(PROJECT.to_owned()),
                handle: format!("{prefix}-{number}"),
                blueprint: BLUEPRINT.to_owned(),
                parameters: BTreeMap::from([("size".to_owned(), json!(2))]),
                ..Declare::default()
            };
            async move { declare::declare(&self.context, &operator(), input).await }
        });
        Ok(declared.buffered(16).try_collect().await?)
    }

    /// Waits until all of them have reached the phase; polls one after the other.
    pub(super) async fn until(&self, ids: &[ResourceId], phase: Phase) -> anyhow::Result<()> {
        let started = Instant::now();
        for id in ids {
            while self.phase(*id).await? != phase {
                anyhow::ensure!(
                    started.elapsed() < Duration::from_secs(600),
                    "{id} is not {phase}"
                );
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Ok(())
    }

    pub(super) async fn phase(&self, id: ResourceId) -> anyhow::Result<Phase> {
        Ok(read::resource(&self.context, &operator(), id).await?.attempt.phase())
    }

    pub(super) async fn name_of(&self, id: ResourceId) -> anyhow::Result<String> {
        Ok(read::resource(&self.context, &operator(), id).await?.attempt.xr_name().to_owned())
    }

    pub(super) fn composites(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = documents::composite_type();
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: kind.version.clone(),
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            plural: kind.plural.clone(),
        };
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    pub(super) async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    /// Our requests so far, without watches and lists.
    pub(super) fn requests(&self) -> anyhow::Result<usize> {
        let records = self.kubernetes.audit()?;
        let counted = records
            .iter()
            .filter(|record| record.user == ADMIN && !["watch", "list"].contains(&&*record.verb));
        Ok(counted.count())
    }

    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended?;
        }
        self.standin.abort();
        Ok(())
    }
}

/// Defines the kind on the cluster, once the stand-in has installed its own kinds.
async fn define(client: &Client) -> anyhow::Result<()> {
    let resource = ApiResource {
        group: "apiextensions.crossplane.io".to_owned(),
        version: "v2".to_owned(),
        api_version: "apiextensions.crossplane.io/v2".to_owned(),
        kind: "CompositeResourceDefinition".to_owned(),
        plural: "compositeresourcedefinitions".to_owned(),
    };
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let definition = documents::definition();
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let started = Instant::now();
    loop {
        let parameters = PatchParams::apply("bench").force();
        if let Ok(made) = api.patch(name, &parameters, &Patch::Apply(&definition)).await {
            let conditions = made.data["status"]["conditions"].as_array().cloned();
            let established = |condition: &Value| {
                condition["type"] == "Established" && condition["status"] == "True"
            };
            if conditions.iter().flatten().any(established) {
                return Ok(());
            }
        }
        anyhow::ensure!(started.elapsed() < Duration::from_secs(60), "the kind does not come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
