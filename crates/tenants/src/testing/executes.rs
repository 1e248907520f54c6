//! An executor on the store: the behaviours of the document, and ours beyond it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::{AnyStore, Calls, LEASE, claim, code, executor, mk_job, mk_new, quick, recorded};
use crate::testing::{Fault, inject};
use crate::{
    Cancel, Change, ClaimFrom, Control, Due, Job, NewJob, Options, Outcome, Pause, Permit, State,
    Step, StepError, Steps,
};

const FORWARD: [Step; 4] = [Step::CreateSchema, Step::CreateRole, Step::Migrate, Step::Seed];

fn no_op() -> Steps {
    Step::ALL.into_iter().fold(Steps::new(), |steps, step| steps.with(step, |_| async { Ok(()) }))
}

/// Checks what an executor does with jobs of this store.
pub async fn executes(store: &AnyStore) {
    store.create_table().await.expect("a table");
    runs_to_ready(store).await;
    fails_and_cleans_up(store).await;
    resumes_where_it_was(store).await;
    continues_a_plain_transition(store).await;
    parks_transient_errors(store).await;
    catches_panics_and_long_steps(store).await;
    leaves_a_blocking_step_to_its_lease(store).await;
    persists_before_the_next_step(store).await;
    keeps_checkpoints(store).await;
    keeps_what_is_made_at_once(store).await;
    records_leaks(store).await;
    does_not_inherit_what_nobody_recorded(store).await;
    stops_and_goes_on(store).await;
    pauses_but_never_cleanup(store).await;
    bears_a_permit_that_hangs(store).await;
    holds_for_a_person(store).await;
    keeps_what_is_not_to_be_cleaned_up(store).await;
    cancels(store).await;
    has_one_executor(store).await;
    loses_its_lease(store).await;
    gives_up_a_step_that_kills_its_workers(store).await;
    works_on_many(store).await;
}

struct Run {
    job: Job,
    calls: Vec<Step>,
    answer: Result<Outcome, crate::Error>,
}

async fn run(store: &AnyStore, id: &str, steps: Steps, options: Options) -> Run {
    let calls = Calls::default();
    let executor = executor(store, recorded(&steps, &calls), options);
    let answer = executor.run(id).await;
    Run { job: store.get(id).await.expect("the job"), calls: calls.of(id), answer }
}

async fn runs_to_ready(store: &AnyStore) {
    let job = mk_job(store, "run").await;
    let done = run(store, &job.id, no_op(), quick()).await;
    assert_eq!((done.answer, &done.calls[..]), (Ok(Outcome::Ready), &FORWARD[..]));
    assert_eq!((done.job.state, done.job.attempts), (State::Ready, 5));
    assert_eq!(done.job.history.len(), 5);
    assert!(done.job.history.iter().all(|entry| entry.worker.is_some()));
    let again = run(store, &job.id, no_op(), quick()).await;
    assert_eq!((again.answer, again.calls.len()), (Ok(Outcome::Ready), 0), "a no-op");
    assert_eq!(again.job, done.job);
    let unknown = executor(store, no_op(), quick()).run("nothing").await;
    assert_eq!(code(&unknown), "job_not_found");
}

async fn fails_and_cleans_up(store: &AnyStore) {
    for (n, at) in FORWARD.into_iter().enumerate() {
        let job = mk_job(store, "fail").await;
        let steps = no_op().with(at, |context| async move {
            context.set("left", "over")?;
            Err(StepError::permanent("seed row 3 is wrong"))
        });
        let done = run(store, &job.id, steps, quick()).await;
        let mut expected = FORWARD[..=n].to_vec();
        expected.push(Step::Cleanup);
        assert_eq!(done.calls, expected);
        assert_eq!(code(&done.answer), "job_failed");
        assert_eq!(
            (done.job.state, done.job.last_error.as_str()),
            (State::Failed, "seed row 3 is wrong")
        );
        assert_eq!(done.job.metadata["left"], "over", "what the failed step recorded");
        assert_eq!(usize::try_from(done.job.attempts), Ok(n));
        let again = run(store, &job.id, no_op(), quick()).await;
        assert_eq!((again.calls.len(), again.answer), (0, done.answer), "the same error");
    }
    // Nobody classified it, so it is tried once.
    let job = mk_job(store, "fail").await;
    let steps = no_op().migrate(|_| async { Ok("x".parse::<u32>().map(drop)?) });
    let done = run(store, &job.id, steps, quick()).await;
    assert_eq!(done.calls.iter().filter(|step| **step == Step::Migrate).count(), 1);
    assert_eq!(done.job.last_error, "invalid digit found in string");
}

async fn resumes_where_it_was(store: &AnyStore) {
    for n in 1..=4 {
        let job = mk_job(store, "resume").await;
        let late = claim(store, &job.id, "dead", Duration::ZERO).await.expect("it is due");
        let mut states =
            vec![State::SchemaCreated, State::RoleCreated, State::Migrated, State::Seeded];
        states.truncate(n);
        let crashed = Change { edges: states, ..Change::of(&late) };
        assert!(store.write(&[crashed]).await[0].is_ok());
        let done = run(store, &job.id, no_op(), quick()).await;
        assert_eq!((done.answer, &done.calls[..]), (Ok(Outcome::Ready), &FORWARD[n..]));
        assert_eq!(done.job.attempts, 5);
    }
}

/// Both sides of the contract: ours goes on after plain transitions, and the other way.
async fn continues_a_plain_transition(store: &AnyStore) {
    let job = mk_job(store, "plain").await;
    let edge = store.transition(&job.id, State::Pending, State::Cleanup, None, "no");
    edge.await.expect("an edge");
    let done = run(store, &job.id, no_op(), quick()).await;
    assert_eq!((&done.calls[..], done.job.last_error.as_str()), (&[Step::Cleanup][..], "no"));
    let job = mk_job(store, "plain").await;
    let steps = no_op().create_role(|_| async { Err(StepError::transient("later")) });
    let options = Options { total: Duration::ZERO, ..quick() };
    executor(store, steps, options).run(&job.id).await.expect("interrupted");
    let edge = store.transition(&job.id, State::Pending, State::SchemaCreated, None, "");
    edge.await.expect("nobody has it");
}

async fn parks_transient_errors(store: &AnyStore) {
    let job = mk_job(store, "park").await;
    let done =
        run(store, &job.id, inject(&no_op(), Step::Migrate, Fault::OnceAfter), quick()).await;
    assert_eq!(done.answer, Ok(Outcome::Ready));
    assert_eq!(done.calls.iter().filter(|step| **step == Step::Migrate).count(), 2);
    assert_eq!((done.job.step_attempts, done.job.last_error.as_str()), (0, ""));
    let job = mk_job(store, "park").await;
    let steps = no_op().seed(|_| async { Err(StepError::transient("the server starts")) });
    let done = run(store, &job.id, steps, Options { step_attempts: 4, ..quick() }).await;
    assert_eq!(code(&done.answer), "job_failed", "bounded");
    assert_eq!(done.calls.iter().filter(|step| **step == Step::Seed).count(), 4);
    let job = mk_job(store, "park").await;
    let slow = crate::Backoff { base: LEASE, max: LEASE };
    let steps = no_op().create_schema(|_| async { Err(StepError::transient("busy")) });
    let options = Options { backoff: slow, total: Duration::from_secs(60), ..quick() };
    let done = run(store, &job.id, steps, options).await;
    assert!(matches!(done.answer, Ok(Outcome::Parked { .. })), "{:?}", done.answer);
    assert_eq!((done.job.state, done.job.step_attempts), (State::Pending, 1));
    assert_eq!(done.job.last_error, "busy");
    assert!(done.job.not_before > Some(done.job.updated_at) && done.job.claimed_by.is_none());
}

async fn catches_panics_and_long_steps(store: &AnyStore) {
    let job = mk_job(store, "panic").await;
    let done = run(store, &job.id, inject(&no_op(), Step::Seed, Fault::Panic), quick()).await;
    assert_eq!(code(&done.answer), "job_failed");
    assert!(done.job.last_error.contains("panicked: injected"), "{}", done.job.last_error);
    let job = mk_job(store, "panic").await;
    let steps =
        no_op().migrate(|_| -> std::future::Ready<Result<(), StepError>> { panic!("at once") });
    let done = run(store, &job.id, steps, quick()).await;
    assert_eq!(done.job.last_error, "the step panicked: at once");
    let job = mk_job(store, "long").await;
    let options = Options { step_attempts: 2, ..quick() }
        .with_deadline(Step::Migrate, Duration::from_millis(20));
    let done = run(store, &job.id, no_op().migrate(|_| std::future::pending()), options).await;
    assert!(done.job.last_error.contains("migrate took longer"), "{}", done.job.last_error);
    assert_eq!(done.calls.iter().filter(|step| **step == Step::Migrate).count(), 2, "once more");
}

/// A step that blocks its thread cannot be ended. Its claim runs out; nobody else has the
/// job before that, and the step writes nothing afterwards.
async fn leaves_a_blocking_step_to_its_lease(store: &AnyStore) {
    let job = mk_job(store, "block").await;
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let waits = Arc::new(std::sync::Mutex::new(waits));
    let steps = no_op().migrate(move |_| {
        let waits = Arc::clone(&waits);
        async move {
            // The runtime gives its other tasks to another thread.
            let _ = tokio::task::block_in_place(|| waits.lock().map(|waits| waits.recv()));
            Ok(())
        }
    });
    let options = Options { lease: Duration::from_millis(100), ..quick() };
    let options = options.with_deadline(Step::Migrate, Duration::from_millis(20));
    let done = run(store, &job.id, steps, options).await;
    assert_eq!(code(&done.answer), "claim_lost");
    assert_eq!(done.job.state, State::RoleCreated);
    drop(go_on);
    let mut done = run(store, &job.id, no_op(), quick()).await;
    while done.answer == Ok(Outcome::Leased) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        done = run(store, &job.id, no_op(), quick()).await;
    }
    assert_eq!((done.answer, &done.calls[..]), (Ok(Outcome::Ready), &FORWARD[2..]));
}

/// Each step reads the edge before it through the store.
async fn persists_before_the_next_step(store: &AnyStore) {
    let job = mk_job(store, "durable").await;
    let steps = FORWARD.into_iter().fold(no_op(), |steps, step| {
        let store = Arc::clone(store);
        steps.with(step, move |context| {
            let store = Arc::clone(&store);
            async move {
                let stored = store.get(&context.job().id).await?;
                assert_eq!(stored.state.step(), Some(context.step()));
                assert_eq!(
                    (stored.attempts, stored.state),
                    (context.job().attempts, context.job().state)
                );
                Ok(())
            }
        })
    });
    assert_eq!(run(store, &job.id, steps, quick()).await.answer, Ok(Outcome::Ready));
}

async fn keeps_checkpoints(store: &AnyStore) {
    let job = mk_job(store, "checkpoint").await;
    let steps = no_op().migrate(|context| async move {
        if let Some(at) = context.metadata().get("applied") {
            assert_eq!(at, "V7", "the checkpoint of the call before");
            assert_eq!(context.remove("draft").as_deref(), Some("1"));
            return Ok(());
        }
        assert_eq!(code(&context.making("a\0").await), "invalid_job", "and is not recorded");
        assert_eq!(context.set("token", "x").expect_err("a secret").code(), "secret_in_metadata");
        context.set("applied", "V7")?;
        context.set("draft", "1")?;
        context.making("schema a").await?;
        context.making("role a").await?;
        context.checkpoint().await?;
        Err(StepError::transient("a crash"))
    });
    let done = run(store, &job.id, steps, quick()).await;
    assert_eq!(done.answer, Ok(Outcome::Ready));
    assert_eq!((done.job.metadata["applied"].as_str(), done.job.metadata.len()), ("V7", 1));
    assert_eq!(done.job.made, Some(vec!["schema a".to_owned(), "role a".to_owned()]));
    assert_eq!(done.job.history.len(), 5, "a checkpoint is no edge");
}

/// What is made at the same time is recorded, all of it.
async fn keeps_what_is_made_at_once(store: &AnyStore) {
    let job = mk_job(store, "at-once").await;
    let inside = Arc::clone(store);
    let steps = no_op().create_schema(move |context| {
        let store = Arc::clone(&inside);
        async move {
            let mut all = tokio::task::JoinSet::new();
            for n in 0..64 {
                let (context, store) = (context.clone(), Arc::clone(&store));
                all.spawn(async move {
                    // Two at a time for each object.
                    let object = format!("object {}", n / 2);
                    context.making(object.clone()).await?;
                    let stored = store.get(&context.job().id).await?.made.unwrap_or_default();
                    match stored.contains(&object) {
                        true => Ok(()),
                        false => Err(StepError::permanent(format!("{object} is not durable"))),
                    }
                });
            }
            while let Some(made) = all.join_next().await {
                made.map_err(StepError::permanent)??;
            }
            Ok(())
        }
    });
    let done = run(store, &job.id, steps, quick()).await;
    assert_eq!(done.answer, Ok(Outcome::Ready));
    assert_eq!(done.job.made.map(|made| made.len()), Some(32));
}

async fn records_leaks(store: &AnyStore) {
    let job = mk_job(store, "leak").await;
    let steps = no_op()
        .create_role(|context| async move {
            context.making("schema").await?;
            context.making("role").await?;
            Err(StepError::permanent("no"))
        })
        .cleanup(|context| async move {
            if context.made().first().is_some_and(|newest| newest == "role") {
                context.removed("role").await?;
            }
            Err(StepError::permanent("password=hunter2 is wrong"))
        });
    let done = run(store, &job.id, steps, quick()).await;
    assert_eq!(done.calls.iter().filter(|step| **step == Step::Cleanup).count(), 3);
    assert_eq!((code(&done.answer), done.job.last_error.as_str()), ("job_failed", "no"));
    assert_eq!(done.job.leaked, ["schema"], "what is left");
    let last = done.job.history.last().and_then(|entry| entry.error.clone());
    assert_eq!(last.as_deref(), Some("cleanup failed: password=*** is wrong"));
    let retry = NewJob::retry(&done.job, format!("{}-r", job.id));
    let retry = store.upsert(&retry).await.expect("a retry");
    let fails = no_op().create_schema(|_| async { Err(StepError::permanent("again")) });
    let done = run(store, &retry.id, fails, quick()).await;
    assert_eq!((done.job.made, done.job.leaked.len()), (Some(Vec::new()), 0), "removed now");
    let next = NewJob::new(format!("{}-n", job.id), job.tenant_id);
    store.upsert(&next).await.expect("nothing is left of the tenant");
}

/// That nothing was recorded is a leak, but no object that a retry could remove.
async fn does_not_inherit_what_nobody_recorded(store: &AnyStore) {
    let job = mk_job(store, "unrecorded").await;
    let steps = no_op()
        .create_schema(|_| async { Err(StepError::permanent("no")) })
        .cleanup(|_| async { Err(StepError::permanent("no target")) });
    let done = run(store, &job.id, steps, quick()).await;
    assert_eq!((code(&done.answer), done.job.leaked.len()), ("job_failed", 1));
    let retry = NewJob::retry(&done.job, format!("{}-r", job.id));
    let retry = store.upsert(&retry).await.expect("a retry");
    assert_eq!(retry.made, Some(Vec::new()));
    assert_eq!(store.get(&job.id).await.expect("the job").leaked, [""; 0], "decided by the retry");
}

async fn stops_and_goes_on(store: &AnyStore) {
    let job = mk_job(store, "stop").await;
    let cancel = Cancel::new();
    cancel.cancel();
    let executor = executor(store, no_op(), quick());
    assert_eq!(executor.run_until(&job.id, &cancel).await, Ok(Outcome::Interrupted));
    assert_eq!(store.get(&job.id).await.as_ref(), Ok(&job), "nothing changed");
    let cancel = Cancel::new();
    let stops = cancel.clone();
    let steps = no_op().migrate(move |context| {
        let stops = stops.clone();
        async move {
            stops.cancel();
            context.stopping().await;
            Err(StepError::permanent("interrupted by the end of the process"))
        }
    });
    let stopped = super::executor(store, steps, quick()).run_until(&job.id, &cancel).await;
    assert_eq!(stopped, Ok(Outcome::Interrupted));
    let now = store.get(&job.id).await.expect("the job");
    assert_eq!((now.state, now.last_error.as_str()), (State::RoleCreated, ""), "no cleanup");
    let done = run(store, &job.id, no_op(), quick()).await;
    assert_eq!((done.answer, &done.calls[..]), (Ok(Outcome::Ready), &FORWARD[2..]));
    let job = mk_job(store, "time").await;
    let late = Options { total: Duration::ZERO, ..quick() };
    assert_eq!(run(store, &job.id, no_op(), late).await.answer, Ok(Outcome::Interrupted));
}

/// Refuses every permit until it is told otherwise.
#[derive(Debug)]
struct Paused(AtomicU32);

#[async_trait::async_trait]
impl Pause for Paused {
    async fn permit(&self, _: &Job, step: Step) -> Result<Permit, String> {
        assert_ne!(step, Step::Cleanup, "cleanup asks nobody");
        let left =
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { Err("the flag could not be read".to_owned()) } else { Ok(Permit::new()) }
    }
}

async fn pauses_but_never_cleanup(store: &AnyStore) {
    let job = mk_job(store, "pause").await;
    let pause = || Some(Arc::new(Paused(AtomicU32::new(1))) as Arc<dyn Pause>);
    let done = run(store, &job.id, no_op(), Options { pause: pause(), ..quick() }).await;
    assert_eq!(
        done.answer,
        Ok(Outcome::Paused { reason: "the flag could not be read".to_owned() })
    );
    assert_eq!((done.calls.len(), done.job.state, done.job.step_attempts), (0, State::Pending, 0));
    let one = Control::Pause { reason: "audit".to_owned() };
    store.control(&job.id, &one).await.expect("paused");
    let done = run(store, &job.id, no_op(), quick()).await;
    assert_eq!(done.answer, Ok(Outcome::Paused { reason: "audit".to_owned() }));
    let done = run(store, &job.id, no_op(), quick()).await;
    assert_eq!(
        (done.answer, done.calls.len()),
        (Ok(Outcome::Paused { reason: "audit".to_owned() }), 0)
    );
    store.control(&job.id, &Control::Resume).await.expect("resumed");
    assert_eq!(run(store, &job.id, no_op(), quick()).await.answer, Ok(Outcome::Ready));
    let job = mk_job(store, "pause").await;
    let edge = store.transition(&job.id, State::Pending, State::Cleanup, None, "no");
    edge.await.expect("an edge");
    store.control(&job.id, &one).await.expect("paused");
    let done = run(store, &job.id, no_op(), Options { pause: pause(), ..quick() }).await;
    assert_eq!((done.job.state, &done.calls[..]), (State::Failed, &[Step::Cleanup][..]));
}

/// A held job is neither tried again nor cleaned up until somebody says so, in a step and in
/// cleanup.
async fn holds_for_a_person(store: &AnyStore) {
    let job = mk_job(store, "held").await;
    let holds = || no_op().migrate(|_| async { Err(StepError::waiting("the target is ahead")) });
    let reason = "migrate: the target is ahead".to_owned();
    let done = run(store, &job.id, holds(), quick()).await;
    assert_eq!(done.answer, Ok(Outcome::Paused { reason: reason.clone() }));
    assert_eq!(done.calls, FORWARD[..3]);
    assert_eq!((done.job.state, done.job.paused), (State::RoleCreated, Some(reason.clone())));
    assert_eq!((done.job.not_before, done.job.claimed_by), (None, None));
    assert_eq!(done.job.last_error, "the target is ahead");
    let again = run(store, &job.id, holds(), quick()).await;
    assert_eq!((again.answer, again.calls.len()), (Ok(Outcome::Paused { reason }), 0));
    store.control(&job.id, &Control::Resume).await.expect("resumed");
    let done = run(store, &job.id, no_op(), quick()).await;
    assert_eq!((done.answer, done.job.paused), (Ok(Outcome::Ready), None));

    let job = mk_job(store, "held").await;
    let holds = || {
        let steps = no_op().seed(|_| async { Err(StepError::permanent("no row")) });
        steps.cleanup(|_| async { Err(StepError::waiting("the target is ahead")) })
    };
    let done = run(store, &job.id, holds(), quick()).await;
    let reason = "cleanup: the target is ahead".to_owned();
    assert_eq!(done.answer, Ok(Outcome::Paused { reason }));
    assert_eq!((done.job.state, &done.job.last_error[..]), (State::Cleanup, "no row"));
    assert_eq!((done.job.not_before, done.job.leaked.len()), (None, 0));
    store.control(&job.id, &Control::Resume).await.expect("resumed");
    let done = run(store, &job.id, no_op(), quick()).await;
    assert_eq!((code(&done.answer), &done.calls[..]), ("job_failed", &[Step::Cleanup][..]));
}

/// A failed step holds such a job, and only a cancellation leads to cleanup.
async fn keeps_what_is_not_to_be_cleaned_up(store: &AnyStore) {
    let options = || Options { keep: |_| true, step_attempts: 1, ..quick() };
    for error in [StepError::permanent("no"), StepError::transient("no")] {
        let job = mk_job(store, "keep").await;
        let steps = no_op().create_role(move |_| {
            let error = error.clone();
            async move { Err(error) }
        });
        let done = run(store, &job.id, steps, options()).await;
        let reason = "create_role: no".to_owned();
        assert_eq!((done.answer, &done.calls[..]), (Ok(Outcome::Paused { reason }), &FORWARD[..2]));
        assert_eq!(done.job.state, State::SchemaCreated);
        let cancel = Control::Cancel { reason: "it is not in use".to_owned() };
        store.control(&job.id, &cancel).await.expect("cancelled");
        let done = run(store, &job.id, no_op(), options()).await;
        assert_eq!((code(&done.answer), &done.calls[..]), ("job_failed", &[Step::Cleanup][..]));
    }
}

/// Never answers.
#[derive(Debug)]
struct Hangs;

#[async_trait::async_trait]
impl Pause for Hangs {
    async fn permit(&self, _: &Job, _: Step) -> Result<Permit, String> {
        std::future::pending().await
    }
}

/// No answer is no permit, after a bounded time; what asks for none goes on.
async fn bears_a_permit_that_hangs(store: &AnyStore) {
    let options = || Options {
        pause: Some(Arc::new(Hangs)),
        permit_limit: Duration::from_millis(30),
        ..quick()
    };
    let job = mk_job(store, "hang").await;
    let done = run(store, &job.id, no_op(), options()).await;
    let reason = "no permit within 30ms".to_owned();
    assert_eq!((done.answer, done.calls.len()), (Ok(Outcome::Paused { reason }), 0));
    assert_eq!((done.job.state, done.job.step_attempts), (State::Pending, 0));
    assert!(done.job.claimed_by.is_none() && done.job.not_before.is_some(), "asked again later");
    let job = mk_job(store, "hang").await;
    store.transition(&job.id, State::Pending, State::Cleanup, None, "no").await.expect("an edge");
    let done = run(store, &job.id, no_op(), options()).await;
    assert_eq!((done.job.state, &done.calls[..]), (State::Failed, &[Step::Cleanup][..]));
}

async fn cancels(store: &AnyStore) {
    let job = mk_job(store, "cancel").await;
    let steps = no_op().create_role({
        let store = Arc::clone(store);
        move |context| {
            let store = Arc::clone(&store);
            async move {
                let cancel = Control::Cancel { reason: "a wrong tenant".to_owned() };
                store.control(&context.job().id, &cancel).await.map(drop)?;
                Ok(())
            }
        }
    });
    let done = run(store, &job.id, steps, quick()).await;
    let expected = [Step::CreateSchema, Step::CreateRole, Step::Cleanup];
    assert_eq!((&done.calls[..], code(&done.answer)), (&expected[..], "job_failed"));
    assert_eq!(done.job.last_error, "cancelled: a wrong tenant");
}

async fn has_one_executor(store: &AnyStore) {
    let job = mk_job(store, "two").await;
    let (inside, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let steps = no_op().migrate({
        let (inside, go_on) = (Arc::clone(&inside), Arc::clone(&go_on));
        move |_| {
            let (inside, go_on) = (Arc::clone(&inside), Arc::clone(&go_on));
            async move {
                inside.notify_one();
                go_on.notified().await;
                Ok(())
            }
        }
    });
    let first = run(store, &job.id, steps, quick());
    let second = async {
        inside.notified().await;
        let second = run(store, &job.id, no_op(), quick()).await;
        go_on.notify_one();
        second
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((second.answer, second.calls.len()), (Ok(Outcome::Leased), 0));
    assert_eq!(first.answer, Ok(Outcome::Ready));
}

/// A worker whose lease ended meanwhile, as one that was suspended, writes nothing.
async fn loses_its_lease(store: &AnyStore) {
    let job = mk_job(store, "lost").await;
    let thief = Arc::clone(store);
    let steps = no_op().migrate(move |context| {
        let thief = Arc::clone(&thief);
        async move {
            // Ends the claim behind the worker's back, and takes the job.
            let release =
                Change { release: Some(Due::In(Duration::ZERO)), ..Change::of(context.job()) };
            assert!(thief.write(&[release]).await[0].is_ok());
            assert!(claim(&thief, &context.job().id, "thief", LEASE).await.is_some());
            let refused = context.checkpoint().await;
            assert_eq!(code(&refused), "claim_lost");
            Err(StepError::permanent("would clean up"))
        }
    });
    let done = run(store, &job.id, steps, quick()).await;
    assert_eq!(code(&done.answer), "claim_lost");
    assert_eq!(
        (done.job.state, done.job.claimed_by.as_deref()),
        (State::RoleCreated, Some("thief"))
    );
    assert!(!done.calls.contains(&Step::Cleanup), "the thief is inside its step");
}

/// Workers that die leave no result: their claims run out. A pause, a transient error and a
/// checkpoint are no such end.
async fn gives_up_a_step_that_kills_its_workers(store: &AnyStore) {
    let options = || Options { lost_claims: 3, step_attempts: 50, ..quick() };
    let dies = async |id: &str, lost: i64| {
        let claimed = claim(store, id, "dies", Duration::ZERO).await.expect("it is due");
        assert_eq!(claimed.lost_claims, lost);
        let checkpoint = Change { made: Some(vec!["schema".to_owned()]), ..Change::of(&claimed) };
        store.write(&[checkpoint]).await.remove(0).expect("written")
    };
    let job = mk_job(store, "kills").await;
    for lost in 0..2 {
        dies(&job.id, lost).await;
    }
    let pause = Control::Pause { reason: "audit".to_owned() };
    store.control(&job.id, &pause).await.expect("paused");
    assert!(matches!(
        run(store, &job.id, no_op(), options()).await.answer,
        Ok(Outcome::Paused { .. })
    ));
    store.control(&job.id, &Control::Resume).await.expect("resumed");
    for lost in 0..2 {
        dies(&job.id, lost).await;
    }
    let done = run(store, &job.id, no_op(), options()).await;
    assert_eq!(done.answer, Ok(Outcome::Ready), "two in a row are not three");
    assert_eq!(done.job.lost_claims, 0);

    let job = mk_job(store, "kills").await;
    let claimed = dies(&job.id, 0).await;
    let edge = Change { edges: vec![State::SchemaCreated], ..Change::of(&claimed) };
    assert!(store.write(&[edge]).await[0].is_ok(), "the edge is the result of the first step");
    for lost in 1..3 {
        dies(&job.id, lost).await;
    }
    let done = run(store, &job.id, no_op(), options()).await;
    assert_eq!((code(&done.answer), &done.calls[..]), ("job_failed", &[Step::Cleanup][..]));
    assert!(
        done.job.last_error.contains("3 workers in a row died in create_role"),
        "{:?}",
        done.job
    );

    let job = mk_job(store, "kills").await;
    dies(&job.id, 0).await;
    let edge = Change { edges: vec![State::Cleanup], ..Change::of(&dies(&job.id, 1).await) };
    assert!(store.write(&[edge]).await[0].is_ok());
    for lost in 1..3 {
        dies(&job.id, lost).await;
    }
    let done = run(store, &job.id, no_op(), options()).await;
    assert_eq!((done.job.state, done.calls.len()), (State::Failed, 0), "cleanup, too, is bounded");
    assert_eq!(done.job.leaked, ["schema"], "and what is left is known");
}

async fn works_on_many(store: &AnyStore) {
    let partition = mk_new("work").partition;
    let new: Vec<_> = (0..40).map(|_| mk_new("work").in_partition(&partition)).collect();
    assert!(store.upsert_many(&new).await.iter().all(Result::is_ok));
    let executor = executor(store, no_op(), quick());
    let claimed = executor.claim(ClaimFrom::Partition(&partition), 100).await.expect("a claim");
    let ended = executor.work(claimed, &Cancel::new()).await;
    assert_eq!(ended.len(), 40);
    assert!(ended.iter().all(|(_, outcome)| *outcome == Ok(Outcome::Ready)), "{ended:?}");
}
