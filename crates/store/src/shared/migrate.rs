//! Runs migrations, up and down, under a lock of our own.
//!
//! Everything happens in one transaction that takes the lock with its first
//! statement: many replicas may start at once, one migrates, the others wait
//! and then find nothing to do. Both databases have transactional DDL, so a
//! failed migration leaves the schema unchanged.

use sqlx::Row as _;

use super::{Connection, begin_migration, scripts};
use crate::migration::{FIRST_BEFORE_0_1_0, MIGRATIONS, Migration, MigrationError, latest_version};

pub(crate) struct Applied {
    pub(crate) version: i64,
    name: String,
    checksum: String,
    min_reader: i64,
}

/// Brings the schema to the newest version; answers how many steps that took.
pub(crate) async fn migrate_up(connection: &mut Connection) -> Result<usize, MigrationError> {
    let mut transaction = begin_migration(connection).await?;
    sqlx::raw_sql(super::SCHEMA_MIGRATIONS).execute(&mut *transaction).await?;
    let applied = applied(&mut transaction).await?;
    check(&applied)?;
    let mut steps = 0;
    for migration in MIGRATIONS {
        if applied.iter().any(|applied| applied.version == migration.version) {
            continue;
        }
        sqlx::raw_sql(scripts(migration).up).execute(&mut *transaction).await?;
        record(&mut transaction, migration).await?;
        steps += 1;
    }
    transaction.commit().await?;
    Ok(steps)
}

/// Reverts every migration above `version`; answers how many.
pub(crate) async fn migrate_down_to(
    connection: &mut Connection,
    version: i64,
) -> Result<usize, MigrationError> {
    let mut transaction = begin_migration(connection).await?;
    sqlx::raw_sql(super::SCHEMA_MIGRATIONS).execute(&mut *transaction).await?;
    let applied = applied(&mut transaction).await?;
    check(&applied)?;
    let mut steps = 0;
    for applied in applied.iter().rev().filter(|applied| applied.version > version) {
        let Some(migration) = MIGRATIONS.iter().find(|known| known.version == applied.version)
        else {
            return Err(MigrationError::UnknownMigration {
                version: applied.version,
                name: applied.name.clone(),
            });
        };
        sqlx::raw_sql(scripts(migration).down).execute(&mut *transaction).await?;
        sqlx::query("DELETE FROM schema_migrations WHERE version = $1")
            .bind(applied.version)
            .execute(&mut *transaction)
            .await?;
        steps += 1;
    }
    transaction.commit().await?;
    Ok(steps)
}

/// Refuses a database that this binary must not touch. Unknown migrations are
/// accepted as long as their `min_reader` allows this binary: the older replica
/// of a rolling upgrade is in that situation.
pub(crate) fn check(applied: &[Applied]) -> Result<(), MigrationError> {
    if let Some(first) = applied.iter().find(|applied| applied.name == FIRST_BEFORE_0_1_0) {
        return Err(MigrationError::MadeBeforeFirstVersion { name: first.name.clone() });
    }
    let supported = latest_version();
    let needed = applied.iter().map(|applied| applied.min_reader).max().unwrap_or(0);
    if needed > supported {
        return Err(MigrationError::DatabaseNeedsNewerReader { needed, supported });
    }
    for migration in MIGRATIONS {
        let changed = applied.iter().find(|applied| {
            applied.version == migration.version
                && applied.checksum != scripts(migration).checksum()
        });
        if let Some(applied) = changed {
            return Err(MigrationError::ChecksumChanged {
                version: applied.version,
                name: applied.name.clone(),
            });
        }
    }
    Ok(())
}

pub(crate) async fn applied(connection: &mut Connection) -> Result<Vec<Applied>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT version, name, checksum, min_reader FROM schema_migrations ORDER BY version",
    )
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Applied {
                version: row.try_get("version")?,
                name: row.try_get("name")?,
                checksum: row.try_get("checksum")?,
                min_reader: row.try_get("min_reader")?,
            })
        })
        .collect()
}

async fn record(
    connection: &mut Connection,
    migration: &'static Migration,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO schema_migrations (version, name, checksum, min_reader) \
         VALUES ($1, $2, $3, $4)",
    )
    .bind(migration.version)
    .bind(migration.name)
    .bind(scripts(migration).checksum())
    .bind(migration.min_reader)
    .execute(connection)
    .await?;
    Ok(())
}
