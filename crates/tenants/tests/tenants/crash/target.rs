//! The tenants' database: what exists of each tenant, every effect that ever happened, and the
//! highest claim token that made one. A change with a lower token is refused there, in the
//! transaction of the change.

use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{PgPool, Row as _, SqlitePool};

#[derive(Debug, Clone)]
pub(super) enum Target {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

/// A change of one tenant.
#[derive(Debug)]
pub(super) enum Effect {
    Make(String),
    Seed,
    Remove(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tenant {
    pub(super) objects: Vec<String>,
    pub(super) seeds: i64,
    /// Sorted, so that one that happened twice stands beside itself.
    pub(super) effects: Vec<String>,
    pub(super) token: i64,
}

const TABLES: [&str; 4] = [
    "CREATE TABLE objects (tenant text, object text, PRIMARY KEY (tenant, object))",
    "CREATE TABLE seeds (tenant text PRIMARY KEY)",
    "CREATE TABLE effects (tenant text, effect text)",
    "CREATE TABLE fences (tenant text PRIMARY KEY, token bigint NOT NULL)",
];
const FENCE: &str = "INSERT INTO fences (tenant, token) VALUES ($1, $2) \
     ON CONFLICT (tenant) DO UPDATE SET token = excluded.token \
     WHERE fences.token <= excluded.token";
const MAKE: &str = "INSERT INTO objects (tenant, object) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const SEED: &str = "INSERT INTO seeds (tenant) VALUES ($1) ON CONFLICT DO NOTHING";
const UNSEED: &str = "DELETE FROM seeds WHERE tenant = $1";
const REMOVE: &str = "DELETE FROM objects WHERE tenant = $1 AND object = $2";
const NOTE: &str = "INSERT INTO effects (tenant, effect) VALUES ($1, $2)";
const OBJECTS: &str = "SELECT object FROM objects WHERE tenant = $1 ORDER BY object";
const EFFECTS: &str = "SELECT effect FROM effects WHERE tenant = $1 ORDER BY effect";
const NUMBERS: &str = "SELECT (SELECT count(*) FROM seeds WHERE tenant = $1), \
     coalesce((SELECT token FROM fences WHERE tenant = $1), 0)";

/// The same code for either pool.
macro_rules! on {
    ($target:expr, |$pool:ident, $begin:ident| $body:block) => {
        match $target {
            Target::Postgres($pool) => {
                let $begin = "BEGIN";
                $body
            }
            Target::Sqlite($pool) => {
                let $begin = "BEGIN IMMEDIATE";
                $body
            }
        }
    };
}

impl Target {
    /// Beside the jobs: on SQLite a file of its own, on PostgreSQL tables of the same database.
    pub(super) async fn open(database: &str) -> Self {
        match database.strip_prefix("sqlite:") {
            Some(file) => {
                let file = format!("{file}.tenants");
                let options = slipway_durable::database::sqlite::options(file.as_ref());
                let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await;
                Self::Sqlite(pool.expect("a file"))
            }
            None => {
                let pool = PgPoolOptions::new().max_connections(4).connect(database).await;
                Self::Postgres(pool.expect("a server"))
            }
        }
    }

    pub(super) async fn create(&self) {
        for table in TABLES {
            on!(self, |pool, _begin| {
                sqlx::query(table).execute(pool).await.expect("a table");
            });
        }
    }

    /// One transaction; `false` if a higher token was here.
    pub(super) async fn change(
        &self,
        tenant: &str,
        token: i64,
        effect: &Effect,
    ) -> Result<bool, sqlx::Error> {
        on!(self, |pool, begin| {
            let mut transaction = pool.begin_with(begin).await?;
            let fenced = sqlx::query(FENCE).bind(tenant).bind(token);
            if fenced.execute(&mut *transaction).await?.rows_affected() == 0 {
                return Ok(false);
            }
            let (statement, object, note) = match effect {
                Effect::Make(object) => (MAKE, Some(object), format!("made {object}")),
                Effect::Seed => (SEED, None, "seeded".to_owned()),
                Effect::Remove(object) => (REMOVE, Some(object), format!("removed {object}")),
            };
            let mut query = sqlx::query(statement).bind(tenant);
            if let Some(object) = object {
                query = query.bind(object);
            }
            if query.execute(&mut *transaction).await?.rows_affected() > 0 {
                sqlx::query(NOTE).bind(tenant).bind(note).execute(&mut *transaction).await?;
            }
            if statement == REMOVE && object.is_some_and(|object| object == "table") {
                sqlx::query(UNSEED).bind(tenant).execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(true)
        })
    }

    pub(super) async fn tenant(&self, tenant: &str) -> Tenant {
        on!(self, |pool, _begin| {
            let texts = async |statement| {
                let rows = sqlx::query(statement).bind(tenant).fetch_all(pool).await;
                rows.expect("rows").iter().map(|row| row.get(0)).collect::<Vec<String>>()
            };
            let numbers = sqlx::query(NUMBERS).bind(tenant).fetch_one(pool).await.expect("a row");
            Tenant {
                objects: texts(OBJECTS).await,
                seeds: numbers.get(0),
                effects: texts(EFFECTS).await,
                token: numbers.get(1),
            }
        })
    }
}
