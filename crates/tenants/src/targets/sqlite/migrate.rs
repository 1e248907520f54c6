//! Migrations and seeds in a file.

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use tokio::time::timeout;

use super::SqliteTarget;
use crate::targets::failure::{Failure, belongs_to, fenced};
use crate::targets::folder::{self, Script};
use crate::targets::plan::{Applied, FlywayRow};
use crate::targets::run::{self, Attempts, Kind, Run, Status, TenantDatabase};
use crate::targets::settings::Settings;
use crate::targets::target::{Fence, Migrated, Repair, Work};

impl SqliteTarget {
    pub(super) async fn apply_migrations(&self, work: &Work<'_>) -> Result<Migrated, Failure> {
        let folder = folder::migrations(self.settings.migrations.as_deref()).await?;
        let in_any_order = self.settings.allow_out_of_order;
        let (mut run, mut attempts) = (Run::default(), Attempts::new(&self.settings));
        loop {
            let tried = async {
                let mut tenant = self.tenant(work).await?;
                run::migrate(&mut tenant, &folder, in_any_order, &mut run).await?;
                tenant.connection.close().await.map_err(Failure::from)
            };
            match tried.await {
                Ok(()) => return Ok(run.migrated()),
                Err(failure) => attempts.again(failure).await?,
            }
        }
    }

    pub(super) async fn apply_seeds(&self, work: &Work<'_>) -> Result<(), Failure> {
        let folder = folder::seeds(self.settings.seeds.as_deref()).await?;
        let mut attempts = Attempts::new(&self.settings);
        loop {
            let tried = async {
                let mut tenant = self.tenant(work).await?;
                run::seed(&mut tenant, &folder).await?;
                tenant.connection.close().await.map_err(Failure::from)
            };
            match tried.await {
                Ok(()) => return Ok(()),
                Err(failure) => attempts.again(failure).await?,
            }
        }
    }

    pub(super) async fn enter_repair(
        &self,
        work: &Work<'_>,
        version: &str,
        repair: Repair,
    ) -> Result<(), Failure> {
        let folder = folder::migrations(self.settings.migrations.as_deref()).await?;
        let mut tenant = self.tenant(work).await?;
        run::repair(&mut tenant, &folder, version, repair).await?;
        Ok(tenant.connection.close().await?)
    }

    async fn tenant<'a>(&'a self, work: &'a Work<'a>) -> Result<Tenant<'a>, Failure> {
        let connection = self.open(work.names).await?;
        Ok(Tenant { connection, work, settings: &self.settings })
    }
}

/// A database that has our tables, for one piece of work on it.
pub(super) struct Tenant<'a> {
    pub(super) connection: SqliteConnection,
    pub(super) work: &'a Work<'a>,
    pub(super) settings: &'a Settings,
}

#[async_trait]
impl TenantDatabase for Tenant<'_> {
    async fn begin(&mut self) -> Result<(), Failure> {
        begin(&mut self.connection, self.work).await
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        sqlx::query("COMMIT").execute(&mut self.connection).await?;
        Ok(())
    }

    async fn run_inside(&mut self, script: &Script) -> Result<(), Failure> {
        sqlx::query("SAVEPOINT slipway_file").execute(&mut self.connection).await?;
        self.run_outside(script).await?;
        // The savepoint is gone if the file ended the transaction, whatever it began afterwards.
        let released = sqlx::query("RELEASE slipway_file").execute(&mut self.connection).await;
        released.map(drop).map_err(|_| run::ended_transaction(script))
    }

    async fn run_outside(&mut self, script: &Script) -> Result<(), Failure> {
        let limit = self.settings.statement_timeout();
        let run = sqlx::raw_sql(AssertSqlSafe(script.sql.clone())).execute(&mut self.connection);
        match timeout(limit, run).await {
            Ok(ran) => ran.map(drop).map_err(|error| Failure::of_script(script, error)),
            Err(_) => Err(Failure::Silent(format!("{} took longer than {limit:?}", script.file))),
        }
    }

    async fn rows(&mut self, kind: Kind) -> Result<Vec<Applied>, Failure> {
        rows(&mut self.connection, kind).await
    }

    async fn insert(&mut self, kind: Kind, row: &Applied, status: Status) -> Result<(), Failure> {
        let sql = "INSERT INTO slipway_migrations \
                   (kind, version, file, checksum, status, work, token) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let query = sqlx::query(sql).bind(kind.as_str()).bind(&row.version).bind(&row.file);
        let query = query.bind(&row.checksum).bind(status.as_str()).bind(self.work.fence.work);
        query.bind(self.work.fence.token).execute(&mut self.connection).await?;
        Ok(())
    }

    async fn delete(&mut self, version: &str) -> Result<(), Failure> {
        let sql = "DELETE FROM slipway_migrations WHERE kind = 'migration' AND version = $1";
        sqlx::query(sql).bind(version).execute(&mut self.connection).await?;
        Ok(())
    }

    async fn flyway(&mut self) -> Result<Option<Vec<FlywayRow>>, Failure> {
        let there =
            "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'flyway_schema_history')";
        if !sqlx::query_scalar::<_, bool>(there).fetch_one(&mut self.connection).await? {
            return Ok(None);
        }
        let sql = "SELECT version, type, script, success <> 0 FROM flyway_schema_history \
                   ORDER BY installed_rank";
        let rows: Vec<_> = sqlx::query_as(sql).fetch_all(&mut self.connection).await?;
        Ok(Some(rows.into_iter().map(FlywayRow::of).collect()))
    }
}

/// Begins a transaction that alone may write, with the fence in it.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    work: &Work<'_>,
) -> Result<(), Failure> {
    let Work { names, fence, lost, .. } = *work;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    let write = "UPDATE slipway_tenant SET work = $2, token = $3 \
                 WHERE tenant = $1 AND (work, token) <= ($2, $3) \
                 AND (work > $4 AND work < $5) IS NOT TRUE";
    let query = sqlx::query(write).bind(names.owner()).bind(fence.work).bind(fence.token);
    let query = query.bind(lost.map(|lost| lost.after)).bind(lost.map(|lost| lost.before));
    if query.execute(&mut *connection).await?.rows_affected() == 1 {
        return Ok(());
    }
    let read = "SELECT tenant, work, token FROM slipway_tenant";
    let found: Option<(String, i64, i64)> = sqlx::query_as(read).fetch_optional(connection).await?;
    Err(match found {
        Some((owner, number, token)) if owner == names.owner() => {
            fenced(Some(Fence { work: number, token }), work)
        }
        Some((owner, ..)) => belongs_to(names, &owner),
        None => Failure::permanent(format!("the file {} says not whose it is", names.file())),
    })
}

pub(super) async fn rows(
    connection: &mut SqliteConnection,
    kind: Kind,
) -> Result<Vec<Applied>, Failure> {
    let sql = "SELECT version, file, checksum, status <> 'done' FROM slipway_migrations \
               WHERE kind = $1 ORDER BY rowid";
    let rows: Vec<_> = sqlx::query_as(sql).bind(kind.as_str()).fetch_all(connection).await?;
    Ok(rows.into_iter().map(Applied::of_row).collect())
}
