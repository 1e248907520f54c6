//! Looking at a database without changing it: for `slipway doctor`, which has
//! to work beside a control plane, without one, and on what none would open.

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
    /// Who is asked, never with what password.
    Postgres(String),
}

/// Which database a configuration names. Touches nothing.
pub fn locate(config: &StoreConfig) -> Result<Location, OpenError> {
    Ok(match config.target()? {
        Target::Sqlite(file) => Location::Sqlite(file.path),
        Target::Postgres(options) => Location::Postgres(postgres::connect::describe(&options)),
    })
}

/// What was seen.
#[derive(Debug)]
pub struct Inspection {
    /// Of the database software.
    pub version: String,
    /// None if nothing was ever migrated.
    pub schema: Option<Schema>,
    /// What refused a write that changes nothing.
    pub unwritable: Option<String>,
    /// What decides whether a commit survives a loss of power.
    pub durability: Vec<Setting>,
    /// The database's clock.
    pub now: Timestamp,
}

/// The schema, against what this binary knows.
#[derive(Debug)]
pub struct Schema {
    pub applied: i64,
    pub known: i64,
    /// Why this binary must not touch it.
    pub refused: Option<MigrationError>,
}

/// A setting of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    /// With this value a commit that was answered may be lost.
    pub unsafe_value: bool,
}

/// Looks once, with the patience of `config.connect_limit`. None if there is no
/// SQLite file yet. Opens no pool, migrates nothing, locks no directory.
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
