//! Configuration: flags over `SLIPWAY_*` over a TOML file over defaults,
//! checked at boot with the key named. One struct, [`Layer`], is both the
//! flags and the file, so that the two cannot drift apart.

mod file;
pub(crate) mod keys;
mod layering;
mod listener;
mod parse;
mod placement;
mod show;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use slipway_controller::retention::Retention;
use slipway_core::access::rate::Rate;
use slipway_core::blocker::Deadlines;
use slipway_core::deletion::brake::Limits;
use slipway_core::deletion::door::Defaults;
use slipway_core::nodes::token::TokenLifetimes;
use slipway_core::placement::cluster::NamespacePrefix;
use slipway_core::secret::Secret;
use slipway_server::TlsFiles;

use self::file::{read, secret, secret_in_file};
use self::layering::{ALIASES, aliases};
use self::parse::{
    absolute, address, at_least_one, checked_image, checked_url, days, default_data_dir, duration,
    name,
};
pub(crate) use self::placement::PlacementConfig;
use self::placement::Quota;
pub(crate) use self::show::{Setting, settings};

/// One source of settings; a setting that it does not have is `None`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Layer {
    /// A TOML file with the same keys as these flags (with _ for -).
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CONFIG")]
    #[serde(skip)]
    config: Option<PathBuf>,

    /// Where to listen [default: 127.0.0.1:7700].
    #[arg(long, value_name = "ADDR:PORT", env = "SLIPWAY_LISTEN")]
    listen: Option<String>,

    /// Where to listen for probes and metrics alone, in plain HTTP [default:
    /// only beside the API].
    #[arg(long, value_name = "ADDR:PORT", env = "SLIPWAY_PROBE_LISTEN")]
    probe_listen: Option<String>,

    /// The certificate of this server in PEM, with those between it and its
    /// authority; read again when it changes [default: plain HTTP].
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_CERT")]
    tls_cert: Option<PathBuf>,

    /// Its private key in PEM.
    #[arg(long, value_name = "FILE", env = "SLIPWAY_TLS_KEY")]
    tls_key: Option<PathBuf>,

    /// A proxy in front ends TLS and names its clients in this header; nobody
    /// else can reach the port [default: no proxy; without a value:
    /// x-forwarded-for].
    #[arg(long, value_name = "HEADER", env = "SLIPWAY_BEHIND_PROXY")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "x-forwarded-for")]
    behind_proxy: Option<ProxyHeader>,

    /// Where state is kept [default: the user's data folder].
    #[arg(long, value_name = "DIR", env = "SLIPWAY_DATA_DIR")]
    data_dir: Option<PathBuf>,

    /// postgres://… or sqlite:PATH [default: SQLite in the data directory].
    #[arg(long, value_name = "URL", env = "SLIPWAY_DATABASE_URL", hide_env_values = true)]
    #[arg(value_parser = secret)]
    #[serde(deserialize_with = "secret_in_file")]
    database_url: Option<Secret>,

    /// How many connections to PostgreSQL [default: 16].
    #[arg(long, value_name = "N", env = "SLIPWAY_DATABASE_CONNECTIONS")]
    database_connections: Option<u32>,

    /// How long to wait for the database at the start [default: 30s].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_DATABASE_TIMEOUT")]
    database_timeout: Option<String>,

    /// How long the database may work on one statement; an operation is given
    /// up five seconds later [default: 30s].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_DATABASE_STATEMENT_TIMEOUT")]
    database_statement_timeout: Option<String>,

    /// How nodes reach this server [default: http://<listen>, https:// with a
    /// certificate].
    #[arg(long, value_name = "URL", env = "SLIPWAY_PUBLIC_URL")]
    public_url: Option<String>,

    /// The image of the node agent, for blueprints that hand it to a Helm
    /// release [default: none].
    #[arg(long, value_name = "IMAGE", env = "SLIPWAY_NODE_IMAGE")]
    node_image: Option<String>,

    /// A PEM file with the authorities that nodes trust instead of their
    /// machine's, if theirs do not know that of `public_url` [default: none].
    #[arg(long, value_name = "FILE", env = "SLIPWAY_NODE_CA_FILE")]
    node_ca_file: Option<PathBuf>,

    /// Where the local engine keeps its nodes [default: in the data directory].
    #[arg(long, value_name = "DIR", env = "SLIPWAY_SUBSTRATE_ROOT")]
    substrate_root: Option<PathBuf>,

    /// How often a settled resource is observed [default: 30s].
    #[arg(long, alias = "sweep-interval", value_name = "TIME", env = "SLIPWAY_RECONCILE_INTERVAL")]
    reconcile_interval: Option<String>,

    /// How long a claim on a resource lasts unless it is renewed, at least 3s
    /// [default: 30s].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_LEASE")]
    lease: Option<String>,

    /// How long a bootstrap token lives, 5m to 24h [default: 1h].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_TOKEN_TTL")]
    token_ttl: Option<String>,

    /// The environment written into tokens and keys [default: live].
    #[arg(long, value_name = "NAME", env = "SLIPWAY_TOKEN_ENV")]
    token_env: Option<String>,

    /// The prefix of project namespaces on clusters registered without one [default: slipway-project-].
    #[arg(long, value_name = "TEXT", env = "SLIPWAY_NAMESPACE_PREFIX")]
    namespace_prefix: Option<String>,

    /// A folder of kubeconfigs: a cluster that was registered with `--access
    /// kubeconfig/east` is served by a control plane that has the file `east`.
    #[arg(long, value_name = "DIR", env = "SLIPWAY_KUBECONFIG_DIR")]
    kubeconfig_dir: Option<PathBuf>,

    /// A folder of API tokens of providers: a cluster that was registered with
    /// `--access hetzner/shop` is served by a control plane that has the file `shop`.
    #[arg(long, value_name = "DIR", env = "SLIPWAY_PROVIDER_TOKEN_DIR")]
    provider_token_dir: Option<PathBuf>,

    /// The namespace on a management cluster for the high-water mark of this
    /// installation; it has to exist [default: slipway-system].
    #[arg(long, value_name = "NAME", env = "SLIPWAY_SYSTEM_NAMESPACE")]
    system_namespace: Option<String>,

    /// Who may read the namespaces of projects: group:NAME, user:NAME or
    /// serviceaccount:NAMESPACE/NAME, several with commas [default: nobody].
    #[arg(long, value_name = "SUBJECT", env = "SLIPWAY_NAMESPACE_SUBJECTS")]
    #[arg(value_delimiter = ',')]
    namespace_subjects: Option<Vec<String>>,

    /// The ClusterRole that they are bound to [default: slipway-project-viewer].
    #[arg(long, value_name = "NAME", env = "SLIPWAY_NAMESPACE_ROLE")]
    namespace_role: Option<String>,

    /// What a project's namespace may hold at most, several with commas
    /// [default: count/configmaps=100,count/secrets=100].
    #[arg(long, value_name = "WHAT=N", env = "SLIPWAY_NAMESPACE_QUOTA")]
    #[arg(value_parser = placement::quota_in_text)]
    namespace_quota: Option<Quota>,

    /// The ClusterSecretStore that credentials are read from [default: slipway].
    #[arg(long, value_name = "NAME", env = "SLIPWAY_SECRET_STORE")]
    secret_store: Option<String>,

    /// How often a local node sends a heartbeat [default: 1s].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_HEARTBEAT_INTERVAL")]
    heartbeat_interval: Option<String>,

    /// When a local node without its server ends by itself [default: 10m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_ORPHAN_AFTER")]
    orphan_after: Option<String>,

    /// How often a scan compares everything outside with the rows [default: 10m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_ORPHAN_INTERVAL")]
    orphan_interval: Option<String>,

    /// How long deletions wait before they touch anything, unless they say otherwise
    /// [default: none].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_DELETION_GRACE")]
    deletion_grace: Option<String>,

    /// How long what was deleted is kept [default: 30d].
    #[arg(long, value_name = "DAYS", env = "SLIPWAY_DELETION_RETENTION")]
    deletion_retention: Option<String>,

    /// How many resources one key may delete within the window of the brake before an admin
    /// has to release it; 0 means that there is no brake [default: 20].
    #[arg(long, value_name = "N", env = "SLIPWAY_DELETION_BRAKE")]
    deletion_brake: Option<u32>,

    /// The window of the deletion brake [default: 10m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_DELETION_BRAKE_WINDOW")]
    deletion_brake_window: Option<String>,

    /// How long a local node may take to stop before it is killed [default: 5s].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_STOP_GRACE")]
    stop_grace: Option<String>,

    /// How long work under way may take to finish after SIGTERM [default: 15s].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_DRAIN_TIMEOUT")]
    drain_timeout: Option<String>,

    /// How long Pending may last before a blocker is shown [default: 5m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_PENDING_DEADLINE")]
    pending_deadline: Option<String>,
    /// The same for Provisioning [default: 30m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_PROVISIONING_DEADLINE")]
    provisioning_deadline: Option<String>,
    /// The same for Enrolling [default: 24h].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_ENROLLING_DEADLINE")]
    enrolling_deadline: Option<String>,
    /// The same for Deregistering [default: 10m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_DEREGISTERING_DEADLINE")]
    deregistering_deadline: Option<String>,
    /// The same for Deprovisioning [default: 30m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_DEPROVISIONING_DEADLINE")]
    deprovisioning_deadline: Option<String>,
    /// How long an enrolled node may take to send its first heartbeat before a
    /// blocker is shown [default: 5m].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_FIRST_HEARTBEAT_DEADLINE")]
    first_heartbeat_deadline: Option<String>,

    /// The project that a fresh database starts with [default: default].
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LOCAL_PROJECT")]
    local_project: Option<String>,

    /// The name under which this machine's local engine is a cluster; its
    /// project is placed there [default: local].
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LOCAL_CLUSTER")]
    local_cluster: Option<String>,

    /// The name of the admin key [default: admin].
    #[arg(long, value_name = "NAME", env = "SLIPWAY_ADMIN_KEY_NAME")]
    admin_key_name: Option<String>,

    /// The admin key to install, instead of one that is drawn and shown once. A
    /// text that was rotated away, replaced or revoked is not installed again.
    #[arg(long, value_name = "KEY", env = "SLIPWAY_ADMIN_KEY", hide_env_values = true)]
    #[arg(value_parser = secret)]
    #[serde(skip)]
    admin_key: Option<Secret>,

    /// Change nothing outside: show what would be done until `slipway resume`. As
    /// long as this is set, every start observes only.
    #[arg(long, env = "SLIPWAY_OBSERVE_ONLY")]
    #[serde(default)]
    observe_only: bool,

    /// Write no context for this control plane at its first start. None is written in a
    /// container, as a service, behind a proxy, or if other machines can reach the listener.
    #[arg(long, env = "SLIPWAY_NO_CONTEXT")]
    #[serde(default)]
    no_context: bool,

    /// Stop in order when standard input ends, so that this does not outlive
    /// whoever started it.
    #[arg(long, hide = true)]
    #[serde(skip)]
    stop_with_stdin: bool,

    /// How many requests a second a key may make, in the long run [default: 100].
    #[arg(long, value_name = "N", env = "SLIPWAY_RATE_LIMIT")]
    rate_limit: Option<u32>,

    /// How many at once, after a while of silence [default: 200].
    #[arg(long, value_name = "N", env = "SLIPWAY_RATE_BURST")]
    rate_burst: Option<u32>,

    /// A file that gets every event, one JSON document a line.
    #[arg(long, value_name = "FILE", env = "SLIPWAY_EVENT_LOG")]
    event_log: Option<PathBuf>,

    /// How long events are kept, such as 30d; never shorter than subscribers
    /// need them [default: 30d].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_EVENT_RETENTION")]
    event_retention: Option<String>,

    /// How long the history of what is gone is kept [default: 365d].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_HISTORY_RETENTION")]
    history_retention: Option<String>,

    /// How long audit entries of what is gone are kept [default: 365d].
    #[arg(long, value_name = "TIME", env = "SLIPWAY_AUDIT_RETENTION")]
    audit_retention: Option<String>,

    /// How log lines look [default: text].
    #[arg(long, value_name = "FORMAT", env = "SLIPWAY_LOG_FORMAT")]
    log_format: Option<LogFormat>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The header in which a proxy names its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProxyHeader {
    XForwardedFor,
    Forwarded,
}

/// A setting that cannot be used, by its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {problem}")]
pub(crate) struct InvalidConfig {
    key: String,
    problem: String,
    code: &'static str,
}

impl InvalidConfig {
    fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), code: "config_invalid" }
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }
}

/// The location of an installation, for commands that work on it and start
/// nothing.
#[derive(Debug, Clone, Args)]
pub(crate) struct InstallationArguments {
    /// The TOML file that the control plane is started with.
    #[arg(long, value_name = "FILE", env = "SLIPWAY_CONFIG")]
    config: Option<PathBuf>,
    /// Where state is kept [default: the user's data folder].
    #[arg(long, value_name = "DIR", env = "SLIPWAY_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// postgres://… or sqlite:PATH [default: SQLite in the data directory].
    #[arg(long, value_name = "URL", env = "SLIPWAY_DATABASE_URL", hide_env_values = true)]
    #[arg(value_parser = secret)]
    database_url: Option<Secret>,
}

impl From<InstallationArguments> for Layer {
    fn from(place: InstallationArguments) -> Self {
        let InstallationArguments { config, data_dir, database_url } = place;
        Self { config, data_dir, database_url, ..Self::default() }
    }
}

/// All settings, checked.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) probe_listen: Option<SocketAddr>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) behind_proxy: Option<ProxyHeader>,
    pub(crate) data_dir: PathBuf,
    pub(crate) database_url: Secret,
    pub(crate) database_connections: u32,
    pub(crate) database_timeout: Duration,
    pub(crate) database_statement_timeout: Duration,
    pub(crate) public_url: Option<String>,
    pub(crate) node_image: Option<String>,
    pub(crate) node_ca_file: Option<PathBuf>,
    pub(crate) substrate_root: PathBuf,
    pub(crate) reconcile_interval: Duration,
    pub(crate) lease: Duration,
    pub(crate) token_lifetimes: TokenLifetimes,
    pub(crate) token_environment: String,
    pub(crate) namespace_prefix: NamespacePrefix,
    pub(crate) kubeconfig_dir: Option<PathBuf>,
    pub(crate) provider_token_dir: Option<PathBuf>,
    pub(crate) system_namespace: String,
    pub(crate) placement: PlacementConfig,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) orphan_after: Duration,
    pub(crate) orphan_interval: Duration,
    pub(crate) deletion: Defaults,
    pub(crate) brake: Limits,
    pub(crate) stop_grace: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) deadlines: Deadlines,
    pub(crate) local_project: String,
    pub(crate) local_cluster: String,
    pub(crate) admin_key_name: String,
    pub(crate) admin_key: Option<Secret>,
    pub(crate) observe_only: bool,
    pub(crate) no_context: bool,
    pub(crate) stop_with_stdin: bool,
    pub(crate) rate: Rate,
    pub(crate) event_log: Option<PathBuf>,
    pub(crate) retention: Retention,
    pub(crate) log_format: LogFormat,
}

impl ProxyHeader {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

impl Config {
    /// The URL of this server at an address of its own.
    pub(crate) fn url_at(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }
}

/// An outside action gets a third of the lease. With less than a second, ordinary
/// actions would fail again and again on a machine under load.
const SHORTEST_LEASE: Duration = Duration::from_secs(3);

/// Reads an environment variable; a parameter, so that tests need not set any.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Layer {
    /// Puts the layers on top of each other and checks the result.
    pub(crate) fn resolve(self, environment: Environment<'_>) -> Result<Config, InvalidConfig> {
        let file = match &self.config {
            Some(path) => read(path)?,
            None => Self::default(),
        };
        let layer = self.or(file).or(aliases(environment));
        // Checks a setting with a function of `parse`, under the name of its field.
        macro_rules! checked {
            ($check:ident, $setting:ident, $default:expr) => {
                $check(stringify!($setting), layer.$setting, $default)?
            };
        }
        let seconds = Duration::from_secs;
        let data_dir = match layer.data_dir {
            Some(directory) => absolute("data_dir", &directory)?,
            None => default_data_dir(environment)?,
        };
        let listen = address("listen", layer.listen.as_deref().unwrap_or("127.0.0.1:7700"))?;
        let tls = listener::tls_files(layer.tls_cert.as_deref(), layer.tls_key.as_deref())?;
        listener::check_protected(listen, tls.is_some() || layer.behind_proxy.is_some())?;
        let token_ttl = checked!(duration, token_ttl, seconds(3_600));
        let lifetimes = TokenLifetimes::default();
        if !(seconds(300)..=lifetimes.cap).contains(&token_ttl) {
            return Err(InvalidConfig::new("token_ttl", "must be between 5m and 24h"));
        }
        let lease = checked!(duration, lease, seconds(30));
        if lease < SHORTEST_LEASE {
            return Err(InvalidConfig::new("lease", "must be at least 3s"));
        }
        let token_environment = layer.token_env.unwrap_or_else(|| "live".to_owned());
        if token_environment.is_empty()
            || !token_environment.chars().all(|c| c.is_ascii_lowercase())
        {
            return Err(InvalidConfig::new("token_env", "must be lowercase letters"));
        }
        let namespace_prefix = layer.namespace_prefix.as_deref();
        let namespace_prefix =
            NamespacePrefix::parse(namespace_prefix.unwrap_or(NamespacePrefix::DEFAULT))
                .map_err(|invalid| InvalidConfig::new("namespace_prefix", invalid.problem))?;
        let usual = Deadlines::default();
        Ok(Config {
            listen,
            probe_listen: layer
                .probe_listen
                .as_deref()
                .map(|text| address("probe_listen", text))
                .transpose()?,
            tls,
            behind_proxy: layer.behind_proxy,
            database_url: layer.database_url.unwrap_or_else(|| {
                Secret::new(format!("sqlite:{}", data_dir.join("slipway.db").display()))
            }),
            database_connections: checked!(at_least_one, database_connections, 16),
            database_timeout: checked!(duration, database_timeout, seconds(30)),
            database_statement_timeout: checked!(duration, database_statement_timeout, seconds(30)),
            public_url: layer.public_url.as_deref().map(checked_url).transpose()?,
            node_image: checked_image(layer.node_image)?,
            node_ca_file: layer
                .node_ca_file
                .map(|path| absolute("node_ca_file", &path))
                .transpose()?,
            substrate_root: match layer.substrate_root {
                Some(root) => absolute("substrate_root", &root)?,
                None => data_dir.join("substrate"),
            },
            data_dir,
            reconcile_interval: checked!(duration, reconcile_interval, seconds(30)),
            lease,
            token_lifetimes: TokenLifetimes { ttl: token_ttl, ..lifetimes },
            token_environment,
            namespace_prefix,
            kubeconfig_dir: layer
                .kubeconfig_dir
                .map(|path| absolute("kubeconfig_dir", &path))
                .transpose()?,
            provider_token_dir: layer
                .provider_token_dir
                .map(|path| absolute("provider_token_dir", &path))
                .transpose()?,
            system_namespace: checked!(name, system_namespace, "slipway-system"),
            placement: PlacementConfig::of(
                layer.namespace_subjects,
                layer.namespace_role,
                layer.namespace_quota,
                layer.secret_store,
            )?,
            heartbeat_interval: checked!(duration, heartbeat_interval, seconds(1)),
            orphan_after: checked!(duration, orphan_after, seconds(600)),
            orphan_interval: checked!(duration, orphan_interval, seconds(600)),
            deletion: Defaults {
                grace: checked!(duration, deletion_grace, Duration::ZERO),
                retention: checked!(days, deletion_retention, 30),
                ..Defaults::default()
            },
            brake: Limits {
                resources: i64::from(layer.deletion_brake.unwrap_or(20)),
                window: checked!(duration, deletion_brake_window, seconds(600)),
            },
            stop_grace: checked!(duration, stop_grace, seconds(5)),
            drain_timeout: checked!(duration, drain_timeout, seconds(15)),
            deadlines: Deadlines {
                pending: checked!(duration, pending_deadline, usual.pending),
                provisioning: checked!(duration, provisioning_deadline, usual.provisioning),
                enrolling: checked!(duration, enrolling_deadline, usual.enrolling),
                deregistering: checked!(duration, deregistering_deadline, usual.deregistering),
                deprovisioning: checked!(duration, deprovisioning_deadline, usual.deprovisioning),
                first_heartbeat: checked!(
                    duration,
                    first_heartbeat_deadline,
                    usual.first_heartbeat
                ),
            },
            local_project: checked!(name, local_project, "default"),
            local_cluster: checked!(name, local_cluster, "local"),
            admin_key_name: checked!(name, admin_key_name, "admin"),
            admin_key: layer.admin_key,
            observe_only: layer.observe_only,
            no_context: layer.no_context,
            stop_with_stdin: layer.stop_with_stdin,
            rate: Rate {
                per_second: checked!(at_least_one, rate_limit, 100),
                burst: checked!(at_least_one, rate_burst, 200),
            },
            retention: Retention {
                events: checked!(days, event_retention, 30),
                history: checked!(days, history_retention, 365),
                audit: checked!(days, audit_retention, 365),
            },
            event_log: layer.event_log.map(|path| absolute("event_log", &path)).transpose()?,
            log_format: layer.log_format.unwrap_or(LogFormat::Text),
        })
    }
}
