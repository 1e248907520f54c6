//! A worker: this test binary again, with [`process`] as its only test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use slipway_tenants::testing::AnyStore;
use slipway_tenants::{
    Backoff, Cancel, ClaimFrom, Executor, Options, PostgresStore, SqliteStore, StepContext,
    StepError, Steps,
};
use slipway_testkit::process::{Signal, Spawned};

use super::target::{Effect, Target};

/// Short, so that the jobs of a dead worker are soon due.
pub(super) const LEASE: Duration = Duration::from_millis(900);

const DATABASE: &str = "SLIPWAY_TENANTS_WORKER_DATABASE";
const PARTITION: &str = "SLIPWAY_TENANTS_WORKER_PARTITION";

/// A running worker; drop kills it.
pub(super) struct Worker {
    process: Spawned,
    lines: tokio::sync::mpsc::UnboundedReceiver<String>,
}

impl Worker {
    pub(super) fn start(database: &str, partition: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command
            .args(["--exact", "crash::worker::process", "--ignored", "--nocapture"])
            .env(DATABASE, database)
            .env(PARTITION, partition)
            // It ends when this pipe closes: also if nobody drops the guard.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Spawned::start(&mut command).expect("a process");
        let output = process.child().stdout.take().expect("a pipe");
        let (send, lines) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _nobody_listens = send.send(line);
            }
        });
        Self { process, lines }
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.process.signal(signal).expect("a signal");
    }

    /// Ends the wait of the tenant `slow`.
    pub(super) fn go_on(&mut self) {
        let input = self.process.child().stdin.as_mut().expect("a pipe");
        input.write_all(b"x").expect("it reads");
    }

    /// Waits for these lines, in any order.
    pub(super) async fn says(&mut self, lines: &[&str]) {
        let mut left = lines.to_vec();
        let said = async {
            while !left.is_empty() {
                let line = self.lines.recv().await.expect("it lives");
                left.retain(|wanted| line != *wanted);
            }
        };
        let said = tokio::time::timeout(Duration::from_secs(60), said).await;
        assert!(said.is_ok(), "the worker never said {left:?}");
    }
}

pub(super) async fn store(database: &str) -> AnyStore {
    match database.strip_prefix("sqlite:") {
        Some(file) => Arc::new(SqliteStore::open(file.as_ref(), "jobs").await.expect("a store")),
        None => Arc::new(PostgresStore::connect(database, 4, "jobs").expect("a store")),
    }
}

/// For the test that started this process. A closed pipe is no reason to fail.
fn say(line: &str) {
    let mut out = std::io::stdout();
    let _written = writeln!(out, "{line}").and_then(|()| out.flush());
}

#[test]
#[ignore = "a worker, started by the tests of crashes"]
fn process() {
    let (Ok(database), Ok(partition)) = (std::env::var(DATABASE), std::env::var(PARTITION)) else {
        return;
    };
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        while std::io::stdin().read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            *GO_ON.0.lock().expect("nobody panics inside") = true;
            GO_ON.1.notify_all();
        }
        let _the_worker_is_gone = end.send(());
    });
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::select! {
            () = works(&database, &partition) => {}
            _ = ended => {}
        }
    });
    // A step that waits is nobody's to wait for.
    runtime.shutdown_background();
}

/// Claims and works until it is killed.
async fn works(database: &str, partition: &str) {
    let store = store(database).await;
    let options = Options {
        lease: LEASE,
        backoff: Backoff { base: Duration::from_millis(5), max: Duration::from_millis(50) },
        step_attempts: 1_000,
        cleanup_attempts: 1_000,
        lost_claims: 1_000,
        ..Options::default()
    };
    let steps = steps(&Target::open(database).await);
    let executor = Executor::builder().store(store).steps(steps).options(options).build();
    let executor = executor.expect("a complete executor");
    loop {
        match executor.claim(ClaimFrom::Partition(partition), 12).await {
            Ok(claimed) if !claimed.jobs.is_empty() => {
                for (_, ended) in executor.work(claimed, &Cancel::new()).await {
                    let Err(error) = ended else { continue };
                    say(&format!("ended: {}", error.code()));
                }
            }
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Three objects and a seed.
fn steps(target: &Target) -> Steps {
    let make = |object: &'static str| {
        let target = target.clone();
        move |context: StepContext| {
            let target = target.clone();
            async move {
                context.making(object).await?;
                change(&target, &context, Effect::Make(object.to_owned())).await
            }
        }
    };
    let (seeds, cleans) = (target.clone(), target.clone());
    Steps::new()
        .create_schema(make("schema"))
        .create_role(make("role"))
        .migrate(make("table"))
        .seed(move |context| {
            let target = seeds.clone();
            async move {
                change(&target, &context, Effect::Seed).await?;
                let broken = context.job().tenant_id.contains("broken");
                if broken { Err(StepError::permanent("the seed is broken")) } else { Ok(()) }
            }
        })
        .cleanup(move |context| {
            let target = cleans.clone();
            async move {
                for object in context.made() {
                    change(&target, &context, Effect::Remove(object.clone())).await?;
                    context.removed(&object).await?;
                }
                Ok(())
            }
        })
}

/// Whether the worker of the tenant `slow` was told to go on.
static GO_ON: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// The first worker of the tenant `slow` waits in its first step, without a lock or a
/// transaction, until it is told to go on.
fn wait_if_slow(context: &StepContext) {
    let first = context.claim_token() == 1 && context.job().attempts == 0;
    if first && context.job().tenant_id.contains("slow") {
        say("inside");
        // Not by the runtime, which would end the step when it finds the lease over.
        let told = GO_ON.0.lock().expect("nobody panics inside");
        let _told = GO_ON.1.wait_while(told, |told| !*told).expect("nobody panics inside");
    }
}

/// In a task of its own, and late: a request that was sent may still land when its step was
/// ended, and other workers have the job.
async fn change(target: &Target, context: &StepContext, effect: Effect) -> Result<(), StepError> {
    let (target, context) = (target.clone(), context.clone());
    wait_if_slow(&context);
    let changed = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let (tenant, token) = (&context.job().tenant_id, context.claim_token());
        match target.change(tenant, token, &effect).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                say("refused: another worker was here");
                Err(StepError::permanent("another worker was here"))
            }
            Err(error) => Err(StepError::transient(error)),
        }
    });
    changed.await?
}
