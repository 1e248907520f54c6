//! Migrations on real databases: twice, up and down and up, many starts at
//! once, refusals, and the same schema on both databases.

use std::collections::BTreeSet;
use std::sync::Arc;

use sqlx::{ConnectOptions as _, Row as _};
use tokio::sync::Barrier;

use crate::config::{StoreConfig, Target};
use crate::micros::Micros;
use crate::migration::{
    FIRST_BEFORE_0_1_0, MIGRATIONS, Migration, MigrationError, Scripts, latest_version,
};
use crate::{postgres, sqlite};

/// The schema of a database, one fact per line, in terms that both share.
type Schema = BTreeSet<String>;

const STARTS: usize = 16;

fn mk_sqlite() -> (tempfile::TempDir, sqlx::sqlite::SqliteConnectOptions) {
    let directory = tempfile::tempdir().unwrap();
    let options = sqlite::connect::options(&directory.path().join("slipway.db"));
    (directory, options)
}

async fn sqlite_connection(options: &sqlx::sqlite::SqliteConnectOptions) -> sqlx::SqliteConnection {
    sqlite::connect::connect(options).await.unwrap()
}

async fn postgres_connection(options: &sqlx::postgres::PgConnectOptions) -> sqlx::PgConnection {
    options.connect().await.unwrap()
}

/// Provides a PostgreSQL database of its own, or returns from the test.
macro_rules! postgres_or_return {
    ($name:literal) => {{
        let Some(server) = slipway_testkit::postgres::shared($name).await else {
            return;
        };
        let database = server.database($name).await;
        let options: sqlx::postgres::PgConnectOptions = database.url().parse().unwrap();
        (database, options)
    }};
}

macro_rules! up_down_and_up_again {
    ($backend:ident, $connection:ident, $schema:path) => {{
        use $backend::shared::migrate::{migrate_down_to, migrate_up};
        let all = MIGRATIONS.len();
        assert_eq!(migrate_up(&mut $connection).await.unwrap(), all);
        assert_eq!(migrate_up(&mut $connection).await.unwrap(), 0, "the second time does nothing");
        let schema = $schema(&mut $connection).await;
        assert_eq!(migrate_down_to(&mut $connection, 0).await.unwrap(), all);
        let empty = $schema(&mut $connection).await;
        assert!(empty.is_empty(), "left behind by the way down: {empty:#?}");
        assert_eq!(migrate_up(&mut $connection).await.unwrap(), all);
        assert_eq!($schema(&mut $connection).await, schema);
        schema
    }};
}

macro_rules! many_starts_at_once {
    ($backend:ident, $options:ident, $connect:ident) => {{
        let barrier = Arc::new(Barrier::new(STARTS));
        let starts = (0..STARTS).map(|_| {
            let (options, barrier) = ($options.clone(), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                let mut connection = $connect(&options).await;
                $backend::shared::migrate::migrate_up(&mut connection).await
            })
        });
        let mut applied = 0;
        for start in futures::future::join_all(starts).await {
            applied += start.unwrap().unwrap();
        }
        assert_eq!(applied, MIGRATIONS.len(), "each migration ran exactly once");
    }};
}

macro_rules! refusals {
    ($backend:ident, $connection:ident) => {{
        use $backend::shared::migrate::{migrate_down_to, migrate_up};
        migrate_up(&mut $connection).await.unwrap();
        let newer = latest_version() + 1;

        // A newer binary migrated, and this one can still read.
        insert_migration!($connection, newer, latest_version());
        assert_eq!(migrate_up(&mut $connection).await.unwrap(), 0);
        let refused = migrate_down_to(&mut $connection, 0).await.unwrap_err();
        assert!(
            matches!(refused, MigrationError::UnknownMigration { version, .. } if version == newer)
        );

        // A newer binary migrated, and this one cannot read any more.
        insert_migration!($connection, newer + 1, newer + 1);
        let refused = migrate_up(&mut $connection).await.unwrap_err();
        assert!(matches!(
            refused,
            MigrationError::DatabaseNeedsNewerReader { needed, .. } if needed == newer + 1
        ));
        assert!(refused.to_string().contains(&(newer + 1).to_string()), "{refused}");

        sqlx::query("DELETE FROM schema_migrations WHERE version >= $1")
            .bind(newer)
            .execute(&mut $connection)
            .await
            .unwrap();
        sqlx::query("UPDATE schema_migrations SET checksum = 'other' WHERE version = 1")
            .execute(&mut $connection)
            .await
            .unwrap();
        let refused = migrate_up(&mut $connection).await.unwrap_err();
        assert!(matches!(refused, MigrationError::ChecksumChanged { version: 1, .. }));
    }};
}

/// A database of a development version before 0.1.0: refused by name, unchanged, also
/// where its numbers, readers and checksums would be refused for another reason.
macro_rules! refuses_a_database_from_before {
    ($backend:ident, $connection:ident, $schema:path) => {{
        use $backend::shared::migrate::{migrate_down_to, migrate_up};
        let make = sqlx::raw_sql($backend::SCHEMA_MIGRATIONS);
        make.execute(&mut $connection).await.unwrap();
        for (version, name) in [(1, FIRST_BEFORE_0_1_0), (2, "lean_attempts"), (99, "definitions")]
        {
            sqlx::query(
                "INSERT INTO schema_migrations (version, name, checksum, min_reader) \
                 VALUES ($1, $2, 'x', $1)",
            )
            .bind(i64::from(version))
            .bind(name)
            .execute(&mut $connection)
            .await
            .unwrap();
        }
        let up = migrate_up(&mut $connection).await.unwrap_err();
        let down = migrate_down_to(&mut $connection, 0).await.unwrap_err();
        for refused in [up, down] {
            assert!(matches!(refused, MigrationError::MadeBeforeFirstVersion { .. }), "{refused}");
            assert_eq!(refused.refusal_code(), Some("database_too_old"));
            let text = refused.to_string();
            for part in ["before 0.1.0", FIRST_BEFORE_0_1_0, "export", "empty database"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        assert_eq!($schema(&mut $connection).await, Schema::new(), "nothing was changed");
    }};
}

macro_rules! insert_migration {
    ($connection:ident, $version:expr, $min_reader:expr) => {
        sqlx::query(
            "INSERT INTO schema_migrations (version, name, checksum, min_reader) \
             VALUES ($1, 'from_the_future', 'x', $2)",
        )
        .bind($version)
        .bind($min_reader)
        .execute(&mut $connection)
        .await
        .unwrap()
    };
}

/// The version before the table of withdrawn keys.
const BEFORE_WITHDRAWN_KEYS: i64 = 8;

/// Keys of a version that knew no withdrawn texts: the hash of the text, that of the text
/// before, and whether the key is revoked.
const KEYS_BEFORE: [(&str, Option<&str>, bool); 4] =
    [("A", None, false), ("B", Some("b"), false), ("C", Some("c"), true), ("D", None, true)];

/// What the rows know of earlier texts is withdrawn; texts in use are not.
macro_rules! withdraws_what_old_keys_know {
    ($backend:ident, $connection:ident) => {{
        use $backend::shared::migrate::{migrate_down_to, migrate_up};
        migrate_up(&mut $connection).await.unwrap();
        migrate_down_to(&mut $connection, BEFORE_WITHDRAWN_KEYS).await.unwrap();
        for (id, (text, previous, revoked)) in (1..).zip(KEYS_BEFORE) {
            sqlx::query(
                "INSERT INTO api_keys (id, name, short, hash, previous_hash, role, revoked_at) \
                 VALUES ($1, $2, $2, $3, $4, 'admin', $5)",
            )
            .bind(uuid::Uuid::from_u128(id))
            .bind(text)
            .bind(text.as_bytes())
            .bind(previous.map(str::as_bytes))
            .bind(revoked.then_some(Micros::from(slipway_core::Timestamp::from_micros(1))))
            .execute(&mut $connection)
            .await
            .unwrap();
        }
        migrate_up(&mut $connection).await.unwrap();
        let rows = sqlx::query("SELECT hash FROM withdrawn_keys ORDER BY hash");
        let rows = rows.fetch_all(&mut $connection).await.unwrap();
        let found: Vec<_> = rows.iter().map(|row| row.get::<Vec<u8>, _>("hash")).collect();
        assert_eq!(found, [b"C", b"D", b"b", b"c"]);
    }};
}

#[tokio::test]
async fn sqlite_withdraws_what_old_keys_know() {
    let (_directory, options) = mk_sqlite();
    let mut connection = sqlite_connection(&options).await;
    withdraws_what_old_keys_know!(sqlite, connection);
}

#[tokio::test]
async fn postgres_withdraws_what_old_keys_know() {
    let (_database, options) = postgres_or_return!("migrate_withdrawn_keys");
    let mut connection = postgres_connection(&options).await;
    withdraws_what_old_keys_know!(postgres, connection);
}

#[tokio::test]
async fn sqlite_goes_up_down_and_up_again() {
    let (_directory, options) = mk_sqlite();
    let mut connection = sqlite_connection(&options).await;
    let schema = up_down_and_up_again!(sqlite, connection, sqlite_schema);
    assert!(!schema.is_empty());
}

#[tokio::test]
async fn postgres_goes_up_down_and_up_again() {
    let (_database, options) = postgres_or_return!("migrate_up_down_up");
    let mut connection = postgres_connection(&options).await;
    let schema = up_down_and_up_again!(postgres, connection, postgres_schema);
    assert!(!schema.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_bears_many_starts_at_once() {
    let (_directory, options) = mk_sqlite();
    many_starts_at_once!(sqlite, options, sqlite_connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_bears_many_starts_at_once() {
    let (_database, options) = postgres_or_return!("migrate_many_starts");
    many_starts_at_once!(postgres, options, postgres_connection);
}

#[tokio::test]
async fn sqlite_refuses_what_it_cannot_read() {
    let (_directory, options) = mk_sqlite();
    let mut connection = sqlite_connection(&options).await;
    refusals!(sqlite, connection);
}

#[tokio::test]
async fn postgres_refuses_what_it_cannot_read() {
    let (_database, options) = postgres_or_return!("migrate_refusals");
    let mut connection = postgres_connection(&options).await;
    refusals!(postgres, connection);
}

#[tokio::test]
async fn sqlite_refuses_a_database_from_before_the_first_version() {
    let (_directory, options) = mk_sqlite();
    let mut connection = sqlite_connection(&options).await;
    refuses_a_database_from_before!(sqlite, connection, sqlite_schema);
}

#[tokio::test]
async fn postgres_refuses_a_database_from_before_the_first_version() {
    let (_database, options) = postgres_or_return!("migrate_from_before");
    let mut connection = postgres_connection(&options).await;
    refuses_a_database_from_before!(postgres, connection, postgres_schema);
}

/// A database from before is not backed up by a binary that could not restore it,
/// and a backup from before is refused before a restore touches anything.
#[tokio::test]
async fn a_backup_from_before_the_first_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (file, into) = (directory.path().join("slipway.db"), directory.path().join("backup"));
    drop(crate::open(StoreConfig::new(format!("sqlite:{}", file.display()))).await.unwrap());
    std::fs::File::create(&into).unwrap();
    crate::backup(&file, &into, "0.1.0", &[]).await.unwrap();
    crate::backup_check(&into).await.unwrap();
    for made_before in [&file, &into] {
        let mut connection = sqlite_connection(&sqlite::connect::options(made_before)).await;
        sqlx::query("UPDATE schema_migrations SET name = $1 WHERE version = 1")
            .bind(FIRST_BEFORE_0_1_0)
            .execute(&mut connection)
            .await
            .unwrap();
        sqlx::Connection::close(connection).await.unwrap();
    }
    let refused = crate::backup_check(&into).await.unwrap_err();
    assert_eq!(refused.code(), "database_too_old", "{refused}");
    std::fs::File::create(&into).unwrap();
    let refused = crate::backup(&file, &into, "0.1.0", &[]).await.unwrap_err();
    assert_eq!(refused.code(), "database_too_old", "{refused}");
}

/// A session that hangs ends by itself, and the isolation level is pinned.
#[tokio::test]
async fn postgres_sessions_have_limits() {
    let (database, _) = postgres_or_return!("session_limits");
    let config = StoreConfig::new(database.url());
    let Ok(Target::Postgres(options)) = config.target() else { panic!("a PostgreSQL URL") };
    async fn show(
        connection: &mut sqlx::PgConnection,
        setting: &str,
    ) -> Result<String, sqlx::Error> {
        let row = sqlx::query("SELECT current_setting($1) AS value").bind(setting);
        row.fetch_one(connection).await?.try_get("value")
    }
    let (connect, statement) = (config.connect_limit, config.statement_limit);
    let backend = postgres::Backend::open(*options, 2, connect, statement).await.unwrap();
    for (setting, expected) in [
        ("statement_timeout", "30s"),
        ("lock_timeout", "10s"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("transaction_isolation", "read committed"),
    ] {
        let value = backend.database.read(setting, show).await.unwrap();
        assert_eq!(value, expected, "{setting}");
    }
}

/// Tables, columns and indexes are the same on both backends.
#[tokio::test]
async fn both_databases_have_the_same_schema() {
    let (_database, options) = postgres_or_return!("migrate_same_schema");
    let mut postgres = postgres_connection(&options).await;
    postgres::shared::migrate::migrate_up(&mut postgres).await.unwrap();
    let (_directory, options) = mk_sqlite();
    let mut sqlite = sqlite_connection(&options).await;
    sqlite::shared::migrate::migrate_up(&mut sqlite).await.unwrap();

    let (postgres, sqlite) =
        (postgres_schema(&mut postgres).await, sqlite_schema(&mut sqlite).await);
    let only_postgres: Vec<_> = postgres.difference(&sqlite).collect();
    let only_sqlite: Vec<_> = sqlite.difference(&postgres).collect();
    assert!(
        only_postgres.is_empty() && only_sqlite.is_empty(),
        "only in PostgreSQL: {only_postgres:#?}\nonly in SQLite: {only_sqlite:#?}"
    );
}

/// Each closed set is the same in core and in both scripts.
#[test]
fn closed_sets_are_the_same_in_core_and_in_the_schema() {
    use slipway_core::deletion::record::DeletionState;
    use slipway_core::placement::definitions::DefinitionPhase;
    use slipway_core::placement::namespace::NamespacePhase;

    let sets: [(&str, Vec<&str>); 4] = [
        (
            "provisioned_resources_status_check CHECK (status IN (",
            slipway_core::Phase::ALL.iter().map(|item| item.as_str()).collect(),
        ),
        (
            "cluster_assignments_namespace_phase_check CHECK (namespace_phase IN (",
            NamespacePhase::ALL.iter().map(|item| item.as_str()).collect(),
        ),
        (
            "deletions_state_check CHECK (state IN (",
            DeletionState::ALL.iter().map(|item| item.as_str()).collect(),
        ),
        (
            "blueprint_definitions_phase_check CHECK (phase IN (",
            DefinitionPhase::ALL.iter().map(|item| item.as_str()).collect(),
        ),
    ];
    let scripts: [fn(&Migration) -> &Scripts; 2] = [|one| &one.sqlite, |one| &one.postgres];
    for of in scripts {
        let script: String = MIGRATIONS.iter().map(|migration| of(migration).up).collect();
        for (start, expected) in &sets {
            let (_, rest) = script.split_once(start).expect(start);
            let (list, _) = rest.split_once(';').unwrap();
            let quoted: Vec<_> = list.split('\'').skip(1).step_by(2).collect();
            assert_eq!(&quoted, expected, "{start}");
        }
    }
}

/// Columns with the storage class that SQLite gives them, indexes with their
/// columns, uniqueness and whether they are partial.
async fn sqlite_schema(connection: &mut sqlx::SqliteConnection) -> Schema {
    let columns = "SELECT 'column ' || m.name || '.' || c.name || ' ' || lower(c.type) \
            || CASE WHEN c.\"notnull\" THEN ' not null' ELSE '' END AS fact \
         FROM sqlite_schema m JOIN pragma_table_info(m.name) c \
         WHERE m.type = 'table' AND m.name <> 'schema_migrations'";
    let indexes = "SELECT 'index ' || m.name || ' ' \
            || CASE WHEN i.origin = 'pk' THEN 'primary key' ELSE i.name END \
            || CASE WHEN i.\"unique\" THEN ' unique' ELSE '' END \
            || CASE WHEN i.partial THEN ' partial' ELSE '' END \
            || ' (' || (SELECT group_concat(x.name, ', ') FROM pragma_index_info(i.name) x) \
            || ')' AS fact \
         FROM sqlite_schema m JOIN pragma_index_list(m.name) i \
         WHERE m.type = 'table' AND m.name <> 'schema_migrations'";
    // An INTEGER PRIMARY KEY is the row id and has no index of its own.
    let row_ids = "SELECT 'index ' || m.name || ' primary key unique (' || c.name || ')' AS fact \
         FROM sqlite_schema m JOIN pragma_table_info(m.name) c \
         WHERE m.type = 'table' AND m.name <> 'schema_migrations' AND c.pk = 1 \
            AND c.type = 'INTEGER'";
    let mut schema = Schema::new();
    for query in [columns, indexes, row_ids] {
        let rows = sqlx::query(query).fetch_all(&mut *connection).await.unwrap();
        schema.extend(rows.iter().map(|row| row.get::<String, _>("fact")));
    }
    schema
}

async fn postgres_schema(connection: &mut sqlx::PgConnection) -> Schema {
    let columns = "SELECT 'column ' || table_name || '.' || column_name || ' ' \
            || CASE data_type \
                WHEN 'uuid' THEN 'blob' WHEN 'bytea' THEN 'blob' \
                WHEN 'text' THEN 'text' WHEN 'jsonb' THEN 'text' \
                WHEN 'character varying' THEN 'text' \
                WHEN 'bigint' THEN 'integer' WHEN 'integer' THEN 'integer' \
                WHEN 'timestamp with time zone' THEN 'integer' ELSE data_type END \
            || CASE WHEN is_nullable = 'NO' THEN ' not null' ELSE '' END AS fact \
         FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name <> 'schema_migrations'";
    let indexes = "SELECT 'index ' || t.relname || ' ' \
            || CASE WHEN i.indisprimary THEN 'primary key' ELSE x.relname END \
            || CASE WHEN i.indisunique THEN ' unique' ELSE '' END \
            || CASE WHEN i.indpred IS NOT NULL THEN ' partial' ELSE '' END \
            || ' (' || (SELECT string_agg(a.attname::text, ', ' ORDER BY k.position) \
                FROM unnest(i.indkey) WITH ORDINALITY AS k (attribute, position) \
                JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attribute) \
            || ')' AS fact \
         FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid \
         JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_namespace n ON n.oid = t.relnamespace \
         WHERE n.nspname = 'public' AND t.relname <> 'schema_migrations'";
    let mut schema = Schema::new();
    for query in [columns, indexes] {
        let rows = sqlx::query(query).fetch_all(&mut *connection).await.unwrap();
        schema.extend(rows.iter().map(|row| row.get::<String, _>("fact")));
    }
    schema
}
