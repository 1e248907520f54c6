//! Runs migrations and seeds.
//!
//! *Expected flow:* read the ledger of the tenant, plan, then one transaction for each file: the
//! fence, the file as the migrator, the row of the file, commit.
//!
//! *Guarantees:* a file and its row are there both or not at all. A lost connection leaves
//! nothing to guess: the next try reads the ledger on a fresh connection first, and waits for
//! the lock of a transaction that may still be open.
//!
//! *Caveats:* a file without a transaction has its row before it begins. If it does not end, its
//! state is unknown until a person repairs the version. The migrator is acted as by the
//! provisioner's session, so the files are as trusted as the provisioner: a file that gives
//! the role up or ends the transaction is found out and refused, not prevented.

use std::time::Duration;

use slipway_durable::Backoff;
use sqlx::AssertSqlSafe;

use super::connections::Session;
use super::{PostgresTarget, ledger, literal, quoted};
use crate::random;
use crate::targets::failure::Failure;
use crate::targets::folder::{self, Migration, Script, Version};
use crate::targets::names::TenantNames;
use crate::targets::plan::{self, Applied, FlywayRow};
use crate::targets::settings::Settings;
use crate::targets::target::{Migrated, Repair, Work};

/// Between two tries for a lock: long enough for the traffic that waited meanwhile.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(5) };

/// What a row of the tenant's ledger is about.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Migration,
    Seed,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Migration => "migration",
            Self::Seed => "seed",
        }
    }
}

impl PostgresTarget {
    pub(super) async fn apply_migrations(&self, work: &Work<'_>) -> Result<Migrated, Failure> {
        let folder = folder::migrations(self.settings.migrations.as_deref()).await?;
        let (mut run, mut attempts) = (Run::default(), Attempts::new(&self.settings));
        while let Err(failure) = self.migrate_once(work, &folder, &mut run).await {
            attempts.again(failure).await?;
        }
        let applied = run.owed.unwrap_or_default();
        Ok(Migrated { applied, adopted: run.adopted, version: run.highest })
    }

    pub(super) async fn apply_seeds(&self, work: &Work<'_>) -> Result<(), Failure> {
        let folder = folder::seeds(self.settings.seeds.as_deref()).await?;
        let mut attempts = Attempts::new(&self.settings);
        while let Err(failure) = self.seed_once(work, &folder).await {
            attempts.again(failure).await?;
        }
        Ok(())
    }

    async fn migrate_once(
        &self,
        work: &Work<'_>,
        folder: &[Migration],
        run: &mut Run,
    ) -> Result<(), Failure> {
        let names = work.names;
        let mut session = self.session().await?;
        ledger::hold(&mut session, names).await?;
        begin_as_migrator(&mut session, work).await?;
        let mut ledger = rows(&mut session, names, Kind::Migration).await?;
        if ledger.is_empty() {
            ledger = adopt_flyway(&mut session, work, folder).await?;
            run.adopted = ledger.iter().map(|row| row.version.clone()).collect();
        }
        commit_as_provisioner(&mut session, work).await?;
        let owed = plan::owed(folder, &ledger, self.settings.allow_out_of_order)
            .map_err(Failure::permanent)?;
        let versions = owed.iter().map(|migration| migration.version.to_string());
        // What an earlier try applied, whether it knew or not, was owed at the beginning.
        run.owed.get_or_insert_with(|| versions.collect());
        for Migration { version, script } in owed {
            let row = Applied::of(version.to_string(), script);
            if script.is_transactional {
                run_whole(&mut session, work, Kind::Migration, &row, script).await?;
            } else {
                run_loose(&mut session, work, &row, script).await?;
            }
            ledger.push(row);
        }
        let highest = ledger.iter().filter_map(|row| Version::parse(&row.version)).max();
        run.highest = highest.map(|version| version.to_string());
        ledger::free(&mut session, names).await?;
        session.done();
        Ok(())
    }

    async fn seed_once(&self, work: &Work<'_>, folder: &[Script]) -> Result<(), Failure> {
        let mut session = self.session().await?;
        ledger::hold(&mut session, work.names).await?;
        begin_as_migrator(&mut session, work).await?;
        let rows = rows(&mut session, work.names, Kind::Seed).await?;
        commit_as_provisioner(&mut session, work).await?;
        for script in plan::owed_seeds(folder, &rows) {
            let row = Applied::of(script.file.clone(), script);
            run_whole(&mut session, work, Kind::Seed, &row, script).await?;
        }
        ledger::free(&mut session, work.names).await?;
        session.done();
        Ok(())
    }

    pub(super) async fn enter_repair(
        &self,
        work: &Work<'_>,
        version: &str,
        repair: Repair,
    ) -> Result<(), Failure> {
        let folder = folder::migrations(self.settings.migrations.as_deref()).await?;
        let mut session = self.session().await?;
        begin_as_migrator(&mut session, work).await?;
        let ledger = rows(&mut session, work.names, Kind::Migration).await?;
        let row = plan::repaired(&folder, &ledger, version, repair).map_err(Failure::permanent)?;
        delete(&mut session, work.names, version).await?;
        if let Some(row) = row {
            insert(&mut session, work, Kind::Migration, &row, "done").await?;
        }
        commit_as_provisioner(&mut session, work).await?;
        session.done();
        Ok(())
    }
}

/// How often a call is tried again, on a fresh connection, while what stands in its way may
/// pass.
#[derive(Debug)]
struct Attempts {
    made: u32,
    most: u32,
}

impl Attempts {
    fn new(settings: &Settings) -> Self {
        Self { made: 0, most: settings.lock_attempts }
    }

    /// Waits before the next one, or answers the failure.
    async fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        self.made += 1;
        if self.made >= self.most || !failure.is_passing() {
            return Err(failure);
        }
        tracing::debug!(attempt = self.made, ?failure, "a file is tried again");
        tokio::time::sleep(BACKOFF.delay(self.made, random::jitter())).await;
        Ok(())
    }
}

/// What the tries of one call found out.
#[derive(Debug, Default)]
struct Run {
    owed: Option<Vec<String>>,
    adopted: Vec<String>,
    highest: Option<String>,
}

/// Begins a transaction with the fence, and acts as the migrator in it.
pub(super) async fn begin_as_migrator(
    session: &mut Session<'_>,
    work: &Work<'_>,
) -> Result<(), Failure> {
    let names = work.names;
    ledger::begin(session, work).await?.must_be_open(names)?;
    ledger::borrow(session, &names.migrator()).await?;
    let (migrator, schema) = (quoted(&names.migrator()), quoted(names.schema()));
    session.run(format!("SET LOCAL ROLE {migrator}; SET LOCAL search_path = {schema}")).await
}

async fn commit_as_provisioner(session: &mut Session<'_>, work: &Work<'_>) -> Result<(), Failure> {
    session.run("RESET ROLE".to_owned()).await?;
    ledger::give_back(session, &work.names.migrator()).await?;
    ledger::verify(session, work).await?;
    session.commit().await
}

/// A file and its row in one transaction.
async fn run_whole(
    session: &mut Session<'_>,
    work: &Work<'_>,
    kind: Kind,
    row: &Applied,
    script: &Script,
) -> Result<(), Failure> {
    begin_as_migrator(session, work).await?;
    session.run("SAVEPOINT slipway_file".to_owned()).await?;
    session.run_script(script).await?;
    // The savepoint is gone if the file ended the transaction, whatever it began afterwards.
    if session.run("RELEASE SAVEPOINT slipway_file".to_owned()).await.is_err() {
        return Err(Failure::permanent(format!(
            "{} ends its transaction by itself: take COMMIT and ROLLBACK out of it, or mark it \
             with `-- slipway: no-transaction`; look at what it has done already",
            script.file
        )));
    }
    let acting: String =
        sqlx::query_scalar("SELECT current_user::text").fetch_one(session.connection()).await?;
    if acting != work.names.migrator() {
        let problem = format!(
            "{} gives up the role of the migrator: take SET ROLE, RESET ROLE \
             and SET SESSION AUTHORIZATION out of it",
            script.file
        );
        return Err(Failure::permanent(problem));
    }
    insert(session, work, kind, row, "done").await?;
    commit_as_provisioner(session, work).await
}

/// A file without a transaction: its row says that it began, then that it ended.
async fn run_loose(
    session: &mut Session<'_>,
    work: &Work<'_>,
    row: &Applied,
    script: &Script,
) -> Result<(), Failure> {
    let names = work.names;
    begin_as_migrator(session, work).await?;
    insert(session, work, Kind::Migration, row, "running").await?;
    session.run("RESET ROLE".to_owned()).await?;
    ledger::verify(session, work).await?;
    // The membership is committed with it, and given back with the end.
    session.commit().await?;
    let (migrator, schema) = (quoted(&names.migrator()), quoted(names.schema()));
    session.run(format!("SET ROLE {migrator}")).await?;
    session.run(format!("SET search_path = {schema}")).await?;
    let ran = session.run_script(script).await;
    if let Err(failure) = ran {
        let reason = crate::StepError::from(failure).message;
        return Err(Failure::permanent(format!(
            "state unknown: {reason}; {} ran without a transaction and may have done a part: \
             look at the tenant, then repair version {} as applied or as not applied",
            script.file, row.version
        )));
    }
    session.run("RESET ROLE; SET search_path = pg_catalog".to_owned()).await?;
    begin_as_migrator(session, work).await?;
    delete(session, names, &row.version).await?;
    insert(session, work, Kind::Migration, row, "done").await?;
    commit_as_provisioner(session, work).await
}

/// The rows of the tenant's ledger, read as the migrator.
async fn rows(
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
    let rows: Vec<(String, String, Option<String>, bool)> =
        query.fetch_all(session.connection()).await?;
    let row =
        |(version, file, checksum, is_unknown)| Applied { version, file, checksum, is_unknown };
    Ok(rows.into_iter().map(row).collect())
}

/// The rows of migrations and seeds, for a comparison.
pub(super) async fn all_rows(
    session: &mut Session<'_>,
    names: &TenantNames,
) -> Result<(Vec<Applied>, Vec<Applied>), Failure> {
    let migrations = rows(session, names, Kind::Migration).await?;
    Ok((migrations, rows(session, names, Kind::Seed).await?))
}

async fn insert(
    session: &mut Session<'_>,
    work: &Work<'_>,
    kind: Kind,
    row: &Applied,
    status: &str,
) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO {}.slipway_migrations (kind, version, file, checksum, status, work, token) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        quoted(work.names.schema())
    );
    let query = sqlx::query(AssertSqlSafe(sql)).persistent(false).bind(kind.as_str());
    let query = query.bind(&row.version).bind(&row.file).bind(&row.checksum).bind(status);
    let query = query.bind(work.fence.work).bind(work.fence.token);
    query.execute(session.connection()).await?;
    Ok(())
}

async fn delete(
    session: &mut Session<'_>,
    names: &TenantNames,
    version: &str,
) -> Result<(), Failure> {
    let (table, version) = (quoted(names.schema()), literal(version));
    let delete = format!(
        "DELETE FROM {table}.slipway_migrations WHERE kind = 'migration' AND version = {version}"
    );
    session.run(delete).await
}

/// Takes over what Flyway applied, if it has a history in this schema.
async fn adopt_flyway(
    session: &mut Session<'_>,
    work: &Work<'_>,
    folder: &[Migration],
) -> Result<Vec<Applied>, Failure> {
    const HISTORY: &str = "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n \
         ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'flyway_schema_history')";
    let schema = work.names.schema();
    let query = sqlx::query_scalar(HISTORY).bind(schema);
    if !query.fetch_one(session.connection()).await? {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT version::text, type::text, script::text, success \
         FROM {}.flyway_schema_history ORDER BY installed_rank",
        quoted(schema)
    );
    let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
    let rows: Vec<(Option<String>, String, String, bool)> =
        query.fetch_all(session.connection()).await?;
    let row = |(version, kind, script, success)| FlywayRow { version, kind, script, success };
    let rows: Vec<_> = rows.into_iter().map(row).collect();
    let adopted = plan::adopted(&rows, folder).map_err(Failure::permanent)?;
    for row in &adopted {
        insert(session, work, Kind::Migration, row, "done").await?;
    }
    Ok(adopted)
}
