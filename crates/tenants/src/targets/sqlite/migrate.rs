//! Runs migrations and seeds in the file of a tenant. The same rules hold as on PostgreSQL.

use slipway_durable::database::{ErrorClass, class};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use tokio::time::timeout;

use super::SqliteTarget;
use crate::StepError;
use crate::targets::failure::{Failure, fenced};
use crate::targets::folder::{self, Migration, Script, Version};
use crate::targets::plan::{self, Applied, FlywayRow};
use crate::targets::settings::Settings;
use crate::targets::target::{Fence, Migrated, Repair, Work};

impl SqliteTarget {
    pub(super) async fn apply_migrations(&self, work: &Work<'_>) -> Result<Migrated, Failure> {
        let folder = folder::migrations(self.settings.migrations.as_deref()).await?;
        let mut connection = self.open(work.names).await?;
        let migrated = migrate(&mut connection, work, &folder, &self.settings).await?;
        connection.close().await?;
        Ok(migrated)
    }

    pub(super) async fn apply_seeds(&self, work: &Work<'_>) -> Result<(), Failure> {
        let folder = folder::seeds(self.settings.seeds.as_deref()).await?;
        let mut connection = self.open(work.names).await?;
        begin(&mut connection, work).await?;
        let rows = rows(&mut connection, "seed").await?;
        commit(&mut connection).await?;
        for script in plan::owed_seeds(&folder, &rows) {
            let row = Applied::of(script.file.clone(), script);
            run_whole(&mut connection, work, "seed", &row, script, &self.settings).await?;
        }
        connection.close().await?;
        Ok(())
    }

    pub(super) async fn enter_repair(
        &self,
        work: &Work<'_>,
        version: &str,
        repair: Repair,
    ) -> Result<(), Failure> {
        let folder = folder::migrations(self.settings.migrations.as_deref()).await?;
        let mut connection = self.open(work.names).await?;
        begin(&mut connection, work).await?;
        let ledger = rows(&mut connection, "migration").await?;
        let row = plan::repaired(&folder, &ledger, version, repair).map_err(Failure::permanent)?;
        delete(&mut connection, version).await?;
        if let Some(row) = row {
            insert(&mut connection, work, "migration", &row, "done").await?;
        }
        commit(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }
}

/// Applies what is owed to a database that has our tables.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    work: &Work<'_>,
    folder: &[Migration],
    settings: &Settings,
) -> Result<Migrated, Failure> {
    begin(connection, work).await?;
    let mut ledger = rows(connection, "migration").await?;
    let mut migrated = Migrated::default();
    if ledger.is_empty() {
        ledger = adopt_flyway(connection, work, folder).await?;
        migrated.adopted = ledger.iter().map(|row| row.version.clone()).collect();
    }
    commit(connection).await?;
    let owed =
        plan::owed(folder, &ledger, settings.allow_out_of_order).map_err(Failure::permanent)?;
    for Migration { version, script } in owed {
        let row = Applied::of(version.to_string(), script);
        if script.is_transactional {
            run_whole(connection, work, "migration", &row, script, settings).await?;
        } else {
            run_loose(connection, work, &row, script, settings).await?;
        }
        migrated.applied.push(version.to_string());
        ledger.push(row);
    }
    let highest = ledger.iter().filter_map(|row| Version::parse(&row.version)).max();
    migrated.version = highest.map(|version| version.to_string());
    Ok(migrated)
}

/// Begins a transaction that alone may write, with the fence in it.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    work: &Work<'_>,
) -> Result<(), Failure> {
    let Work { names, fence, .. } = *work;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    let write = "UPDATE slipway_tenant SET work = $2, token = $3 \
                 WHERE tenant = $1 AND (work, token) <= ($2, $3)";
    let query = sqlx::query(write).bind(names.tenant()).bind(fence.work).bind(fence.token);
    if query.execute(&mut *connection).await?.rows_affected() == 1 {
        return Ok(());
    }
    let read = "SELECT tenant, work, token FROM slipway_tenant";
    let found: Option<(String, i64, i64)> = sqlx::query_as(read).fetch_optional(connection).await?;
    Err(match found {
        Some((tenant, work, token)) if tenant == names.tenant() => {
            fenced(Some(Fence { work, token }), fence)
        }
        found => {
            let whose = found.map_or("nobody".to_owned(), |(tenant, ..)| tenant);
            let problem = format!("the file {} belongs to {whose}", names.file());
            Failure::permanent(problem)
        }
    })
}

pub(super) async fn commit(connection: &mut SqliteConnection) -> Result<(), Failure> {
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(())
}

/// Whether somebody else has the file.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    class(error) == ErrorClass::Conflict
}

async fn run_script(
    connection: &mut SqliteConnection,
    script: &Script,
    settings: &Settings,
) -> Result<(), Failure> {
    let limit = settings.statement_timeout();
    let run = sqlx::raw_sql(AssertSqlSafe(script.sql.clone())).execute(connection);
    match timeout(limit, run).await {
        Ok(ran) => ran.map(drop).map_err(|error| Failure::of_script(script, error)),
        Err(_) => Err(Failure::Silent(format!("{} took longer than {limit:?}", script.file))),
    }
}

async fn run_whole(
    connection: &mut SqliteConnection,
    work: &Work<'_>,
    kind: &str,
    row: &Applied,
    script: &Script,
    settings: &Settings,
) -> Result<(), Failure> {
    begin(connection, work).await?;
    sqlx::query("SAVEPOINT slipway_file").execute(&mut *connection).await?;
    run_script(connection, script, settings).await?;
    // The savepoint is gone if the file ended the transaction, whatever it began afterwards.
    if sqlx::query("RELEASE slipway_file").execute(&mut *connection).await.is_err() {
        return Err(Failure::permanent(format!(
            "{} ends its transaction by itself: take COMMIT and ROLLBACK out of it, or mark it \
             with `-- slipway: no-transaction`; look at what it has done already",
            script.file
        )));
    }
    insert(connection, work, kind, row, "done").await?;
    commit(connection).await
}

async fn run_loose(
    connection: &mut SqliteConnection,
    work: &Work<'_>,
    row: &Applied,
    script: &Script,
    settings: &Settings,
) -> Result<(), Failure> {
    begin(connection, work).await?;
    insert(connection, work, "migration", row, "running").await?;
    commit(connection).await?;
    if let Err(failure) = run_script(connection, script, settings).await {
        let reason = StepError::from(failure).message;
        return Err(Failure::permanent(format!(
            "state unknown: {reason}; {} ran without a transaction and may have done a part: \
             look at the tenant, then repair version {} as applied or as not applied",
            script.file, row.version
        )));
    }
    begin(connection, work).await?;
    delete(connection, &row.version).await?;
    insert(connection, work, "migration", row, "done").await?;
    commit(connection).await
}

pub(super) async fn rows(
    connection: &mut SqliteConnection,
    kind: &str,
) -> Result<Vec<Applied>, Failure> {
    let sql = "SELECT version, file, checksum, status <> 'done' FROM slipway_migrations \
               WHERE kind = $1 ORDER BY rowid";
    let rows: Vec<(String, String, Option<String>, bool)> =
        sqlx::query_as(sql).bind(kind).fetch_all(connection).await?;
    let row =
        |(version, file, checksum, is_unknown)| Applied { version, file, checksum, is_unknown };
    Ok(rows.into_iter().map(row).collect())
}

async fn insert(
    connection: &mut SqliteConnection,
    work: &Work<'_>,
    kind: &str,
    row: &Applied,
    status: &str,
) -> Result<(), Failure> {
    let sql = "INSERT INTO slipway_migrations (kind, version, file, checksum, status, work, token) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let query = sqlx::query(sql).bind(kind).bind(&row.version).bind(&row.file);
    let query = query.bind(&row.checksum).bind(status);
    query.bind(work.fence.work).bind(work.fence.token).execute(connection).await?;
    Ok(())
}

async fn delete(connection: &mut SqliteConnection, version: &str) -> Result<(), Failure> {
    let sql = "DELETE FROM slipway_migrations WHERE kind = 'migration' AND version = $1";
    sqlx::query(sql).bind(version).execute(connection).await?;
    Ok(())
}

async fn adopt_flyway(
    connection: &mut SqliteConnection,
    work: &Work<'_>,
    folder: &[Migration],
) -> Result<Vec<Applied>, Failure> {
    let there = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'flyway_schema_history')";
    if !sqlx::query_scalar::<_, bool>(there).fetch_one(&mut *connection).await? {
        return Ok(Vec::new());
    }
    let sql = "SELECT version, type, script, success <> 0 FROM flyway_schema_history \
               ORDER BY installed_rank";
    let rows: Vec<(Option<String>, String, String, bool)> =
        sqlx::query_as(sql).fetch_all(&mut *connection).await?;
    let row = |(version, kind, script, success)| FlywayRow { version, kind, script, success };
    let rows: Vec<_> = rows.into_iter().map(row).collect();
    let adopted = plan::adopted(&rows, folder).map_err(Failure::permanent)?;
    for row in &adopted {
        insert(connection, work, "migration", row, "done").await?;
    }
    Ok(adopted)
}
