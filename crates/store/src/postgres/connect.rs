//! Connecting to the server, with a limit for everything that may hang.

use std::io::{Error as IoError, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use slipway_app::files::port::Beside;
use slipway_durable::database::{Gateway, class, postgres, retried_on};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Transaction};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::shared::topology::port::GATES_AT_ONCE;
use super::{Connection, Db, Jobs};
use crate::blueprints::Blueprints;
use crate::config::OpenError;
use crate::migration::{Migration, MigrationError, Scripts};

/// Serialises the migrations of all processes that share this database. The
/// number is arbitrary and must never change.
const MIGRATION_LOCK: i64 = 0x736c_6970_7761_7901;

/// Between two tries to reach a server that is still starting.
const CONNECT_PAUSE: Duration = Duration::from_millis(250);

pub(crate) const SCHEMA_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version bigint NOT NULL PRIMARY KEY,
    name text COLLATE \"C\" NOT NULL,
    checksum text COLLATE \"C\" NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    min_reader bigint NOT NULL
)";

#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) database: Arc<Gateway<Db>>,
    pub(crate) jobs: Jobs,
    pub(super) blueprints: Arc<Blueprints>,
    /// What every decision writes too.
    pub(super) beside: Option<Arc<Beside>>,
    /// Lets decisions about servers in.
    pub(super) gates: Arc<Semaphore>,
}

impl Backend {
    /// Connects within `limit`, migrates, and opens the pool.
    pub(crate) async fn open(
        options: PgConnectOptions,
        max_connections: u32,
        limit: Duration,
        statement_limit: Duration,
    ) -> Result<Self, OpenError> {
        let options = with_limits(options);
        prepare(&options, max_connections, limit).await?;
        let server = describe(&options);
        let database = postgres::gateway(options, max_connections, statement_limit);
        let deadline = Instant::now() + limit;
        // A pool that cannot grow to its size makes callers wait for
        // connections that it will never get, so this is checked now.
        while let Err((had, error)) = database.fill(max_connections).await {
            if is_final(&error) {
                return Err(OpenError::DatabaseRefused { server, source: Box::new(error) });
            }
            if Instant::now() >= deadline {
                let (wanted, source) = (max_connections, Box::new(error));
                return Err(if had == 0 {
                    OpenError::DatabaseUnreachable { server, limit, source }
                } else {
                    OpenError::DatabaseConnectionsExhausted { server, limit, had, wanted, source }
                });
            }
            tracing::warn!(%error, had, max_connections, "waiting for connections to the database");
            tokio::time::sleep(CONNECT_PAUSE).await;
        }
        let database = Arc::new(database);
        let jobs = super::shared::tenants::jobs::jobs(&database)?;
        let gates = Arc::new(Semaphore::new(GATES_AT_ONCE));
        Ok(Self { database, jobs, blueprints: Arc::default(), beside: None, gates })
    }

    /// The same store, whose decisions write this too.
    pub(super) fn with(&self, beside: Arc<Beside>) -> Self {
        let (database, blueprints) = (Arc::clone(&self.database), Arc::clone(&self.blueprints));
        let gates = Arc::clone(&self.gates);
        Self { database, jobs: self.jobs.clone(), blueprints, beside: Some(beside), gates }
    }
}

/// Migrates, and again if the server goes away meanwhile, until `limit` has passed
/// since the first time. That is safe: a migration is one transaction, and one
/// whose commit lost its answer is found applied.
async fn prepare(
    options: &PgConnectOptions,
    max_connections: u32,
    limit: Duration,
) -> Result<(), OpenError> {
    let mut lost_at: Option<Instant> = None;
    loop {
        let deadline = lost_at.unwrap_or_else(Instant::now) + limit;
        let connection = connect_until(deadline, options, max_connections, limit).await?;
        let prepared = tokio::select! {
            prepared = migrate(connection) => prepared,
            error = silence(options, limit) => Err(MigrationError::Database(error)),
        };
        let error = match prepared {
            Err(MigrationError::Database(error)) if class(&error).is_temporary() => error,
            outcome => return Ok(outcome?),
        };
        if Instant::now() >= *lost_at.get_or_insert_with(Instant::now) + limit {
            return Err(failed(options, max_connections, limit, Some(error)));
        }
        tracing::warn!(%error, "the database went away during the migration; waiting for it");
        tokio::time::sleep(CONNECT_PAUSE).await;
    }
}

async fn migrate(mut connection: Connection) -> Result<(), MigrationError> {
    retried_on(&mut connection, super::shared::migrate::migrate_up).await?;
    super::shared::operations::installation::ensure(&mut connection).await?;
    // Nothing depends on an orderly end.
    let _ = connection.close().await;
    Ok(())
}

/// Returns once the server leaves a new connection unanswered for `limit`. A
/// migration has no limit of its own and waits for ever on a connection whose
/// server is gone. Any answer will do, also a refusal.
async fn silence(options: &PgConnectOptions, limit: Duration) -> sqlx::Error {
    loop {
        tokio::time::sleep(limit).await;
        match tokio::time::timeout(limit, options.connect()).await {
            Ok(Ok(connection)) => drop(connection),
            Ok(Err(_)) => {}
            Err(_) => {
                let text = format!("the server did not answer within {limit:?}");
                return sqlx::Error::Io(IoError::new(ErrorKind::TimedOut, text));
            }
        }
    }
}

/// Limits of each session, beside those that the configuration sets. A lock is
/// held for the length of one decision, so 10 s of waiting for one means that
/// something is wrong. The isolation level is pinned because another
/// server-wide default would break the locking rules.
///
/// Each connection plans a statement once and keeps the plan: planning the
/// record of a tick takes longer than running it, and with array parameters the
/// planner would plan it every time. A kept plan may have been made while a
/// table was empty, so it must not depend on how full the table was: joins go
/// in the written order, along keys, by nested loops and indexes. Only a
/// statement that reads a whole project wants another plan, see [`JOIN_SETS`];
/// none is worth JIT compilation.
pub(super) fn with_limits(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("slipway").options([
        ("lock_timeout", "10s"),
        ("default_transaction_isolation", "read committed"),
        ("join_collapse_limit", "1"),
        ("plan_cache_mode", "force_generic_plan"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_seqscan", "off"),
        ("jit", "off"),
    ])
}

/// Until the end of the transaction each statement is planned for its parameters and may
/// join whole sets. No such plan is kept.
pub(crate) const JOIN_SETS: Option<&str> = Some(
    "SELECT set_config('enable_hashjoin', 'on', true), set_config('enable_seqscan', 'on', true), \
     set_config('plan_cache_mode', 'force_custom_plan', true)",
);

/// PostgreSQL removes what nobody reads any more by itself (VACUUM).
pub(crate) const OVERWRITE: Option<(&str, &str)> = None;

/// Tries until the limit: at boot the server may still be starting. A server
/// that answers and refuses (password, role, database) is final.
pub(crate) async fn connect(
    options: &PgConnectOptions,
    max_connections: u32,
    limit: Duration,
) -> Result<Connection, OpenError> {
    connect_until(Instant::now() + limit, options, max_connections, limit).await
}

async fn connect_until(
    deadline: Instant,
    options: &PgConnectOptions,
    max_connections: u32,
    limit: Duration,
) -> Result<Connection, OpenError> {
    let mut last = None;
    loop {
        match timeout_at(deadline, options.connect()).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) if is_final(&error) => {
                return Err(OpenError::DatabaseRefused {
                    server: describe(options),
                    source: Box::new(error),
                });
            }
            Ok(Err(error)) => {
                if last.is_none() {
                    tracing::warn!(%error, "waiting for the database");
                }
                last = Some(error);
            }
            Err(_) => return Err(failed(options, max_connections, limit, last)),
        }
        if timeout_at(deadline, tokio::time::sleep(CONNECT_PAUSE)).await.is_err() {
            return Err(failed(options, max_connections, limit, last));
        }
    }
}

/// A server that answers with an error is final, unless it is starting,
/// stopping (57) or full (53).
fn is_final(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| !code.starts_with("57") && !code.starts_with("53"))
}

fn failed(
    options: &PgConnectOptions,
    wanted: u32,
    limit: Duration,
    source: Option<sqlx::Error>,
) -> OpenError {
    let server = describe(options);
    let source = Box::new(source.unwrap_or(sqlx::Error::PoolTimedOut));
    let code = source.as_database_error().and_then(|error| error.code());
    if code.as_deref() == Some(TOO_MANY_CONNECTIONS) {
        let had = 0;
        return OpenError::DatabaseConnectionsExhausted { server, limit, had, wanted, source };
    }
    OpenError::DatabaseUnreachable { server, limit, source }
}

/// The limit of the server as a whole, of the role or of the database.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// The address of the server, without the password.
pub(crate) fn describe(options: &PgConnectOptions) -> String {
    format!(
        "{}@{}:{}/{}",
        options.get_username(),
        options.get_host(),
        options.get_port(),
        options.get_database().unwrap_or(options.get_username())
    )
}

/// An advisory lock of the transaction rather than of the session: it cannot
/// outlive a failed migration. The session's limits do not apply: the replica
/// that migrates may need minutes, and the others wait for it.
pub(crate) async fn begin_migration(
    connection: &mut Connection,
) -> Result<Transaction<'_, Db>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    sqlx::raw_sql("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        .execute(&mut *transaction)
        .await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(MIGRATION_LOCK)
        .execute(&mut *transaction)
        .await?;
    Ok(transaction)
}

pub(crate) fn scripts(migration: &'static Migration) -> &'static Scripts {
    &migration.postgres
}
