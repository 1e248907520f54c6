//! Every table whose rows are claimed, on both databases: the conformance suite
//! of `slipway_durable::claim`, with rows that plain SQL inserts. A table that
//! knows nothing of Slipway shows that the columns are all it takes.

use std::sync::atomic::{AtomicU64, Ordering};

use slipway_durable::claim::{Table, testing};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};
use uuid::Uuid;

use crate::{postgres, sqlite};

/// The columns of a claim and nothing else, with the spelling of each database.
fn jobs(uuid: &str, time: &str, integer: &str, now: &str) -> String {
    format!(
        "CREATE TABLE jobs (id {uuid} PRIMARY KEY, partition {uuid}, \
         due_at {time} DEFAULT ({now}), wake {integer} NOT NULL DEFAULT 0, \
         claim_token {integer} NOT NULL DEFAULT 0, claimed_wake {integer} NOT NULL DEFAULT 0, \
         claimed_by text, lease_until {time}, failures integer NOT NULL DEFAULT 0)"
    )
}

/// An id that no other row has.
fn id() -> Uuid {
    static LAST: AtomicU64 = AtomicU64::new(0);
    Uuid::from_u128(LAST.fetch_add(1, Ordering::Relaxed).into())
}

/// The domain's columns of an attempt; its parents are not checked here.
const ATTEMPT: &str = "INSERT INTO provisioned_resources (id, resource_id, project_id, \
     blueprint_version_id, cloud_credential_id, attempt, status, xr_name, parameter_values, \
     partition) VALUES ($1, $2, $2, $2, $2, $3, 'Pending', 'x', '{}', $2)";
const TASK: &str = "INSERT INTO periodic_tasks (name) VALUES ($1)";
/// The cursor is before the first event, so there is something to deliver.
const SUBSCRIPTION: &str =
    "INSERT INTO event_subscriptions (id, name, position) VALUES ($1, $2, -1)";
const JOB: &str = "INSERT INTO jobs (id, partition) VALUES ($1, $2)";

/// Runs the suite for every table of a backend.
macro_rules! every_table_conforms {
    ($backend:ident, $conforms:path, $connection:ident, $other:ident) => {{
        use $backend::shared;
        let (connection, other) = (&mut $connection, &mut $other);
        let (partition, mut attempt) = (id(), 0_i32);
        $conforms(&shared::broker::claims::ATTEMPTS, connection, other, async |connection| {
            attempt += 1;
            let id = id();
            let row = sqlx::query(ATTEMPT).bind(id).bind(partition).bind(attempt);
            row.execute(connection).await.unwrap();
            (id, partition)
        })
        .await;
        $conforms(&shared::operations::tasks::TASKS, connection, other, async |connection| {
            let name = id().to_string();
            sqlx::query(TASK).bind(name.clone()).execute(connection).await.unwrap();
            (name.clone(), name)
        })
        .await;
        let subscriptions = &shared::events::subscriptions::SUBSCRIPTIONS;
        $conforms(subscriptions, connection, other, async |connection| {
            let (id, name) = (id(), id().to_string());
            let row = sqlx::query(SUBSCRIPTION).bind(id).bind(name.clone());
            row.execute(connection).await.unwrap();
            (id, name)
        })
        .await;
        let jobs: Table<$backend::Db> = slipway_durable::claimable!($backend, "jobs");
        $conforms(&jobs, connection, other, async |connection| {
            let id = id();
            sqlx::query(JOB).bind(id).bind(partition).execute(connection).await.unwrap();
            (id, partition)
        })
        .await;
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn every_claimed_table_conforms_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let options = sqlite::connect::options(&directory.path().join("slipway.db"));
    let mut connection = sqlite::connect::connect(&options).await.unwrap();
    sqlite::shared::migrate::migrate_up(&mut connection).await.unwrap();
    let now = slipway_durable::fragment!(sqlite, now);
    let jobs = jobs("blob", "integer", "integer", now);
    connection.execute(sqlx::raw_sql(AssertSqlSafe(jobs))).await.unwrap();
    connection.execute("PRAGMA foreign_keys = OFF").await.unwrap();
    let mut other = sqlite::connect::connect(&options).await.unwrap();
    every_table_conforms!(sqlite, testing::sqlite_conforms, connection, other);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_claimed_table_conforms_on_postgres() {
    let Some(server) = slipway_testkit::postgres::shared("claims").await else { return };
    let database = server.database("claims").await;
    let options: sqlx::postgres::PgConnectOptions = database.url().parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    postgres::shared::migrate::migrate_up(&mut connection).await.unwrap();
    let now = slipway_durable::fragment!(postgres, now);
    let jobs = jobs("uuid", "timestamptz", "bigint", now);
    connection.execute(sqlx::raw_sql(AssertSqlSafe(jobs))).await.unwrap();
    connection.execute("SET session_replication_role = replica").await.unwrap();
    let mut other = options.connect().await.unwrap();
    every_table_conforms!(postgres, testing::postgres_conforms, connection, other);
}
