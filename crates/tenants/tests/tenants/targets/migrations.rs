//! Migrations and seeds on both engines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use slipway_tenants::targets::{Repair, Target};
use slipway_tenants::{Error, Outcome};
use slipway_testkit::wait;
use sqlx::{Connection as _, SqliteConnection};

use super::site::{Notes, Site, sites, sqlite, work};

/// A tenant with nothing in it.
async fn empty(site: &Site) -> (Arc<dyn Target>, Notes) {
    let (target, names, notes) = (site.target().await, site.names("acme"), Notes::default());
    let work = work(&names, (1, 1), &notes);
    target.create_schema(&work).await.expect("a schema");
    target.create_role(&work).await.expect("a role");
    (target, notes)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_version_is_applied_once_and_a_changed_one_is_refused() {
    for site in sites("versions").await {
        site.usual_files();
        let ((target, notes), names) = (empty(&site).await, site.names("acme"));
        let work = work(&names, (1, 1), &notes);
        let first = target.migrate(&work).await.expect("two versions");
        assert_eq!(
            (first.applied, first.version.as_deref()),
            (vec!["1".into(), "1.1".into()], Some("1.1"))
        );
        for _ in 0..2 {
            target.seed(&work).await.expect("once");
        }
        assert_eq!(site.number("acme", "SELECT count(*) FROM orders").await, 1);
        site.migration("V10__ten.sql", "CREATE TABLE ten (id int)");
        site.migration("V9__nine.sql", "CREATE TABLE nine (id int)");
        let second = target.migrate(&work).await.expect("two more");
        assert_eq!(
            (second.applied, second.version.as_deref()),
            (vec!["9".into(), "10".into()], Some("10"))
        );
        site.migration("V2__late.sql", "CREATE TABLE late (id int)");
        let error = target.migrate(&work).await.unwrap_err();
        assert!(!error.is_transient() && error.message.contains("V2__late.sql"), "{error:?}");
        std::fs::remove_file(site.folder.path().join("migrations/V2__late.sql")).expect("one");
        site.migration("V9__nine.sql", "CREATE TABLE nine (id bigint)");
        let error = target.migrate(&work).await.unwrap_err();
        assert!(
            !error.is_transient() && error.message.contains("V9__nine.sql was changed"),
            "{error:?}"
        );
        target.repair(&work, "9", Repair::Applied).await.expect("a person says so");
        assert_eq!(target.migrate(&work).await.expect("nothing").applied, [""; 0]);
        // However it is written, it is the version that the ledger has.
        for (version, sql) in [("9.0", "2"), ("09", "3"), ("9_0", "4")] {
            site.migration(
                "V9__nine.sql",
                &format!("CREATE TABLE nine (id int CHECK (id > {sql}))"),
            );
            target.migrate(&work).await.unwrap_err();
            target.repair(&work, version, Repair::Applied).await.expect(version);
            assert_eq!(target.migrate(&work).await.expect("nothing").applied, [""; 0], "{version}");
        }
        let error = target.repair(&work, "9.1", Repair::Applied).await.unwrap_err();
        assert!(error.message.contains("has no version 9.1"), "{error:?}");
    }
}

/// What came before a broken file stays, of the file itself nothing, and a repaired file goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_leaves_nothing_of_itself() {
    for site in sites("broken").await {
        site.usual_files();
        site.migration(
            "V2__half.sql",
            "CREATE TABLE half (id int);\nINSERT INTO half VALUES (1);\nSELECT nonsense;",
        );
        let ((target, notes), names) = (empty(&site).await, site.names("acme"));
        let work = work(&names, (1, 1), &notes);
        let error = target.migrate(&work).await.unwrap_err();
        assert!(!error.is_transient() && error.message.contains("V2__half.sql"), "{error:?}");
        if site.database.is_some() {
            assert!(error.message.contains("line 3"), "{error:?}");
        }
        assert_eq!(site.number("acme", "SELECT count(*) FROM slipway_migrations").await, 2);
        site.migration("V2__half.sql", "CREATE TABLE half (id int);");
        assert_eq!(target.migrate(&work).await.expect("repaired").applied, ["2"]);
        // In a job it is cleaned up.
        site.migration("V3__bad.sql", "SELECT nonsense");
        let ended = site.provision("j", "other").await;
        assert!(
            matches!(&ended, Err(Error::JobFailed { last_error, .. }) if last_error.contains("V3__bad")),
            "{ended:?}"
        );
        assert_eq!(site.objects("other").await, [""; 0]);
        assert!(site.store.get("j").await.expect("the job").leaked.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_ends_its_transaction_is_found_out() {
    for site in sites("escape").await {
        let begin = if site.database.is_some() { "BEGIN" } else { "BEGIN IMMEDIATE" };
        site.migration("V1__escape.sql", &format!("CREATE TABLE x (id int); COMMIT; {begin};"));
        let ((target, notes), names) = (empty(&site).await, site.names("acme"));
        let work = work(&names, (1, 1), &notes);
        let error = target.migrate(&work).await.unwrap_err();
        assert!(
            !error.is_transient() && error.message.contains("ends its transaction"),
            "{error:?}"
        );
        assert_eq!(site.number("acme", "SELECT count(*) FROM slipway_migrations").await, 0);
        if site.database.is_some() {
            site.migration("V1__escape.sql", "RESET ROLE; CREATE TABLE z (id int)");
            let error = target.migrate(&work).await.unwrap_err();
            assert!(
                error.message.contains("permission denied")
                    || error.message.contains("gives up the role"),
                "{error:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_a_transaction_is_known_or_unknown() {
    for site in sites("loose").await {
        site.usual_files();
        let concurrently = if site.database.is_some() { "CONCURRENTLY" } else { "" };
        let index = format!(
            "-- slipway: no-transaction\nCREATE INDEX {concurrently} loose ON orders (note)"
        );
        site.migration("V2__index.sql", &index);
        let ((target, notes), names) = (empty(&site).await, site.names("acme"));
        let work = work(&names, (1, 1), &notes);
        assert_eq!(target.migrate(&work).await.expect("three").applied, ["1", "1.1", "2"]);
        site.migration("V3__fails.sql", "-- slipway: no-transaction\nSELECT nonsense");
        for _ in 0..2 {
            let error = target.migrate(&work).await.unwrap_err();
            assert!(!error.is_transient() && error.message.contains("state unknown"), "{error:?}");
            assert!(error.message.contains("V3__fails.sql"), "{error:?}");
        }
        target.repair(&work, "3", Repair::NotApplied).await.expect("a person says so");
        site.migration("V3__fails.sql", "-- slipway: no-transaction\nCREATE TABLE third (id int)");
        assert_eq!(target.migrate(&work).await.expect("it").applied, ["3"]);
        let refused = target.repair(&work, "3", Repair::NotApplied).await.unwrap_err();
        assert!(refused.message.contains("is applied"), "{refused:?}");
        assert_eq!(
            target.drift(&names, true).await.expect("drift").differences.len(),
            1,
            "the seed"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_flyway_is_taken_over() {
    for site in sites("flyway").await {
        site.usual_files();
        let ((target, notes), names) = (empty(&site).await, site.names("acme"));
        let work = work(&names, (1, 1), &notes);
        let schema = names.schema();
        let table = if site.database.is_some() {
            format!("\"{schema}\".flyway_schema_history")
        } else {
            "flyway_schema_history".to_owned()
        };
        let history = [
            format!(
                "CREATE TABLE {table} (installed_rank int PRIMARY KEY, version varchar(50), \
                 description varchar(200), type varchar(20), script varchar(1000), checksum int, \
                 installed_by varchar(100), success boolean)"
            ),
            format!(
                "INSERT INTO {table} VALUES (1, '1', 'orders', 'SQL', 'V1__orders.sql', 7, 'me', false)"
            ),
        ];
        let execute = async |sql: &str| match &site.database {
            Some(database) => database.execute(&[sql]).await,
            None => drop(site.numbers("acme", sql).await),
        };
        for sql in &history {
            execute(sql).await;
        }
        if site.database.is_some() {
            execute(&format!("ALTER TABLE {table} OWNER TO \"{}\"", names.migrator())).await;
        }
        let error = target.migrate(&work).await.unwrap_err();
        assert!(!error.is_transient() && error.message.contains("flyway repair"), "{error:?}");
        execute(&format!("UPDATE {table} SET success = true")).await;
        site.migration("V1.1__items.sql", "CREATE TABLE items (id int)");
        let migrated = target.migrate(&work).await.expect("the rest");
        assert_eq!((migrated.adopted, migrated.applied), (vec!["1".into()], vec!["1.1".into()]));
        site.migration("V1__orders.sql", "SELECT 'changed'");
        let error = target.migrate(&work).await.unwrap_err();
        assert!(error.message.contains("V1__orders.sql was changed"), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_read_is_no_empty_folder() {
    for mut site in sites("folder").await {
        assert_eq!(site.provision("empty", "empty").await, Ok(Outcome::Ready));
        site.migration("W1__typo.sql", "SELECT 1");
        let (target, notes) = empty(&site).await;
        let names = site.names("acme");
        let error = target.migrate(&work(&names, (1, 1), &notes)).await.unwrap_err();
        assert!(!error.is_transient() && error.message.contains("W1__typo.sql"), "{error:?}");
        site.settings.migrations = Some(site.folder.path().join("not-mounted"));
        let error = site.target().await.migrate(&work(&names, (1, 1), &notes)).await.unwrap_err();
        assert!(error.is_transient() && error.message.contains("not-mounted"), "{error:?}");
    }
}

/// Whoever writes to a file for longer than a statement waits is waited for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_is_tried_again() {
    let mut site = sqlite();
    site.usual_files();
    site.settings.lock_timeout_ms = 10;
    site.settings.lock_attempts = 100;
    let ((target, notes), names) = (empty(&site).await, site.names("acme"));
    let work = work(&names, (1, 1), &notes);
    let url = format!("sqlite:{}", site.file("acme").display());
    let mut app = SqliteConnection::connect(&url).await.expect("a connection");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut app).await.expect("a lock");
    let began = Instant::now();
    let longer = wait::until(Duration::from_secs(60), "more than one lock timeout", async || {
        began.elapsed() > Duration::from_millis(100)
    });
    let mut migrate = std::pin::pin!(target.migrate(&work));
    tokio::select! {
        biased;
        migrated = &mut migrate => panic!("it did not wait: {migrated:?}"),
        () = longer => {}
    }
    sqlx::query("ROLLBACK").execute(&mut app).await.expect("released");
    assert_eq!(migrate.await.expect("both").applied, ["1", "1.1"]);
}
