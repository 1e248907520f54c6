//! Each method of the gateway ends an operation that never answers, and retries
//! a transient refusal. The pools are private to the gateway, so there is no
//! other way to a connection.

use std::cell::Cell;
use std::future::pending;
use std::time::Duration;

use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Sqlite, SqliteConnection};

use super::retry::RUNS;
use super::*;

#[derive(Debug)]
struct Refused(&'static str);

impl std::fmt::Display for Refused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

impl sqlx::error::DatabaseError for Refused {
    fn message(&self) -> &str {
        self.0
    }
    fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
        Some(self.0.into())
    }
    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }
    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }
    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }
    fn kind(&self) -> sqlx::error::ErrorKind {
        sqlx::error::ErrorKind::Other
    }
}

fn refusal(code: &'static str) -> sqlx::Error {
    sqlx::Error::Database(Box::new(Refused(code)))
}

fn gateway() -> Gateway<Sqlite> {
    gateway_of(4)
}

fn gateway_of(connections: u32) -> Gateway<Sqlite> {
    let make = move |_: IdlePing| {
        let options = SqlitePoolOptions::new().max_connections(connections);
        options.connect_lazy("sqlite::memory:").unwrap()
    };
    let source =
        Source::Replaceable { make: Box::new(make), idle: 1, fresh_for: Duration::from_secs(1) };
    let begin = Begin { write: "BEGIN IMMEDIATE", read: "BEGIN" };
    Gateway::new(source, begin, Duration::from_millis(10))
}

async fn silent(_: &mut SqliteConnection, (): ()) -> Result<(), sqlx::Error> {
    pending().await
}

async fn silent_write(_: &mut SqliteConnection, (): ()) -> Result<End<()>, sqlx::Error> {
    pending().await
}

struct Silent;

impl Work<Sqlite> for Silent {
    type Answer = ();
    type Error = sqlx::Error;

    async fn run(&mut self, _: &mut SqliteConnection) -> Result<End<()>, sqlx::Error> {
        pending().await
    }
}

#[tokio::test]
async fn every_door_ends_what_never_answers() {
    let outcomes = [
        gateway().read((), silent).await,
        gateway().read_snapshot((), silent).await,
        gateway().statement((), silent).await,
        gateway().hot_statement((), silent).await,
        gateway().write((), silent_write).await,
        gateway().transact(Silent).await,
    ];
    for (door, outcome) in outcomes.into_iter().enumerate() {
        let error = outcome.expect_err("nothing answered").to_string();
        assert!(error.contains("did not answer within 5.01s"), "door {door}: {error}");
    }
}

#[tokio::test]
async fn silence_replaces_the_pool() {
    async fn mark(connection: &mut SqliteConnection, (): ()) -> Result<(), sqlx::Error> {
        sqlx::query("CREATE TEMPORARY TABLE mark (id INTEGER)").execute(connection).await?;
        Ok(())
    }
    let gateway = gateway();
    gateway.hot_statement((), mark).await.unwrap();
    assert!(gateway.hot_statement((), mark).await.is_err(), "it is the connection of before");
    gateway.read((), silent).await.unwrap_err();
    gateway.hot_statement((), mark).await.expect("a new pool has new connections");
}

async fn run_failing((runs, until): (&Cell<u32>, u32)) -> Result<u32, sqlx::Error> {
    runs.set(runs.get() + 1);
    if runs.get() < until { Err(refusal("40P01")) } else { Ok(runs.get()) }
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_after_a_bounded_number_of_runs() {
    let runs = Cell::new(0);
    assert!(retried((&runs, u32::MAX), run_failing).await.is_err());
    assert_eq!(runs.get(), RUNS);
}

#[tokio::test(start_paused = true)]
async fn it_answers_with_the_first_success() {
    let runs = Cell::new(0);
    assert_eq!(retried((&runs, 3), run_failing).await.ok(), Some(3));
}

#[tokio::test]
async fn a_door_runs_again_what_the_database_rolled_back() {
    async fn refused_twice(
        _: &mut SqliteConnection,
        (runs, until): (&Cell<u32>, u32),
    ) -> Result<End<u32>, sqlx::Error> {
        run_failing((runs, until)).await.map(End::Commit)
    }
    let runs = Cell::new(0);
    assert_eq!(gateway().write((&runs, 3), refused_twice).await.unwrap(), 3);
}

/// The only connection is in the cache of hot statements, and no other hot statement
/// comes to return it.
#[tokio::test]
async fn a_cached_connection_is_handed_to_whoever_waits() {
    async fn answer(_: &mut SqliteConnection, (): ()) -> Result<(), sqlx::Error> {
        Ok(())
    }
    async fn answer_write(_: &mut SqliteConnection, (): ()) -> Result<End<()>, sqlx::Error> {
        Ok(End::Rollback(()))
    }
    let gateway = gateway_of(1);
    gateway.hot_statement((), answer).await.unwrap();
    gateway.read((), answer).await.unwrap();
    gateway.hot_statement((), answer).await.unwrap();
    gateway.write((), answer_write).await.unwrap();
}
