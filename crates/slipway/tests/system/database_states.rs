//! Databases that are reachable but not writable: read-only, full, without a
//! free connection. Reads continue, writes are refused with a specific code,
//! nothing is half written, and when the cause is gone everything continues by
//! itself.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::postgres;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_database_is_named_and_left_again() {
    let Some(server) = postgres::shared("a_read_only_database").await else { return };
    let database = server.database("read_only").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let agent = plane.agent(&id).await;
    let read_only = async |value: &str| {
        let name = database.name();
        let statement =
            format!("ALTER DATABASE {name} SET default_transaction_read_only = {value}");
        database.execute(&["SET default_transaction_read_only = off", &statement]).await;
    };

    read_only("on").await;
    database.end_connections().await;
    wait::until(TIMEOUT, "readiness to say so", async || {
        let (status, text) = plane.readiness().await;
        if status == 503 && text.contains("it is read-only") { Ok(()) } else { Err(text) }
    })
    .await;
    plane.assert_refused_for_now("web-2", "database_read_only").await;
    let (status, problem) =
        plane.call(Method::DELETE, &format!("/api/v1/resources/{id}?reason=test"), None).await;
    assert_eq!((status, problem["code"].as_str()), (503, Some("database_read_only")), "{problem}");
    assert_eq!(plane.resource(&id).await["phase"], "Ready", "reading goes on");

    // Its sessions started read-only and would stay so.
    read_only("off").await;
    plane.wait_until_ready().await;
    assert_eq!(plane.agent(&id).await.pid, agent.pid, "the node was left alone");
    assert_eq!(plane.get("/api/v1/resources").await.as_array().unwrap().len(), 1);
    plane.assert_goes(&id).await;
    plane.stop().await;
}

/// A SQLite file that may not grow: declarations are refused as a whole,
/// existing data can be read, and with more room everything continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_database_is_named_and_half_writes_nothing() {
    let mut plane = ControlPlane::new(None);
    let file = plane.data_dir().join("slipway.db");
    let url = |pages: u32| format!("sqlite:{}?max_page_count={pages}", file.display());
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    plane.stop().await;
    // The current size and a little more, in pages of 4096 bytes.
    let pages = std::fs::metadata(&file).unwrap().len() / 4_096;
    plane.on_database(&url(u32::try_from(pages).unwrap() + 8));
    plane.start().await;

    let mut accepted = vec!["web-1".to_owned()];
    let refused = wait::until(TIMEOUT, "the file to be full", async || {
        let handle = format!("more-{}", accepted.len());
        let body = json!({ "handle": handle, "blueprint": "local-node" });
        let response = plane.send(Method::POST, "/api/v1/resources", Some(body)).await;
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after").cloned();
        let problem: Value = response.json().await.unwrap();
        match status {
            202 => {
                accepted.push(handle);
                Err(format!("{} accepted", accepted.len()))
            }
            _ => match plane.readiness().await {
                (503, text) if text.contains("it is full") => Ok((status, problem, retry_after)),
                (_, text) => Err(text),
            },
        }
    })
    .await;
    assert_eq!((refused.0, refused.1["code"].as_str()), (503, Some("database_full")));
    // Another declaration may find room: what a loop prunes is free again.
    assert_eq!(refused.2.unwrap(), "1");
    assert_eq!(plane.resource(&id).await["phase"], "Ready", "reading goes on");
    let listed = plane.get("/api/v1/resources?limit=500").await;
    let handles: Vec<_> = listed.as_array().unwrap().iter().map(|r| r["handle"].clone()).collect();
    assert_eq!(handles.len(), accepted.len(), "{handles:?}");
    // It stops in order, and resumes where it was.
    plane.stop().await;

    plane.on_database(&url(100_000));
    plane.start().await;
    plane.wait_until_ready().await;
    for resource in listed.as_array().unwrap() {
        let id = resource["id"].as_str().unwrap();
        plane.wait_for_phase(id, "Ready").await;
        plane.assert_goes(id).await;
    }
    assert!(plane.agents().is_empty());
    plane.stop().await;
}

/// More callers than connections: the server's limit is reached while running.
#[tokio::test(flavor = "multi_thread")]
async fn too_few_connections_are_waited_for_and_not_for_ever() {
    let Some(server) = postgres::shared("too_few_connections").await else { return };
    let database = server.database("few_connections").await;
    let url = database.give_to_a_role().await;
    let limit = async |limit: &str| {
        let name = database.name();
        database.execute(&[&format!("ALTER ROLE {name} CONNECTION LIMIT {limit}")]).await;
    };
    limit("2").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(&url);
    plane.set(&["--database-connections", "2"]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let answers =
        join_all((0..60).map(|_| plane.send(Method::GET, "/api/v1/resources", None))).await;
    for answer in answers {
        let status = answer.status().as_u16();
        assert!(matches!(status, 200 | 503), "{status}");
        assert_eq!(status == 503, answer.headers().contains_key("retry-after"));
    }

    // None at all: every request is refused soon.
    limit("0").await;
    database.end_connections().await;
    plane.assert_refused_for_now("web-2", "unavailable").await;
    assert_eq!(plane.readiness().await.0, 503);
    limit("2").await;
    plane.wait_until_ready().await;
    plane.assert_goes(&id).await;
    plane.stop().await;
}
