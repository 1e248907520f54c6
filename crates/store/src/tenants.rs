//! Tenants on both databases: jobs that the library's executor runs through our table, with
//! our sink, and the claims of tasks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_app::access::port::{AuditFilter, AuditOrder};
use slipway_app::deletion::port::LeakFilter;
use slipway_app::ports::Stores;
use slipway_app::ports::store::{Error, Page};
use slipway_app::tenants::port::{JobFilter, TenantFilter, TenantKey};
use slipway_core::ErrorKind;
use slipway_core::access::audit::Actor;
use slipway_core::catalog::Name;
use slipway_core::catalog::project::{self, NewProject, Project};
use slipway_core::ids::{ProjectId, TenantId, TenantJobId, TenantProfileId};
use slipway_core::nodes::mesh::MeshCidr;
use slipway_core::operations::control::{self, LockedControl};
use slipway_core::precondition::Expected;
use slipway_core::rollouts::next::Health;
use slipway_core::tenants::job::{self, JobState};
use slipway_core::tenants::profile::{self, NewProfile, TenantProfile};
use slipway_core::tenants::tenant::{self, NewTenant, Tenant, TenantSnapshot};
use slipway_core::tenants::waiting::{self, Resume};
use slipway_core::tenants::{TenantsWrite, task};
use slipway_core::text::{Labels, Reason};
use slipway_tenants::{Executor, JobStore, Outcome, State, Step, StepError, Steps};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use uuid::Uuid;

use crate::{StoreConfig, open_with_jobs};

/// Someone who uses the ports.
struct Client {
    stores: Stores,
    jobs: Arc<dyn JobStore>,
    project: ProjectId,
}

fn actor() -> Actor {
    Actor::new("key:conformance")
}

fn id() -> Uuid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

fn name(text: &str) -> Name {
    Name::parse("name", text).unwrap()
}

impl Client {
    async fn new(config: StoreConfig) -> Self {
        let (stores, jobs) = open_with_jobs(config).await.unwrap();
        let new = NewProject {
            id: ProjectId::new(id()),
            name: name("shop"),
            labels: Labels::default(),
            mesh_cidr: MeshCidr::DEFAULT,
        };
        let mut rule = |snapshot: &_| project::create(snapshot, &new, &actor());
        stores.kind::<Project>().decide("shop", &mut rule).await.unwrap();
        let settings = json!({ "engine": "sqlite", "target": { "file": "/srv/target" } });
        let profile = NewProfile {
            id: TenantProfileId::new(id()),
            name: name("files"),
            description: String::new(),
            settings,
        };
        let mut rule = |snapshot: &_| profile::create(snapshot, &profile, &actor());
        stores.kind::<TenantProfile>().decide("files", &mut rule).await.unwrap();
        Self { stores, jobs, project: new.id }
    }

    async fn provision(&self, text: &str) -> Result<TenantId, Error> {
        let new =
            NewTenant { id: TenantId::new(id()), job_id: TenantJobId::new(id()), name: name(text) };
        let key = TenantKey::New {
            project: "shop".to_owned(),
            profile: "files".to_owned(),
            name: text.to_owned(),
        };
        let mut rule = |snapshot: &TenantSnapshot| tenant::provision(snapshot, &new, &actor());
        self.stores.kind::<Tenant>().decide(&key, &mut rule).await?;
        Ok(new.id)
    }

    async fn tenant(&self, id: TenantId) -> Tenant {
        let found = self.stores.kind::<Tenant>().fetch(&id.to_string(), true).await;
        found.unwrap().expect("a tenant")
    }

    async fn retry(&self, id: TenantId) -> Result<(), Error> {
        let job = TenantJobId::new(self::id());
        let mut rule = |snapshot: &_| job::retry(snapshot, job, Expected::Any, &actor());
        self.stores.kind::<Tenant>().decide(&TenantKey::Existing(id), &mut rule).await
    }

    /// Runs the last job of a tenant; `seed` is its fourth step, `cleanup` its last.
    async fn run(
        &self,
        tenant: TenantId,
        seed: fn() -> Result<(), StepError>,
        cleanup: fn() -> Result<(), StepError>,
    ) -> Result<Outcome, slipway_tenants::Error> {
        let steps = Steps::new()
            .create_schema(|context| async move {
                context.making("file acme.db").await?;
                Ok(())
            })
            .create_role(|_| async { Ok(()) })
            .migrate(|context| async move {
                context.set("version", "7")?;
                Ok(())
            })
            .seed(move |_| async move { seed() })
            .cleanup(move |_| async move { cleanup() });
        self.run_steps(tenant, steps).await
    }

    async fn run_steps(
        &self,
        tenant: TenantId,
        steps: Steps,
    ) -> Result<Outcome, slipway_tenants::Error> {
        let options = slipway_tenants::Options {
            backoff: slipway_tenants::Backoff { base: Duration::ZERO, max: Duration::ZERO },
            ..slipway_tenants::Options::default()
        };
        let executor = Executor::builder()
            .store(Arc::clone(&self.jobs))
            .steps(steps)
            .options(options)
            .build()
            .unwrap();
        executor.run(&self.tenant(tenant).await.job_id.to_string()).await
    }

    async fn audited(&self, tenant: TenantId) -> Vec<(String, String)> {
        let filter = AuditFilter { subject: Some(tenant.as_uuid()), ..AuditFilter::default() };
        let page = Page { after: None, limit: 100 };
        let found = self.stores.access.audit_list(&filter, AuditOrder::OldestFirst, page).await;
        let found = found.unwrap();
        found.iter().map(|entry| (entry.verb.clone(), format!("{entry:?}"))).collect()
    }
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorKind {
    match outcome.unwrap_err() {
        Error::Refused(refusal) => refusal.kind,
        other => panic!("{other}"),
    }
}

async fn a_tenant_follows_its_job_in_the_transactions_of_its_edges(client: &Client) {
    let id = client.provision("acme").await.unwrap();
    assert_eq!(client.jobs.due_partitions().await.unwrap().len(), 1, "due at once");
    assert_eq!(refused(client.provision("acme").await), ErrorKind::TenantBusy);
    assert_eq!(client.run(id, || Ok(()), || Ok(())).await, Ok(Outcome::Ready));
    let ready = client.tenant(id).await;
    assert_eq!((ready.state, ready.present, ready.leaks), (JobState::Ready, true, 0));
    assert_eq!(ready.version.as_deref(), Some("7"));
    // One for the insertion, one for each of five edges.
    assert_eq!(ready.revision.0, 6);
    let audited = client.audited(id).await;
    let verbs: Vec<_> = audited.iter().map(|(verb, _)| verb.as_str()).collect();
    assert_eq!(verbs.iter().filter(|verb| **verb == "tenant.advance").count(), 5, "{verbs:?}");
    while client.stores.events.outbox_relay(100).await.unwrap() > 0 {}
    let page = Page { after: None, limit: 100 };
    let events = client.stores.events.event_list_in(client.project, page).await.unwrap();
    let types: Vec<_> = events.iter().map(|event| event.event_type.clone()).collect();
    let advanced = "tenants.JobAdvanced".to_owned();
    assert_eq!(types.iter().filter(|kind| **kind == advanced).count(), 4, "{types:?}");
    assert_eq!(types.last().map(String::as_str), Some("tenants.TenantReady"));
    assert_eq!(refused(client.provision("acme").await), ErrorKind::TenantReady);
    assert_eq!(refused(client.retry(id).await), ErrorKind::NothingToRetry);
    let filter = JobFilter { tenant: id, state: Some(JobState::Ready) };
    let page = Page { after: None, limit: 10 };
    let jobs = client.stores.tenants.tenant_job_list(filter, page).await.unwrap();
    assert_eq!((jobs.len(), jobs[0].history.len(), jobs[0].attempts), (1, 5, 5));
}

async fn a_retry_takes_over_what_was_left(client: &Client) {
    let id = client.provision("left").await.unwrap();
    let broken = || Err(StepError::permanent("password=hunter2 broke the seed"));
    let failed = client.run(id, broken, || Err(StepError::permanent("still in use"))).await;
    assert_eq!(failed.unwrap_err().code(), "job_failed");
    let left = client.tenant(id).await;
    assert_eq!((left.state, left.present, left.leaks), (JobState::Failed, true, 1));
    for (verb, entry) in client.audited(id).await {
        assert!(!entry.contains("seed"), "{verb}: the audit has the error of a step: {entry}");
    }
    assert_eq!(refused(client.provision("left").await), ErrorKind::TenantFailed);
    let first = client.stores.tenants.tenant_job_fetch(left.job_id).await.unwrap().unwrap();
    assert_eq!(first.leaked, ["file acme.db"]);
    let leaks = async || {
        let filter = LeakFilter { open: Some(true), kind: Some(job::LEAK_KIND.to_owned()) };
        let page = Page { after: None, limit: 10 };
        let found = client.stores.deletion.leak_list(&filter, page).await.unwrap();
        found.into_iter().map(|leak| leak.evidence["objects"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(leaks().await, [r#"["file acme.db"]"#]);
    client.retry(id).await.unwrap();
    assert_eq!(refused(client.retry(id).await), ErrorKind::NothingToRetry);
    let again = client.tenant(id).await;
    assert_eq!((again.state, again.work, again.leaks), (JobState::Pending, 2, 0));
    let second = client.stores.tenants.tenant_job_fetch(again.job_id).await.unwrap().unwrap();
    assert_eq!((second.made, second.retry_of), (vec!["file acme.db".to_owned()], Some(first.id)));
    let first = client.stores.tenants.tenant_job_fetch(first.id).await.unwrap().unwrap();
    assert!(first.leaked.is_empty(), "{first:?}");
    let failed = client.run(id, broken, || Ok(())).await;
    assert_eq!(failed.unwrap_err().code(), "job_failed");
    assert_eq!(leaks().await, [""; 0], "removed by the cleanup of the retry");
    let gone = client.tenant(id).await;
    assert_eq!((gone.state, gone.present, gone.version), (JobState::Failed, false, None));
    let wanted = TenantFilter { state: Some(JobState::Failed), ..TenantFilter::default() };
    let page = Page { after: None, limit: 10 };
    let listed = client.stores.kind::<Tenant>().page(&wanted, page).await.unwrap();
    assert_eq!(listed.items.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
}

/// A record that nothing was recorded names no object, which the next cleanup would leak again.
async fn a_retry_does_not_take_over_what_nobody_recorded(client: &Client) {
    let id = client.provision("unrecorded").await.unwrap();
    let job = client.tenant(id).await.job_id;
    let broken = || Err(StepError::permanent("no target"));
    let steps = Steps::new()
        .create_schema(move |_| async move { broken() })
        .create_role(|_| async { Ok(()) })
        .migrate(|_| async { Ok(()) })
        .seed(|_| async { Ok(()) })
        .cleanup(move |_| async move { broken() });
    let failed = client.run_steps(id, steps).await;
    assert_eq!(failed.unwrap_err().code(), "job_failed");
    let first = client.stores.tenants.tenant_job_fetch(job).await.unwrap().unwrap();
    assert_eq!((client.tenant(id).await.leaks, first.leaked.len()), (1, 1));
    client.retry(id).await.unwrap();
    let again = client.tenant(id).await;
    let second = client.stores.tenants.tenant_job_fetch(again.job_id).await.unwrap().unwrap();
    assert_eq!((second.made, second.retry_of), (vec![], Some(job)));
}

/// Each try has a higher number, and whoever was overtaken writes nothing.
async fn a_task_is_claimed_by_a_number(client: &Client) {
    let id = client.provision("tasks").await.unwrap();
    client.run(id, || Ok(()), || Ok(())).await.unwrap();
    let (store, lease) = (&client.stores.tenants, Duration::from_secs(600));
    let mut rule = |snapshot: &TenantSnapshot| {
        let tenant = snapshot.tenant.clone().unwrap();
        let write = TenantsWrite::TenantUpdate(Tenant { migrating: true, ..tenant });
        Ok(slipway_core::commit::Commit { writes: vec![write.into()], ..Default::default() })
    };
    let tenants = client.stores.kind::<Tenant>();
    tenants.decide(&TenantKey::Existing(id), &mut rule).await.unwrap();
    let claimed = store.tenant_task_claim(10, lease).await.unwrap();
    let [first] = &claimed[..] else { panic!("{claimed:?}") };
    assert_eq!((first.id, task::needed(first)), (id, Some(task::Task::Migrate)));
    assert!(store.tenant_task_claim(10, lease).await.unwrap().is_empty(), "it is leased");
    assert!(store.tenant_task_renew(id, first.work, lease).await.unwrap());
    let later = store.tenant_task_later(id, first.work, Some(Duration::ZERO), Some("no"));
    assert!(later.await.unwrap());
    let renewed = store.tenant_task_renew(id, first.work, lease).await.unwrap();
    assert!(!renewed, "what is due is left to the next claim");
    let claimed = store.tenant_task_claim(10, lease).await.unwrap();
    let [second] = &claimed[..] else { panic!("{claimed:?}") };
    assert_eq!((second.work, second.failures), (first.work + 1, 1));
    assert_eq!(second.last_error.as_deref(), Some("no"));
    let late = store.tenant_task_later(id, first.work, None, None).await.unwrap();
    assert!(!late, "the first try was overtaken");
    let mut rule = |snapshot: &TenantSnapshot| {
        let tenant = snapshot.tenant.as_ref().unwrap();
        Ok(task::done(tenant, task::Task::Migrate, Some("8".to_owned()), &actor(), snapshot.now))
    };
    tenants.decide(&TenantKey::Kept(id), &mut rule).await.unwrap();
    let done = client.tenant(id).await;
    assert_eq!((done.version.as_deref(), done.migrating, done.failures), (Some("8"), false, 0));
    let none = store.tenant_task_claim(10, Duration::ZERO).await.unwrap();
    assert!(none.is_empty(), "nothing follows: {none:?}");
}

/// What was given out after the backup is lost, a job that was unfinished in it waits for a
/// person, and so does a task whose target is ahead.
async fn a_restored_database_waits_for_a_person(client: &Client) {
    let (ready, busy) =
        (client.provision("done").await.unwrap(), client.provision("busy").await.unwrap());
    client.run(ready, || Ok(()), || Ok(())).await.unwrap();
    let held = client.run(busy, || Err(StepError::waiting("ahead")), || Ok(())).await.unwrap();
    assert_eq!(held, Outcome::Paused { reason: "seed: ahead".to_owned() });
    let resume = async |id: TenantId, clean_up: bool| {
        let wanted = Resume { reason: Reason::parse("looked").unwrap(), clean_up };
        let mut rule = |snapshot: &_| waiting::resume(snapshot, &wanted, Expected::Any, &actor());
        client.stores.kind::<Tenant>().decide(&TenantKey::Waiting(id), &mut rule).await
    };
    assert_eq!(refused(resume(ready, false).await), ErrorKind::NothingToResume);
    resume(busy, false).await.unwrap();
    assert_eq!(refused(resume(busy, false).await), ErrorKind::NothingToResume);

    let (known, unfinished) = (client.tenant(ready).await.work, client.tenant(busy).await.work);
    let before = client.jobs.get(&client.tenant(busy).await.job_id.to_string()).await.unwrap();
    assert_eq!(before.metadata["work"], unfinished.to_string());
    for round in 0..2 {
        let mut rule =
            |locked: &LockedControl| Ok(Some(control::restored(&locked.control, "test", &actor())));
        client.stores.operations.control_decide(&mut rule).await.unwrap();
        let (done, waits) = (client.tenant(ready).await, client.tenant(busy).await);
        let lost = |tenant: &Tenant| tenant.lost.map(|lost| (lost.after, lost.before));
        assert_eq!(lost(&done), Some((known, done.work)), "round {round}");
        assert_eq!(lost(&waits), Some((unfinished - 1, waits.work)), "round {round}");
        assert!(done.work > known + 1_000, "{done:?}");
    }
    let job = client.tenant(busy).await.job_id.to_string();
    let paused = client.jobs.get(&job).await.unwrap();
    assert!(paused.paused.as_deref().unwrap().contains("restored"), "{paused:?}");
    assert_eq!((paused.not_before, paused.lost_claims), (None, 0), "nobody claims it");
    assert!(paused.claim_token > before.claim_token + 1_000, "whoever had it has it no more");
    let untouched = client.run(busy, || panic!("no step"), || panic!("no cleanup")).await;
    assert!(matches!(untouched, Ok(Outcome::Paused { .. })), "{untouched:?}");
    resume(busy, true).await.unwrap();
    let resumed = client.tenant(busy).await;
    let job = client.jobs.get(&job).await.unwrap();
    assert_eq!(job.metadata["work"], resumed.work.to_string());
    assert!(job.metadata.contains_key(slipway_app::tenants::jobs::KEEPS), "{job:?}");
    assert_eq!((job.cancelled.as_deref(), resumed.lost), (Some("looked"), None));
    let gone = client.run(busy, || panic!("no step"), || Ok(())).await;
    assert_eq!(gone.unwrap_err().code(), "job_failed");

    let mut rule = |snapshot: &TenantSnapshot| task::migrate(snapshot);
    client.stores.kind::<Tenant>().decide(&TenantKey::Existing(ready), &mut rule).await.unwrap();
    let (store, lease) = (&client.stores.tenants, Duration::from_secs(600));
    let claimed = store.tenant_task_claim(10, lease).await.unwrap();
    let [claimed] = &claimed[..] else { panic!("{claimed:?}") };
    assert!(!store.tenant_task_wait(ready, claimed.work - 1, "late").await.unwrap());
    assert!(store.tenant_task_wait(ready, claimed.work, "ahead").await.unwrap());
    assert!(
        store.tenant_task_claim(10, Duration::ZERO).await.unwrap().is_empty(),
        "waiting_reason"
    );
    let held = client.tenant(ready).await;
    assert_eq!((held.waiting_reason.as_deref(), held.lost.is_some()), (Some("ahead"), true));
    assert!(matches!(task::health(Some(&held)), Health::Failed(_)), "a roll-out does not wait");
    resume(ready, false).await.unwrap();
    let claimed = store.tenant_task_claim(10, lease).await.unwrap();
    let [claimed] = &claimed[..] else { panic!("{claimed:?}") };
    assert_eq!(
        (claimed.lost, claimed.waiting_reason.as_deref(), claimed.failures),
        (None, None, 0)
    );
}

async fn conforms(config: StoreConfig) {
    let client = Client::new(config).await;
    a_tenant_follows_its_job_in_the_transactions_of_its_edges(&client).await;
    a_retry_takes_over_what_was_left(&client).await;
    a_retry_does_not_take_over_what_nobody_recorded(&client).await;
    a_task_is_claimed_by_a_number(&client).await;
    a_restored_database_waits_for_a_person(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_tenants() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slipway.db");
    Box::pin(conforms(StoreConfig::new(format!("sqlite:{}", file.display())))).await;
    let mut connection = sqlx::SqliteConnection::connect(file.to_str().unwrap()).await.unwrap();
    let ddl = slipway_tenants::SqliteStore::ddl("library_jobs").unwrap();
    sqlx::query(AssertSqlSafe(ddl)).execute(&mut connection).await.unwrap();
    let columns = "SELECT name || ' ' || type || ' ' || \"notnull\" || ' ' || \
         coalesce(dflt_value, '-') AS line FROM pragma_table_info($1) ORDER BY cid";
    let mut lines = async |table: &str| -> Vec<String> {
        let found = sqlx::query(columns).bind(table).fetch_all(&mut connection).await.unwrap();
        found.iter().map(|row| row.get("line")).collect()
    };
    assert_eq!(lines("tenant_jobs").await, lines("library_jobs").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_tenants() {
    let Some(server) = slipway_testkit::postgres::shared("tenants").await else { return };
    let database = server.database("tenants").await;
    Box::pin(conforms(StoreConfig::new(database.url()))).await;
    let mut connection = sqlx::PgConnection::connect(database.url()).await.unwrap();
    let ddl = slipway_tenants::PostgresStore::ddl("library_jobs").unwrap();
    sqlx::query(AssertSqlSafe(ddl)).execute(&mut connection).await.unwrap();
    let columns = "SELECT column_name || ' ' || data_type || ' ' || is_nullable || ' ' || \
         coalesce(column_default, '-') AS line FROM information_schema.columns \
         WHERE table_name = $1 ORDER BY ordinal_position";
    let mut lines = async |table: &str| -> Vec<String> {
        let found = sqlx::query(columns).bind(table).fetch_all(&mut connection).await.unwrap();
        found.iter().map(|row| row.get("line")).collect()
    };
    assert_eq!(lines("tenant_jobs").await, lines("library_jobs").await);
    let indexes = "SELECT indexname::text AS line FROM pg_indexes WHERE tablename = 'tenant_jobs'";
    let found = sqlx::query(indexes).fetch_all(&mut connection).await.unwrap();
    let found: Vec<String> = found.iter().map(|row| row.get("line")).collect();
    for index in slipway_tenants::PostgresStore::indexes("tenant_jobs").unwrap() {
        assert!(found.iter().any(|name| index.contains(name)), "{index}: {found:?}");
    }
}

/// The states of core are those of the library.
#[test]
fn core_has_the_states_of_the_library() {
    let library: Vec<_> = State::ALL.iter().map(|state| state.as_str()).collect();
    let core: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    assert_eq!(core.len(), library.len());
    assert!(core.iter().all(|state| library.contains(state)), "{core:?} {library:?}");
    assert_eq!(Step::ALL.len(), 5);
}
