//! The store on both databases: the conformance suite, and tests that need an
//! adapter: bad rows, reopening, one process per directory.

use std::time::{Duration, Instant};

use slipway_app::ports::Stores;
use slipway_app::ports::store::Error;
use slipway_app::testing;
use slipway_core::catalog::project::Project;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::operations::control::LockedControl;
use slipway_store::{DirectoryError, OpenError, StoreConfig, migrate_down_to, open};
use slipway_testkit::memory;
use slipway_testkit::network::Relay;
use slipway_testkit::postgres::TestDatabase;
use slipway_testkit::random::Random;
use sqlx::{Connection as _, Row as _};

/// Rounds of each named race; the pairs add 135 rounds to 13 times this.
const ROUNDS: u32 = 12;

struct Sqlite {
    directory: tempfile::TempDir,
}

impl Sqlite {
    fn new() -> Self {
        Self { directory: memory::tempdir().expect("a folder") }
    }

    fn config(&self) -> StoreConfig {
        StoreConfig::new(format!("sqlite:{}", self.directory.path().join("slipway.db").display()))
    }

    async fn connection(&self) -> sqlx::SqliteConnection {
        let file = self.directory.path().join("slipway.db");
        let url = format!("sqlite:{}", file.display());
        sqlx::SqliteConnection::connect(&url).await.expect("a connection")
    }

    async fn open(&self) -> Stores {
        open(self.config()).await.expect("the store opens")
    }
}

/// The number of migrations, by their scripts.
fn migrations() -> usize {
    // Relative to the package, where a test starts: a path from the build may be gone.
    let scripts = std::fs::read_dir("migrations/sqlite")
        .expect("the scripts")
        .map(|entry| entry.expect("one"));
    scripts.filter(|entry| entry.file_name().to_string_lossy().ends_with(".up.sql")).count()
}

/// A database of its own, or none if there is no PostgreSQL.
async fn postgres(test: &str) -> Option<TestDatabase> {
    let server = slipway_testkit::postgres::shared(test).await?;
    Some(server.database(test).await)
}

async fn open_postgres(database: &TestDatabase) -> Stores {
    open(StoreConfig::new(database.url())).await.expect("the store opens")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_topology() {
    let sqlite = Sqlite::new();
    testing::topology(sqlite.open().await).await;
    testing::topology_races(Sqlite::new().open().await, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_topology() {
    let Some(database) = postgres("topology").await else { return };
    testing::topology(open_postgres(&database).await).await;
    let Some(database) = postgres("topology_races").await else { return };
    testing::topology_races(open_postgres(&database).await, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_conforms() {
    let sqlite = Sqlite::new();
    Box::pin(testing::conformance(sqlite.open().await)).await;
    let mut connection = sqlite.connection().await;
    let row = sqlx::query(BOUND_KEYS).fetch_one(&mut connection).await.expect("a count");
    assert_bound_keys(row.get("found"), row.get("named"));
}

/// The keys bound to one project, and how many of them have the role that the
/// suite gives them, written so that it is no role of the whole installation.
const BOUND_KEYS: &str = "SELECT count(*) AS found, \
     count(CASE WHEN role = 'project-admin' THEN 1 END) AS named \
     FROM api_keys WHERE project_id IS NOT NULL";

fn assert_bound_keys(found: i64, named: i64) {
    assert!(found > 0 && found == named, "{named} of {found} bound keys are `project-admin`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_conforms() {
    let Some(database) = postgres("conforms").await else {
        return;
    };
    Box::pin(testing::conformance(open_postgres(&database).await)).await;
    let mut connection = sqlx::PgConnection::connect(database.url()).await.expect("a connection");
    let row = sqlx::query(BOUND_KEYS).fetch_one(&mut connection).await.expect("a count");
    assert_bound_keys(row.get("found"), row.get("named"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_applies_files() {
    let sqlite = Sqlite::new();
    Box::pin(testing::files(sqlite.open().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_applies_files() {
    let Some(database) = postgres("files").await else {
        return;
    };
    Box::pin(testing::files(open_postgres(&database).await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_keeps_the_fleet() {
    let sqlite = Sqlite::new();
    Box::pin(testing::fleet(sqlite.open().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_keeps_the_fleet() {
    let Some(database) = postgres("fleet").await else {
        return;
    };
    Box::pin(testing::fleet(open_postgres(&database).await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_bears_races_of_the_fleet() {
    let sqlite = Sqlite::new();
    Box::pin(testing::fleet_races(sqlite.open().await, ROUNDS)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_bears_races_of_the_fleet() {
    let Some(database) = postgres("fleet_races").await else {
        return;
    };
    Box::pin(testing::fleet_races(open_postgres(&database).await, ROUNDS)).await;
}

/// Sequences of the model of Fleet; a failure names the seed. `SLIPWAY_FLEET_SEED` is the first
/// one, `SLIPWAY_FLEET_SEQUENCES` how many follow each other.
const FLEETS: u64 = 6;

async fn the_fleet_is_as_the_model_says(stores: Stores) {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let begin = given("SLIPWAY_FLEET_SEED").unwrap_or(1);
    let count = given("SLIPWAY_FLEET_SEQUENCES").unwrap_or(FLEETS);
    let seeds: Vec<u64> = (begin..begin + count).collect();
    let dice = |seed| {
        let mut random = Random::new(seed);
        Box::new(move |below| random.between(0, below)) as testing::Dice
    };
    Box::pin(testing::fleet_model(stores, &seeds, dice)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_brings_clusters_to_what_is_desired() {
    let sqlite = Sqlite::new();
    the_fleet_is_as_the_model_says(sqlite.open().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_brings_clusters_to_what_is_desired() {
    let Some(database) = postgres("fleet_model").await else {
        return;
    };
    the_fleet_is_as_the_model_says(open_postgres(&database).await).await;
}

/// Sequences of the model of files; a failure names the seed.
const FOLDERS: u64 = 3;

async fn files_are_as_the_model_says(stores: Stores) {
    let dice = |seed| {
        let mut random = Random::new(seed);
        Box::new(move |below| random.between(0, below)) as testing::Dice
    };
    Box::pin(testing::files_model(stores, (1..=FOLDERS).map(dice))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_ends_with_what_the_folders_say() {
    let sqlite = Sqlite::new();
    files_are_as_the_model_says(sqlite.open().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_ends_with_what_the_folders_say() {
    let Some(database) = postgres("folders").await else {
        return;
    };
    files_are_as_the_model_says(open_postgres(&database).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_bears_races() {
    let sqlite = Sqlite::new();
    Box::pin(testing::races(sqlite.open().await, ROUNDS)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_bears_races() {
    let Some(database) = postgres("races").await else {
        return;
    };
    Box::pin(testing::races(open_postgres(&database).await, ROUNDS)).await;
}

/// Sequences of each run, from the seed 1 on; enough that every operation and every refusal
/// occurs.
const SEQUENCES: u64 = 9;

/// A failure names the seed; these repeat it: `SLIPWAY_DELETION_SEED` is the first seed,
/// `SLIPWAY_DELETION_SEQUENCES` how many follow each other.
async fn deletions_are_as_the_model_says(stores: Stores) {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (first, count) = (given("SLIPWAY_DELETION_SEED"), given("SLIPWAY_DELETION_SEQUENCES"));
    let begin = first.unwrap_or(1);
    let seeds: Vec<u64> = (begin..begin + count.unwrap_or(SEQUENCES)).collect();
    let dice = |seed| {
        let mut random = Random::new(seed);
        Box::new(move |below| random.between(0, below)) as testing::Dice
    };
    let coverage = testing::deletion_model(stores, &seeds, dice).await;
    if first.is_none() && count.is_none() {
        coverage.assert_complete();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_deletes_as_the_model_says() {
    let sqlite = Sqlite::new();
    Box::pin(deletions_are_as_the_model_says(sqlite.open().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_deletes_as_the_model_says() {
    let Some(database) = postgres("deletion_model").await else {
        return;
    };
    Box::pin(deletions_are_as_the_model_says(open_postgres(&database).await)).await;
}

/// Deletion requested while Pending: a contradiction that no rule writes.
const SPOIL: &str =
    "UPDATE provisioned_resources SET deletion_requested_at = created_at WHERE id = $1";

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_isolates_a_bad_row() {
    let sqlite = Sqlite::new();
    let store = sqlite.open().await;
    testing::bad_row(store, async |attempt| {
        let mut connection = sqlite.connection().await;
        let query = sqlx::query(SPOIL).bind(attempt.as_uuid());
        query.execute(&mut connection).await.expect("the row is spoiled");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_isolates_a_bad_row() {
    let Some(database) = postgres("bad_row").await else {
        return;
    };
    testing::bad_row(open_postgres(&database).await, async |attempt| {
        let mut connection =
            sqlx::PgConnection::connect(database.url()).await.expect("a connection");
        let query = sqlx::query(SPOIL).bind(attempt.as_uuid());
        query.execute(&mut connection).await.expect("the row is spoiled");
    })
    .await;
}

/// The statement that spoils what a deregistration needs, and the id in it.
fn spoiled_seam(seam: testing::BadSeam, node: &'static str) -> (&'static str, uuid::Uuid) {
    match seam {
        testing::BadSeam::Token(id) => {
            ("UPDATE bootstrap_tokens SET kind = 'gone' WHERE id = $1", id.as_uuid())
        }
        testing::BadSeam::Node(id) => (node, id.as_uuid()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_names_the_seam_of_a_deregistration() {
    let sqlite = Sqlite::new();
    testing::bad_seams(sqlite.open().await, async |seam| {
        let (statement, id) =
            spoiled_seam(seam, "UPDATE nodes SET capabilities = '7' WHERE id = $1");
        let mut connection = sqlite.connection().await;
        sqlx::query(statement).bind(id).execute(&mut connection).await.expect("it is spoiled");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_names_the_seam_of_a_deregistration() {
    let Some(database) = postgres("bad_seams").await else {
        return;
    };
    testing::bad_seams(open_postgres(&database).await, async |seam| {
        let (statement, id) =
            spoiled_seam(seam, "UPDATE nodes SET capabilities = '7'::jsonb WHERE id = $1");
        let mut connection =
            sqlx::PgConnection::connect(database.url()).await.expect("a connection");
        sqlx::query(statement).bind(id).execute(&mut connection).await.expect("it is spoiled");
    })
    .await;
}

/// The statement that spoils the outbox; only a payload differs between the databases.
fn spoiling(spoil: testing::Spoil, payload: &str) -> String {
    match spoil {
        testing::Spoil::Payload(id) => format!(
            "UPDATE outbox_events SET payload = '{payload}' WHERE lower(hex_of(id)) = '{}'",
            id.as_uuid().simple()
        ),
        testing::Spoil::Remove(id) => format!(
            "DELETE FROM outbox_events WHERE lower(hex_of(id)) = '{}'",
            id.as_uuid().simple()
        ),
        testing::Spoil::RemoveUnpublished => {
            "DELETE FROM outbox_events WHERE seq = (SELECT min(seq) FROM outbox_pending)".to_owned()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_passes_an_event_that_cannot_be_read() {
    let sqlite = Sqlite::new();
    testing::bad_event(sqlite.open().await, async |spoil| {
        let statement = spoiling(spoil, "{broken").replace("hex_of", "hex");
        let mut connection = sqlite.connection().await;
        let query = sqlx::raw_sql(sqlx::AssertSqlSafe(statement));
        let done = query.execute(&mut connection).await.expect("the outbox is spoiled");
        assert_eq!(done.rows_affected(), 1);
    })
    .await;
}

/// Every `jsonb` is valid JSON; a number can still be too large for us.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_passes_an_event_that_cannot_be_read() {
    let Some(database) = postgres("bad_event").await else {
        return;
    };
    testing::bad_event(open_postgres(&database).await, async |spoil| {
        let statement =
            spoiling(spoil, r#"{"n": 1e999}"#).replace("hex_of(id)", "replace(id::text, '-', '')");
        let mut connection =
            sqlx::PgConnection::connect(database.url()).await.expect("a connection");
        let query = sqlx::raw_sql(sqlx::AssertSqlSafe(statement));
        let done = query.execute(&mut connection).await.expect("the outbox is spoiled");
        assert_eq!(done.rows_affected(), 1);
    })
    .await;
}

/// Makes the key expired.
const EXPIRE: &str =
    "UPDATE idempotency_keys SET expires_at = created_at WHERE idempotency_key = $1";

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_forgets_an_expired_key() {
    let sqlite = Sqlite::new();
    testing::expired_key(sqlite.open().await, async |key| {
        let mut connection = sqlite.connection().await;
        sqlx::query(EXPIRE).bind(key).execute(&mut connection).await.expect("the key expires");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_forgets_an_expired_key() {
    let Some(database) = postgres("expired_key").await else {
        return;
    };
    testing::expired_key(open_postgres(&database).await, async |key| {
        let mut connection =
            sqlx::PgConnection::connect(database.url()).await.expect("a connection");
        sqlx::query(EXPIRE).bind(key).execute(&mut connection).await.expect("the key expires");
    })
    .await;
}

/// An attempt without a partition, which no loop would claim.
const WITHOUT_PARTITION: &str = "INSERT INTO provisioned_resources (id, resource_id, project_id, \
     blueprint_version_id, cloud_credential_id, attempt, status, xr_name, parameter_values) \
     VALUES ($1, $1, $1, $1, $1, 1, 'Pending', 'x', '{}')";

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_refuses_an_attempt_without_a_partition() {
    let sqlite = Sqlite::new();
    let _store = sqlite.open().await;
    let query = sqlx::query(WITHOUT_PARTITION).bind(uuid::Uuid::nil());
    let refused = query.execute(&mut sqlite.connection().await).await;
    let refused = refused.expect_err("a row without a partition").to_string();
    assert!(refused.contains("NOT NULL") && refused.contains("partition"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_refuses_an_attempt_without_a_partition() {
    let Some(database) = postgres("without_partition").await else {
        return;
    };
    let _store = open_postgres(&database).await;
    let mut connection = sqlx::PgConnection::connect(database.url()).await.expect("a connection");
    let query = sqlx::query(WITHOUT_PARTITION).bind(uuid::Uuid::nil());
    let refused = query.execute(&mut connection).await;
    let refused = refused.expect_err("a row without a partition").to_string();
    assert!(refused.contains("not-null") && refused.contains("partition"), "{refused}");
}

#[tokio::test]
async fn sqlite_keeps_what_it_was_given_and_its_directory_to_itself() {
    let sqlite = Sqlite::new();
    let store = sqlite.open().await;
    let installation = store.operations.installation().await.expect("an installation");

    let second = open(sqlite.config()).await.expect_err("the directory is taken");
    let OpenError::Directory(DirectoryError::DataDirectoryInUse { directory }) = &second else {
        panic!("{second:?}");
    };
    assert_eq!(directory, sqlite.directory.path());
    let down = migrate_down_to(sqlite.config(), 0).await.expect_err("somebody uses it");
    assert!(matches!(down, OpenError::Directory(_)), "{down}");

    drop(store);
    let store = sqlite.open().await;
    assert_eq!(store.operations.installation().await.expect("an installation"), installation);
    drop(store);
    let taken_back = migrate_down_to(sqlite.config(), 0).await.expect("a way back");
    assert_eq!(taken_back, migrations(), "every migration is taken back");
    assert_eq!(migrate_down_to(sqlite.config(), 0).await.expect("nothing is left"), 0);
}

#[tokio::test]
async fn postgres_keeps_what_it_was_given_and_serves_many() {
    let Some(database) = postgres("reopen").await else {
        return;
    };
    let (first, second) = (open_postgres(&database).await, open_postgres(&database).await);
    let installation = first.operations.installation().await.expect("an installation");
    assert_eq!(second.operations.installation().await.expect("an installation"), installation);
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_refused_at_once() {
    let Some(database) = postgres("missing").await else {
        return;
    };
    let url = database.url().replace(database.name(), "no_such_database");
    let error = open(StoreConfig::new(url)).await.expect_err("there is none");
    assert!(matches!(error, OpenError::DatabaseRefused { .. }), "{error}");
    assert!(error.to_string().contains("no_such_database"), "{error}");
}

/// A store whose connections go through a relay, which can swallow them.
async fn open_relayed(database: &TestDatabase) -> (Relay, Stores) {
    // postgres://postgres@127.0.0.1:PORT/NAME
    let server = database.url().rsplit('@').next().and_then(|server| server.split_once('/'));
    let (address, name) = server.expect("an address and a name");
    let relay = Relay::to(address.parse().expect("an address")).await.expect("a relay");
    let mut config = StoreConfig::new(format!("postgres://postgres@{}/{name}", relay.address()));
    config.statement_limit = Duration::from_secs(1);
    let stores = open(config).await.expect("the store opens");
    (relay, stores)
}

/// The server stops answering without closing connections. Every operation of
/// the store ends within its limit, whichever method of the gateway it uses.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_postgres_stalls_no_operation() {
    let Some(database) = postgres("silent").await else {
        return;
    };
    let (relay, stores) = open_relayed(&database).await;
    let attempts = [ProvisionedResourceId::new(uuid::Uuid::from_u128(1))];
    relay.swallow();
    let begun = Instant::now();
    let mut nothing = |_: &LockedControl| Ok(None);
    let answers = tokio::join!(
        stores.operations.control_fetch(),
        stores.kind::<Project>().fetch("default", false),
        stores.broker.attempt_load(&attempts),
        stores.operations.task_wake("leaks"),
        stores.broker.attempt_wake(&attempts),
        stores.operations.control_decide(&mut nothing),
    );
    let unavailable = [
        matches!(answers.0, Err(Error::Unavailable(_))),
        matches!(answers.1, Err(Error::Unavailable(_))),
        matches!(answers.2, Err(Error::Unavailable(_))),
        matches!(answers.3, Err(Error::Unavailable(_))),
        matches!(answers.4, Err(Error::Unavailable(_))),
        matches!(answers.5, Err(Error::Unavailable(_))),
    ];
    assert_eq!(unavailable, [true; 6]);
    // The limit of a statement (1 s) and five seconds, with a margin.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    relay.restore();
    // Connections that were just returned to the pool wait there for the answer
    // to its ping, and occupy it. So every operation may have waited for a
    // connection in vain, which proves nothing; the first ping replaces the pool.
    let first = stores.operations.ping().await;
    let again = stores.operations.ping().await;
    assert!(again.is_ok(), "new connections are made: {first:?}, {again:?}");
}

/// The same for connections that are idle when the server stops answering: the
/// first operation that meets one of them replaces all.
#[tokio::test(flavor = "multi_thread")]
async fn silent_idle_connections_are_replaced_at_once() {
    let Some(database) = postgres("silent_idle").await else {
        return;
    };
    let (relay, stores) = open_relayed(&database).await;
    // Longer than the pool uses a connection without a ping.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    relay.swallow();
    let answer = stores.operations.control_fetch().await;
    assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    relay.restore();
    stores.operations.ping().await.expect("new connections are made");
}
