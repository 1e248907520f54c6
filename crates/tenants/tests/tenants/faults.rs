//! Faults: a sink that refuses, answers that get lost, workers that die at any moment. All
//! on real databases.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slipway_tenants::testing::{AnyStore, Calls, mk_new, quick, recorded, survives_every_fault};
use slipway_tenants::{
    Backoff, Cancel, ClaimFrom, Control, Edge, EdgeSink, Executor, Filter, MemoryStore, NewJob,
    Options, Outcome, PostgresStore, SqliteStore, State, Step, StepContext, StepError, Steps,
};
use slipway_testkit::network::Relay;
use slipway_testkit::random::Random;
use slipway_testkit::wait::until;
use sqlx::postgres::PgConnectOptions;

use crate::site::{sites, sites_with};

/// The tenants' databases: what exists of each, and who may still change it.
#[derive(Debug, Clone, Default)]
struct World(Arc<Mutex<BTreeMap<String, Tenant>>>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Tenant {
    objects: Vec<String>,
    seeded: u32,
    token: i64,
}

impl World {
    fn of(&self, tenant: &str) -> Tenant {
        self.0.lock().expect("nobody panics inside").get(tenant).cloned().unwrap_or_default()
    }

    /// One transaction on the tenant's database. It refuses a token below one it knows.
    fn change(
        &self,
        context: &StepContext,
        change: impl FnOnce(&mut Tenant),
    ) -> Result<(), StepError> {
        let mut world = self.0.lock().expect("nobody panics inside");
        let tenant = world.entry(context.job().tenant_id.clone()).or_default();
        if context.claim_token() < tenant.token {
            return Err(StepError::permanent("another worker was here"));
        }
        tenant.token = context.claim_token();
        change(tenant);
        Ok(())
    }

    /// Steps that make two objects and one row, and bear being repeated. Between the record
    /// and the effect they let others run.
    fn steps(&self) -> Steps {
        let make = |object: &'static str| {
            let world = self.clone();
            move |context: StepContext| {
                let world = world.clone();
                async move {
                    context.making(object).await?;
                    tokio::task::yield_now().await;
                    world.change(&context, |tenant| {
                        if !tenant.objects.iter().any(|made| made == object) {
                            tenant.objects.push(object.to_owned());
                        }
                    })
                }
            }
        };
        let (seeds, cleans) = (self.clone(), self.clone());
        Steps::new()
            .create_schema(make("schema"))
            .create_role(make("role"))
            .migrate(make("table"))
            .seed(move |context| {
                let seeds = seeds.clone();
                async move {
                    tokio::task::yield_now().await;
                    // The row commits with its entry in the tenant's ledger.
                    seeds.change(&context, |tenant| tenant.seeded = tenant.seeded.max(1))?;
                    match context.job().tenant_id.contains("broken") {
                        true => Err(StepError::permanent("the seed is broken")),
                        false => Ok(()),
                    }
                }
            })
            .cleanup(move |context| {
                let cleans = cleans.clone();
                async move {
                    for object in context.made() {
                        tokio::task::yield_now().await;
                        cleans.change(&context, |tenant| {
                            tenant.objects.retain(|made| *made != object);
                            if object == "table" {
                                tenant.seeded = 0;
                            }
                        })?;
                        context.removed(&object).await?;
                    }
                    Ok(())
                }
            })
    }

    /// Whether the tenant is all there, or nothing of it.
    fn check(&self, tenant: &str, ready: bool) -> Result<(), String> {
        let Tenant { objects, seeded, .. } = self.of(tenant);
        let expected: &[&str] = if ready { &["schema", "role", "table"] } else { &[] };
        if objects == expected && seeded == u32::from(ready) {
            return Ok(());
        }
        Err(format!("{tenant} has {objects:?} and is seeded {seeded} times, ready: {ready}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_in_every_step_is_borne() {
    for site in sites("steps").await {
        site.store.create_table().await.expect("a table");
        let world = World::default();
        let check = async |tenant: &str, ready: bool| world.check(tenant, ready);
        survives_every_fault(&site.store, &world.steps(), check).await.expect("all of them");
    }
}

/// Writes a row for each edge; refuses an edge of one tenant until somebody says that it is
/// repaired.
#[derive(Debug)]
struct Outbox;

const REPAIRED: &str = "SELECT count(*) FROM outbox WHERE job = 'repaired'";

macro_rules! outbox {
    ($database:ty) => {
        #[async_trait::async_trait]
        impl EdgeSink<$database> for Outbox {
            async fn write(
                &self,
                connection: &mut <$database as sqlx::Database>::Connection,
                edges: &[Edge],
            ) -> Result<(), sqlx::Error> {
                for edge in edges {
                    if edge.job.tenant_id == "poison" && edge.to == State::Migrated {
                        let repaired: i64 =
                            sqlx::query_scalar(REPAIRED).fetch_one(&mut *connection).await?;
                        if repaired == 0 {
                            return Err(sqlx::Error::RowNotFound);
                        }
                    }
                    sqlx::query("INSERT INTO outbox (job, state) VALUES ($1, $2)")
                        .bind(edge.job.id.as_str())
                        .bind(edge.to.as_str())
                        .execute(&mut *connection)
                        .await?;
                }
                Ok(())
            }
        }
    };
}
outbox!(sqlx::Postgres);
outbox!(sqlx::Sqlite);

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_writes_with_the_edge_or_not_at_all() {
    let on_postgres = |store: PostgresStore| store.with_sink(Arc::new(Outbox));
    let on_sqlite = |store: SqliteStore| store.with_sink(Arc::new(Outbox));
    for mut site in sites_with("sink", on_postgres, on_sqlite).await {
        site.store.create_table().await.expect("a table");
        site.execute("CREATE TABLE outbox (job text NOT NULL, state text NOT NULL)").await;
        let new: Vec<_> = (0..20).map(|n| NewJob::new(format!("j{n}"), format!("t{n}"))).collect();
        assert!(site.store.upsert_many(&new).await.iter().all(Result::is_ok));
        site.store.upsert(&NewJob::new("bad", "poison")).await.expect("a job");
        let again = site.store.upsert_many(&new).await;
        assert!(again.iter().all(Result::is_ok), "no edge the second time");
        let world = World::default();
        let run = mk_executor(&site.store, world.steps(), quick());
        let claimed = run.claim(ClaimFrom::Partition(""), 100).await.expect("a claim");
        let ended = run.work(claimed, &Cancel::new()).await;
        let (good, bad): (Vec<_>, Vec<_>) = ended.into_iter().partition(|(id, _)| id != "bad");
        assert!(good.iter().all(|(_, outcome)| *outcome == Ok(Outcome::Ready)), "{good:?}");
        assert!(matches!(bad[0].1, Ok(Outcome::Parked { .. })), "{bad:?}");
        waits_with_the_refusal(&site.store, &run).await;
        let rows =
            site.numbers("SELECT count(*) FROM outbox WHERE job <> 'bad' GROUP BY job").await;
        assert_eq!(rows, [6; 20], "the insertion and five edges of each");
        assert_eq!(site.numbers("SELECT count(*) FROM outbox WHERE job = 'bad'").await, [3]);
        site.execute("INSERT INTO outbox VALUES ('repaired', '')").await;
        site.store.control("bad", &Control::Resume).await.expect("a wake");
        assert_eq!(run.run("bad").await, Ok(Outcome::Ready));
        assert_eq!(site.numbers("SELECT count(*) FROM outbox WHERE job = 'bad'").await, [6]);
    }
}

/// The refused job keeps its state and everything that was made, and waits for somebody.
async fn waits_with_the_refusal(store: &AnyStore, run: &Executor) {
    let Ok(Outcome::Paused { reason }) = run.run("bad").await else { panic!("a bounded number") };
    assert!(reason.starts_with("the edge to migrated was refused: "), "{reason}");
    let stored = store.get("bad").await.expect("the job");
    assert_eq!((stored.state, stored.history.len()), (State::RoleCreated, 2));
    assert_eq!((&stored.last_error, stored.not_before), (&reason, None));
    assert_eq!(stored.made.as_deref().map(<[_]>::len), Some(3), "nothing was cleaned up");
    assert_eq!(run.run("bad").await, Ok(Outcome::Paused { reason }), "and does not go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_memory_parks_a_refused_edge_too() {
    let repaired = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&repaired);
    let sink = move |edges: &[Edge]| {
        let refused = edges.iter().any(|edge| edge.to == State::Migrated);
        if refused && !flag.load(SeqCst) { Err("full".to_owned()) } else { Ok(()) }
    };
    let store: AnyStore = Arc::new(MemoryStore::new().with_sink(Arc::new(sink)));
    store.upsert(&NewJob::new("bad", "poison")).await.expect("a job");
    let run = mk_executor(&store, World::default().steps(), quick());
    waits_with_the_refusal(&store, &run).await;
    repaired.store(true, SeqCst);
    store.control("bad", &Control::Resume).await.expect("a wake");
    assert_eq!(run.run("bad").await, Ok(Outcome::Ready));
}

/// Each with a store of its own, as two processes have. They begin at the same moment, and
/// each takes a few at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_dispatchers_share_the_jobs_and_repeat_no_step() {
    for site in sites("two").await {
        site.store.create_table().await.expect("a table");
        let (partition, jobs) = mk_jobs(&site.store, 120).await;
        let (world, calls) = (World::default(), Calls::default());
        let steps = recorded(&world.steps(), &calls);
        let two = mk_executor(&site.another, steps.clone(), quick());
        let one = mk_executor(&site.store, steps, quick());
        let dispatch = async |executor: &Executor| {
            let mut ended = 0;
            loop {
                let claimed = executor.claim(ClaimFrom::Partition(&partition), 7).await;
                let claimed = claimed.expect("a claim");
                if claimed.jobs.is_empty() {
                    return ended;
                }
                ended += executor.work(claimed, &Cancel::new()).await.len();
            }
        };
        let (left, right) = tokio::join!(dispatch(&one), dispatch(&two));
        assert_eq!(left + right, jobs.len(), "each job ended once");
        assert!(left > 0 && right > 0, "{left} and {right}");
        check_all(&site.store, &world, &jobs).await;
        for job in &jobs {
            let broken = job.tenant_id.contains("broken");
            let expected = if broken { &Step::ALL[..] } else { &Step::ALL[..4] };
            assert_eq!(calls.of(&job.id), expected, "each step once");
        }
    }
}

fn mk_executor(store: &AnyStore, steps: Steps, options: Options) -> Executor {
    let builder = Executor::builder().store(Arc::clone(store)).steps(steps).options(options);
    builder.build().expect("a complete executor")
}

/// Short leases, so that the jobs of dead workers are soon due.
fn short_leases() -> Options {
    let backoff = Backoff { base: Duration::from_millis(2), max: Duration::from_millis(20) };
    Options {
        lease: Duration::from_millis(400),
        backoff,
        step_attempts: 50,
        lost_claims: 50,
        ..quick()
    }
}

/// Claims and works until it is aborted.
fn worker(store: &AnyStore, steps: Steps, partition: &str) -> tokio::task::JoinHandle<()> {
    let (executor, partition) = (mk_executor(store, steps, short_leases()), partition.to_owned());
    tokio::spawn(async move {
        loop {
            match executor.claim(ClaimFrom::Partition(&partition), 8).await {
                Ok(claimed) if !claimed.jobs.is_empty() => {
                    executor.work(claimed, &Cancel::new()).await;
                }
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
}

/// Jobs of one partition, every fifth of a broken tenant.
async fn mk_jobs(store: &AnyStore, count: u32) -> (String, Vec<NewJob>) {
    let partition = mk_new("crash").partition;
    let mk = |n: u32| {
        mk_new(if n.is_multiple_of(5) { "broken" } else { "fine" }).in_partition(&partition)
    };
    let new: Vec<_> = (0..count).map(mk).collect();
    assert!(store.upsert_many(&new).await.iter().all(Result::is_ok));
    (partition, new)
}

async fn all_ended(store: &AnyStore, partition: &str, count: usize) {
    until(Duration::from_secs(60), "all jobs to end", async || {
        let mut ended = 0;
        for state in [State::Ready, State::Failed] {
            let state = Some(state);
            let partition = Some(partition.to_owned());
            let filter = Filter { state, partition, limit: 1_000, ..Filter::default() };
            ended += store.find(&filter).await.map_or(0, |jobs| jobs.len());
        }
        ended == count
    })
    .await;
}

/// Every job is over, every tenant is as its job says, and no edge was written twice.
async fn check_all(store: &AnyStore, world: &World, jobs: &[NewJob]) {
    for new in jobs {
        let job = store.get(&new.id).await.expect("the job");
        let ready = job.state == State::Ready;
        assert_eq!(ready, !new.tenant_id.contains("broken"), "{job:?}");
        world.check(&job.tenant_id, ready).expect("whole or gone");
        let edges: Vec<_> = job.history.iter().map(|entry| entry.to.as_str()).collect();
        let expected: &[&str] = if ready {
            &["schema_created", "role_created", "migrated", "seeded", "ready"]
        } else {
            &["schema_created", "role_created", "migrated", "cleanup", "failed"]
        };
        assert_eq!(edges, expected);
        assert_eq!(job.attempts, if ready { 5 } else { 3 });
        assert!(job.leaked.is_empty());
    }
}

/// The seed of the tests below; a failure is repeated with `SLIPWAY_TENANTS_SEED`.
fn seed() -> u64 {
    std::env::var("SLIPWAY_TENANTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(17)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_that_die_at_any_moment_leave_every_tenant_whole_or_gone() {
    for site in sites("crash").await {
        site.store.create_table().await.expect("a table");
        let (world, mut random) = (World::default(), Random::new(seed()));
        let (partition, jobs) = mk_jobs(&site.store, 60).await;
        let start = || worker(&site.store, world.steps(), &partition);
        let mut workers = [start(), start(), start()];
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(random.between(1, 25))).await;
            let dies = random.pick(&[0, 1, 2]).unwrap_or(0);
            workers[dies].abort();
            workers[dies] = start();
        }
        all_ended(&site.store, &partition, jobs.len()).await;
        workers.iter().for_each(tokio::task::JoinHandle::abort);
        check_all(&site.store, &world, &jobs).await;
    }
}

/// A commit whose answer gets lost is found written; nothing is written twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_answers_of_the_database_lose_and_repeat_nothing() {
    let Some(server) = slipway_testkit::postgres::shared("relay").await else { return };
    let database = server.database("relay").await;
    let direct: AnyStore =
        Arc::new(PostgresStore::connect(database.url(), 4, "").expect("a store"));
    direct.create_table().await.expect("a table");
    let options: PgConnectOptions = database.url().parse().expect("a url");
    let target = format!("{}:{}", options.get_host(), options.get_port());
    let relay = Relay::to(target.parse().expect("an address")).await.expect("a relay");
    let port = options.get_port().to_string();
    let url =
        database.url().replacen(&format!(":{port}/"), &format!(":{}/", relay.address().port()), 1);
    assert_ne!(url, database.url());
    let store: AnyStore = Arc::new(PostgresStore::connect(&url, 4, "").expect("a store"));
    let (world, mut random) = (World::default(), Random::new(seed()));
    let (partition, jobs) = mk_jobs(&direct, 60).await;
    let workers = [0, 1].map(|_| worker(&store, world.steps(), &partition));
    for _ in 0..25 {
        tokio::time::sleep(Duration::from_millis(random.between(5, 40))).await;
        relay.cut();
        tokio::time::sleep(Duration::from_millis(random.between(1, 20))).await;
        relay.restore();
    }
    all_ended(&direct, &partition, jobs.len()).await;
    workers.iter().for_each(tokio::task::JoinHandle::abort);
    check_all(&direct, &world, &jobs).await;
}
