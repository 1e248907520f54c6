//! The two databases under test, each durable: fsync on PostgreSQL,
//! `synchronous=FULL` on SQLite.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use slipway_testkit::postgres::{Options, Postgres, TestDatabase};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

/// Connections to PostgreSQL, for our side and for the raw side.
pub(crate) const CONNECTIONS: u32 = 32;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    Sqlite,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }
}

/// An empty database; removed on drop.
#[derive(Debug)]
pub(crate) enum Database {
    Postgres(TestDatabase),
    Sqlite { file: PathBuf, _folder: tempfile::TempDir },
}

/// Starts a server with fsync on.
pub(crate) fn durable_server() -> anyhow::Result<Postgres> {
    Postgres::start(Options { durable: true })?.context("PostgreSQL is not installed")
}

impl Database {
    pub(crate) async fn new(kind: Kind, server: &Postgres) -> anyhow::Result<Self> {
        match kind {
            Kind::Postgres => Ok(Self::Postgres(server.database("bench").await)),
            Kind::Sqlite => Self::sqlite(),
        }
    }

    pub(crate) fn sqlite() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self::Sqlite { file: folder.path().join("slipway.db"), _folder: folder })
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres(database) => database.url().to_owned(),
            Self::Sqlite { file, .. } => format!("sqlite:{}", file.display()),
        }
    }

    /// A pool besides the store's: for the raw side, the set-up and the counts.
    pub(crate) async fn pool(&self) -> anyhow::Result<Pool> {
        match self {
            Self::Postgres(database) => {
                let options = PgPoolOptions::new().max_connections(CONNECTIONS);
                Ok(Pool::Postgres(options.connect(database.url()).await?))
            }
            Self::Sqlite { file, .. } => {
                let options = SqliteConnectOptions::new()
                    .filename(file)
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full)
                    .busy_timeout(Duration::from_secs(30));
                let pool = SqlitePoolOptions::new().max_connections(1).test_before_acquire(false);
                Ok(Pool::Sqlite(pool.connect_with(options).await?))
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Pool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

impl Pool {
    /// Runs statements that this program has composed.
    pub(crate) async fn run(&self, sql: String) -> anyhow::Result<()> {
        let sql = sqlx::AssertSqlSafe(sql);
        match self {
            Self::Postgres(pool) => {
                sqlx::raw_sql(sql).execute(pool).await?;
            }
            Self::Sqlite(pool) => {
                sqlx::raw_sql(sql).execute(pool).await?;
            }
        }
        Ok(())
    }

    /// The single number of a single row.
    pub(crate) async fn count(&self, sql: &'static str) -> anyhow::Result<i64> {
        Ok(match self {
            Self::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
            Self::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
        })
    }
}
