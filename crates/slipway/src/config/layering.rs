//! Merges layers. The lowest layer are the variable names of the broker documents.

use slipway_core::secret::Secret;

use super::{Environment, Layer};

impl Layer {
    /// Fills what this layer leaves open from the one below.
    pub(super) fn or(self, below: Self) -> Self {
        // The compiler refuses a setting that is missing here.
        macro_rules! upper_or_lower {
            ($($setting:ident),* $(,)?) => {
                Self {
                    $($setting: self.$setting.or(below.$setting),)*
                    observe_only: self.observe_only || below.observe_only,
                    no_context: self.no_context || below.no_context,
                    stop_with_stdin: self.stop_with_stdin || below.stop_with_stdin,
                }
            };
        }
        upper_or_lower! {
            config, listen, probe_listen, tls_cert, tls_key, behind_proxy, node_ca_file, data_dir, database_url, database_connections, database_timeout,
            database_statement_timeout, public_url, node_image, substrate_root, reconcile_interval,
            lease, token_ttl, token_env, namespace_prefix, kubeconfig_dir, provider_token_dir, system_namespace,
            namespace_subjects, namespace_role, namespace_quota, secret_store, heartbeat_interval,
            orphan_after, orphan_interval, deletion_grace, deletion_retention, deletion_brake, deletion_brake_window, stop_grace, drain_timeout, pending_deadline,
            provisioning_deadline, enrolling_deadline, deregistering_deadline,
            deprovisioning_deadline, first_heartbeat_deadline, local_project, local_cluster, admin_key_name, admin_key,
            event_retention, history_retention, audit_retention, rate_limit, rate_burst, event_log,
            log_format
        }
    }
}

/// The names that the broker documents use for three of the settings.
pub(super) const ALIASES: [(&str, &str); 3] = [
    ("database_url", "PLEXSPHERE_DSN"),
    ("reconcile_interval", "PLEXSPHERE_PROVISIONING_BROKER_RECONCILE_INTERVAL"),
    ("token_ttl", "PLEXSPHERE_PROVISIONING_BROKER_TOKEN_TTL"),
];

pub(super) fn aliases(environment: Environment<'_>) -> Layer {
    let given = |key: &str| {
        let alias = ALIASES.iter().find(|(of, _)| *of == key).map(|(_, name)| *name);
        alias.and_then(environment).filter(|value| !value.is_empty())
    };
    Layer {
        database_url: given("database_url").map(Secret::new),
        reconcile_interval: given("reconcile_interval"),
        token_ttl: given("token_ttl"),
        ..Layer::default()
    }
}
