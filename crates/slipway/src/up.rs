//! `slipway up`: the composition root of the control plane. Opens the store,
//! the engine and the listener, starts the loops, serves until told to stop.
//!
//! Startup is refused for what concerns the process as a whole (configuration,
//! the port, the data directory, the database), never for one resource.

mod keys;
mod loops;
mod seeding;
mod worker;

use std::io::ErrorKind as IoErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_app::context::{Settings, Wakes};
use slipway_app::ports::Store;
use slipway_app::usecases::converge::Engines;
use slipway_app::{Context, Error as AppError};
use slipway_controller::Shutdown;
use slipway_render::local_node::NodeSettings;
use slipway_server::ServerState;
use slipway_store::{OpenError, StoreConfig};
use slipway_substrate::local::{LocalConfig, LocalSubstrate};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::adapters::{self, SystemClock, SystemEntropy};
use crate::config::{Config, InvalidConfig, Layer};

/// Why the control plane did not start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    #[error(
        "the data directory {directory} is in use by another slipway process; stop that one, or \
         give this one a directory of its own with --data-dir"
    )]
    DataDirectoryInUse { directory: String },
    #[error("{address} is in use; stop what listens there, or choose another with --listen")]
    PortInUse { address: String },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error("the local engine cannot start: {0}")]
    Substrate(#[from] slipway_app::ports::substrate::Error),
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("the signing key in {path} cannot be used; restore it, or remove it to get a new one")]
    SigningKey { path: String },
    #[error("the built-in blueprint is invalid: {0}")]
    Seed(#[from] slipway_core::parameters::InvalidSchema),
}

impl Error {
    /// The stable code shown beside the text.
    pub(crate) fn code(&self) -> &'static str {
        use slipway_store::{DirectoryError, MigrationError};
        match self {
            Self::Config(_) => "config_invalid",
            Self::DataDirectoryInUse { .. } => "data_directory_in_use",
            Self::PortInUse { .. } => "port_in_use",
            Self::Listen { .. } => "listen_failed",
            Self::Store(OpenError::InvalidUrl) => "database_url_invalid",
            Self::Store(OpenError::DatabaseUnreachable { .. }) => "database_unreachable",
            Self::Store(OpenError::DatabaseRefused { .. }) => "database_refused",
            Self::Store(OpenError::Directory(DirectoryError::DataDirectoryInUse { .. })) => {
                "data_directory_in_use"
            }
            Self::Store(OpenError::Directory(DirectoryError::Unusable { .. })) => {
                "data_directory_unusable"
            }
            Self::Store(OpenError::Sqlite(_)) => "database_unusable",
            Self::Store(OpenError::Migration(MigrationError::DatabaseNeedsNewerReader {
                ..
            })) => "database_needs_newer_reader",
            Self::Store(OpenError::Migration(_)) => "migration_failed",
            Self::App(error) => error.kind().code(),
            Self::Substrate(_) => "substrate_unusable",
            Self::Io { .. } => "io_failed",
            Self::SigningKey { .. } => "signing_key_unusable",
            Self::Seed(_) => "internal",
        }
    }

    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// How long loops and requests under way may take after a signal to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);
const LEASE: Duration = Duration::from_secs(30);

/// Runs the control plane until SIGTERM or SIGINT.
pub(crate) async fn up(layer: Box<Layer>) -> Result<(), Error> {
    let config = layer.resolve(&|name| std::env::var(name).ok())?;
    adapters::log_to_stderr(config.log_format);

    // The port before the database: the cheaper refusal first.
    let listener = listen(&config).await?;
    let address = listener.local_addr().map_err(Error::io("read the address"))?;
    let url = config.public_url.clone().unwrap_or_else(|| format!("http://{address}"));

    let worker = worker::Worker::take(&config.data_dir)?;
    let store = slipway_store::open(StoreConfig {
        max_connections: config.database_connections,
        connect_limit: config.database_timeout,
        ..StoreConfig::new(config.database_url.expose())
    })
    .await?;
    let context = context(&config, Arc::clone(&store));
    let engines = open_engines(&config, &context, &url).await?;
    seeding::seed(&context, &engines, &config).await?;
    let admin_key = seeding::admin_key(&context, &config).await?;
    let signing_key = keys::load_or_create(&config.data_dir.join("signing.pk8")).await?;

    let (stop, shutdown) = Shutdown::channel();
    let loops = loops::start(&context, &engines, &config, worker.name(), shutdown.clone()).await;
    let state = ServerState {
        context: context.clone(),
        node_settings: signing_key,
        loops: loops.view(),
        metrics: Arc::default(),
    };
    let server_file = config.data_dir.join("server.json");
    write_server_file(&server_file, &url).await?;
    greet(&url, admin_key.as_deref());

    let mut stopping = shutdown;
    let serving =
        tokio::spawn(slipway_server::serve(listener, slipway_server::router(state), async move {
            stopping.requested().await;
        }));
    wait_for_signal().await?;
    tracing::info!("stopping: no new work is taken, what is under way is finished");
    // Nobody listening any more is no reason not to stop.
    stop.send_replace(true);
    let drained = tokio::time::timeout(DRAIN_LIMIT, async {
        loops.join().await;
        serving.await
    })
    .await;
    if drained.is_err() {
        tracing::warn!("not everything was finished in time; it is taken up at the next start");
    }
    remove_server_file(&server_file).await;
    tracing::info!("stopped");
    Ok(())
}

async fn listen(config: &Config) -> Result<TcpListener, Error> {
    let address = config.listen.to_string();
    TcpListener::bind(config.listen).await.map_err(|source| match source.kind() {
        IoErrorKind::AddrInUse => Error::PortInUse { address },
        _ => Error::Listen { address, source },
    })
}

fn context(config: &Config, store: Arc<dyn Store>) -> Context {
    Context {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        wakes: Wakes::default(),
        settings: Settings {
            deadlines: config.deadlines,
            token_lifetimes: config.token_lifetimes,
            token_environment: config.token_environment.clone(),
        },
    }
}

async fn open_engines(config: &Config, context: &Context, url: &str) -> Result<Engines, Error> {
    let installation = context.store.installation().await.map_err(AppError::from)?;
    let program = std::env::current_exe().map_err(Error::io("find this program"))?;
    let local = LocalSubstrate::open(LocalConfig {
        root: config.substrate_root.clone(),
        agent_program: program,
        agent_arguments: ["agent", "node", "--dir"].map(str::to_owned).to_vec(),
        stop_grace: config.stop_grace,
        installation,
    })?;
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let settings = NodeSettings {
        installation,
        public_url: url.to_owned(),
        heartbeat_interval_ms: millis(config.heartbeat_interval),
        orphan_after_ms: millis(config.orphan_after),
    };
    Ok(Engines::new(vec![Arc::new(local)], settings))
}

/// Tells scripts, tests and the demo where this control plane is.
async fn write_server_file(path: &Path, url: &str) -> Result<(), Error> {
    let text = json!({ "url": url, "pid": std::process::id() }).to_string();
    let fresh = path.with_extension("json.new");
    tokio::fs::write(&fresh, text)
        .await
        .map_err(Error::io(format!("write {}", fresh.display())))?;
    tokio::fs::rename(&fresh, path).await.map_err(Error::io(format!("write {}", path.display())))
}

async fn remove_server_file(path: &Path) {
    if let Err(error) = tokio::fs::remove_file(path).await {
        tracing::warn!(%error, path = %path.display(), "could not remove the server file");
    }
}

#[expect(clippy::print_stdout, reason = "the first words of `slipway up` to its operator")]
fn greet(url: &str, admin_key: Option<&str>) {
    println!("slipway is up at {url}");
    if let Some(key) = admin_key {
        println!("\nThis admin key is shown once:\n\n    export SLIPWAY_KEY={key}");
        println!("    export SLIPWAY_SERVER={url}");
        println!("\nThen, in another terminal:\n");
        println!("    slipway resource create --handle web-1 --blueprint local-node --wait\n");
    }
}

async fn wait_for_signal() -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::io("wait for signals"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::io("wait for signals"))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
