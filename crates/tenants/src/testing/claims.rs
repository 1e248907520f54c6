//! Claims, leases, fencing, and writing by sets.

use std::time::Duration;

use super::{AnyStore, LEASE, claim, claim_of, code, mk_job, mk_new};
use crate::{Change, ClaimFrom, Control, Demand, Due, Metadata, State};

/// Checks claim, renew and write.
pub async fn claims(store: &AnyStore) {
    store.create_table().await.expect("a table");
    a_new_job_is_claimed_once(store).await;
    a_late_worker_is_fenced_off(store).await;
    a_heartbeat_keeps_a_claim(store).await;
    a_plain_transition_waits_for_the_lease(store).await;
    a_release_says_when(store).await;
    a_repeated_write_finds_itself_written(store).await;
    a_refused_change_takes_no_other_with_it(store).await;
    many_are_claimed_by_one_call(store).await;
    leaks_block_and_are_inherited(store).await;
}

async fn a_new_job_is_claimed_once(store: &AnyStore) {
    let job = mk_job(store, "claim").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("a new job is due");
    assert_eq!((claimed.claim_token, claimed.claimed_by.as_deref()), (1, Some("one")));
    assert!(claimed.is_leased);
    assert_eq!(claim(store, &job.id, "two", LEASE).await, None, "somebody has it");
    assert_eq!(claim(store, "nothing", "two", LEASE).await, None);
    let failed = Change {
        edges: vec![State::Cleanup, State::Failed],
        release: Some(Due::WhenWoken),
        ..Change::of(&claimed)
    };
    let failed = store.write(&[failed]).await.pop().expect("an answer").expect("written");
    assert_eq!((failed.state, failed.claimed_by, failed.is_leased), (State::Failed, None, false));
    assert_eq!(claim(store, &job.id, "two", LEASE).await, None, "it is over");
}

async fn a_late_worker_is_fenced_off(store: &AnyStore) {
    let job = mk_job(store, "fence").await;
    let late = claim(store, &job.id, "one", Duration::ZERO).await.expect("it is due");
    let holder = claim(store, &job.id, "two", LEASE).await.expect("that lease is over");
    assert_eq!(holder.claim_token, late.claim_token + 1);
    let edge = |job| Change { edges: vec![State::SchemaCreated], ..Change::of(job) };
    let answers = store.write(&[edge(&late)]).await;
    assert_eq!(code(&answers[0]), "claim_lost");
    assert!(store.renew("one", &[claim_of(&late)], LEASE).await.expect("an answer").is_empty());
    assert!(store.renew("one", &[claim_of(&holder)], LEASE).await.expect("an answer").is_empty());
    let now = store.get(&job.id).await.expect("the job");
    assert_eq!((now.state, now.claim_token), (State::Pending, holder.claim_token));
    assert!(store.write(&[edge(&holder)]).await[0].is_ok());
    let answers = store.write(&[Change { edges: Vec::new(), ..edge(&late) }]).await;
    assert_eq!(code(&answers[0]), "claim_lost", "a checkpoint is fenced off too");
}

async fn a_heartbeat_keeps_a_claim(store: &AnyStore) {
    let job = mk_job(store, "renew").await;
    let claimed = claim(store, &job.id, "one", Duration::ZERO).await.expect("it is due");
    let renewed = store.renew("one", &[claim_of(&claimed)], LEASE).await.expect("an answer");
    assert_eq!(renewed, std::slice::from_ref(&job.id), "nobody took it over");
    assert_eq!(claim(store, &job.id, "two", LEASE).await, None, "it is leased again");
    let release = Change { release: Some(Due::In(Duration::ZERO)), ..Change::of(&claimed) };
    assert!(store.write(&[release]).await[0].is_ok());
    let late = store.renew("one", &[claim_of(&claimed)], LEASE).await.expect("an answer");
    assert!(late.is_empty(), "a late heartbeat");
    assert!(claim(store, &job.id, "two", LEASE).await.is_some());
}

async fn a_plain_transition_waits_for_the_lease(store: &AnyStore) {
    let (pending, schema) = (State::Pending, State::SchemaCreated);
    let job = mk_job(store, "plain").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
    assert_eq!(code(&store.transition(&job.id, pending, schema, None, "").await), "leased");
    let release = Change { release: Some(Due::WhenWoken), ..Change::of(&claimed) };
    assert!(store.write(std::slice::from_ref(&release)).await[0].is_ok());
    store.transition(&job.id, pending, schema, None, "").await.expect("nobody has it");
    let late = store.write(&[Change { edges: vec![schema], ..Change::of(&claimed) }]).await;
    assert_eq!(code(&late[0]), "claim_lost", "a plain transition ends every claim before it");
    assert!(claim(store, &job.id, "two", LEASE).await.is_some(), "and the job is due");
}

async fn a_release_says_when(store: &AnyStore) {
    let job = mk_job(store, "release").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
    let park = Change {
        step_attempts: Some(2),
        last_error: Some("later".to_owned()),
        release: Some(Due::In(LEASE)),
        ..Change::of(&claimed)
    };
    let parked = store.write(&[park]).await.remove(0).expect("written");
    assert_eq!((parked.step_attempts, parked.last_error.as_str()), (2, "later"));
    assert!(parked.not_before.is_some() && parked.state == State::Pending);
    assert_eq!(claim(store, &job.id, "one", LEASE).await, None, "not before its time");
    store.control(&job.id, &Control::Resume).await.expect("a wake");
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it was woken");
    let put_down = Change { release: Some(Due::WhenWoken), ..Change::of(&claimed) };
    store.control(&job.id, &Control::Resume).await.expect("a wake");
    assert!(store.write(&[put_down]).await[0].is_ok());
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("no wake is lost");
    let put_down = Change { release: Some(Due::WhenWoken), ..Change::of(&claimed) };
    let down = store.write(&[put_down]).await.remove(0).expect("written");
    assert_eq!(down.not_before, None);
    assert_eq!(claim(store, &job.id, "one", LEASE).await, None, "until it is woken");
}

/// The answer of a commit may be lost, so whoever wrote it writes it again.
async fn a_repeated_write_finds_itself_written(store: &AnyStore) {
    let job = mk_job(store, "again").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
    let edge = Change { edges: vec![State::SchemaCreated], ..Change::of(&claimed) };
    let first = store.write(std::slice::from_ref(&edge)).await.remove(0).expect("written");
    let second = store.write(&[edge]).await.remove(0).expect("written before");
    assert_eq!((second.attempts, &second.history), (1, &first.history), "once");
    let last =
        Change { edges: vec![State::Cleanup], release: Some(Due::WhenWoken), ..Change::of(&first) };
    assert!(store.write(std::slice::from_ref(&last)).await[0].is_ok());
    let again = store.write(&[last]).await.remove(0).expect("written before");
    assert_eq!(again.history.len(), 2);
}

async fn a_refused_change_takes_no_other_with_it(store: &AnyStore) {
    let (mut claimed, mut changes) = (Vec::new(), Vec::new());
    for n in 0..6 {
        let job = mk_job(store, "set").await;
        let job = claim(store, &job.id, "one", LEASE).await.expect("it is due");
        changes.push(Change {
            edges: vec![State::SchemaCreated],
            metadata: Some(Metadata::from([("n".to_owned(), n.to_string())])),
            made: Some(vec![format!("schema {n}")]),
            ..Change::of(&job)
        });
        claimed.push(job);
    }
    changes[1].id = "nothing".to_owned();
    changes[2].claim_token = Some(77);
    changes[3].edges = vec![State::Ready];
    changes[4].metadata = Some(Metadata::from([("token".to_owned(), "x".to_owned())]));
    let second = Change {
        edges: vec![State::RoleCreated],
        from: State::SchemaCreated,
        ..Change::of(&claimed[0])
    };
    changes.push(second);
    let answers = store.write(&changes).await;
    let codes: Vec<_> = answers[1..5].iter().map(code).collect();
    let expected = ["job_not_found", "claim_lost", "illegal_transition", "secret_in_metadata"];
    assert_eq!(codes, expected);
    let good = answers[5].as_ref().expect("written");
    assert_eq!((good.state, good.metadata["n"].as_str()), (State::SchemaCreated, "5"));
    assert_eq!(good.made, Some(vec!["schema 5".to_owned()]));
    assert!(answers[0].is_ok());
    assert_eq!(answers[6].as_ref().expect("after the first").state, State::RoleCreated);
    for job in &claimed[1..5] {
        assert_eq!(store.get(&job.id).await.expect("the job").state, State::Pending);
    }
}

async fn many_are_claimed_by_one_call(store: &AnyStore) {
    let partition = mk_new("many").partition;
    let new: Vec<_> = (0..60).map(|_| mk_new("many").in_partition(&partition)).collect();
    assert!(store.upsert_many(&new).await.iter().all(Result::is_ok));
    assert!(store.due_partitions().await.expect("a list").contains(&partition));
    let demand = Demand { worker: "one", limit: 50, lease: LEASE };
    let first = store.claim(ClaimFrom::Partition(&partition), demand).await.expect("a claim");
    let rest = store.claim(ClaimFrom::Partition(&partition), demand).await.expect("a claim");
    assert_eq!((first.len(), rest.len()), (50, 10));
    let claims: Vec<_> = first.iter().chain(&rest).map(claim_of).collect();
    assert_eq!(store.renew("one", &claims, LEASE).await.expect("an answer").len(), 60);
    assert!(!store.due_partitions().await.expect("a list").contains(&partition));
    let edge = |job| Change { edges: vec![State::SchemaCreated], ..Change::of(job) };
    let changes: Vec<_> = first.iter().chain(&rest).map(edge).collect();
    assert!(store.write(&changes).await.iter().all(Result::is_ok));
    assert!(store.write(&[]).await.is_empty());
}

async fn leaks_block_and_are_inherited(store: &AnyStore) {
    let job = mk_job(store, "leak").await;
    let claimed = claim(store, &job.id, "one", LEASE).await.expect("it is due");
    let fails = Change {
        edges: vec![State::Cleanup, State::Failed],
        leaked: Some(vec!["schema".to_owned()]),
        release: Some(Due::WhenWoken),
        ..Change::of(&claimed)
    };
    let failed = store.write(&[fails]).await.remove(0).expect("written");
    let other = crate::NewJob::new(format!("{}-2", job.id), job.tenant_id.clone());
    assert_eq!(code(&store.upsert(&other).await), "tenant_leaks");
    let retry = crate::NewJob::retry(&failed, format!("{}-r", job.id));
    let retry = store.upsert(&retry).await.expect("a retry takes over what is left");
    assert_eq!(retry.made, Some(vec!["schema".to_owned()]));
    assert!(store.get(&job.id).await.expect("the job").leaked.is_empty(), "in one place only");
}
