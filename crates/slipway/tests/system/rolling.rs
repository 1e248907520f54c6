//! Version N beside N+1: a newer replica has widened the schema while this
//! binary works on it, and before it starts again.

use slipway_testkit::postgres;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

/// The effect of a newer binary's migration: it widens the tables that every
/// statement uses, and old readers still understand it. Its number is far from
/// those in use.
const EXPAND: [&str; 4] = [
    "ALTER TABLE provisioned_resources ADD COLUMN test_next_version text",
    "ALTER TABLE resources ADD COLUMN test_next_version bigint NOT NULL DEFAULT 7",
    "CREATE TABLE test_next_version (id uuid PRIMARY KEY, note text)",
    "INSERT INTO schema_migrations (version, name, checksum, min_reader) \
     VALUES (9001, 'test_next_version', 'of a newer binary', 1)",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_does_not_disturb_who_works_on_it() {
    let Some(server) = postgres::shared("a_newer_schema").await else { return };
    let database = server.database("rolling").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    plane.start().await;
    // Every statement is prepared by now, with the old columns.
    plane.assert_works("before").await;
    let during = plane.declare("during", 0).await;
    plane.wait_for_phase(&during, "Ready").await;

    database.execute(&EXPAND).await;
    plane.assert_works("after").await;
    plane.assert_goes(&during).await;
    let log = plane.log_text();
    assert!(!log.contains("cached plan"), "{log}");
    assert!(!log.contains(" ERROR "), "{log}");

    // Older and newer side by side, and the older one restarted.
    let mut other = plane.beside();
    other.start().await;
    other.assert_works("beside").await;
    other.stop().await;

    let taken_away = "UPDATE schema_migrations SET min_reader = 9001 WHERE version = 9001";
    database.execute(&[taken_away]).await;
    other.launch();
    let status = other.ended().await;
    let log = other.log_text();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("error[database_needs_newer_reader]") && log.contains("9001"), "{log}");
    wait::until(TIMEOUT, "the one that runs to be ready", async || {
        plane.readiness().await.0 == 200
    })
    .await;
    plane.stop().await;
}

/// The same on SQLite, where one process has the file at a time: the newer
/// binary ran, and then the older one again.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_newer_binary_widened_is_used_by_the_older_one() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    plane.stop().await;
    let file = plane.data_dir().join("slipway.db");
    let mut statements: Vec<String> = EXPAND.iter().map(|&text| text.to_owned()).collect();
    statements[1] = statements[1].replace("bigint", "INTEGER");
    statements[2] = statements[2].replace("uuid", "BLOB");
    execute(&file, &statements.join(";")).await;
    plane.start().await;
    plane.assert_goes(&id).await;
    plane.assert_works("web-2").await;
    plane.stop().await;
    execute(&file, "UPDATE schema_migrations SET min_reader = 9001 WHERE version = 9001").await;
    plane.launch();
    assert_eq!(plane.ended().await.code(), Some(1));
    let log = plane.log_text();
    assert!(log.contains("error[database_needs_newer_reader]") && log.contains("9001"), "{log}");
}

async fn execute(file: &std::path::Path, statements: &str) {
    use sqlx::Connection as _;
    let url = format!("sqlite:{}", file.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    let statements = sqlx::AssertSqlSafe(statements.to_owned());
    sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
