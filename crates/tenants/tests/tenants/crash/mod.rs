//! Workers as processes of their own, killed and paused at random moments, on real databases:
//! afterwards every tenant is ready with exactly its objects, or failed with nothing left, and
//! no effect happened twice.
//!
//! The moments and the victims are a function of the seed; what a worker does at such a moment
//! is up to the machine. A failure names its seed, `SLIPWAY_TENANTS_SEED` repeats it, and
//! `SLIPWAY_TENANTS_SECONDS` makes the disorder longer: `cargo xtask soak tenants`.

mod target;
mod worker;

use std::io::Write as _;
use std::time::{Duration, Instant};

use slipway_tenants::testing::{AnyStore, mk_new};
use slipway_tenants::{Filter, NewJob, State};
use slipway_testkit::process::Signal;
use slipway_testkit::random::Random;
use slipway_testkit::wait::until;

use target::Target;
use worker::{LEASE, Worker};

/// Jobs of a round.
const JOBS: usize = 500;

/// Jobs that arrive before each kill or pause.
const ARRIVING: usize = 20;

const WORKERS: usize = 3;

/// How long workers are killed and paused, unless the environment says otherwise: 60 s for the
/// two databases, which are tested at the same time. A round ends a lease or two after that.
const SECONDS: u64 = 30;

/// How long the jobs may take once nobody disturbs the workers.
const TIMEOUT: Duration = Duration::from_secs(120);

const SECONDS_VARIABLE: &str = "SLIPWAY_TENANTS_SECONDS";

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_paused_workers_on_sqlite_leave_every_tenant_complete_or_gone() {
    let directory = slipway_testkit::memory::tempdir().expect("a folder");
    let file = directory.path().join("jobs.db");
    rounds(&format!("sqlite:{}", file.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_paused_workers_on_postgres_leave_every_tenant_complete_or_gone() {
    let Some(server) = slipway_testkit::postgres::shared("crash").await else { return };
    let database = server.database("crash").await;
    rounds(database.url()).await;
}

/// Rounds of new jobs until the time is over. Each has a seed of its own.
async fn rounds(database: &str) {
    let (seed, seconds) = (setting("SLIPWAY_TENANTS_SEED", 17), setting(SECONDS_VARIABLE, SECONDS));
    let end = Instant::now() + Duration::from_secs(seconds);
    let store = worker::store(database).await;
    store.create_table().await.expect("a table");
    let target = Target::open(database).await;
    target.create().await;
    let mut disturbed = 0;
    for round in 0.. {
        let disorder = Disorder { database, store: &store, seed: seed + round, end };
        disturbed += disorder.round(&target).await;
        if Instant::now() >= end {
            break;
        }
    }
    assert!(disturbed > 0, "no worker was killed or paused");
}

struct Disorder<'a> {
    database: &'a str,
    store: &'a AnyStore,
    seed: u64,
    end: Instant,
}

impl Disorder<'_> {
    /// Answers how many workers were killed or paused.
    async fn round(&self, target: &Target) -> u32 {
        let (database, store) = (self.database, self.store);
        let partition = mk_new("crash").partition;
        // Every second tenant has a seed that fails.
        let name = |n: usize| if n.is_multiple_of(2) { "broken" } else { "fine" };
        let jobs: Vec<_> = (0..JOBS).map(|n| mk_new(name(n)).in_partition(&partition)).collect();
        let insert = async |set: &[NewJob]| {
            assert!(store.upsert_many(set).await.iter().all(Result::is_ok));
        };
        let mut random = Random::new(self.seed);
        let start = || Worker::start(database, &partition);
        let mut workers: Vec<_> = (0..WORKERS).map(|_| start()).collect();
        let (mut kills, mut pauses) = (0_u32, 0_u32);
        let mut sets = jobs.chunks(ARRIVING);
        while Instant::now() < self.end {
            // No backlog: the jobs of a victim are taken over while it is paused.
            let Some(set) = sets.next() else { break };
            insert(set).await;
            tokio::time::sleep(Duration::from_millis(random.between(10, 200))).await;
            let victim = random.pick(&[0, 1, 2]).unwrap_or(0);
            if random.between(0, 3) == 0 {
                pauses += 1;
                // Its leases are over, and others have its jobs, when it wakes.
                workers[victim].signal(Signal::Stop);
                tokio::time::sleep(LEASE + Duration::from_millis(random.between(100, 900))).await;
                workers[victim].signal(Signal::Continue);
            } else {
                kills += 1;
                // Dropped, so killed, and a new one in its stead.
                workers[victim] = start();
            }
        }
        for set in sets {
            insert(set).await;
        }
        let what = format!("all jobs of seed {} to end", self.seed);
        until(TIMEOUT, &what, async || is_over(store, &partition).await).await;
        drop(workers);
        let mut wrong = Vec::new();
        for job in &jobs {
            wrong.extend(fault(store, target, job).await);
        }
        let seed = self.seed;
        assert!(wrong.is_empty(), "seed {seed}, {kills} kills, {pauses} pauses: {wrong:#?}");
        if std::env::var_os(SECONDS_VARIABLE).is_some() {
            // Somebody waits for a long run. A closed standard error is no reason to fail.
            let database = if database.starts_with("sqlite:") { "SQLite" } else { "PostgreSQL" };
            let done = format!("{JOBS} jobs on {database}, seed {seed}");
            let _written =
                writeln!(std::io::stderr(), "{done}: {kills} kills, {pauses} pauses, all complete");
        }
        kills + pauses
    }
}

async fn is_over(store: &AnyStore, partition: &str) -> bool {
    let states = &State::ALL[..];
    for state in states.iter().filter(|state| !state.is_terminal()) {
        let partition = Some(partition.to_owned());
        let filter = Filter { state: Some(*state), partition, limit: 1, ..Filter::default() };
        if store.find(&filter).await.map_or(true, |found| !found.is_empty()) {
            return false;
        }
    }
    true
}

/// What is wrong with a job or its tenant.
async fn fault(store: &AnyStore, target: &Target, new: &NewJob) -> Option<String> {
    let job = store.get(&new.id).await.expect("the job");
    let broken = new.tenant_id.contains("broken");
    let edges: Vec<_> = job.history.iter().map(|entry| entry.to.as_str()).collect();
    let (last, objects): (&[&str], &[&str]) = match broken {
        true => (&["cleanup", "failed"], &[]),
        false => (&["seeded", "ready"], &["role", "schema", "table"]),
    };
    let all = [&["schema_created", "role_created", "migrated"], last].concat();
    let tenant = target.tenant(&new.tenant_id).await;
    let once = tenant.effects.windows(2).all(|pair| pair[0] != pair[1]);
    let fine = edges == all
        && job.leaked.is_empty()
        && tenant.objects == objects
        && tenant.seeds == i64::from(!broken)
        && once
        && tenant.token <= job.claim_token;
    (!fine).then(|| format!("{job:?} has {tenant:?}"))
}

/// A worker that is frozen inside a step, outside any transaction, for longer than its lease:
/// another one ends the job meanwhile. Awake, it changes neither the tenant nor the job.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_wakes_after_its_lease_writes_nothing_on_sqlite() {
    let directory = slipway_testkit::memory::tempdir().expect("a folder");
    let file = directory.path().join("jobs.db");
    wakes_late(&format!("sqlite:{}", file.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_wakes_after_its_lease_writes_nothing_on_postgres() {
    let Some(server) = slipway_testkit::postgres::shared("late").await else { return };
    let database = server.database("late").await;
    wakes_late(database.url()).await;
}

async fn wakes_late(database: &str) {
    let store = worker::store(database).await;
    store.create_table().await.expect("a table");
    let target = Target::open(database).await;
    target.create().await;
    let new = mk_new("slow");
    store.upsert(&new).await.expect("a job");
    let mut late = Worker::start(database, &new.partition);
    late.says(&["inside"]).await;
    late.signal(Signal::Stop);
    let other = Worker::start(database, &new.partition);
    until(TIMEOUT, "the other worker to end the job", async || {
        is_over(&store, &new.partition).await
    })
    .await;
    drop(other);
    let before = (store.get(&new.id).await.expect("the job"), target.tenant(&new.tenant_id).await);
    assert!(before.0.state == State::Ready && before.0.claim_token > 1, "{:?}", before.0);
    late.signal(Signal::Continue);
    late.go_on();
    late.says(&["refused: another worker was here", "ended: claim_lost"]).await;
    drop(late);
    let after = (store.get(&new.id).await.expect("the job"), target.tenant(&new.tenant_id).await);
    assert_eq!(before, after);
}
