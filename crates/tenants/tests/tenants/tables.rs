//! What only a database can show: tables with the documented columns alone, rows by plain
//! SQL, bad rows, the settable clock, what people make by hand.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use slipway_tenants::testing::quick;
use slipway_tenants::{
    ClaimFrom, Demand, Executor, Filter, NewJob, Outcome, PostgresStore, SqliteStore, State, Step,
    Steps,
};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::site::{Raw, Site, sites, sites_with};

fn executor(site: &Site) -> Executor {
    let steps = Step::ALL.into_iter().fold(Steps::new(), |steps, step| {
        steps.with(step, |context| async move {
            context.set(context.step().as_str(), "done")?;
            Ok(())
        })
    });
    Executor::builder()
        .store(Arc::clone(&site.store))
        .steps(steps)
        .options(quick())
        .build()
        .expect("a complete executor")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_the_document_is_read_then_upgraded_then_continued() {
    for mut site in sites("eight").await {
        let eight = site.eight;
        site.execute(eight).await;
        site.execute("INSERT INTO jobs (id, tenant_id) VALUES ('new', 'a')").await;
        site.execute(
            "INSERT INTO jobs (id, tenant_id, state, attempts, metadata) \
             VALUES ('half', 'b', 'role_created', 2, '{\"v\": \"1\"}'), \
             ('old', 'd', 'migrated', 3, '{\"token\": \"x\"}')",
        )
        .await;
        site.execute(
            "INSERT INTO jobs (id, tenant_id, state, attempts, last_error) \
             VALUES ('bad', 'c', 'cleanup', 1, 'no')",
        )
        .await;
        let half = site.store.get("half").await.expect("it can be read");
        assert_eq!((half.state, half.attempts), (State::RoleCreated, 2));
        assert_eq!((half.metadata["v"].as_str(), half.made), ("1", None));
        assert_eq!(site.store.find(&Filter::default()).await.expect("a page").len(), 4);
        let edge = site.store.transition("new", State::Pending, State::Cleanup, None, "");
        assert_eq!(edge.await.unwrap_err().code(), "table_not_upgraded");
        let insert = site.store.upsert(&NewJob::new("x", "x")).await;
        assert_eq!(insert.unwrap_err().code(), "table_not_upgraded");
        assert_eq!(executor(&site).run("new").await.unwrap_err().code(), "table_not_upgraded");

        site.store.create_table().await.expect("an upgrade");
        site.store.create_table().await.expect("the same again");
        let run = executor(&site);
        assert_eq!(run.run("new").await, Ok(Outcome::Ready));
        assert_eq!(run.run("half").await, Ok(Outcome::Ready));
        assert_eq!(run.run("bad").await.unwrap_err().code(), "job_failed");
        // What others stored in metadata stays as long as no step of ours changes it.
        let silent = Step::ALL
            .into_iter()
            .fold(Steps::new(), |steps, step| steps.with(step, |_| async { Ok(()) }));
        let run = Executor::builder().store(Arc::clone(&site.store)).steps(silent).build();
        assert_eq!(run.expect("an executor").run("old").await, Ok(Outcome::Ready));
        let half = site.store.get("half").await.expect("the job");
        assert_eq!((half.attempts, half.history.len(), half.metadata.len()), (5, 3, 3));
        assert_eq!(half.metadata["v"], "1");
    }
}

/// The other program goes on with a job of ours, and we go on after it.
#[tokio::test(flavor = "multi_thread")]
async fn plain_sql_and_ours_take_turns_on_one_job() {
    for mut site in sites("turns").await {
        site.store.create_table().await.expect("a table");
        site.store.upsert(&NewJob::new("ours", "a")).await.expect("a job");
        let now = site.now;
        let by_contract = |from: &str, to: &str| {
            format!(
                "UPDATE jobs SET state = '{to}', attempts = attempts + 1, last_error = '', \
                 updated_at = {now} WHERE id = 'ours' AND state = '{from}'"
            )
        };
        assert_eq!(site.execute(&by_contract("pending", "schema_created")).await, 1);
        assert_eq!(site.execute(&by_contract("pending", "schema_created")).await, 0);
        site.execute("INSERT INTO jobs (id, tenant_id) VALUES ('theirs', 'b')").await;
        let demand = Demand { worker: "w", limit: 50, lease: Duration::ZERO };
        let due = site.store.claim(ClaimFrom::Partition(""), demand).await.expect("a claim");
        let ids: Vec<_> = due.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(ids.len(), 2, "both are due: {ids:?}");
        let run = executor(&site);
        assert_eq!(run.run("ours").await, Ok(Outcome::Ready));
        assert_eq!(run.run("theirs").await, Ok(Outcome::Ready));
        assert_eq!(
            site.numbers(
                "SELECT count(*) FROM jobs WHERE state = 'ready' AND attempts = 5 \
                          AND last_error = ''"
            )
            .await,
            [2],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_row_stops_nobody_else() {
    for mut site in sites("bad").await {
        site.store.create_table().await.expect("a table");
        site.execute("INSERT INTO jobs (id, tenant_id, state) VALUES ('bad', 'a', 'ascending')")
            .await;
        site.execute(
            "INSERT INTO jobs (id, tenant_id, metadata) VALUES ('odd', 'b', '{\"a\": 1}')",
        )
        .await;
        site.execute("INSERT INTO jobs (id, tenant_id) VALUES ('good', 'c')").await;
        assert_eq!(site.store.get("bad").await.unwrap_err().code(), "corrupt_job");
        let demand = Demand { worker: "w", limit: 50, lease: Duration::from_secs(60) };
        let claimed = site.store.claim(ClaimFrom::Partition(""), demand).await.expect("a claim");
        assert_eq!(claimed.len(), 1);
        let again = site.store.claim(ClaimFrom::Partition(""), demand).await.expect("a claim");
        assert!(again.is_empty(), "the bad ones are left alone for a while");
        assert!(site.store.due_partitions().await.expect("a list").is_empty());
        assert_eq!(site.store.find(&Filter::default()).await.expect("a page").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_names_the_tenant_with_two_unfinished_jobs() {
    for mut site in sites("several").await {
        let eight = site.eight;
        site.execute(eight).await;
        site.execute("INSERT INTO jobs (id, tenant_id) VALUES ('1', 'twice'), ('2', 'twice')")
            .await;
        let error = site.store.create_table().await.unwrap_err();
        assert_eq!(error.code(), "several_unfinished_jobs");
        assert!(error.to_string().contains("`twice`"), "{error}");
        site.execute("UPDATE jobs SET state = 'failed' WHERE id = '1'").await;
        site.store.create_table().await.expect("an upgrade");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_gives_the_times_but_never_a_lease() {
    fn clock() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(1_234_567_890_123_456)
    }
    let on_postgres = |store: PostgresStore| store.with_clock(Arc::new(clock));
    let on_sqlite = |store: SqliteStore| store.with_clock(Arc::new(clock));
    for site in sites_with("clock", on_postgres, on_sqlite).await {
        site.store.create_table().await.expect("a table");
        let job = site.store.upsert(&NewJob::new("j", "t")).await.expect("a job");
        assert_eq!((job.created_at, job.updated_at), (clock(), clock()));
        assert!(job.not_before > Some(clock()), "the due time is the database's");
        let demand = Demand { worker: "w", limit: 1, lease: Duration::from_secs(60) };
        let claimed = site.store.claim(ClaimFrom::Job("j"), demand).await.expect("a claim");
        assert!(claimed[0].is_leased, "so is the lease");
        drop(claimed);
        let again = site.store.claim(ClaimFrom::Job("j"), demand).await.expect("a claim");
        assert!(again.is_empty());
    }
}

/// A table by the public statements is complete: nothing is left to create.
#[tokio::test(flavor = "multi_thread")]
async fn the_public_statements_make_the_same_table() {
    for mut site in sites("ddl").await {
        let (table, indexes, list) = match site.raw {
            Raw::Postgres(_) => (
                PostgresStore::ddl("jobs"),
                PostgresStore::indexes("jobs"),
                "SELECT count(*) FROM pg_indexes WHERE tablename = 'jobs'",
            ),
            Raw::Sqlite(_) => (
                SqliteStore::ddl("jobs"),
                SqliteStore::indexes("jobs"),
                "SELECT count(*) FROM pragma_index_list('jobs')",
            ),
        };
        site.execute(&table.expect("a statement")).await;
        let indexes = indexes.expect("statements");
        for index in &indexes {
            site.execute(index).await;
        }
        site.store.create_table().await.expect("nothing to do");
        assert_eq!(site.numbers(list).await, [5], "the key and four indexes");
        site.store.upsert(&NewJob::new("j", "t")).await.expect("a job");
        assert_eq!(executor(&site).run("j").await, Ok(Outcome::Ready));
    }
}

#[test]
fn a_table_name_is_checked() {
    for bad in ["jobs; DROP TABLE x", "a.b.c", "1a", "ü", &"x".repeat(53)] {
        assert_eq!(PostgresStore::ddl(bad).unwrap_err().code(), "invalid_table_name", "{bad}");
    }
    assert_eq!(SqliteStore::ddl("a.b").unwrap_err().code(), "invalid_table_name", "no schemas");
    assert!(PostgresStore::ddl("").unwrap().contains("\"provisioning_jobs\""));
    let longest = format!("s.{}", "x".repeat(52));
    for index in PostgresStore::indexes(&longest).unwrap() {
        let name = index.split_whitespace().find(|word| word.starts_with("idx_")).unwrap();
        assert!(name.len() <= 63, "{name} would be cut");
    }
}

/// The suite of everything that is claimed, on our table.
#[tokio::test(flavor = "multi_thread")]
async fn the_claims_are_those_of_durable() {
    let insert = "INSERT INTO provisioning_jobs (id, tenant_id) VALUES ($1, $1)";
    let key = |n: &mut u32| {
        *n += 1;
        format!("job {n}")
    };
    let directory = slipway_testkit::memory::tempdir().expect("a folder");
    let file = directory.path().join("jobs.db");
    let store = SqliteStore::open(&file, "").await.expect("a store");
    slipway_tenants::StateStore::create_table(&store).await.expect("a table");
    let options = slipway_durable::database::sqlite::options(&file);
    let mut one = options.connect().await.expect("a connection");
    let mut two = options.connect().await.expect("a connection");
    let mut n = 0;
    slipway_durable::claim::testing::sqlite_conforms(
        store.claim_table(),
        &mut one,
        &mut two,
        async |connection| {
            let id = key(&mut n);
            connection.execute(sqlx::query(insert).bind(id.clone())).await.expect("a row");
            (id, String::new())
        },
    )
    .await;
    let Some(server) = slipway_testkit::postgres::shared("durable").await else { return };
    let database = server.database("durable").await;
    let store = PostgresStore::connect(database.url(), 4, "").expect("a store");
    slipway_tenants::StateStore::create_table(&store).await.expect("a table");
    let mut one = sqlx::PgConnection::connect(database.url()).await.expect("a connection");
    let mut two = sqlx::PgConnection::connect(database.url()).await.expect("a connection");
    let mut n = 0;
    slipway_durable::claim::testing::postgres_conforms(
        store.claim_table(),
        &mut one,
        &mut two,
        async |connection| {
            let id = key(&mut n);
            connection.execute(sqlx::query(insert).bind(id.clone())).await.expect("a row");
            (id, String::new())
        },
    )
    .await;
}
