//! A database that is missing or unusable when the control plane starts.

use std::time::{Duration, Instant};

use slipway_testkit::postgres;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};
use crate::network::on_relay;

/// Starts it and expects that it gives up, with this code and these words.
async fn assert_refused(plane: &mut ControlPlane, code: &str, words: &[&str]) {
    plane.launch();
    let status = plane.ended().await;
    let text = plane.log_text();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("error[{code}]")), "expected {code}: {text}");
    for word in words {
        assert!(text.contains(word), "expected it to say {word}: {text}");
    }
}

/// It waits for its database, does not serve meanwhile, and then comes up.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_comes_up_later_is_waited_for() {
    let Some(server) = postgres::shared("a_database_that_comes_up_later").await else { return };
    let database = server.database("boot_later").await;
    let (mut plane, relay) = on_relay(&database).await;
    relay.cut();
    plane.launch();
    // Long enough for a failed attempt: it logs nothing, but it locks the data
    // directory right before the first attempt.
    let worker = plane.data_dir().join("worker");
    wait::until(TIMEOUT, "it to try", async || worker.exists()).await;
    assert!(!plane.data_dir().join("server.json").exists(), "it says that it is up");
    relay.restore();
    wait::until(TIMEOUT, "it to come up", async || plane.data_dir().join("server.json").exists())
        .await;
    plane.wait_until_ready().await;
    plane.assert_works("web-1").await;
    plane.stop().await;
}

/// A table that each stage of the start needs, in their order.
const STAGES: [(&str, &str); 6] = [
    ("the migration", "schema_migrations"),
    ("the id of the installation", "installation"),
    ("the seed", "clouds"),
    ("the mode", "control"),
    ("the first sweep", "provisioned_resources"),
    ("the admin key", "api_keys"),
];

/// The server dies, as by a power cut, while a step of the start waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_dies_at_any_step_of_the_start_is_waited_for() {
    if postgres::shared("a_database_that_dies_at_any_step").await.is_none() {
        return;
    }
    let mut server = postgres::Postgres::start(postgres::Options::default()).unwrap().unwrap();
    let database = server.database("boot_dies").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    plane.start().await;
    plane.stop().await;
    for (step, table) in STAGES {
        // The lock ends with the server.
        let held = database.hold_lock(table).await;
        plane.launch();
        database.wait_for_connection("wait_event_type = 'Lock'").await;
        server.crash().unwrap();
        drop(held);
        wait::until(TIMEOUT, "it to notice", async || {
            let text = plane.log_text();
            if text.contains("the database does not answer") || text.contains("went away") {
                Ok(())
            } else {
                Err(format!("{step}: {text}"))
            }
        })
        .await;
        server.start_again().unwrap();
        wait::until(TIMEOUT, "it to come up", async || {
            if plane.data_dir().join("server.json").exists() {
                Ok(())
            } else {
                Err(format!("{step}: {}", plane.log_tail()))
            }
        })
        .await;
        plane.wait_until_ready().await;
        plane.stop().await;
    }
    plane.start().await;
    plane.assert_works("web-1").await;
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_dies_during_the_migration_and_stays_away_is_given_up() {
    if postgres::shared("a_database_that_dies_during_the_migration").await.is_none() {
        return;
    }
    let mut server = postgres::Postgres::start(postgres::Options::default()).unwrap().unwrap();
    let database = server.database("boot_gone").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    plane.start().await;
    plane.stop().await;
    plane.set(&["--database-timeout", "1s"]);
    let _held = database.hold_lock("schema_migrations").await;
    plane.launch();
    database.wait_for_connection("wait_event_type = 'Lock'").await;
    server.crash().unwrap();
    let status = plane.ended().await;
    let text = plane.log_text();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("error[database_unreachable]") && text.contains("within 1s"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_stays_away_is_given_up_in_time() {
    let Some(server) = postgres::shared("a_database_that_stays_away").await else { return };
    let database = server.database("boot_never").await;
    let (mut plane, relay) = on_relay(&database).await;
    // Worse than a refusal: the connection is accepted and stays silent.
    relay.silence();
    plane.set(&["--database-timeout", "1s"]);
    let begun = Instant::now();
    assert_refused(&mut plane, "database_unreachable", &["within 1s", database.name()]).await;
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_a_free_connection_names_the_settings() {
    let Some(server) = postgres::shared("a_database_without_a_free_connection").await else {
        return;
    };
    let database = server.database("boot_no_connection").await;
    let url = database.give_to_a_role().await;
    database.execute(&[&format!("ALTER ROLE {} CONNECTION LIMIT 0", database.name())]).await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(&url);
    plane.set(&["--database-timeout", "1s", "--database-connections", "7"]);
    let words = ["max_connections", "CONNECTION LIMIT", "`database_connections` (7 here)"];
    assert_refused(&mut plane, "database_connections_exhausted", &words).await;

    // Some connections, but fewer than configured.
    database.execute(&[&format!("ALTER ROLE {} CONNECTION LIMIT 4", database.name())]).await;
    assert_refused(&mut plane, "database_connections_exhausted", &["gave 4 of 7"]).await;
    plane.set(&["--database-connections", "4"]);
    plane.start().await;
    plane.assert_works("web-1").await;
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_database_that_is_read_only_is_refused_by_name() {
    let Some(server) = postgres::shared("a_fresh_database_that_is_read_only").await else {
        return;
    };
    let database = server.database("boot_read_only").await;
    let setting =
        format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name());
    database.execute(&[&setting]).await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    assert_refused(&mut plane, "database_read_only", &["primary"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_full_before_the_start_is_refused_by_name() {
    let mut plane = ControlPlane::new(None);
    let url = format!("sqlite:{}?max_page_count=4", plane.data_dir().join("slipway.db").display());
    plane.on_database(&url);
    assert_refused(&mut plane, "database_full", &["more space"]).await;
    // Nothing was half made: with room it starts from the beginning.
    plane.on_database(&url.replace("max_page_count=4", "max_page_count=4000"));
    plane.start().await;
    plane.assert_works("web-1").await;
    plane.stop().await;
}
