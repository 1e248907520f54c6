//! A target of its own for a test, with folders of migrations and seeds beside it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use slipway_tenants::targets::{
    self, Assignment, Engine, Fence, Journal, LocalResolver, Reference, SecretSink, Settings,
    Target, TenantNames, Work,
};
use slipway_tenants::{
    Error, Executor, JobStore, MemoryStore, NewJob, Options, Outcome, StepError, Steps,
};
use slipway_testkit::memory;
use slipway_testkit::postgres::TestDatabase;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

/// A target and the folders of its settings. Drop removes all of it.
pub(crate) struct Site {
    pub(crate) settings: Settings,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) database: Option<TestDatabase>,
    pub(crate) store: Arc<dyn JobStore>,
}

/// Records what is made, and fails when its time has come.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) made: Mutex<Vec<String>>,
    /// After how many further entries every call fails.
    pub(crate) fails_after: Mutex<Option<usize>>,
}

impl Notes {
    fn note(&self, change: impl FnOnce(&mut Vec<String>)) -> Result<(), StepError> {
        let mut left = self.fails_after.lock().expect("nobody panics inside");
        match left.as_mut() {
            Some(0) => return Err(StepError::transient("the worker died")),
            Some(left) => *left -= 1,
            None => {}
        }
        change(&mut self.made.lock().expect("nobody panics inside"));
        Ok(())
    }

    pub(crate) fn made(&self) -> Vec<String> {
        self.made.lock().expect("nobody panics inside").clone()
    }
}

#[async_trait::async_trait]
impl Journal for Notes {
    fn has(&self, object: &str) -> bool {
        self.made().iter().any(|made| made == object)
    }

    async fn making(&self, object: &str) -> Result<(), StepError> {
        if self.has(object) {
            return Ok(());
        }
        self.note(|made| made.push(object.to_owned()))
    }

    async fn removed(&self, object: &str) -> Result<(), StepError> {
        self.note(|made| made.retain(|made| made != object))
    }
}

/// Both engines; PostgreSQL only where there is one.
pub(crate) async fn sites(test: &str) -> Vec<Site> {
    let mut sites = vec![sqlite()];
    sites.extend(postgres(test).await);
    sites
}

pub(crate) fn sqlite() -> Site {
    let folder = memory::tempdir().expect("a folder");
    let tenants = folder.path().join("tenants");
    Site::new(Engine::Sqlite, folder, tenants.to_str().expect("a path"), "", None)
}

/// A database whose provisioner is no superuser. Roles belong to the whole server, so every
/// test has a prefix of its own.
pub(crate) async fn postgres(test: &str) -> Option<Site> {
    let server = slipway_testkit::postgres::shared(test).await?;
    let database = server.database(&format!("t_{test}")).await;
    let name = database.name().to_owned();
    database
        .execute(&[
            &format!("CREATE ROLE {name} LOGIN CREATEROLE PASSWORD 'provisioner'"),
            &format!("GRANT CREATE ON DATABASE {name} TO {name}"),
        ])
        .await;
    let (scheme, rest) = database.url().split_once("://").expect("a url");
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let dsn = format!("{scheme}://{name}:provisioner@{host}");
    let folder = memory::tempdir().expect("a folder");
    let number = name.rsplit('_').take(2).collect::<Vec<_>>().join("_");
    let prefix = format!("p{number}_");
    Some(Site::new(Engine::Postgres, folder, &dsn, &prefix, Some(database)))
}

impl Site {
    fn new(
        engine: Engine,
        folder: tempfile::TempDir,
        target: &str,
        prefix: &str,
        database: Option<TestDatabase>,
    ) -> Self {
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("target"), target).expect("a file");
        for name in ["migrations", "seeds"] {
            std::fs::create_dir(path(name)).expect("a folder");
        }
        let sink =
            SecretSink { directory: Some(path("secrets")), command: None, timeout_seconds: 5 };
        let settings = Settings {
            prefix: prefix.to_owned(),
            migrations: Some(path("migrations")),
            seeds: Some(path("seeds")),
            secrets: database.is_some().then_some(sink),
            lock_timeout_ms: 1_000,
            ..Settings::new(engine, Reference::File(path("target")))
        };
        Self { settings, folder, database, store: Arc::new(MemoryStore::new()) }
    }

    pub(crate) async fn target(&self) -> Arc<dyn Target> {
        targets::open(&self.settings, &LocalResolver).await.expect("a target")
    }

    pub(crate) fn names(&self, tenant: &str) -> TenantNames {
        TenantNames::of(&self.settings, tenant).expect("names")
    }

    pub(crate) fn migration(&self, file: &str, sql: &str) {
        std::fs::write(self.folder.path().join("migrations").join(file), sql).expect("a file");
    }

    pub(crate) fn seed(&self, file: &str, sql: &str) {
        std::fs::write(self.folder.path().join("seeds").join(file), sql).expect("a file");
    }

    /// Two tables and a row, in any SQL.
    pub(crate) fn usual_files(&self) {
        self.migration(
            "V1__orders.sql",
            "CREATE TABLE orders (id integer PRIMARY KEY, note text);",
        );
        self.migration(
            "V1.1__items.sql",
            "CREATE TABLE items (id integer PRIMARY KEY, orders integer REFERENCES orders (id));\n\
             CREATE INDEX items_orders ON items (orders); -- with ; in it",
        );
        self.seed("a.sql", "INSERT INTO orders VALUES (1, 'first; still first');");
    }

    pub(crate) async fn steps(&self) -> Steps {
        let (target, settings) = (self.target().await, Arc::new(self.settings.clone()));
        targets::steps(move |job| {
            let (target, settings) = (Arc::clone(&target), Arc::clone(&settings));
            async move {
                let names = TenantNames::of(&settings, &job.tenant_id)?;
                Ok(Assignment { target, settings, names, work: 1, lost: None })
            }
        })
    }

    pub(crate) async fn provision(&self, job: &str, tenant: &str) -> Result<Outcome, Error> {
        self.store.upsert(&NewJob::new(job, tenant)).await.expect("a job");
        self.executor().await.run(job).await
    }

    pub(crate) async fn executor(&self) -> Executor {
        self.executor_with(slipway_tenants::testing::quick()).await
    }

    pub(crate) async fn executor_with(&self, options: Options) -> Executor {
        let builder = Executor::builder().store(Arc::clone(&self.store)).options(options);
        builder.steps(self.steps().await).build().expect("an executor")
    }

    /// The numbers of the first column, read in the tenant's schema by a superuser, or in its
    /// file.
    pub(crate) async fn numbers(&self, tenant: &str, sql: &str) -> Vec<i64> {
        let names = self.names(tenant);
        match &self.database {
            Some(database) => {
                let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
                let path = format!("SET search_path = \"{}\"", names.schema());
                sqlx::raw_sql(AssertSqlSafe(path)).execute(&mut raw).await.expect("a path");
                let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut raw).await;
                rows.expect(sql).iter().map(|row| row.get(0)).collect()
            }
            None => {
                let url = format!("sqlite:{}", self.file(tenant).display());
                let mut raw = SqliteConnection::connect(&url).await.expect("a connection");
                let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut raw).await;
                rows.expect(sql).iter().map(|row| row.get(0)).collect()
            }
        }
    }

    pub(crate) async fn number(&self, tenant: &str, sql: &str) -> i64 {
        self.numbers(tenant, sql).await[0]
    }

    pub(crate) fn file(&self, tenant: &str) -> PathBuf {
        self.folder.path().join("tenants").join(self.names(tenant).file())
    }

    pub(crate) fn secret(&self, user: &str) -> Option<serde_json::Value> {
        let file = self.folder.path().join("secrets").join(format!("{user}.json"));
        let text = std::fs::read_to_string(file).ok()?;
        Some(serde_json::from_str(&text).expect("JSON"))
    }

    /// What is left of a tenant.
    pub(crate) async fn objects(&self, tenant: &str) -> Vec<String> {
        let names = self.names(tenant);
        let Some(database) = &self.database else {
            return left_in(&self.folder.path().join("tenants"), names.schema());
        };
        let mut raw = PgConnection::connect(database.url()).await.expect("a connection");
        let sql = "SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname = $1 UNION ALL \
                   SELECT 'role ' || rolname FROM pg_roles WHERE rolname IN ($2, $3) ORDER BY 1";
        let query = sqlx::query_scalar(sql).bind(names.schema());
        let query = query.bind(names.migrator()).bind(names.runtime());
        let mut found: Vec<String> = query.fetch_all(&mut raw).await.expect("objects");
        found.extend(left_in(&self.folder.path().join("secrets"), names.schema()));
        found
    }
}

fn left_in(folder: &Path, name: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    files.retain(|file| file.contains(name));
    files.sort();
    files
}

/// One call with a fence.
pub(crate) fn work<'a>(names: &'a TenantNames, fence: (i64, i64), journal: &'a Notes) -> Work<'a> {
    Work { names, fence: Fence { work: fence.0, token: fence.1 }, lost: None, journal }
}
