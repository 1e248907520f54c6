//! The race half: the same calls from many tasks at the same moment, a few hundred rounds,
//! with the invariants checked after each. A suite that calls one after the other is green
//! on a store that is racy.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;

use super::{AnyStore, LEASE, claim, code, mk_job, mk_new};
use crate::{Change, ClaimFrom, Control, Demand, Due, Error, Job, NewJob, State};

/// Runs each race this many times.
pub async fn races(store: &AnyStore, rounds: u32) {
    let create: Vec<_> = (0..8).map(|_| store.create_table()).collect();
    for created in together(create).await {
        created.expect("table creation at the same time is never an error");
    }
    for round in 0..rounds {
        match round % 9 {
            0 => one_id_is_inserted_once(store).await,
            1 => one_tenant_has_one_job(store).await,
            2 => one_worker_has_a_job(store).await,
            3 => one_plain_transition_wins(store).await,
            4 => no_job_beside_one_that_becomes_ready(store).await,
            5 => no_job_beside_one_that_was_faster(store).await,
            6 => a_tenant_comes_back_or_is_made_anew(store).await,
            7 => sets_of_two_workers_do_not_lock_each_other(store).await,
            _ => no_control_is_lost(store).await,
        }
    }
}

/// Starts all futures at the same moment.
async fn together<'a, T: Send + 'a>(calls: Vec<impl Future<Output = T> + Send + 'a>) -> Vec<T> {
    let barrier = Arc::new(Barrier::new(calls.len()));
    let mut waiting: Vec<std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>> = Vec::new();
    for call in calls {
        let barrier = Arc::clone(&barrier);
        waiting.push(Box::pin(async move {
            barrier.wait().await;
            call.await
        }));
    }
    join_all(waiting).await
}

/// Polls all of them whenever one is ready; there are few.
async fn join_all<T>(
    mut calls: Vec<std::pin::Pin<Box<dyn Future<Output = T> + Send + '_>>>,
) -> Vec<T> {
    let mut answers: Vec<Option<T>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (call, answer) in calls.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let std::task::Poll::Ready(ready) = call.as_mut().poll(context)
            {
                *answer = Some(ready);
            }
        }
        if answers.iter().any(Option::is_none) {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(answers.iter_mut().filter_map(Option::take).collect())
    })
    .await
}

async fn one_id_is_inserted_once(store: &AnyStore) {
    let new = mk_new("race-id");
    let stranger = NewJob { tenant_id: mk_new("stranger").tenant_id, ..new.clone() };
    let calls = [&new, &new, &new, &stranger, &new].map(|new| store.upsert(new)).into();
    let answers = together(calls).await;
    let stored = store.get(&new.id).await.expect("one of them inserted it");
    for (n, answer) in answers.into_iter().enumerate() {
        let is_stranger = n == 3;
        let owns = is_stranger == (stored.tenant_id == stranger.tenant_id);
        match answer {
            Ok(job) => assert!(owns && job.created_at == stored.created_at, "{job:?}"),
            Err(error) => {
                assert!(!owns, "a spurious {error}");
                assert_eq!(error.code(), "tenant_mismatch");
            }
        }
    }
}

async fn one_tenant_has_one_job(store: &AnyStore) {
    let first = mk_new("race-tenant");
    let other = |n: u32| NewJob { id: format!("{}-{n}", first.id), ..first.clone() };
    let new: Vec<_> = (0..5).map(other).collect();
    let sets: Vec<_> = new.iter().map(|new| [new.clone(), mk_new("beside")]).collect();
    let answers = together(sets.iter().map(|set| store.upsert_many(set)).collect()).await;
    let admitted = answers.iter().filter(|answers| answers[0].is_ok()).count();
    assert_eq!(admitted, 1, "{answers:?}");
    for answer in &answers {
        assert!(answer[1].is_ok(), "the tenant beside it is free");
        assert!(answer[0].is_ok() || code(&answer[0]) == "tenant_busy");
    }
}

async fn one_worker_has_a_job(store: &AnyStore) {
    let job = mk_job(store, "race-claim").await;
    let workers = ["one", "two", "three", "four"];
    let by_id = |worker| {
        let demand = Demand { worker, limit: 8, lease: LEASE };
        let by_id = worker.len() == 3;
        let from =
            if by_id { ClaimFrom::Job(&job.id) } else { ClaimFrom::Partition(&job.partition) };
        store.claim(from, demand)
    };
    let answers = together(workers.map(by_id).into()).await;
    let claimed: Vec<Job> =
        answers.into_iter().flat_map(|answer| answer.expect("a claim")).collect();
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!(claimed[0].claim_token, 1);
    // The same claim writes twice at once: an answer was lost, and the first one lives.
    let edge = [Change { edges: vec![State::SchemaCreated], ..Change::of(&claimed[0]) }];
    let answers = together(vec![store.write(&edge), store.write(&edge)]).await;
    for answer in answers.into_iter().flatten() {
        let job = answer.expect("written, by this one or by the other");
        assert_eq!((job.attempts, job.history.len()), (1, 1), "once");
    }
}

async fn one_plain_transition_wins(store: &AnyStore) {
    let job = mk_job(store, "race-edge").await;
    let to = [State::SchemaCreated, State::Cleanup, State::SchemaCreated, State::Cleanup];
    let edges = to.map(|to| store.transition(&job.id, State::Pending, to, None, "")).into();
    let answers: Vec<Result<(), Error>> = together(edges).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.is_err()) {
        assert_eq!(code(answer), "stale_read");
    }
    assert_eq!(store.get(&job.id).await.expect("the job").history.len(), 1);
}

/// At the moment when a job becomes ready it leaves the index of the unfinished ones.
async fn no_job_beside_one_that_becomes_ready(store: &AnyStore) {
    let job = mk_job(store, "race-ready").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
    let to_migrated = [State::SchemaCreated, State::RoleCreated, State::Migrated];
    let walk = Change { edges: to_migrated.into(), ..Change::of(&claimed) };
    let migrated = store.write(&[walk]).await.remove(0).expect("written");
    let ready = [Change {
        edges: vec![State::Seeded, State::Ready],
        release: Some(Due::WhenWoken),
        ..Change::of(&migrated)
    }];
    let second = NewJob { id: format!("{}-2", job.id), ..NewJob::new("", job.tenant_id.clone()) };
    let others = async {
        let mut codes = Vec::new();
        for _ in 0..4 {
            codes.push(code(&store.upsert(&second).await));
        }
        codes
    };
    let (written, codes) = tokio::join!(store.write(&ready), others);
    assert_eq!(written[0].as_ref().expect("written").state, State::Ready);
    let known = |code: &&str| *code == "tenant_busy" || *code == "tenant_ready";
    assert!(codes.iter().all(known), "a ready tenant was provisioned again: {codes:?}");
    assert_eq!(code(&store.upsert(&second).await), "tenant_ready");
}

/// A large set is inserted while a job of one of its tenants runs from its insertion to its
/// end: whoever decided about the set before that must not insert after it.
async fn no_job_beside_one_that_was_faster(store: &AnyStore) {
    let fast = mk_new("race-fast");
    let slow = NewJob { id: format!("{}-2", fast.id), ..fast.clone() };
    let mut set: Vec<_> = (0..60).map(|_| mk_new("beside")).collect();
    set.push(slow);
    let runs = async {
        let job = store.upsert(&fast).await?;
        let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
        let edges = State::ALL[1..6].to_vec();
        let ready = Change { edges, release: Some(Due::WhenWoken), ..Change::of(&claimed) };
        store.write(&[ready]).await.remove(0)
    };
    let (inserted, ran) = tokio::join!(store.upsert_many(&set), runs);
    let slow = inserted.last().expect("an answer");
    assert!(slow.is_ok() != ran.is_ok(), "one of them: {slow:?} and {ran:?}");
    assert!(inserted[..60].iter().all(Result::is_ok), "the tenants beside it are free");
}

/// A decommissioned tenant is restored while a new job for it comes in.
async fn a_tenant_comes_back_or_is_made_anew(store: &AnyStore) {
    let job = mk_job(store, "race-back").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
    let edges = State::ALL[1..6].to_vec();
    let ready = Change { edges, release: Some(Due::WhenWoken), ..Change::of(&claimed) };
    assert!(store.write(&[ready]).await[0].is_ok());
    store.control(&job.id, &Control::Decommission).await.expect("it is ready");
    let new = |n: u32| NewJob::new(format!("{}-{n}", job.id), job.tenant_id.clone());
    let set: Vec<_> = std::iter::repeat_with(|| mk_new("beside")).take(5).chain([new(1)]).collect();
    let new = new(2);
    let one = async { store.upsert(&new).await.map(drop) };
    let many = async { store.upsert_many(&set).await.remove(5).map(drop) };
    let back = async { store.control(&job.id, &Control::Recommission).await.map(drop) };
    let calls: Vec<BoxFuture<'_>> = vec![Box::pin(many), Box::pin(back), Box::pin(one)];
    let answers = together(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    let known = ["tenant_ready", "tenant_busy", "tenant_replaced"];
    let refused = answers.iter().filter(|answer| answer.is_err());
    assert!(refused.map(code).all(|code| known.contains(&code)), "{answers:?}");
}

type BoxFuture<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

async fn sets_of_two_workers_do_not_lock_each_other(store: &AnyStore) {
    let mut claimed = Vec::new();
    for worker in ["one", "two", "one", "two", "one", "two"] {
        let job = mk_job(store, "race-set").await;
        claimed.push(claim(store, &job.id, worker, LEASE).await.expect("it is due"));
    }
    let edge = |job| Change { edges: vec![State::SchemaCreated], ..Change::of(job) };
    // Each set has all jobs, in another order: those of the other worker by a wrong claim.
    let mut one: Vec<_> = claimed.iter().map(edge).collect();
    let mut two = one.clone();
    one.iter_mut().skip(1).step_by(2).for_each(|change| change.claim_token = Some(0));
    two.iter_mut().step_by(2).for_each(|change| change.claim_token = Some(0));
    two.reverse();
    let answers = together(vec![store.write(&one), store.write(&two)]).await;
    let written = answers.iter().flatten().filter(|answer| answer.is_ok()).count();
    assert_eq!(written, claimed.len(), "{answers:?}");
}

async fn no_control_is_lost(store: &AnyStore) {
    let job = mk_job(store, "race-control").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
    let park =
        [Change { release: Some(Due::In(Duration::from_secs(3_600))), ..Change::of(&claimed) }];
    let cancel = Control::Cancel { reason: "no".to_owned() };
    let (parked, cancelled) = tokio::join!(store.write(&park), store.control(&job.id, &cancel));
    assert!(parked[0].is_ok() && cancelled.is_ok());
    let next = claim(store, &job.id, "two", LEASE).await.expect("it was woken, before or after");
    assert_eq!(next.cancelled.as_deref(), Some("no"));
}
