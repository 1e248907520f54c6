//! Connections of the provisioner.
//!
//! A call has one connection for itself. It comes back only if the call succeeded: after an
//! error, or if the call is dropped, it is closed, and the server rolls back what was open and
//! frees every lock. So no state of a session is ever met by another call.

use std::fmt;
use std::str::FromStr as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow, Postgres};
use sqlx::query::QueryAs;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, FromRow, PgConnection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::StepError;
use crate::targets::failure::Failure;
use crate::targets::folder::Script;
use crate::targets::secret::Secret;
use crate::targets::settings::Settings;
use crate::targets::sink::Server;

/// How long a call waits for a connection, its own or the server's.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long the server may take longer than its own limit says, before it counts as silent: as
/// long again, and no more than this.
const MARGIN: Duration = Duration::from_secs(15);

/// Idle connections: an older one is asked whether it lives, and the oldest are closed.
const PING_LIMIT: Duration = Duration::from_secs(1);
const FRESH_FOR: Duration = Duration::from_secs(1);
const IDLE_FOR: Duration = Duration::from_secs(60);

pub(super) struct Connections {
    options: PgConnectOptions,
    permits: Semaphore,
    idle: Mutex<Vec<(PgConnection, Instant)>>,
    /// As many as may be in use: with fewer, a fan-out over all of them would keep connecting.
    most_idle: usize,
    limit: Duration,
    facts: OnceLock<(i32, bool)>,
}

/// One connection, for one call.
#[derive(Debug)]
pub(super) struct Session<'a> {
    connection: PgConnection,
    connections: &'a Connections,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    pub(super) fn new(dsn: &Secret, settings: &Settings) -> Result<Self, StepError> {
        let options = PgConnectOptions::from_str(dsn.expose()).map_err(|_| {
            // The parser's text may quote a part of the string, and that may be the password.
            StepError::permanent(
                "the target's text is no connection string of PostgreSQL: write \
                 postgres://user:password@host:port/database",
            )
        })?;
        let sink = settings.secrets.as_ref().map_or(0, |sink| sink.timeout_seconds);
        // While the sink works, its transaction is idle: once for each role.
        let idle = u64::from(sink) * 1_000 + 30_000;
        let milliseconds = |limit: Duration| limit.as_millis().to_string();
        let options = options
            .application_name("slipway-tenants")
            .options([
                ("search_path", "pg_catalog".to_owned()),
                ("lock_timeout", milliseconds(settings.lock_timeout())),
                ("statement_timeout", milliseconds(settings.statement_timeout())),
                ("idle_in_transaction_session_timeout", idle.to_string()),
                ("default_transaction_isolation", "read committed".to_owned()),
                ("client_min_messages", "warning".to_owned()),
            ])
            // Migrations may have what nobody wants in a log.
            .disable_statement_logging();
        let permits = usize::try_from(settings.connections).unwrap_or(1);
        Ok(Self {
            options,
            permits: Semaphore::new(permits),
            idle: Mutex::new(Vec::new()),
            most_idle: permits,
            limit: settings.statement_timeout() + settings.statement_timeout().min(MARGIN),
            facts: OnceLock::new(),
        })
    }

    /// Where the roles of tenants log in: where the provisioner does.
    pub(super) fn server(&self) -> Server {
        let user = self.options.get_username();
        Server {
            host: self.options.get_host().to_owned(),
            port: self.options.get_port(),
            database: self.options.get_database().unwrap_or(user).to_owned(),
        }
    }

    pub(super) async fn session(&self) -> Result<Session<'_>, Failure> {
        let late = |_| Failure::transient("no connection to the target within 10 s");
        timeout(CONNECT_LIMIT, self.acquire()).await.map_err(late)?
    }

    async fn acquire(&self) -> Result<Session<'_>, Failure> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| Failure::transient("the target was closed"))?;
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((mut connection, since)) = idle else { break };
            let age = since.elapsed();
            let is_alive = age < FRESH_FOR
                || age < IDLE_FOR
                    && matches!(timeout(PING_LIMIT, connection.ping()).await, Ok(Ok(())));
            if is_alive {
                return Ok(Session { connection, connections: self, _permit: permit });
            }
        }
        let connection = PgConnection::connect_with(&self.options).await?;
        Ok(Session { connection, connections: self, _permit: permit })
    }
}

/// A statement with parameters.
pub(super) type Query<'q, T> = QueryAs<'q, Postgres, T, PgArguments>;

fn silent(limit: Duration) -> Failure {
    Failure::Silent(format!("the target did not answer for {limit:?}"))
}

/// Without the connection string.
impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Session<'_> {
    /// The rows of a statement with parameters.
    pub(super) async fn rows<T>(&mut self, query: Query<'_, T>) -> Result<Vec<T>, Failure>
    where
        T: Send + Unpin + for<'r> FromRow<'r, PgRow>,
    {
        let limit = self.connections.limit;
        match timeout(limit, query.fetch_all(&mut self.connection)).await {
            Ok(rows) => Ok(rows?),
            Err(_) => Err(silent(limit)),
        }
    }

    /// Its first row, if there is one.
    pub(super) async fn first<T>(&mut self, query: Query<'_, T>) -> Result<Option<T>, Failure>
    where
        T: Send + Unpin + for<'r> FromRow<'r, PgRow>,
    {
        Ok(self.rows(query).await?.into_iter().next())
    }

    /// The only value of a statement that always has one.
    pub(super) async fn value<T>(&mut self, query: Query<'_, (T,)>) -> Result<T, Failure>
    where
        (T,): Send + Unpin + for<'r> FromRow<'r, PgRow>,
    {
        let (value,) = self.first(query).await?.ok_or(sqlx::Error::RowNotFound)?;
        Ok(value)
    }

    /// Runs one or more statements as they are, by the simple protocol: the server splits
    /// them, nobody else. A server that is silent beyond its own limit leaves the state
    /// unknown.
    pub(super) async fn run(&mut self, sql: String) -> Result<(), Failure> {
        let limit = self.connections.limit;
        let run = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut self.connection);
        match timeout(limit, run).await {
            Ok(done) => Ok(done.map(drop)?),
            Err(_) => Err(silent(limit)),
        }
    }

    /// The same with a file.
    pub(super) async fn run_script(&mut self, script: &Script) -> Result<(), Failure> {
        self.run(script.sql.clone()).await.map_err(|failure| match failure {
            Failure::Database(error) => Failure::of_script(script, error),
            other => other,
        })
    }

    /// The version of the server, such as 150008, and whether the provisioner is a superuser.
    pub(super) async fn facts(&mut self) -> Result<(i32, bool), Failure> {
        const FACTS: &str = "SELECT current_setting('server_version_num')::int, rolsuper \
                             FROM pg_roles WHERE rolname = session_user";
        if let Some(facts) = self.connections.facts.get() {
            return Ok(*facts);
        }
        let facts = self.first(sqlx::query_as(FACTS)).await?.ok_or(sqlx::Error::RowNotFound)?;
        Ok(*self.connections.facts.get_or_init(|| facts))
    }

    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.run("COMMIT".to_owned()).await
    }

    /// Gives the connection back after a call that succeeded.
    pub(super) fn done(self) {
        let mut idle = self.connections.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((self.connection, Instant::now()));
        // The newest are taken first, so the oldest are those that nobody needs.
        let surplus = idle.len().saturating_sub(self.connections.most_idle);
        let old = idle.iter().take_while(|(_, since)| since.elapsed() > IDLE_FOR).count();
        idle.drain(..surplus.max(old));
    }
}
