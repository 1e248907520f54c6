//! Merges layers. The lowest layer are the variable names of the broker documents.

use slipway_core::secret::Secret;

use super::{Environment, Layer};

impl Layer {
    /// Fills what this layer leaves open from the one below.
    pub(super) fn or(self, below: Self) -> Self {
        Self {
            config: self.config.or(below.config),
            listen: self.listen.or(below.listen),
            data_dir: self.data_dir.or(below.data_dir),
            database_url: self.database_url.or(below.database_url),
            database_connections: self.database_connections.or(below.database_connections),
            database_timeout: self.database_timeout.or(below.database_timeout),
            database_statement_timeout: self
                .database_statement_timeout
                .or(below.database_statement_timeout),
            public_url: self.public_url.or(below.public_url),
            node_image: self.node_image.or(below.node_image),
            substrate_root: self.substrate_root.or(below.substrate_root),
            reconcile_interval: self.reconcile_interval.or(below.reconcile_interval),
            lease: self.lease.or(below.lease),
            token_ttl: self.token_ttl.or(below.token_ttl),
            token_env: self.token_env.or(below.token_env),
            namespace_prefix: self.namespace_prefix.or(below.namespace_prefix),
            kubeconfig_dir: self.kubeconfig_dir.or(below.kubeconfig_dir),
            system_namespace: self.system_namespace.or(below.system_namespace),
            namespace_subjects: self.namespace_subjects.or(below.namespace_subjects),
            namespace_role: self.namespace_role.or(below.namespace_role),
            namespace_quota: self.namespace_quota.or(below.namespace_quota),
            secret_store: self.secret_store.or(below.secret_store),
            heartbeat_interval: self.heartbeat_interval.or(below.heartbeat_interval),
            orphan_after: self.orphan_after.or(below.orphan_after),
            orphan_interval: self.orphan_interval.or(below.orphan_interval),
            stop_grace: self.stop_grace.or(below.stop_grace),
            drain_timeout: self.drain_timeout.or(below.drain_timeout),
            pending_deadline: self.pending_deadline.or(below.pending_deadline),
            provisioning_deadline: self.provisioning_deadline.or(below.provisioning_deadline),
            enrolling_deadline: self.enrolling_deadline.or(below.enrolling_deadline),
            deregistering_deadline: self.deregistering_deadline.or(below.deregistering_deadline),
            deprovisioning_deadline: self.deprovisioning_deadline.or(below.deprovisioning_deadline),
            local_project: self.local_project.or(below.local_project),
            local_cluster: self.local_cluster.or(below.local_cluster),
            admin_key_name: self.admin_key_name.or(below.admin_key_name),
            admin_key: self.admin_key.or(below.admin_key),
            observe_only: self.observe_only || below.observe_only,
            stop_with_stdin: self.stop_with_stdin || below.stop_with_stdin,
            event_retention: self.event_retention.or(below.event_retention),
            history_retention: self.history_retention.or(below.history_retention),
            audit_retention: self.audit_retention.or(below.audit_retention),
            rate_limit: self.rate_limit.or(below.rate_limit),
            rate_burst: self.rate_burst.or(below.rate_burst),
            event_log: self.event_log.or(below.event_log),
            log_format: self.log_format.or(below.log_format),
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
