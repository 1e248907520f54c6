//! Migrations and seeds in a schema.
//!
//! The provisioner's session acts as the migrator, so the files are as trusted as the
//! provisioner: a file that gives the role up or ends the transaction is found out and refused,
//! not prevented. A transaction that a lost connection left open holds the lock of the
//! tenant; the next try waits for it before it reads the ledger.

use async_trait::async_trait;
use sqlx::AssertSqlSafe;

use super::connections::Session;
use super::{PostgresTarget, ledger, literal, quoted};
use crate::targets::failure::Failure;
use crate::targets::folder::{self, Script};
use crate::targets::names::TenantNames;
use crate::targets::plan::{Applied, FlywayRow};
use crate::targets::run::{self, Attempts, Kind, Run, Status, TenantDatabase};
use crate::targets::target::{Migrated, Repair, Work};

impl PostgresTarget {
    pub(super) async fn apply_migrations(&self, work: &Work<'_>) -> Result<Migrated, Failure> {
        let folder = folder::migrations(self.settings.migrations.as_deref()).await?;
        let in_any_order = self.settings.allow_out_of_order;
        let (mut run, mut attempts) = (Run::default(), Attempts::new(&self.settings));
        loop {
            let tried = async {
                let mut tenant = self.tenant(work).await?;
                run::migrate(&mut tenant, &folder, in_any_order, &mut run).await?;
                tenant.done().await
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
                tenant.done().await
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
        tenant.done().await
    }

    /// The tenant with its lock, which also holds between two transactions.
    async fn tenant<'a>(&'a self, work: &'a Work<'a>) -> Result<Tenant<'a>, Failure> {
        let mut session = self.session().await?;
        ledger::hold(&mut session, work.names).await?;
        Ok(Tenant { session, work })
    }
}

/// A schema, for one piece of work on it.
struct Tenant<'a> {
    session: Session<'a>,
    work: &'a Work<'a>,
}

impl Tenant<'_> {
    /// Gives the connection back after a call that succeeded.
    async fn done(mut self) -> Result<(), Failure> {
        ledger::free(&mut self.session, self.work.names).await?;
        self.session.done();
        Ok(())
    }
}

#[async_trait]
impl TenantDatabase for Tenant<'_> {
    async fn begin(&mut self) -> Result<(), Failure> {
        let names = self.work.names;
        ledger::begin(&mut self.session, self.work).await?.must_be_open(names)?;
        ledger::borrow(&mut self.session, &names.migrator()).await?;
        act_as_migrator(&mut self.session, names).await
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.session.run("RESET ROLE".to_owned()).await?;
        ledger::give_back(&mut self.session, &self.work.names.migrator()).await?;
        ledger::verify(&mut self.session, self.work).await?;
        self.session.commit().await
    }

    async fn run_inside(&mut self, script: &Script) -> Result<(), Failure> {
        self.session.run("SAVEPOINT slipway_file".to_owned()).await?;
        self.session.run_script(script).await?;
        // The savepoint is gone if the file ended the transaction, whatever it began afterwards.
        let released = self.session.run("RELEASE SAVEPOINT slipway_file".to_owned()).await;
        released.map_err(|failure| match failure.is_passing() {
            true => failure,
            false => run::ended_transaction(script),
        })?;
        let acting: String =
            self.session.value(sqlx::query_as("SELECT current_user::text")).await?;
        if acting == self.work.names.migrator() {
            return Ok(());
        }
        Err(Failure::permanent(format!(
            "{} gives up the role of the migrator: take SET ROLE, RESET ROLE and SET SESSION \
             AUTHORIZATION out of it",
            script.file
        )))
    }

    async fn run_outside(&mut self, script: &Script) -> Result<(), Failure> {
        let names = self.work.names;
        let (migrator, schema) = (quoted(&names.migrator()), quoted(names.schema()));
        ledger::borrow(&mut self.session, &names.migrator()).await?;
        self.session.run(format!("SET ROLE {migrator}; SET search_path = {schema}")).await?;
        self.session.run_script(script).await?;
        self.session.run("RESET ROLE; SET search_path = pg_catalog".to_owned()).await
    }

    async fn rows(&mut self, kind: Kind) -> Result<Vec<Applied>, Failure> {
        rows(&mut self.session, self.work.names, kind).await
    }

    async fn insert(&mut self, kind: Kind, row: &Applied, status: Status) -> Result<(), Failure> {
        let sql = format!(
            "INSERT INTO {}.slipway_migrations \
             (kind, version, file, checksum, status, work, token) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            quoted(self.work.names.schema())
        );
        let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false).bind(kind.as_str());
        let query = query.bind(&row.version).bind(&row.file).bind(&row.checksum);
        let query = query.bind(status.as_str()).bind(self.work.fence.work);
        self.session.rows::<()>(query.bind(self.work.fence.token)).await.map(drop)
    }

    async fn delete(&mut self, version: &str) -> Result<(), Failure> {
        let (schema, version) = (quoted(self.work.names.schema()), literal(version));
        let delete = format!(
            "DELETE FROM {schema}.slipway_migrations \
             WHERE kind = 'migration' AND version = {version}"
        );
        self.session.run(delete).await
    }

    async fn flyway(&mut self) -> Result<Option<Vec<FlywayRow>>, Failure> {
        const THERE: &str = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 \
                             AND tablename = 'flyway_schema_history')";
        let schema = self.work.names.schema();
        if !self.session.value(sqlx::query_as(THERE).bind(schema)).await? {
            return Ok(None);
        }
        let sql = format!(
            "SELECT version::text, type::text, script::text, success \
             FROM {}.flyway_schema_history ORDER BY installed_rank",
            quoted(schema)
        );
        let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
        let rows: Vec<_> = self.session.rows(query).await?;
        Ok(Some(rows.into_iter().map(FlywayRow::of).collect()))
    }
}

/// Until the end of the transaction.
pub(super) async fn act_as_migrator(
    session: &mut Session<'_>,
    names: &TenantNames,
) -> Result<(), Failure> {
    let (migrator, schema) = (quoted(&names.migrator()), quoted(names.schema()));
    session.run(format!("SET LOCAL ROLE {migrator}; SET LOCAL search_path = {schema}")).await
}

/// The rows of the tenant's ledger, read as the migrator.
pub(super) async fn rows(
    session: &mut Session<'_>,
    names: &TenantNames,
    kind: Kind,
) -> Result<Vec<Applied>, Failure> {
    let sql = format!(
        "SELECT version, file, checksum, status <> 'done' FROM {}.slipway_migrations \
         WHERE kind = $1 ORDER BY applied_at, version",
        quoted(names.schema())
    );
    let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false).bind(kind.as_str());
    let rows: Vec<_> = session.rows(query).await?;
    Ok(rows.into_iter().map(Applied::of_row).collect())
}
