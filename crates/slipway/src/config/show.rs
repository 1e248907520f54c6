//! The settings in force and their sources: flag, environment, file or default.

use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::Serialize;

use super::{ALIASES, Config, Environment, InvalidConfig, Layer, LogFormat, file, keys};

/// One setting in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Setting {
    pub(crate) key: String,
    /// A secret is masked.
    pub(crate) value: Option<String>,
    /// `flag`, `environment`, `file` or `default`.
    pub(crate) source: &'static str,
    /// The flag, the variable or the file.
    pub(crate) from: Option<String>,
}

/// Every setting, checked, in the order of `--help`. `matches` are those of the
/// command that the layer was parsed from.
pub(crate) fn settings(
    layer: Layer,
    matches: &ArgMatches,
    environment: Environment<'_>,
) -> Result<Vec<Setting>, InvalidConfig> {
    let path = layer.config.clone();
    let in_file = path.as_deref().map(file::keys_in).transpose()?.unwrap_or_default();
    let config_file = path.map(|path| path.display().to_string());
    let config = layer.resolve(environment)?;
    let values = values(&config, config_file.clone());
    let variable = |key: &str| format!("SLIPWAY_{}", key.to_uppercase());
    let alias = |key: &str| {
        let (_, name) = ALIASES.iter().find(|(of, _)| *of == key)?;
        environment(name).filter(|value| !value.is_empty()).map(|_| (*name).to_owned())
    };
    Ok(keys::all()
        .into_iter()
        .map(|key| {
            let (source, from) = match matches.value_source(&key) {
                Some(ValueSource::CommandLine) => {
                    ("flag", Some(format!("--{}", key.replace('_', "-"))))
                }
                Some(ValueSource::EnvVariable) => ("environment", Some(variable(&key))),
                _ if in_file.contains(&key) => ("file", config_file.clone()),
                _ => match alias(&key) {
                    Some(name) => ("environment", Some(name)),
                    None => ("default", None),
                },
            };
            let value = values.iter().find(|(of, _)| *of == key).and_then(|(_, v)| v.clone());
            Setting { key, value, source, from }
        })
        .collect())
}

pub(super) fn values(config: &Config, file: Option<String>) -> Vec<(&'static str, Option<String>)> {
    let path = |path: &std::path::Path| path.display().to_string();
    let log_format = match config.log_format {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    };
    let list = |of: &[String]| (!of.is_empty()).then(|| of.join(","));
    let quota: Vec<_> =
        config.placement.quota.iter().map(|(what, amount)| format!("{what}={amount}")).collect();
    let mut values = vec![
        ("config", file),
        ("listen", Some(config.listen.to_string())),
        ("probe_listen", config.probe_listen.map(|address| address.to_string())),
        ("tls_cert", config.tls.as_ref().map(|files| path(&files.certificate))),
        ("tls_key", config.tls.as_ref().map(|files| path(&files.key))),
        ("behind_proxy", config.behind_proxy.map(|header| header.as_str().to_owned())),
        ("data_dir", Some(path(&config.data_dir))),
        ("database_url", Some(without_password(config.database_url.expose()))),
        ("database_connections", Some(config.database_connections.to_string())),
        (
            "public_url",
            Some(config.public_url.clone().unwrap_or_else(|| config.url_at(config.listen))),
        ),
        ("node_image", config.node_image.clone()),
        ("node_ca_file", config.node_ca_file.as_deref().map(path)),
        ("substrate_root", Some(path(&config.substrate_root))),
        ("token_env", Some(config.token_environment.clone())),
        ("namespace_prefix", Some(config.namespace_prefix.as_str().to_owned())),
        ("kubeconfig_dir", config.kubeconfig_dir.as_deref().map(path)),
        ("provider_token_dir", config.provider_token_dir.as_deref().map(path)),
        ("system_namespace", Some(config.system_namespace.clone())),
        ("namespace_subjects", list(&config.placement.subjects)),
        ("namespace_role", Some(config.placement.role.clone())),
        ("namespace_quota", list(&quota)),
        ("secret_store", Some(config.placement.secret_store.clone())),
        ("local_project", Some(config.local_project.clone())),
        ("local_cluster", Some(config.local_cluster.clone())),
        ("admin_key_name", Some(config.admin_key_name.clone())),
        ("admin_key", config.admin_key.as_ref().map(|_| MASK.to_owned())),
        ("observe_only", Some(config.observe_only.to_string())),
        ("no_context", Some(config.no_context.to_string())),
        ("event_log", config.event_log.as_deref().map(path)),
        ("log_format", Some(log_format.to_owned())),
        ("deletion_brake", Some(config.brake.resources.to_string())),
        ("rate_limit", Some(config.rate.per_second.to_string())),
        ("rate_burst", Some(config.rate.burst.to_string())),
    ];
    let (deadlines, kept) = (&config.deadlines, &config.retention);
    let times = [
        ("database_timeout", config.database_timeout),
        ("database_statement_timeout", config.database_statement_timeout),
        ("reconcile_interval", config.reconcile_interval),
        ("lease", config.lease),
        ("token_ttl", config.token_lifetimes.ttl),
        ("heartbeat_interval", config.heartbeat_interval),
        ("orphan_after", config.orphan_after),
        ("orphan_interval", config.orphan_interval),
        ("deletion_grace", config.deletion.grace),
        ("deletion_brake_window", config.brake.window),
        ("stop_grace", config.stop_grace),
        ("drain_timeout", config.drain_timeout),
        ("pending_deadline", deadlines.pending),
        ("provisioning_deadline", deadlines.provisioning),
        ("enrolling_deadline", deadlines.enrolling),
        ("deregistering_deadline", deadlines.deregistering),
        ("deprovisioning_deadline", deadlines.deprovisioning),
        ("first_heartbeat_deadline", deadlines.first_heartbeat),
    ];
    values.extend(times.map(|(key, time)| (key, Some(written(time)))));
    let retention = [
        ("deletion_retention", config.deletion.retention),
        ("event_retention", kept.events),
        ("history_retention", kept.history),
        ("audit_retention", kept.audit),
    ];
    values.extend(retention.map(|(key, time)| (key, Some(written_in_days(time)))));
    values
}

const MASK: &str = "***";

/// A URL with its password masked. The whole query is masked, because drivers
/// accept a password there too.
pub(super) fn without_password(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let (url, query) = url.split_once('?').map_or((url, ""), |(url, _)| (url, "?***"));
    let Some((scheme, rest)) = url.split_once("://") else { return MASK.to_owned() };
    let masked = match rest.rsplit_once('@') {
        Some((user, place)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{place}"),
            None => format!("{user}@{place}"),
        },
        None => rest.to_owned(),
    };
    format!("{scheme}://{masked}{query}")
}

/// The duration in the largest unit that divides it, as a file contains it.
pub(super) fn written(time: Duration) -> String {
    let millis = time.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.iter().find(|(unit, _)| millis.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None => format!("{millis}ms"),
    }
}

fn written_in_days(time: Duration) -> String {
    const DAY: u64 = 86_400;
    match (time.as_secs(), time.subsec_nanos()) {
        (seconds, 0) if seconds.is_multiple_of(DAY) => format!("{}d", seconds / DAY),
        _ => written(time),
    }
}
