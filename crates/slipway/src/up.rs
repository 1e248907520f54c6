//! `slipway up`: the composition root of the control plane. Opens the store,
//! the engine and the listener, starts the loops, serves until a signal stops it.
//!
//! Only problems of the process as a whole refuse the start (configuration, the
//! port, the data directory, the database), never those of one resource.

mod clusters;
mod context;
mod database_wait;
mod keys;
mod listeners;
mod loops;
mod mode;
mod partitions;
pub(crate) mod preflight;
mod projects;
mod seeding;
mod stop;
mod worker;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_app::broker::converge::{self, Engines};
use slipway_app::context::{Settings, Wakes};
use slipway_app::deletion::leaks::Finder;
use slipway_app::permits::{ActionPermits, Permits};
use slipway_app::ports::{Meter, Stores, Substrate, TemplateRenderer};
use slipway_app::tenants::targets::TenantTargets;
use slipway_app::topology::inventory::Inventories;
use slipway_app::{Context, Error as AppError};
use slipway_cli::{ClientOptions, Remembered};
use slipway_controller::Shutdown;
use slipway_core::access::rate::Rate;
use slipway_core::ids::InstallationId;
use slipway_render::local_node::NodeSettings;
use slipway_server::{EventStreams, Metrics, RateLimits, ServerState, StreamLimits};
use slipway_store::StoreConfig;
use slipway_substrate::local::{LocalConfig, LocalSubstrate};

use self::database_wait::DatabaseWait;
use self::loops::Jobs;
use self::partitions::Partitions;
use crate::adapters::{self, SystemClock, SystemEntropy};
use crate::config::{Config, Layer};
use crate::error::Error;
use crate::metered_substrate::MeteredSubstrate;
use crate::templates::Processes;
use crate::tenants::Targets;

/// Runs the control plane until a signal stops it.
pub(crate) async fn up(layer: Box<Layer>, client: &ClientOptions) -> Result<(), Error> {
    let config = layer.resolve(&|name| std::env::var(name).ok())?;
    adapters::log_to_stderr(config.log_format);
    for warning in crate::local::settings::warnings() {
        tracing::warn!("{warning}");
    }
    // Before anything is opened, so that no signal is missed.
    let mut signals = stop::Signals::listen(config.stop_with_stdin)?;

    // Files and ports before the database: the cheaper refusals first.
    let preflight::Checked { tls, authorities } = preflight::check(&config)?;
    let listener = listeners::bind(&config).await?;
    let probes = listeners::bind_probes(&config).await?;
    let address = listener.local_addr().map_err(Error::io("read the address"))?;
    let url = config.public_url.clone().unwrap_or_else(|| config.url_at(address));

    let worker = worker::Worker::take(&config.data_dir)?;
    let (store, jobs) = slipway_store::open_with_jobs(StoreConfig {
        max_connections: config.database_connections,
        connect_limit: config.database_timeout,
        idle_transaction_limit: converge::action_deadline(config.lease),
        statement_limit: config.database_statement_timeout,
        ..StoreConfig::new(config.database_url.expose())
    })
    .await?;
    let (metrics, meter) = Metrics::with_loops();
    let program = std::env::current_exe().map_err(Error::io("find this program"))?;
    let templates = Arc::new(Processes::new(program));
    let targets = Targets::new(store.clone());
    let context = context(&config, store.clone(), meter, templates, Arc::new(targets.clone()));
    let wait = DatabaseWait::of(&config);
    let installation = wait
        .run(async || Ok(context.stores.operations.installation().await.map_err(AppError::from)?))
        .await?;
    // One for the process: it acknowledges a mode when all its loops obey.
    let permits = Arc::<Permits>::default();
    let local = open_local(&config, &context, installation, &permits)?;
    let cluster = seeding::seed(&context, local.as_ref(), &config).await?;
    let settings = node_settings(&config, installation, &url, authorities.clone());
    let engines = Engines::new(settings).serving(cluster.into(), &config.local_cluster, local);
    context.inventories.connect(engines.clone(), converge::action_deadline(config.lease));
    wait.run(async || mode::converge(&context, &engines, &permits, &config, worker.name()).await)
        .await?;
    let signing_key = config.data_dir.join("signing.pk8");
    let for_nodes = keys::load_or_create(&signing_key, url.clone(), authorities).await?;

    let (stop, shutdown) = Shutdown::channel();
    let finder = Finder::new(context.clone(), engines.clone(), Arc::clone(&permits), config.lease);
    let partitions = Partitions::new(&context, &engines, &permits, &config, worker.name());
    let steps = targets.steps();
    let tenants = Jobs { jobs, steps };
    let loops = loops::start(&partitions, &finder, tenants, &config, shutdown.clone()).await?;
    let state = ServerState {
        context: context.clone(),
        node_settings: for_nodes,
        loops: loops.view(),
        finder,
        metrics: Arc::new(metrics),
        streams: EventStreams::new(context.clone(), StreamLimits::default(), stop.subscribe()),
        key_rates: Arc::new(RateLimits::of_keys(config.rate)),
        node_rates: Arc::new(RateLimits::of_nodes(Rate::of_node(config.heartbeat_interval))),
    };
    let server_file = config.data_dir.join("server.json");
    let admin_key = seeding::admin_key(&context, &config, worker.name()).await?;
    let kept = context::remember(&config, client, address, admin_key.as_deref()).await;
    greet(&url, admin_key.as_deref(), kept.as_ref()).map_err(Error::io(
        "show the admin key; start again with SLIPWAY_ADMIN_KEY set to one of your own",
    ))?;
    write_server_file(&server_file, &url).await?;

    let listening = listeners::listening(&config, tls);
    let serving = tokio::spawn(listeners::serve(listener, probes, listening, state, shutdown));
    signals.next().await;
    tracing::info!("stopping: taking no new work, finishing what is under way");
    // Unlike `send`, this does not fail if no receiver is left.
    stop.send_replace(true);
    let drained = tokio::time::timeout(config.drain_timeout, async {
        loops.join().await;
        serving.await
    });
    let told_twice = tokio::select! {
        drained = drained => {
            if drained.is_err() {
                tracing::warn!("not everything was finished in time; it continues at the next start");
            }
            false
        }
        () = signals.next() => true,
    };
    if !told_twice {
        mode::last_heartbeat(&partitions).await;
    }
    remove_server_file(&server_file).await;
    if told_twice {
        return Err(Error::StoppedTwice);
    }
    tracing::info!("stopped");
    Ok(())
}

fn context(
    config: &Config,
    store: Stores,
    meter: Arc<dyn Meter>,
    templates: Arc<dyn TemplateRenderer>,
    tenants: Arc<dyn TenantTargets>,
) -> Context {
    Context {
        stores: store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        wakes: Wakes::default(),
        meter,
        templates,
        tenants,
        inventories: Inventories::default(),
        settings: Settings {
            deadlines: config.deadlines,
            claimed_within: config.lease + config.reconcile_interval,
            token_lifetimes: config.token_lifetimes,
            token_environment: config.token_environment.clone(),
            namespace_prefix: config.namespace_prefix.clone(),
            deletion: config.deletion,
            brake: config.brake,
        },
    }
}

fn open_local(
    config: &Config,
    context: &Context,
    installation: InstallationId,
    permits: &Arc<Permits>,
) -> Result<Arc<dyn Substrate>, Error> {
    let program = std::env::current_exe().map_err(Error::io("find this program"))?;
    let local = LocalSubstrate::open(LocalConfig {
        root: config.substrate_root.clone(),
        agent_program: program,
        agent_arguments: ["agent", "node", "--dir"].map(str::to_owned).to_vec(),
        stop_grace: config.stop_grace,
        installation,
    })?
    .with_permits(ActionPermits { permits: Arc::clone(permits), stores: context.stores.clone() });
    let meter = Arc::clone(&context.meter);
    Ok(Arc::new(MeteredSubstrate::new(Arc::new(local), meter, &config.local_cluster)))
}

fn node_settings(
    config: &Config,
    installation: InstallationId,
    url: &str,
    authorities: Option<String>,
) -> NodeSettings {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    NodeSettings {
        installation,
        public_url: url.to_owned(),
        heartbeat_interval_ms: millis(config.heartbeat_interval),
        orphan_after_ms: millis(config.orphan_after),
        node_image: config.node_image.clone(),
        authorities,
    }
}

/// Writes the address for scripts, tests and the demo.
async fn write_server_file(path: &Path, url: &str) -> Result<(), Error> {
    let text = json!({ "url": url, "pid": std::process::id() }).to_string();
    let fresh = path.with_extension("json.new");
    tokio::fs::write(&fresh, text).await.map_err(Error::writing(&fresh))?;
    tokio::fs::rename(&fresh, path).await.map_err(Error::writing(path))
}

async fn remove_server_file(path: &Path) {
    if let Err(error) = tokio::fs::remove_file(path).await {
        tracing::warn!(%error, path = %path.display(), "could not remove the server file");
    }
}

fn greet(url: &str, admin_key: Option<&str>, kept: Option<&Remembered>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "slipway is up at {url}")?;
    if let Some(key) = admin_key {
        writeln!(out, "\nThis admin key is shown once:\n")?;
        match kept {
            Some(Remembered { name, is_current, path }) => {
                writeln!(out, "  {key}\n")?;
                writeln!(out, "The context `{name}` has it, too, in {}.", path.display())?;
                if !is_current {
                    writeln!(
                        out,
                        "Another context is the current one, and stays it until you run:\n"
                    )?;
                    writeln!(out, "    slipway context use {name}")?;
                }
                writeln!(out, "\nIn another terminal:\n")?;
            }
            None => {
                writeln!(out, "    export SLIPWAY_KEY={key}\n    export SLIPWAY_SERVER={url}")?;
                writeln!(out, "\nThen, in another terminal:\n")?;
            }
        }
        writeln!(out, "    slipway sample > sample.yaml")?;
        writeln!(out, "    slipway apply -f sample.yaml --wait")?;
        writeln!(out, "    slipway resource explain web-1")?;
        writeln!(out, "    slipway resource delete web-1 --yes --wait\n")?;
    }
    out.flush()
}
