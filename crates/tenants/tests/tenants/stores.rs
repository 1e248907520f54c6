//! The conformance suite on each of the three stores.

use std::sync::Arc;

use slipway_tenants::testing::{self, AnyStore};
use slipway_tenants::{MemoryStore, PostgresStore, SqliteStore};
use slipway_testkit::memory;
use slipway_testkit::postgres::TestDatabase;

/// Rounds of the race half.
const ROUNDS: u32 = 210;

async fn sqlite(table: &str) -> (SqliteStore, tempfile::TempDir) {
    let directory = memory::tempdir().expect("a folder");
    let store = SqliteStore::open(&directory.path().join("jobs.db"), table).await;
    (store.expect("a store"), directory)
}

async fn postgres(test: &str, table: &str) -> Option<(PostgresStore, TestDatabase)> {
    let database = slipway_testkit::postgres::shared(test).await?.database(test).await;
    let store = PostgresStore::connect(database.url(), 8, table).expect("a store");
    Some((store, database))
}

async fn conforms(store: AnyStore) {
    testing::contract(&store).await;
    testing::claims(&store).await;
    Box::pin(testing::executes(&store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    conforms(Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_conforms() {
    let (store, _directory) = sqlite("").await;
    conforms(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_conforms() {
    let Some((store, _database)) = postgres("conforms", "").await else { return };
    conforms(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_bears_races() {
    testing::races(&(Arc::new(MemoryStore::new()) as AnyStore), ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_bears_races() {
    let (store, _directory) = sqlite("").await;
    testing::races(&(Arc::new(store) as AnyStore), ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_bears_races() {
    let Some((store, database)) = postgres("races", "s.jobs").await else { return };
    database.execute(&["CREATE SCHEMA s"]).await;
    testing::races(&(Arc::new(store) as AnyStore), ROUNDS).await;
}
