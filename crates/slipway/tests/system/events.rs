//! Events that leave the real control plane: the event log across a kill, and a
//! reader that follows across it.

use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;
use slipway_testkit::process::{Signal, Spawned};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

/// Follows events with the real client, into a file.
fn follow(plane: &ControlPlane, arguments: &[&str], into: &std::path::Path) -> Spawned {
    let mut command = binary();
    command.env("SLIPWAY_KEY", KEY).args(["event", "follow", "--server", &plane.url()]);
    let output = std::fs::File::create(into).unwrap();
    command.args(["-o", "json"]).args(arguments).stdout(output).stderr(Stdio::null());
    Spawned::start(&mut command).unwrap()
}

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be incomplete.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_log_has_every_event_once_whatever_is_killed() {
    for mut plane in ControlPlane::each("the_event_log").await {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("events.jsonl");
        plane.set(&["--event-log", log.to_str().unwrap(), "--lease", "3s"]);
        plane.start().await;
        let followed = folder.path().join("followed.jsonl");
        let mut reader = follow(&plane, &["--after", "0", "--limit", "12"], &followed);
        let mut ids = Vec::new();
        for handle in ["web-1", "web-2"] {
            ids.push(plane.declare(handle, 0).await);
            plane.kill();
            plane.start().await;
        }
        for id in &ids {
            plane.wait_for_phase(id, "Ready").await;
            plane.delete(id).await;
        }
        plane.kill();
        plane.start().await;
        for id in &ids {
            plane.wait_for_phase(id, "Deleted").await;
        }
        // Requested, Ready, Deleting, Deleted of each, and of its deletion Started and Done.
        let logged = wait::until(TIMEOUT, "twelve events in the log", async || {
            let logged = lines(&log);
            if logged.len() >= 12 { Ok(logged) } else { Err(format!("{logged:?}")) }
        })
        .await;
        let listed = plane.get("/api/v1/events").await;
        assert_eq!(&logged, listed.as_array().unwrap());
        assert!(reader.exit(TIMEOUT).await.unwrap().success());
        assert_eq!(&lines(&followed), listed.as_array().unwrap(), "and so has who followed");
        // The cursor follows the delivery.
        wait::until(TIMEOUT, "the cursor behind the last event", async || {
            let shown = plane.get("/api/v1/subscriptions").await;
            if shown[0]["position"] == 12 { Ok(()) } else { Err(shown.to_string()) }
        })
        .await;

        // An open stream does not delay a stop, and Ctrl-C is a clean end.
        let mut reader = follow(&plane, &["--after", "0"], &followed);
        wait::until(TIMEOUT, "the stream", async || lines(&followed).len() == 12).await;
        let begun = Instant::now();
        plane.stop().await;
        assert!(begun.elapsed().as_secs() < 9, "{:?}", begun.elapsed());
        reader.signal(Signal::Interrupt).unwrap();
        assert!(reader.exit(TIMEOUT).await.unwrap().success());
    }
}

/// A row of the outbox that cannot be read, and one that somebody removed: lists,
/// streams and the event log pass both, and a person is told.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_read_stops_nobody() {
    use sqlx::Connection as _;
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    plane.delete(&id).await;
    plane.wait_for_phase(&id, "Deleted").await;
    wait::until(TIMEOUT, "six events", async || plane.events().await.len() == 6).await;
    plane.stop().await;
    let url = format!("sqlite:{}", plane.data_dir().join("slipway.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    let spoil = "UPDATE outbox_events SET payload = '{broken' WHERE seq = 2; \
                 DELETE FROM outbox_events WHERE seq = 3";
    sqlx::raw_sql(spoil).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (log, followed) = (folder.path().join("log.jsonl"), folder.path().join("followed.jsonl"));
    plane.set(&["--event-log", log.to_str().unwrap()]);
    plane.start().await;
    let mut reader = follow(&plane, &["--after", "0", "--limit", "6"], &followed);
    assert!(reader.exit(TIMEOUT).await.unwrap().success());
    wait::until(TIMEOUT, "the log to have them", async || lines(&log).len() == 6).await;
    let listed = plane.get("/api/v1/events").await;
    let unreadable: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (event["position"].clone(), event["type"] == "outbox.Unreadable"))
        .collect();
    let expected: Vec<(Value, bool)> =
        (1..=6).map(|position| (position.into(), [2, 3].contains(&position))).collect();
    assert_eq!(unreadable, expected, "{listed}");
    for read in [&log, &followed] {
        assert_eq!(&lines(read), listed.as_array().unwrap());
    }
    let leaks = wait::until(TIMEOUT, "a record of each", async || {
        let leaks = plane.get("/api/v1/leaks?kind=unreadable_event").await;
        if leaks.as_array().unwrap().len() == 2 { Ok(leaks) } else { Err(leaks.to_string()) }
    })
    .await;
    let leak = leaks[0]["id"].as_str().unwrap();
    let body = Some(serde_json::json!({ "reason": "readers were told" }));
    let path = format!("/api/v1/leaks/{leak}/resolve");
    let (status, answer) = plane.call(reqwest::Method::POST, &path, body).await;
    assert_eq!(status, 200, "{answer}");
    plane.assert_works("web-2").await;
    plane.stop().await;
}
