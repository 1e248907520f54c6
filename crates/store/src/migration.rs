//! The list of migrations, the reasons to refuse one, and the checksum of a
//! script. `shared/migrate.rs` runs them, once per database.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// One step of the schema, up and down, for both databases.
#[derive(Debug)]
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    /// The lowest schema version whose binaries can still work with the
    /// database once this is applied. A migration that only adds keeps the
    /// number of an older one; one that removes something names itself.
    pub(crate) min_reader: i64,
    pub(crate) sqlite: Scripts,
    pub(crate) postgres: Scripts,
}

#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
}

impl Scripts {
    /// Identifies the applied script. If a database recorded another checksum,
    /// a different script of the same number made it.
    pub(crate) fn checksum(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.up.as_bytes()))
    }
}

macro_rules! scripts {
    ($database:literal, $file:literal) => {
        Scripts {
            up: include_str!(concat!("../migrations/", $database, "/", $file, ".up.sql")),
            down: include_str!(concat!("../migrations/", $database, "/", $file, ".down.sql")),
        }
    };
}

macro_rules! migration {
    ($version:literal, $name:literal, $file:literal, min_reader: $min_reader:literal) => {
        Migration {
            version: $version,
            name: $name,
            min_reader: $min_reader,
            sqlite: scripts!("sqlite", $file),
            postgres: scripts!("postgres", $file),
        }
    };
}

/// In ascending order of version. The list is append-only: a change of the schema
/// is a new migration at its end, and nobody edits one that a main branch had.
///
/// The first eight make the schema of the first version, one room each, in the
/// order of their foreign keys. They always come together.
pub(crate) const MIGRATIONS: &[Migration] = &[
    migration!(1, "catalog", "0001_catalog", min_reader: 1),
    migration!(2, "placement", "0002_placement", min_reader: 1),
    migration!(3, "broker", "0003_broker", min_reader: 1),
    migration!(4, "nodes", "0004_nodes", min_reader: 1),
    migration!(5, "deletion", "0005_deletion", min_reader: 1),
    migration!(6, "access", "0006_access", min_reader: 1),
    migration!(7, "events", "0007_events", min_reader: 1),
    migration!(8, "operations", "0008_operations", min_reader: 1),
    migration!(9, "broker_abandon", "0009_broker_abandon", min_reader: 1),
    // Raises a mark only with its counter, which an older reader would not do.
    migration!(10, "operations_mark_counters", "0010_operations_mark_counters", min_reader: 10),
    migration!(11, "access_withdrawn_keys", "0011_access_withdrawn_keys", min_reader: 1),
    // Keeps corrections for the attempt that follows, which an older reader would drop.
    migration!(12, "broker_retries", "0012_broker_retries", min_reader: 12),
    migration!(13, "nodes_machines", "0013_nodes_machines", min_reader: 1),
    // Has several ProviderConfigs of one provider, of which an older reader would remove some.
    migration!(
        14, "catalog_provider_config_names", "0014_catalog_provider_config_names", min_reader: 14
    ),
    migration!(15, "nodes_hostname", "0015_nodes_hostname", min_reader: 1),
    // Marks rows as deleted that an older reader would take for live ones.
    migration!(16, "catalog_soft_deletion", "0016_catalog_soft_deletion", min_reader: 16),
    // Lets a deletion wait for its grace, which an older reader would take for running.
    migration!(17, "deletion_grace", "0017_deletion_grace", min_reader: 17),
    migration!(18, "deletion_settings", "0018_deletion_settings", min_reader: 17),
    migration!(19, "deletion_plans", "0019_deletion_plans", min_reader: 17),
    // Stops a caller, whom an older reader would let through.
    migration!(20, "deletion_brakes", "0020_deletion_brakes", min_reader: 20),
    migration!(21, "deletion_names", "0021_deletion_names", min_reader: 20),
    // Remembers who has read a key, which an older reader would forget at a rotation.
    migration!(22, "access_key_owners", "0022_access_key_owners", min_reader: 22),
    // Keeps objects outside on purpose, which an older reader would delete.
    migration!(23, "broker_kept_outside", "0023_broker_kept_outside", min_reader: 23),
    // Asks for the approval of a second person, which an older reader would not.
    migration!(24, "deletion_approvals", "0024_deletion_approvals", min_reader: 24),
    migration!(25, "deletion_reads", "0025_deletion_reads", min_reader: 24),
    migration!(26, "rollouts", "0026_rollouts", min_reader: 24),
    migration!(27, "files", "0027_files", min_reader: 24),
    // Has two attempts of a resource at once, of which an older reader would take the wrong one.
    migration!(28, "broker_surge", "0028_broker_surge", min_reader: 28),
    migration!(29, "catalog_surge", "0029_catalog_surge", min_reader: 28),
    // Names the Composition of a version, without which an older reader would render its
    // composites and install it; and it comes with parameters in JSON Schema, which an older
    // reader cannot read.
    migration!(30, "catalog_composition_names", "0030_catalog_composition_names", min_reader: 30),
    migration!(31, "files_faults", "0031_files_faults", min_reader: 30),
    migration!(32, "fleet", "0032_fleet", min_reader: 30),
    migration!(33, "fleet_prunes", "0033_fleet_prunes", min_reader: 30),
    // Has markers that agents let go by, which an older reader would offer as any other, so that
    // agents would remove everything.
    migration!(34, "fleet_keep", "0034_fleet_keep", min_reader: 34),
    // Brings an object to agents in order, which an older reader would offer to all at once.
    migration!(35, "fleet_rollouts", "0035_fleet_rollouts", min_reader: 35),
    // Has a number in what agents hold by which an idle poll is answered, and which an older
    // writer would leave as it was when it offers something else.
    migration!(36, "fleet_holding_numbers", "0036_fleet_holding_numbers", min_reader: 36),
    // Has objects that are the text of a template, which an older reader would offer.
    migration!(37, "fleet_per_agent", "0037_fleet_per_agent", min_reader: 37),
    migration!(38, "tenants", "0038_tenants", min_reader: 1),
    // An older reader would act on a target that is ahead of the database.
    migration!(39, "tenants_waiting", "0039_tenants_waiting", min_reader: 39),
    // An older writer would delete a server without asking the gates.
    migration!(40, "broker_servers", "0040_broker_servers", min_reader: 40),
    migration!(41, "topology", "0041_topology", min_reader: 40),
];

/// The first migration of every database that a development version made before
/// the schema was written anew. Its numbers collide with ours, its name does not.
pub(crate) const FIRST_BEFORE_0_1_0: &str = "walking_skeleton";

/// The schema that this binary was written for.
pub(crate) fn latest_version() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error(
        "the database was made by a development version before 0.1.0 (its first migration is \
         `{name}`), and no release reads it; export what you need with the binary that made it, \
         then start this one with an empty database or another data directory"
    )]
    MadeBeforeFirstVersion { name: String },
    #[error(
        "the database needs a binary that reads schema version {needed}, and this one reads up to \
         {supported}; upgrade this replica"
    )]
    DatabaseNeedsNewerReader { needed: i64, supported: i64 },
    #[error(
        "migration {version} ({name}) was applied to this database from a different script; a \
         released migration must not change: run the binary that belongs to this database"
    )]
    ChecksumChanged { version: i64, name: String },
    #[error(
        "migration {version} ({name}) is applied but unknown to this binary, so it cannot be taken \
         back; run the binary that brought it"
    )]
    UnknownMigration { version: i64, name: String },
    #[error("migrating the database failed: {0}")]
    Database(#[from] sqlx::Error),
}

impl MigrationError {
    /// The stable code of a database that this binary must not use; `None` if a
    /// migration failed for another reason.
    pub fn refusal_code(&self) -> Option<&'static str> {
        match self {
            Self::MadeBeforeFirstVersion { .. } => Some("database_too_old"),
            Self::DatabaseNeedsNewerReader { .. } => Some("database_needs_newer_reader"),
            _ => None,
        }
    }
}

impl slipway_durable::database::OperationError for MigrationError {
    fn database_error(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Database(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dense_and_readers_are_not_from_the_future() {
        for (version, migration) in (1..).zip(MIGRATIONS) {
            assert_eq!(migration.version, version, "{}", migration.name);
            assert!(migration.min_reader <= migration.version, "{}", migration.name);
        }
    }
}
