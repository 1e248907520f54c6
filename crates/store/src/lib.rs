//! The store port on SQLite and PostgreSQL: migrations, aggregates, outbox,
//! audit.
//!
//! Every statement is written once, in `shared/`, and compiled for each
//! database; `sqlite/` and `postgres/` contain what is particular to one. This
//! crate decides nothing: it loads snapshots under lock, calls the rule it was
//! given, and writes what the rule answered, in one transaction.

#![expect(clippy::duplicate_mod, reason = "shared/ is compiled once for each database, on purpose")]

mod backup;
mod config;
mod inspect;
mod open;

mod directory;
mod migration;
mod private_files;

mod blueprints;
mod failure;
mod fault;
mod id_list;
mod micros;

mod postgres;
mod sqlite;

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod constraint_tests;
#[cfg(test)]
mod migration_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tenants;

pub use backup::{
    BackupError, Beside, Manifest, backup, backup_check, checkpoint, database_file, restore_prepare,
};
pub use config::{OpenError, StoreConfig};
pub use directory::{DirectoryError, DirectoryLock};
pub use inspect::{Inspection, Location, Schema, Setting, inspect, locate};
pub use migration::MigrationError;
pub use open::{migrate_down_to, open, open_with_jobs};
pub use private_files::{files_open_to_others, narrow_files};
