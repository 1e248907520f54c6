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

/// In ascending order of version. A shipped migration is never edited.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "walking_skeleton",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0001_walking_skeleton"),
        postgres: scripts!("postgres", "0001_walking_skeleton"),
    },
    Migration {
        version: 2,
        name: "lean_attempts",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0002_lean_attempts"),
        postgres: scripts!("postgres", "0002_lean_attempts"),
    },
    Migration {
        version: 3,
        name: "partitions",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0003_partitions"),
        postgres: scripts!("postgres", "0003_partitions"),
    },
    Migration {
        version: 4,
        name: "second_proof",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0004_second_proof"),
        postgres: scripts!("postgres", "0004_second_proof"),
    },
    Migration {
        version: 5,
        name: "leaks",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0005_leaks"),
        postgres: scripts!("postgres", "0005_leaks"),
    },
    Migration {
        version: 6,
        name: "control",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0006_control"),
        postgres: scripts!("postgres", "0006_control"),
    },
    Migration {
        version: 7,
        name: "events",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0007_events"),
        postgres: scripts!("postgres", "0007_events"),
    },
    Migration {
        version: 8,
        name: "catalog",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0008_catalog"),
        postgres: scripts!("postgres", "0008_catalog"),
    },
    Migration {
        version: 9,
        name: "lean_outbox",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0009_lean_outbox"),
        postgres: scripts!("postgres", "0009_lean_outbox"),
    },
    Migration {
        version: 10,
        name: "keys",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0010_keys"),
        postgres: scripts!("postgres", "0010_keys"),
    },
    Migration {
        version: 11,
        name: "mesh",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0011_mesh"),
        postgres: scripts!("postgres", "0011_mesh"),
    },
    Migration {
        version: 12,
        name: "placement",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0012_placement"),
        postgres: scripts!("postgres", "0012_placement"),
    },
    Migration {
        version: 13,
        name: "composites",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0013_composites"),
        postgres: scripts!("postgres", "0013_composites"),
    },
    Migration {
        version: 14,
        name: "bound_readers",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0014_bound_readers"),
        postgres: scripts!("postgres", "0014_bound_readers"),
    },
    Migration {
        version: 15,
        name: "definitions",
        min_reader: 1,
        sqlite: scripts!("sqlite", "0015_definitions"),
        postgres: scripts!("postgres", "0015_definitions"),
    },
];

/// The schema that this binary was written for.
pub(crate) fn latest_version() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
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
