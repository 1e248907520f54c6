//! Violates each CHECK and each foreign key of the live schema, on both databases.
//!
//! The constraints come from the database, not from a list: a new one without a case
//! here, or without a row in [`ROWS`], fails the test.

use std::collections::{BTreeMap, BTreeSet};

use slipway_core::Phase;
use slipway_core::deletion::record::DeletionState;
use slipway_core::event;
use slipway_core::fleet::agent::AgentStatus;
use slipway_core::placement::definitions::DefinitionPhase;
use slipway_core::placement::namespace::NamespacePhase;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use uuid::Uuid;

use crate::{postgres, sqlite};

/// One valid row of each table that has a constraint or is referred to, in the order of
/// the foreign keys. `$1` is the id of all of them; BYTES is a binary literal and AT a time.
const ROWS: &[&str] = &[
    "INSERT INTO projects (id, name) VALUES ($1, 'x')",
    "INSERT INTO clouds (id, name, provider, endpoint) VALUES ($1, 'x', 'x', '{}')",
    "INSERT INTO cloud_credentials (id, cloud_id, name, kv_mount, kv_path) \
     VALUES ($1, $1, 'x', 'x', 'x')",
    "INSERT INTO credential_assignments (project_id, cloud_credential_id) VALUES ($1, $1)",
    "INSERT INTO blueprints (id, slug, display_name, description, engine) \
     VALUES ($1, 'x', 'x', 'x', 'x')",
    "INSERT INTO blueprint_versions (id, blueprint_id, version, xrd, composition, \
     parameter_schema, injection_strategy, mesh_role, provider_kinds) \
     VALUES ($1, $1, 'x', 'x', 'x', '{}', 'x', 'x', '[]')",
    "INSERT INTO clusters (id, name, engine, namespace_prefix) VALUES ($1, 'x', 'x', 'x')",
    "INSERT INTO cluster_assignments (project_id, cluster_id, namespace, namespace_phase) \
     VALUES ($1, $1, 'x', 'Ready')",
    "INSERT INTO blueprint_definitions (cluster_id, blueprint_id, wanted_version, phase) \
     VALUES ($1, $1, 'x', 'Pending')",
    "INSERT INTO resources (id, project_id, handle, labels) VALUES ($1, $1, 'x', '{}')",
    "INSERT INTO provisioned_resources (id, resource_id, project_id, blueprint_version_id, \
     cloud_credential_id, attempt, status, xr_name, parameter_values, partition) \
     VALUES ($1, $1, $1, $1, $1, 1, 'Ready', 'x', '{}', $1)",
    "INSERT INTO bootstrap_tokens (id, project_id, provisioned_resource_id, kind, hash, \
     expires_at, hard_expires_at) VALUES ($1, $1, $1, 'x', BYTES, AT, AT)",
    "INSERT INTO nodes (id, project_id, resource_id, provisioned_resource_id, \
     bootstrap_token_id, hostname, public_key, capabilities, mesh_host, mesh_ip) \
     VALUES ($1, $1, $1, $1, $1, 'x', BYTES, '[]', 1, 'x')",
    "INSERT INTO mesh_addresses (project_id, host, node_id, hostname, public_key) \
     VALUES ($1, 1, $1, 'x', BYTES)",
    "INSERT INTO manual_machines (provisioned_resource_id, partition, namespace, name, \
     owned_hash, claim_token, confirm_gone) VALUES ($1, $1, 'x', 'x', 'x', 1, 1)",
    "INSERT INTO deletions (id, kind, target_id, state, requested_by, reason) \
     VALUES ($1, 'x', $1, 'done', 'x', 'x')",
    "INSERT INTO deletion_settings (id, set_by, reason) VALUES ($1, 'x', 'x')",
    "INSERT INTO protections (subject_kind, subject_id, name, set_by, reason) \
     VALUES ('x', $1, 'x', 'x', 'x')",
    "INSERT INTO deletion_plans (id, kind, target_id, name, planned_by, expires_at, digest, \
     members, shown) VALUES ($1, 'x', $1, 'x', 'x', AT, 'x', '[]', '{}')",
    "INSERT INTO rollouts (id, purpose, subject_kind, subject_id, name, change, strategy, state, \
     requested_by, reason) VALUES ($1, 'x', 'x', $1, 'x', '{}', '{}', 'x', 'x', 'x')",
    "INSERT INTO rollout_members (rollout_id, subject_kind, subject_id, name, wave, position, \
     state, before) VALUES ($1, 'x', $1, 'x', 0, 0, 'x', '{}')",
    "INSERT INTO generators (id, project_id, name) VALUES ($1, $1, 'x')",
    "INSERT INTO stacks (id, project_id, generator_id, name) VALUES ($1, $1, $1, 'x')",
    "INSERT INTO fleet_templates (id, project_id, generator_id, name, version, \
     template_content, parameters_schema) VALUES ($1, $1, $1, 'x', 1, 'x', '{}')",
    "INSERT INTO fleet_agents (id, project_id, name, cluster_name, status) \
     VALUES ($1, $1, 'x', 'x', 'ACTIVE')",
    "INSERT INTO deployment_objects (id, stack_id, agent_id, sequence_id, yaml_content, \
     yaml_checksum, is_deletion_marker) VALUES ($1, $1, $1, 1, 'x', 'x', 0)",
    "INSERT INTO fleet_registrations (id, agent_id, generator_id) VALUES ($1, $1, $1)",
    "INSERT INTO fleet_targets (id, agent_id, stack_id) VALUES ($1, $1, $1)",
    "INSERT INTO holdings (agent_id, stack_id, object_id) VALUES ($1, $1, $1)",
    "INSERT INTO fleet_renderings (agent_id, base_id, tags, object_id) VALUES ($1, $1, 1, $1)",
    "INSERT INTO agent_reports (id, agent_id, object_id, event_type, status) \
     VALUES ($1, $1, $1, 'x', 'x')",
    "INSERT INTO object_health (id, agent_id, object_id, status, checked_at) \
     VALUES ($1, $1, $1, 'x', AT)",
    "INSERT INTO tenant_profiles (id, name, description, settings, created_at, updated_at) \
     VALUES ($1, 'x', 'x', '{}', AT, AT)",
    "INSERT INTO tenants (id, project_id, profile_id, name, target_name, state, job_id, \
     created_at, updated_at) VALUES ($1, $1, $1, 'x', 'x', 'ready', $1, AT, AT)",
    "INSERT INTO workspaces (id, project_id, name, created_at, updated_at) \
     VALUES ($1, $1, 'x', AT, AT)",
    "INSERT INTO workspace_groups (id, workspace_id, project_id, name, single, role, wanted, \
     min_count, max_count, hostname_pattern, made_of, depends_on, delete_lock, dropped, marked, \
     created_at, updated_at) VALUES ($1, $1, $1, 'x', 0, 'Worker', 1, 0, 1, 'x', '{}', '[]', 0, 0, \
     '[]', AT, AT)",
    "INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
     project_id, payload) VALUES ($1, 'x', $1, 1, 'x.X', $1, '{}')",
    "INSERT INTO installation (id) VALUES ($1)",
];

/// The values that core knows for a CHECK, and values that it must refuse.
struct Values {
    valid: Vec<String>,
    invalid: &'static [&'static str],
}

fn text<'a>(values: impl IntoIterator<Item = &'a str>, invalid: &'static [&'static str]) -> Values {
    Values { valid: values.into_iter().map(|value| format!("'{value}'")).collect(), invalid }
}

/// By the name of the constraint: table, column and values. Closed sets and the event
/// catalog are those of core as it is compiled; `migration_tests` compares closed sets
/// the other way round too.
fn checks() -> BTreeMap<&'static str, (&'static str, &'static str, Values)> {
    const UNKNOWN: &[&str] = &["''", "'Unknown'", "'unknown'"];
    let singleton = || Values { valid: vec!["1".to_owned()], invalid: &["0", "2"] };
    BTreeMap::from([
        ("installation_singleton_check", ("installation", "singleton", singleton())),
        ("control_singleton_check", ("control", "singleton", singleton())),
        ("outbox_head_singleton_check", ("outbox_head", "singleton", singleton())),
        (
            "provisioned_resources_status_check",
            (
                "provisioned_resources",
                "status",
                text(Phase::ALL.iter().map(|item| item.as_str()), UNKNOWN),
            ),
        ),
        (
            "cluster_assignments_namespace_phase_check",
            (
                "cluster_assignments",
                "namespace_phase",
                text(NamespacePhase::ALL.iter().map(|item| item.as_str()), UNKNOWN),
            ),
        ),
        (
            "blueprint_definitions_phase_check",
            (
                "blueprint_definitions",
                "phase",
                text(DefinitionPhase::ALL.iter().map(|item| item.as_str()), UNKNOWN),
            ),
        ),
        (
            "deletions_state_check",
            (
                "deletions",
                "state",
                text(DeletionState::ALL.iter().map(|item| item.as_str()), UNKNOWN),
            ),
        ),
        (
            "fleet_agents_status_check",
            (
                "fleet_agents",
                "status",
                text(AgentStatus::ALL.iter().map(|item| item.as_str()), UNKNOWN),
            ),
        ),
        // Content is no marker, and a marker has no content.
        (
            "deployment_objects_marker_check",
            (
                "deployment_objects",
                "is_deletion_marker",
                Values { valid: vec!["0".to_owned()], invalid: &["1", "2"] },
            ),
        ),
        // A rendering has an object or a problem.
        (
            "fleet_renderings_problem_check",
            (
                "fleet_renderings",
                "problem",
                Values { valid: vec!["NULL".to_owned()], invalid: &["'x'"] },
            ),
        ),
        // An address is taken with all of its columns or free without any.
        ("mesh_addresses_taken_check", ("mesh_addresses", "hostname", text(["x"], &["NULL"]))),
        (
            "outbox_events_event_type_check",
            (
                "outbox_events",
                "event_type",
                text(
                    event_types(),
                    &[
                        "''",
                        "'broker'",
                        "'Ready'",
                        "'broker.'",
                        "'.Ready'",
                        "'broker.ready'",
                        "'Broker.Ready'",
                        "'broker.Ready.Again'",
                        "'broker.Re ady'",
                        "'bro ker.Ready'",
                        "'broker.Ready '",
                        "'bröker.Ready'",
                    ],
                ),
            ),
        ),
    ])
}

/// A foreign key: table, column, referred table and column.
type ForeignKey = (String, String, String, String);

/// Runs all cases on one backend. Each statement runs outside a transaction, so an error
/// leaves the connection usable.
macro_rules! violate_everything {
    ($connection:ident, $names:ident, $keys:ident, $bytes:literal, $at:literal) => {{
        let (id, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for row in ROWS {
            let row = AssertSqlSafe(row.replace("BYTES", $bytes).replace("AT", $at));
            let sql: String = row.0.clone();
            let inserted = sqlx::query(row).bind(id).execute(&mut $connection).await;
            inserted.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }

        let mut checks = checks();
        for name in $names {
            let (table, column, values) = checks
                .remove(name.as_str())
                .unwrap_or_else(|| panic!("`{name}` has no case; add one to `checks`"));
            let mut set = async |value: &str| {
                let update = AssertSqlSafe(format!("UPDATE {table} SET {column} = {value}"));
                sqlx::query(update).execute(&mut $connection).await
            };
            for value in &values.valid {
                let written =
                    set(value.as_str()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(written.rows_affected(), 1, "{table} has a row");
            }
            for &value in values.invalid {
                let error = set(value).await.err();
                let error = error.unwrap_or_else(|| panic!("{name} accepts {value}"));
                let kind = error.as_database_error().map(|error| error.kind());
                assert!(
                    matches!(kind, Some(sqlx::error::ErrorKind::CheckViolation))
                        && error.to_string().contains(&name),
                    "{name} with {value}: {error}"
                );
            }
        }
        assert!(checks.is_empty(), "no such constraint: {:?}", checks.keys());

        assert!(!$keys.is_empty());
        for (table, column, referred, key) in $keys {
            let dangling = AssertSqlSafe(format!("UPDATE {table} SET {column} = $1"));
            let restricted = AssertSqlSafe(format!("DELETE FROM {referred} WHERE {key} = $1"));
            for (statement, parameter) in [(dangling, other), (restricted, id)] {
                let done = sqlx::query(statement).bind(parameter).execute(&mut $connection).await;
                let name = format!("{table}.{column} to {referred}.{key}");
                match done {
                    Ok(done) => panic!(
                        "{name} is not enforced ({} rows); a table without a row in ROWS has 0",
                        done.rows_affected()
                    ),
                    // SQLite has no code of its own for RESTRICT.
                    Err(error) => assert!(
                        error.to_string().to_lowercase().contains("foreign key"),
                        "{name}: {error}"
                    ),
                }
            }
        }
    }};
}

#[tokio::test]
async fn sqlite_enforces_each_check_and_foreign_key() {
    let directory = tempfile::tempdir().unwrap();
    let options = sqlite::connect::options(&directory.path().join("slipway.db"));
    let mut connection = sqlite::connect::connect(&options).await.unwrap();
    sqlite::shared::migrate::migrate_up(&mut connection).await.unwrap();
    let (names, keys) = sqlite_constraints(&mut connection).await;
    violate_everything!(connection, names, keys, "x'00'", "1");
}

#[tokio::test]
async fn postgres_enforces_each_check_and_foreign_key() {
    let Some(server) = slipway_testkit::postgres::shared("constraints").await else { return };
    let database = server.database("constraints").await;
    let options: sqlx::postgres::PgConnectOptions = database.url().parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    postgres::shared::migrate::migrate_up(&mut connection).await.unwrap();
    let (names, keys) = postgres_constraints(&mut connection).await;
    violate_everything!(connection, names, keys, "'\\x00'::bytea", "clock_timestamp()");
}

/// SQLite keeps the text of a CHECK only, so each must have a name there.
async fn sqlite_constraints(
    connection: &mut sqlx::SqliteConnection,
) -> (BTreeSet<String>, BTreeSet<ForeignKey>) {
    let tables =
        sqlx::query("SELECT sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL");
    let mut names = BTreeSet::new();
    for row in tables.fetch_all(&mut *connection).await.unwrap() {
        let sql: String = row.get("sql");
        let parts: Vec<&str> = sql.split(" CHECK (").collect();
        for part in &parts[..parts.len() - 1] {
            let name = part.rsplit_once("CONSTRAINT ").map(|(_, name)| name.to_owned());
            let name = name.filter(|name| !name.contains(char::is_whitespace));
            names.insert(name.unwrap_or_else(|| panic!("a CHECK without a name: {sql}")));
        }
    }
    let keys = sqlx::query(
        "SELECT m.name AS a, k.\"from\" AS b, k.\"table\" AS c, k.\"to\" AS d \
         FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) k WHERE m.type = 'table'",
    );
    let keys = keys.fetch_all(connection).await.unwrap();
    (
        names,
        keys.iter().map(|row| (row.get("a"), row.get("b"), row.get("c"), row.get("d"))).collect(),
    )
}

async fn postgres_constraints(
    connection: &mut sqlx::PgConnection,
) -> (BTreeSet<String>, BTreeSet<ForeignKey>) {
    let names = sqlx::query(
        "SELECT conname::text AS name FROM pg_constraint \
         WHERE contype = 'c' AND connamespace = 'public'::regnamespace",
    );
    let names = names.fetch_all(&mut *connection).await.unwrap();
    let keys = sqlx::query(
        "SELECT k.conrelid::regclass::text AS a, f.attname::text AS b, \
         k.confrelid::regclass::text AS c, t.attname::text AS d FROM pg_constraint k \
         JOIN pg_attribute f ON f.attrelid = k.conrelid AND f.attnum = k.conkey[1] \
         JOIN pg_attribute t ON t.attrelid = k.confrelid AND t.attnum = k.confkey[1] \
         WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace",
    );
    let keys = keys.fetch_all(connection).await.unwrap();
    (
        names.iter().map(|row| row.get("name")).collect(),
        keys.iter().map(|row| (row.get("a"), row.get("b"), row.get("c"), row.get("d"))).collect(),
    )
}

/// Both databases have the same constraints.
#[tokio::test]
async fn both_databases_have_the_same_constraints() {
    let Some(server) = slipway_testkit::postgres::shared("same_constraints").await else { return };
    let database = server.database("same_constraints").await;
    let options: sqlx::postgres::PgConnectOptions = database.url().parse().unwrap();
    let mut postgres = options.connect().await.unwrap();
    postgres::shared::migrate::migrate_up(&mut postgres).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let options = sqlite::connect::options(&directory.path().join("slipway.db"));
    let mut sqlite = sqlite::connect::connect(&options).await.unwrap();
    sqlite::shared::migrate::migrate_up(&mut sqlite).await.unwrap();
    assert_eq!(postgres_constraints(&mut postgres).await, sqlite_constraints(&mut sqlite).await);
}

/// An event type is `family.Name`, and its family is a room.
#[test]
fn each_event_type_of_core_belongs_to_a_room() {
    const ROOMS: [&str; 12] = [
        "broker",
        "nodes",
        "catalog",
        "placement",
        "deletion",
        "access",
        "events",
        "operations",
        "rollouts",
        "fleet",
        "tenants",
        "topology",
    ];
    for family in event::catalog() {
        assert!(ROOMS.contains(&family.name), "{}", family.name);
        for event_type in family.types {
            assert_eq!(event_type.family(), family.name, "{}", event_type.as_str());
        }
    }
}

/// All event types that a room announces.
fn event_types() -> impl Iterator<Item = &'static str> {
    event::catalog().iter().flat_map(|family| family.types).map(|item| item.as_str())
}
