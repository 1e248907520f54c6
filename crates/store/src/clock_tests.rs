//! Every time of the schema, and what becomes of it when the database's clock goes
//! back. A column that nobody classified fails here.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{ConnectOptions as _, Row as _};

use crate::{postgres, sqlite};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Something happened then. Nothing waits for it or counts from it.
    Happened,
    /// A loop waits for it. It is moved by the jump, with the other columns of a claim.
    Schedule,
    /// A wait counts from it. It is moved to now if it lies in the future.
    Start,
    /// Somebody was told that something ends then, so it stays. It lasts longer by the
    /// jump, which is safe: a freeze that a person can lift, a key that was valid anyway,
    /// an answer that is kept.
    Promise,
}

const TIMES: &[(Role, &str, &[&str])] = &[
    (Role::Happened, "projects", &["created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "clouds", &["created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "cloud_credentials", &["created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "credential_assignments", &["created_at"]),
    (Role::Happened, "blueprints", &["created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "blueprint_versions", &["retired_at", "published_at"]),
    (Role::Happened, "label_definitions", &["created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "clusters", &["created_at", "updated_at", "verified_at", "deleted_at"]),
    (Role::Happened, "cluster_assignments", &["created_at", "updated_at", "withdrawn_at"]),
    (Role::Happened, "blueprint_definitions", &["since", "updated_at"]),
    // Retention counts from `deleted_at`, in months.
    (Role::Happened, "resources", &["created_at", "updated_at", "deleted_at", "surge_at"]),
    (Role::Schedule, "provisioned_resources", &["due_at", "lease_until"]),
    (
        Role::Start,
        "provisioned_resources",
        &["phase_since", "unsettled_since", "deletion_requested_at"],
    ),
    (
        Role::Happened,
        "provisioned_resources",
        &["failed_at", "absence_proven_at", "abandoned_at", "created_at", "updated_at"],
    ),
    (Role::Happened, "state_changes", &["at"]),
    // Shown; the loop goes by the due time of its attempt.
    (Role::Happened, "blockers", &["since", "next_retry_at"]),
    (Role::Happened, "bootstrap_tokens", &["issued_at", "consumed_at", "revoked_at"]),
    (Role::Promise, "bootstrap_tokens", &["expires_at", "hard_expires_at"]),
    (Role::Start, "nodes", &["registered_at", "last_heartbeat_at", "drain_requested_at"]),
    (Role::Happened, "nodes", &["deregistered_at", "created_at", "updated_at"]),
    (Role::Happened, "manual_machines", &["made_at", "terminating_at"]),
    // Retention counts from `ended_at`, in months; a check in the future counts as none.
    (Role::Happened, "deletions", &["requested_at", "done_at", "ended_at", "purge_checked_at"]),
    (Role::Happened, "deletion_settings", &["set_at"]),
    (Role::Promise, "deletions", &["scheduled_for", "restorable_until"]),
    (Role::Happened, "protections", &["set_at"]),
    (Role::Promise, "protections", &["lifted_until"]),
    (Role::Happened, "deletion_brakes", &["tripped_at"]),
    (Role::Promise, "deletion_brakes", &["released_until"]),
    (Role::Happened, "deletion_plans", &["planned_at", "approved_at"]),
    (Role::Promise, "deletion_plans", &["expires_at", "approved_until"]),
    (Role::Happened, "rollouts", &["requested_at", "ended_at"]),
    // How long a member may take counts from it.
    (Role::Start, "rollout_members", &["changed_at"]),
    (Role::Happened, "declared_objects", &["updated_at"]),
    (Role::Happened, "file_faults", &["updated_at"]),
    (Role::Happened, "generators", &["created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "stacks", &["created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "fleet_templates", &["created_at", "updated_at", "deleted_at"]),
    // Shown; an agent is never taken for gone because it is silent.
    (
        Role::Happened,
        "fleet_agents",
        &[
            "created_at",
            "updated_at",
            "deleted_at",
            "last_heartbeat",
            "k8s_reported_at",
            "prune_refused_at",
            "prune_confirmed_at",
        ],
    ),
    // The order of objects is that of their numbers, which rise whatever the clock does.
    (Role::Happened, "deployment_objects", &["submitted_at", "withdrawn_at", "erased_at"]),
    (Role::Happened, "fleet_labels", &["created_at"]),
    (Role::Happened, "fleet_annotations", &["created_at"]),
    (Role::Happened, "fleet_registrations", &["registered_at"]),
    (Role::Happened, "holdings", &["offered_at", "released_at"]),
    (Role::Happened, "fleet_renderings", &["made_at"]),
    (Role::Happened, "agent_reports", &["first_at", "last_at"]),
    // The agent's own clock.
    (Role::Happened, "object_health", &["checked_at"]),
    (Role::Happened, "leak_records", &["found_at", "removal_requested_at", "resolved_at"]),
    (Role::Start, "leak_records", &["last_seen_at"]),
    (Role::Start, "leak_suspicions", &["first_seen_at", "last_seen_at"]),
    (Role::Happened, "api_keys", &["created_at", "rotated_at", "revoked_at"]),
    (Role::Promise, "api_keys", &["expires_at", "previous_until"]),
    (Role::Happened, "withdrawn_keys", &["withdrawn_at"]),
    (Role::Happened, "idempotency_keys", &["created_at"]),
    (Role::Promise, "idempotency_keys", &["expires_at"]),
    // Retention counts from these, in months.
    (Role::Happened, "audit_entries", &["at"]),
    (Role::Happened, "outbox_events", &["occurred_at"]),
    (Role::Schedule, "event_subscriptions", &["due_at", "lease_until"]),
    (Role::Happened, "event_subscriptions", &["published_at", "created_at"]),
    (Role::Happened, "installation", &["created_at"]),
    (Role::Happened, "control", &["frozen_since", "observing_since"]),
    (Role::Promise, "control", &["frozen_until"]),
    (Role::Start, "replicas", &["seen_at"]),
    (Role::Schedule, "periodic_tasks", &["due_at", "lease_until"]),
    (Role::Happened, "periodic_tasks", &["last_ended_at"]),
    (Role::Happened, "schema_migrations", &["applied_at"]),
    (Role::Happened, "tenant_profiles", &["created_at", "updated_at", "deleted_at"]),
    (Role::Schedule, "tenants", &["due_at"]),
    (Role::Happened, "tenants", &["created_at", "updated_at", "deleted_at"]),
    (Role::Schedule, "tenant_jobs", &["due_at", "lease_until"]),
    (Role::Happened, "tenant_jobs", &["created_at", "updated_at", "decommissioned_at"]),
    (Role::Happened, "workspaces", &["paused_at", "created_at", "updated_at", "deleted_at"]),
    (Role::Happened, "workspace_groups", &["created_at", "updated_at"]),
];

fn classified() -> BTreeMap<(String, String), Role> {
    let mut found = BTreeMap::new();
    for (role, table, columns) in TIMES {
        for column in *columns {
            let twice = found.insert(((*table).to_owned(), (*column).to_owned()), *role);
            assert_eq!(twice, None, "{table}.{column}");
        }
    }
    found
}

fn of_role(wanted: Role) -> BTreeSet<(String, String)> {
    let found = classified().into_iter().filter(|(_, role)| *role == wanted);
    found.map(|(column, _)| column).collect()
}

/// In SQLite a time is an integer like any other; another test compares its columns with
/// those of PostgreSQL.
#[tokio::test]
async fn every_time_of_the_schema_is_classified() {
    let Some(server) = slipway_testkit::postgres::shared("times").await else { return };
    let database = server.database("times").await;
    let options: sqlx::postgres::PgConnectOptions = database.url().parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    postgres::shared::migrate::migrate_up(&mut connection).await.unwrap();
    let times = sqlx::query(
        "SELECT table_name::text AS a, column_name::text AS b FROM information_schema.columns \
         WHERE table_schema = 'public' AND data_type LIKE 'timestamp%'",
    );
    let times = times.fetch_all(&mut connection).await.unwrap();
    let times: BTreeSet<(String, String)> =
        times.iter().map(|row| (row.get("a"), row.get("b"))).collect();
    let classified: BTreeSet<_> = classified().into_keys().collect();
    let unclassified: Vec<_> = times.difference(&classified).collect();
    assert!(unclassified.is_empty(), "say in TIMES what a jump does to {unclassified:?}");
    let gone: Vec<_> = classified.difference(&times).collect();
    assert!(gone.is_empty(), "TIMES has columns that the schema has not: {gone:?}");
}

#[test]
fn every_beginning_of_a_wait_is_moved() {
    for statements in [
        sqlite::shared::operations::clock::starts().collect::<Vec<_>>(),
        postgres::shared::operations::clock::starts().collect(),
    ] {
        let moved: BTreeSet<_> = statements
            .iter()
            .map(|statement| {
                let words: Vec<_> = statement.split(' ').collect();
                assert_eq!((words[0], words[2]), ("UPDATE", "SET"), "{statement}");
                (words[1].to_owned(), words[3].to_owned())
            })
            .collect();
        assert_eq!(moved, of_role(Role::Start));
    }
}
