//! The database of the jobs goes away, or is full, while steps run. A job waits, and goes on
//! where it was: no outage is a reason to clean up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use slipway_durable::database::{ErrorClass, Gateway, STATEMENT_LIMIT, Source, postgres, sqlite};
use slipway_tenants::testing::{AnyStore, Calls, mk_new, quick, recorded};
use slipway_tenants::{
    Error, Executor, Job, Options, Outcome, PostgresStore, SqliteStore, State, Step, StepError,
    Steps,
};
use slipway_testkit::postgres::{Options as ServerOptions, Postgres};
use slipway_testkit::wait::until;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

const TIMEOUT: Duration = Duration::from_secs(60);

fn no_op() -> Steps {
    Step::ALL.into_iter().fold(Steps::new(), |steps, step| steps.with(step, |_| async { Ok(()) }))
}

fn mk_executor(store: &AnyStore, steps: Steps) -> Executor {
    // A lease that no outage of these tests outlasts, however busy the machine is.
    let options = Options { lease: Duration::from_secs(600), ..quick() };
    let builder = Executor::builder().store(Arc::clone(store)).steps(steps).options(options);
    builder.build().expect("a complete executor")
}

/// The server dies inside each step and is back when the step ends: its edge is written over
/// a new connection. The second job fails, so that cleanup is one of the steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_may_restart_in_every_step() {
    if slipway_testkit::postgres::shared("restart").await.is_none() {
        return;
    }
    let start = || Postgres::start(ServerOptions::default());
    let server = tokio::task::spawn_blocking(start).await.expect("a task").expect("a server");
    let server = Arc::new(Mutex::new(server.expect("it is installed")));
    let url = server.lock().expect("nobody panics inside").url().to_owned();
    let store: AnyStore = Arc::new(PostgresStore::connect(&url, 4, "jobs").expect("a store"));
    store.create_table().await.expect("a table");
    let restarts = Step::ALL.into_iter().fold(Steps::new(), |steps, step| {
        let server = Arc::clone(&server);
        steps.with(step, move |context| {
            let server = Arc::clone(&server);
            async move {
                context.making(format!("{} of {step}", context.job().tenant_id)).await?;
                let restart = tokio::task::spawn_blocking(move || {
                    let mut server = server.lock().expect("nobody panics inside");
                    server.crash().and_then(|()| server.start_again())
                });
                restart.await?.map_err(StepError::permanent)?;
                // The first checkpoint after it meets connections that are gone.
                context.checkpoint().await?;
                let fails = step == Step::Seed && context.job().tenant_id.contains("broken");
                if fails { Err(StepError::permanent("the seed is broken")) } else { Ok(()) }
            }
        })
    });
    let calls = Calls::default();
    let run = mk_executor(&store, recorded(&restarts, &calls));
    let job = store.upsert(&mk_new("broken")).await.expect("a job");
    assert_eq!(run.run(&job.id).await.expect_err("it fails").code(), "job_failed");
    let failed = store.get(&job.id).await.expect("the job");
    assert_eq!((failed.state, failed.last_error.as_str()), (State::Failed, "the seed is broken"));
    assert_eq!((failed.history.len(), failed.leaked.len()), (5, 0));
    assert_eq!(calls.of(&job.id), Step::ALL, "each step once");
    // The last edges of a good job, too.
    let seeds =
        no_op().with(Step::Seed, move |context| restarts.get(Step::Seed).expect("a step")(context));
    // The pool may still have a connection that a restart cut.
    let job = match store.upsert(&mk_new("fine")).await {
        Err(Error::Unavailable(_)) => store.upsert(&mk_new("fine")).await,
        made => made,
    };
    let job = job.expect("a job");
    assert_eq!(mk_executor(&store, seeds).run(&job.id).await, Ok(Outcome::Ready));
    assert_eq!(store.get(&job.id).await.expect("the job").history.len(), 5);
}

/// Runs a job whose second edge needs space while there is none, makes room once the store
/// has noticed it, and answers the job.
async fn runs_while_full(
    store: AnyStore,
    is_full: impl Fn() -> bool,
    make_room: impl AsyncFnOnce(),
) -> Job {
    let steps = no_op().create_role(|context| async move {
        // More than fits on the pages that are there.
        (0..50).try_for_each(|n| context.set(format!("k{n}"), "x".repeat(1_000)))?;
        Ok(())
    });
    let calls = Calls::default();
    let run = mk_executor(&store, recorded(&steps, &calls));
    let job = store.upsert(&mk_new("full")).await.expect("a job");
    let id = job.id.clone();
    let running = tokio::spawn(async move { run.run(&id).await });
    until(TIMEOUT, "a write that is refused", async || is_full()).await;
    let waits = store.get(&job.id).await.expect("reading goes on");
    assert_eq!(waits.state, State::SchemaCreated, "the edge is not written");
    assert!(!running.is_finished(), "the job waits");
    make_room().await;
    assert_eq!(running.await.expect("a task"), Ok(Outcome::Ready));
    assert_eq!(calls.of(&job.id), Step::ALL[..4], "no step is repeated, nothing is cleaned up");
    store.get(&job.id).await.expect("the job")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_sqlite_parks_nothing_and_cleans_up_nothing() {
    let directory = slipway_testkit::memory::tempdir().expect("a folder");
    let options = sqlite::options(&directory.path().join("jobs.db"));
    sqlite::connect(&options).await.expect("a file").close().await.expect("an end");
    let writer = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone());
    let writer = writer.await.expect("a writer");
    let readers = SqlitePoolOptions::new().connect_with(options).await.expect("readers");
    let source = Source::Fixed { writer: writer.clone(), readers };
    let gateway = Arc::new(Gateway::new(source, sqlite::BEGIN, STATEMENT_LIMIT));
    let store: AnyStore = Arc::new(SqliteStore::new(Arc::clone(&gateway), "").expect("a store"));
    store.create_table().await.expect("a table");
    // A few pages for the job itself.
    let pages: i64 =
        sqlx::query_scalar("PRAGMA page_count").fetch_one(&writer).await.expect("a number");
    let limit = |pages: i64| AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    writer.execute(limit(pages + 2)).await.expect("a limit");
    let is_full = || gateway.refuses_writes() == Some(ErrorClass::Full);
    let make_room = async || {
        writer.execute(limit(1 << 20)).await.expect("room");
    };
    let job = runs_while_full(store, is_full, make_room).await;
    assert_eq!(job.metadata.len(), 50);
}

/// A server of ours has no small disk. A trigger answers with the code of a full one.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_postgres_parks_nothing_and_cleans_up_nothing() {
    let Some(server) = slipway_testkit::postgres::shared("full").await else { return };
    let database = server.database("full").await;
    let options: PgConnectOptions = database.url().parse().expect("a url");
    let gateway = Arc::new(postgres::gateway(options, 4, STATEMENT_LIMIT));
    let store: AnyStore =
        Arc::new(PostgresStore::new(Arc::clone(&gateway), "jobs").expect("a store"));
    store.create_table().await.expect("a table");
    database
        .execute(&[
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
            "CREATE TRIGGER full_disk BEFORE UPDATE ON jobs FOR EACH ROW \
             WHEN (NEW.state = 'role_created') EXECUTE FUNCTION full_disk()",
        ])
        .await;
    let is_full = || gateway.refuses_writes() == Some(ErrorClass::Full);
    let make_room = async || {
        let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
        raw.execute("DROP TRIGGER full_disk ON jobs").await.expect("room");
    };
    let job = runs_while_full(store, is_full, make_room).await;
    assert_eq!(job.metadata.len(), 50);
}
