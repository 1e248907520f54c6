//! Opening a store by its URL, and migrating its schema down.

use std::sync::Arc;

use slipway_app::ports::Stores;
use slipway_tenants::JobStore;
use sqlx::Connection as _;

use crate::config::{OpenError, StoreConfig, Target};
use crate::{postgres, sqlite};

/// Connects, migrates to the newest schema and answers the stores of all domains.
pub async fn open(config: StoreConfig) -> Result<Stores, OpenError> {
    Ok(open_with_jobs(config).await?.0)
}

/// The same, and the jobs of tenants, which the library claims and writes.
pub async fn open_with_jobs(config: StoreConfig) -> Result<(Stores, Arc<dyn JobStore>), OpenError> {
    match config.target()? {
        Target::Sqlite(file) => {
            let backend = sqlite::Backend::open(&file, config.statement_limit).await?;
            let jobs = Arc::new(backend.jobs.clone());
            Ok((Stores::of(Arc::new(backend)), jobs))
        }
        Target::Postgres(options) => {
            let backend = postgres::Backend::open(
                *options,
                config.max_connections,
                config.connect_limit,
                config.statement_limit,
            );
            let backend = backend.await?;
            let jobs = Arc::new(backend.jobs.clone());
            Ok((Stores::of(Arc::new(backend)), jobs))
        }
    }
}

/// Reverts every migration above `version`, with the data in it; answers how
/// many. No other process may use the database meanwhile.
pub async fn migrate_down_to(config: StoreConfig, version: i64) -> Result<usize, OpenError> {
    match config.target()? {
        Target::Sqlite(file) => {
            let _lock = sqlite::connect::lock_directory(&file.path)?;
            sqlite::connect::prepare_file(&file.path)?;
            let options = sqlite::connect::options(&file.path);
            let mut connection = sqlite::connect::connect(&options).await?;
            let steps = sqlite::shared::migrate::migrate_down_to(&mut connection, version).await?;
            connection.close().await.map_err(OpenError::Sqlite)?;
            Ok(steps)
        }
        Target::Postgres(options) => {
            let mut connection =
                postgres::connect::connect(&options, config.max_connections, config.connect_limit)
                    .await?;
            Ok(postgres::shared::migrate::migrate_down_to(&mut connection, version).await?)
        }
    }
}
