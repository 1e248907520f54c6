//! The store on SQLite: one writer, many readers, one process.
//!
//! This module contains what is particular to SQLite; the statements are in `shared/`.

#[macro_use]
mod dialect;
pub(crate) mod backup;
pub(crate) mod connect;
mod inspect;
mod json_values;
mod record;

#[path = "../shared/api_keys.rs"]
mod api_keys;
#[path = "../shared/audit.rs"]
mod audit;
#[path = "../shared/batch.rs"]
mod batch;
#[path = "../shared/catalog.rs"]
mod catalog;
#[path = "../shared/catalog_blueprint.rs"]
mod catalog_blueprint;
#[path = "../shared/catalog_cloud.rs"]
mod catalog_cloud;
#[path = "../shared/catalog_cluster.rs"]
mod catalog_cluster;
#[path = "../shared/catalog_credential.rs"]
mod catalog_credential;
#[path = "../shared/catalog_label.rs"]
mod catalog_label;
#[path = "../shared/catalog_project.rs"]
mod catalog_project;
#[path = "../shared/claims.rs"]
mod claims;
#[path = "../shared/clock.rs"]
mod clock;
#[path = "../shared/commit.rs"]
mod commit;
#[path = "../shared/control.rs"]
mod control;
#[path = "../shared/counts.rs"]
mod counts;
#[path = "../shared/decide.rs"]
mod decide;
#[path = "../shared/declare.rs"]
mod declare;
#[path = "../shared/definitions.rs"]
mod definitions;
#[path = "../shared/enrolment.rs"]
mod enrolment;
#[path = "../shared/explain.rs"]
mod explain;
#[path = "../shared/idempotency.rs"]
mod idempotency;
#[path = "../shared/installation.rs"]
mod installation;
#[path = "../shared/keys.rs"]
mod keys;
#[path = "../shared/leak_rows.rs"]
mod leak_rows;
#[path = "../shared/leak_writes.rs"]
mod leak_writes;
#[path = "../shared/leaks.rs"]
mod leaks;
#[path = "../shared/migrate.rs"]
pub(crate) mod migrate;
#[path = "../shared/outbox.rs"]
mod outbox;
#[path = "../shared/page.rs"]
mod page;
#[path = "../shared/partitions.rs"]
mod partitions;
#[path = "../shared/ping.rs"]
mod ping;
#[path = "../shared/placement.rs"]
mod placement;
#[path = "../shared/port_access.rs"]
mod port_access;
#[path = "../shared/port_broker.rs"]
mod port_broker;
#[path = "../shared/port_catalog.rs"]
mod port_catalog;
#[path = "../shared/port_deletion.rs"]
mod port_deletion;
#[path = "../shared/port_events.rs"]
mod port_events;
#[path = "../shared/port_nodes.rs"]
mod port_nodes;
#[path = "../shared/port_operations.rs"]
mod port_operations;
#[path = "../shared/port_placement.rs"]
mod port_placement;
#[path = "../shared/provider.rs"]
mod provider;
#[path = "../shared/reads.rs"]
mod reads;
#[path = "../shared/recorded.rs"]
mod recorded;
#[path = "../shared/renewal.rs"]
mod renewal;
#[path = "../shared/retention.rs"]
mod retention;
#[path = "../shared/rows.rs"]
mod rows;
#[path = "../shared/schema.rs"]
mod schema;
#[path = "../shared/scope.rs"]
mod scope;
#[path = "../shared/seed.rs"]
mod seed;
#[path = "../shared/set_writes.rs"]
mod set_writes;
#[path = "../shared/snapshot.rs"]
mod snapshot;
#[path = "../shared/subscriptions.rs"]
mod subscriptions;
#[path = "../shared/tasks.rs"]
mod tasks;
#[path = "../shared/token_by_hash.rs"]
mod token_by_hash;
#[path = "../shared/tokens.rs"]
mod tokens;
#[path = "../shared/transaction.rs"]
mod transaction;
#[path = "../shared/writes.rs"]
mod writes;

pub(crate) use connect::{Backend, SCHEMA_MIGRATIONS, begin_migration, scripts};
pub(crate) use inspect::{HAS_SCHEMA, inspect};

pub(crate) type Db = sqlx::Sqlite;
pub(crate) type Connection = sqlx::SqliteConnection;
pub(crate) type Row = <Db as sqlx::Database>::Row;
