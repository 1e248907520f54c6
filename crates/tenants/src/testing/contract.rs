//! The document's contract, and what jobs are admitted.

use super::{AnyStore, code, mk_job, mk_new};
use crate::{Control, Error, Filter, Metadata, NewJob, State, retry_failed, validate_transition};

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Checks get, upsert, transition, create_table, controls and lists.
pub async fn contract(store: &AnyStore) {
    store.create_table().await.expect("a table");
    store.create_table().await.expect("the same table");
    upserts(store).await;
    refuses_bad_jobs(store).await;
    transitions(store).await;
    follows_the_graph_alone(store).await;
    admits_one_job_of_a_tenant(store).await;
    retries(store).await;
    controls(store).await;
    lists(store).await;
    writes_hostile_texts(store).await;
}

async fn upserts(store: &AnyStore) {
    assert_eq!(code(&store.get("job-that-is-not-there").await), "job_not_found");
    let new = mk_new("upsert").with_metadata(metadata(&[("a", "1")]));
    let job = store.upsert(&new).await.expect("a new job");
    assert_eq!((job.state, job.attempts, job.last_error.as_str()), (State::Pending, 0, ""));
    assert_eq!((&job.id, &job.tenant_id), (&new.id, &new.tenant_id));
    assert_eq!((&job.metadata, &job.made), (&new.metadata, &Some(Vec::new())));
    assert_eq!(job.created_at, job.updated_at);
    assert_eq!(store.get(&job.id).await.expect("it is there"), job);
    let again = store.upsert(&new.clone().with_metadata(metadata(&[("b", "2")]))).await;
    assert_eq!(again.expect("the same id is never busy"), job, "returned unchanged");
    let other = NewJob { tenant_id: "somebody-else".to_owned(), ..new.clone() };
    assert_eq!(code(&store.upsert(&other).await), "tenant_mismatch");
    let (more, bad) = (mk_new("many"), NewJob::new("", "t"));
    let busy = NewJob::new(format!("{}-2", more.id), more.tenant_id.clone());
    let answers = store.upsert_many(&[more.clone(), bad, busy, new, more]).await;
    assert_eq!(answers.len(), 5);
    assert_eq!((code(&answers[1]), code(&answers[2])), ("invalid_job", "tenant_busy"));
    assert_eq!(answers[3].as_ref(), Ok(&job), "one that exists");
    assert_eq!(answers[0], answers[4], "twice in one call is once");
    assert!(store.upsert_many(&[]).await.is_empty());
}

async fn refuses_bad_jobs(store: &AnyStore) {
    let long = "x".repeat(256);
    for (id, tenant, field) in [
        ("", "t", "id"),
        ("j", "", "tenant_id"),
        (long.as_str(), "t", "id"),
        ("j", long.as_str(), "tenant_id"),
        ("j\0", "t", "id"),
    ] {
        let refused = store.upsert(&NewJob::new(id, tenant)).await.expect_err("a bad job");
        assert_eq!(refused.code(), "invalid_job");
        assert!(refused.to_string().contains(&format!(" {field} ")), "{refused}");
    }
    let fits = "ü".repeat(200);
    let job = NewJob::new(format!("{fits}{}", mk_new("").id), mk_new("long").tenant_id);
    assert!(store.upsert(&job).await.is_ok(), "characters count, not bytes");
    let secret = mk_new("secret").with_metadata(metadata(&[("db_password", "hunter2")]));
    assert_eq!(code(&store.upsert(&secret).await), "secret_in_metadata");
    assert_eq!(code(&store.get(&secret.id).await), "job_not_found", "nothing was stored");
}

async fn transitions(store: &AnyStore) {
    let (pending, schema) = (State::Pending, State::SchemaCreated);
    let job = mk_job(store, "transition").await;
    let id = job.id.as_str();
    let (m, to_ready) = (metadata(&[("v", "1")]), State::Ready);
    assert_eq!(
        code(&store.transition("no", pending, to_ready, None, "").await),
        "illegal_transition"
    );
    assert_eq!(code(&store.transition("no", pending, schema, None, "").await), "job_not_found");
    store.transition(id, pending, schema, Some(&m), "half").await.expect("an edge");
    assert_eq!(code(&store.transition(id, pending, schema, None, "").await), "stale_read");
    let now = store.get(id).await.expect("the job");
    assert_eq!((now.state, now.attempts, now.last_error.as_str()), (schema, 1, "half"));
    assert_eq!(now.metadata, m);
    assert_eq!(now.created_at, job.created_at);
    assert!(now.updated_at >= job.updated_at);
    store.transition(id, schema, State::RoleCreated, None, "").await.expect("an edge");
    let now = store.get(id).await.expect("the job");
    assert_eq!((now.attempts, now.last_error.as_str()), (2, ""), "the error is cleared");
    assert_eq!(now.metadata, m, "no metadata keeps it");
    let none = Metadata::new();
    let secret = metadata(&[("dsn", "postgres://u:p@h/d")]);
    let refused = store.transition(id, State::RoleCreated, State::Cleanup, Some(&secret), "").await;
    assert_eq!(code(&refused), "secret_in_metadata");
    let to_cleanup = store.transition(id, State::RoleCreated, State::Cleanup, Some(&none), "no");
    to_cleanup.await.expect("an edge");
    store.transition(id, State::Cleanup, State::Failed, None, "no").await.expect("an edge");
    let now = store.get(id).await.expect("the job");
    assert_eq!((now.attempts, now.state), (2, State::Failed), "these edges are no attempts");
    assert_eq!(now.metadata, none, "empty replaces all of it");
    let edges: Vec<_> = now.history.iter().map(|e| (e.from.as_str(), e.to.as_str())).collect();
    let expected = [
        ("pending", "schema_created"),
        ("schema_created", "role_created"),
        ("role_created", "cleanup"),
        ("cleanup", "failed"),
    ];
    assert_eq!(edges, expected);
    assert!(now.history.is_sorted_by_key(|entry| entry.at) && now.history[0].at > 0);
    assert_eq!(now.not_before, None, "a job that is over is never due");
}

async fn follows_the_graph_alone(store: &AnyStore) {
    for from in State::ALL {
        for to in State::ALL {
            if validate_transition(from, to).is_err() {
                let refused = store.transition("anything", from, to, None, "").await;
                assert_eq!(code(&refused), "illegal_transition", "{from} {to}");
            }
        }
    }
}

/// Walks a job by plain transitions.
async fn walk(store: &AnyStore, id: &str, states: &[State]) {
    for edge in states.windows(2) {
        store.transition(id, edge[0], edge[1], None, "x").await.expect("an edge");
    }
}

const TO_READY: [State; 6] = [
    State::Pending,
    State::SchemaCreated,
    State::RoleCreated,
    State::Migrated,
    State::Seeded,
    State::Ready,
];
const TO_FAILED: [State; 3] = [State::Pending, State::Cleanup, State::Failed];

async fn admits_one_job_of_a_tenant(store: &AnyStore) {
    let job = mk_job(store, "admit").await;
    let second = NewJob::new(format!("{}-2", job.id), job.tenant_id.clone());
    assert_eq!(code(&store.upsert(&second).await), "tenant_busy");
    walk(store, &job.id, &TO_FAILED).await;
    let second = store.upsert(&second).await.expect("admitted after the failure");
    walk(store, &second.id, &TO_READY).await;
    let third = NewJob::new(format!("{}-3", job.id), job.tenant_id.clone());
    assert_eq!(code(&store.upsert(&third).await), "tenant_ready");
    let same = store.upsert(&NewJob::new(&second.id, &job.tenant_id)).await;
    assert_eq!(same.expect("the same id is never refused").state, State::Ready);
    let early = store.control(&job.id, &Control::Decommission).await;
    assert_eq!(code(&early), "wrong_state", "that one failed");
    let gone = store.control(&second.id, &Control::Decommission).await.expect("an answer");
    assert!(gone.decommissioned_at.is_some());
    let early = store.control(&job.id, &Control::Recommission).await;
    assert_eq!(code(&early), "wrong_state", "that one failed");
    for _ in 0..2 {
        let back = store.control(&second.id, &Control::Recommission).await.expect("an answer");
        assert_eq!((back.decommissioned_at, back.state), (None, State::Ready));
    }
    assert_eq!(code(&store.upsert(&third).await), "tenant_ready", "it is ready again");
    store.control(&second.id, &Control::Decommission).await.expect("an answer");
    let fails = NewJob::new(format!("{}-f", job.id), job.tenant_id.clone());
    store.upsert(&fails).await.expect("admitted after the decommissioning");
    let refused = store.control(&second.id, &Control::Recommission).await;
    let named = |job| Error::TenantReplaced { tenant: fails.tenant_id.clone(), job };
    assert_eq!(refused, Err(named(fails.id.clone())), "while it runs");
    walk(store, &fails.id, &TO_FAILED).await;
    store.control(&second.id, &Control::Recommission).await.expect("that one left nothing");
    store.control(&second.id, &Control::Decommission).await.expect("an answer");
    store.upsert(&third).await.expect("admitted after the decommissioning");
    walk(store, &third.id, &TO_READY).await;
    let refused = store.control(&second.id, &Control::Recommission).await;
    assert_eq!(refused, Err(named(third.id.clone())), "the tenant is another one now");
    store.control(&third.id, &Control::Decommission).await.expect("an answer");
    let refused = store.control(&second.id, &Control::Recommission).await;
    assert_eq!(refused, Err(named(third.id.clone())), "it had one after this");
    store.control(&third.id, &Control::Recommission).await.expect("the last one comes back");
    assert_eq!(code(&store.control("nothing", &Control::Recommission).await), "job_not_found");
}

async fn retries(store: &AnyStore) {
    let job = mk_job(store, "retry").await;
    let retry = NewJob::retry(&job, format!("{}-r", job.id));
    assert_eq!(code(&store.upsert(&retry).await), "wrong_state", "it did not fail yet");
    let unknown = NewJob { retry_of: Some("nothing".to_owned()), ..mk_new("retry") };
    assert_eq!(code(&store.upsert(&unknown).await), "job_not_found");
    let stranger = NewJob { tenant_id: mk_new("stranger").tenant_id, ..retry.clone() };
    assert_eq!(code(&store.upsert(&stranger).await), "tenant_mismatch");
    walk(store, &job.id, &TO_FAILED).await;
    let filter = Filter { partition: Some(job.partition.clone()), ..Filter::default() };
    let name = |failed: &crate::Job| format!("{}-r", failed.id);
    let retried = retry_failed(&**store, &filter, name).await.expect("a page");
    assert_eq!(retried.len(), 1);
    let new = retried[0].1.clone().expect("a new job");
    assert_eq!((new.retry_of.as_ref(), new.state), (Some(&job.id), State::Pending));
    assert_eq!((&new.partition, &new.tenant_id), (&job.partition, &job.tenant_id));
    let again = retry_failed(&**store, &filter, name).await.expect("a page");
    assert_eq!(again[0].1, Ok(new), "the same name is the same job");
}

async fn controls(store: &AnyStore) {
    let job = mk_job(store, "control").await;
    let pause = Control::Pause { reason: "password=hunter2 \0".to_owned() };
    let paused = store.control(&job.id, &pause).await.expect("an answer");
    assert_eq!(paused.paused.as_deref(), Some("password=***  "), "without secrets");
    let resumed = store.control(&job.id, &Control::Resume).await.expect("an answer");
    assert_eq!(resumed.paused, None);
    let cancel = Control::Cancel { reason: "no".to_owned() };
    let cancelled = store.control(&job.id, &cancel).await.expect("an answer");
    assert_eq!(cancelled.cancelled.as_deref(), Some("no"));
    walk(store, &job.id, &TO_FAILED).await;
    assert_eq!(code(&store.control(&job.id, &cancel).await), "wrong_state");
    assert_eq!(code(&store.control("nothing", &cancel).await), "job_not_found");
    store.control(&job.id, &Control::ResolveLeaks).await.expect("nothing to resolve");
}

async fn lists(store: &AnyStore) {
    let partition = mk_new("list").partition;
    let new = |n: u32| {
        mk_new("list").in_partition(&partition).with_metadata(metadata(&[("n", &n.to_string())]))
    };
    let new: Vec<_> = (0..5).map(new).collect();
    let jobs = store.upsert_many(&new).await;
    let mut ids: Vec<_> = jobs.into_iter().map(|job| job.expect("a new job").id).collect();
    ids.sort();
    walk(store, &ids[1], &TO_FAILED).await;
    let mut filter = Filter { partition: Some(partition), limit: 2, ..Filter::default() };
    let mut found = Vec::new();
    loop {
        let page = store.find(&filter).await.expect("a page");
        let Some(last) = page.last() else { break };
        filter.after = Some(last.id.clone());
        found.extend(page.into_iter().map(|job| job.id));
    }
    found.sort();
    assert_eq!(found, ids, "each on one page");
    let failed = Filter { state: Some(State::Failed), after: None, ..filter.clone() };
    assert_eq!(store.find(&failed).await.expect("a page")[0].id, ids[1]);
    let leaked = Filter { leaked: true, after: None, ..filter };
    assert!(store.find(&leaked).await.expect("a page").is_empty());
}

/// Names that a statement made of text would run, and texts that a database cannot keep.
async fn writes_hostile_texts(store: &AnyStore) {
    for hostile in
        ["'; DROP TABLE provisioning_jobs; --", "\"x\"", "{table}", "$1", "a\\'b", "%s", "☃"]
    {
        let new = mk_new(hostile).with_metadata(metadata(&[(hostile, hostile)]));
        let new = NewJob { tenant_id: format!("{hostile}{}", new.tenant_id), ..new };
        let job = store.upsert(&new).await.expect("a new job");
        assert_eq!((&job.id, &job.metadata), (&new.id, &new.metadata));
        let error = format!("{hostile} \0 {}", "é".repeat(5_000));
        let failed = store.transition(&job.id, State::Pending, State::Cleanup, None, &error).await;
        failed.expect("any error can be stored");
        let stored = store.get(&job.id).await.expect("the job").last_error;
        assert!(stored.starts_with(hostile) && stored.len() <= 2_000, "{stored}");
    }
}
