//! A database with a store in it, and a way around the store.

use std::sync::Arc;

use slipway_tenants::testing::AnyStore;
use slipway_tenants::{PostgresStore, SqliteStore};
use slipway_testkit::memory;
use slipway_testkit::postgres::TestDatabase;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

/// One of the two databases.
pub(crate) struct Site {
    pub(crate) store: AnyStore,
    /// The same table over other connections, as another process has it.
    pub(crate) another: AnyStore,
    pub(crate) raw: Raw,
    /// Makes a table with the documented columns alone.
    pub(crate) eight: &'static str,
    pub(crate) now: &'static str,
    _database: Database,
}

pub(crate) enum Raw {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

enum Database {
    Postgres { _database: TestDatabase },
    Sqlite { _directory: tempfile::TempDir },
}

/// As the document has it.
const EIGHT_ON_POSTGRES: &str = "CREATE TABLE jobs (
    id varchar(255) PRIMARY KEY, tenant_id varchar(255) NOT NULL,
    state varchar(32) NOT NULL DEFAULT 'pending', attempts integer NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '', metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now())";
const EIGHT_ON_SQLITE: &str = "CREATE TABLE jobs (
    id text NOT NULL PRIMARY KEY, tenant_id text NOT NULL, state text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0, last_error text NOT NULL DEFAULT '',
    metadata text NOT NULL DEFAULT '{}', created_at integer NOT NULL DEFAULT 1000000,
    updated_at integer NOT NULL DEFAULT 1000000)";

/// How the store of a site is changed before it is used.
pub(crate) type OnPostgres = fn(PostgresStore) -> PostgresStore;
pub(crate) type OnSqlite = fn(SqliteStore) -> SqliteStore;

/// Both databases, without a table; PostgreSQL only where there is one.
pub(crate) async fn sites(test: &str) -> Vec<Site> {
    sites_with(test, |store| store, |store| store).await
}

pub(crate) async fn sites_with(test: &str, postgres: OnPostgres, sqlite: OnSqlite) -> Vec<Site> {
    let directory = memory::tempdir().expect("a folder");
    let file = directory.path().join("jobs.db");
    let store = SqliteStore::open(&file, "jobs").await.expect("a store");
    let another = SqliteStore::open(&file, "jobs").await.expect("a store");
    let url = format!("sqlite:{}", file.display());
    let raw = SqliteConnection::connect(&url).await.expect("a connection");
    let mut sites = vec![Site {
        store: Arc::new(sqlite(store)),
        another: Arc::new(sqlite(another)),
        raw: Raw::Sqlite(raw),
        eight: EIGHT_ON_SQLITE,
        now: "CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)",
        _database: Database::Sqlite { _directory: directory },
    }];
    if let Some(server) = slipway_testkit::postgres::shared(test).await {
        let database = server.database(test).await;
        let store = PostgresStore::connect(database.url(), 8, "jobs").expect("a store");
        let another = PostgresStore::connect(database.url(), 8, "jobs").expect("a store");
        let raw = PgConnection::connect(database.url()).await.expect("a connection");
        sites.push(Site {
            store: Arc::new(postgres(store)),
            another: Arc::new(postgres(another)),
            raw: Raw::Postgres(raw),
            eight: EIGHT_ON_POSTGRES,
            now: "clock_timestamp()",
            _database: Database::Postgres { _database: database },
        });
    }
    sites
}

impl Site {
    /// Runs a statement beside the store, and answers how many rows it changed.
    pub(crate) async fn execute(&mut self, sql: &str) -> u64 {
        let sql = sql.to_owned();
        match &mut self.raw {
            Raw::Postgres(raw) => {
                let done = sqlx::query(AssertSqlSafe(sql)).execute(raw).await;
                done.expect("a statement").rows_affected()
            }
            Raw::Sqlite(raw) => {
                let done = sqlx::query(AssertSqlSafe(sql)).execute(raw).await;
                done.expect("a statement").rows_affected()
            }
        }
    }

    /// The numbers of the first column.
    pub(crate) async fn numbers(&mut self, sql: &str) -> Vec<i64> {
        let sql = sql.to_owned();
        match &mut self.raw {
            Raw::Postgres(raw) => {
                let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(raw).await.expect("rows");
                rows.iter().map(|row| row.get(0)).collect()
            }
            Raw::Sqlite(raw) => {
                let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(raw).await.expect("rows");
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }
}
