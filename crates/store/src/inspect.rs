//! Inspects a database without changing it, for `slipway doctor`, which has to work
//! beside a control plane, without one, and on a database that none would open.

use std::path::PathBuf;

use slipway_core::Timestamp;

use crate::config::{OpenError, StoreConfig, Target};
use crate::migration::MigrationError;
use crate::{postgres, sqlite};

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// The path of the file.
    Sqlite(PathBuf),
    /// The server, without the password.
    Postgres(String),
}

/// The database that a configuration names. Opens nothing.
pub fn locate(config: &StoreConfig) -> Result<Location, OpenError> {
    Ok(match config.target()? {
        Target::Sqlite(file) => Location::Sqlite(file.path),
        Target::Postgres(options) => Location::Postgres(postgres::connect::describe(&options)),
    })
}

/// The result of an inspection.
#[derive(Debug)]
pub struct Inspection {
    /// The version of the database software.
    pub version: String,
    /// None if no migration ever ran.
    pub schema: Option<Schema>,
    /// Why a write that changes nothing was refused.
    pub unwritable: Option<String>,
    /// The settings that decide whether a commit survives a power loss.
    pub durability: Vec<Setting>,
    /// The database's clock.
    pub now: Timestamp,
}

/// The schema, compared with what this binary knows.
#[derive(Debug)]
pub struct Schema {
    pub applied: i64,
    pub known: i64,
    /// Why this binary must not use it.
    pub refused: Option<MigrationError>,
}

/// A setting of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    /// With this value an acknowledged commit may be lost.
    pub unsafe_value: bool,
}

/// Tries once, within `config.connect_limit`. None if there is no SQLite file
/// yet. Opens no pool, migrates nothing, locks no directory.
pub async fn inspect(config: &StoreConfig) -> Result<Option<Inspection>, OpenError> {
    match config.target()? {
        Target::Sqlite(file) if !file.path.exists() => Ok(None),
        Target::Sqlite(file) => sqlite::inspect(&file.path).await.map(Some),
        Target::Postgres(options) => {
            let connection =
                postgres::connect::connect(&options, config.max_connections, config.connect_limit);
            postgres::inspect(connection.await?).await.map(Some)
        }
    }
}
