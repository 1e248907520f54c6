//! A database that goes away while the control plane runs, and comes back.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use slipway_testkit::network::Relay;
use slipway_testkit::postgres;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, PATIENCE, client};

/// While the database is away, requests are refused soon with 503 and nothing
/// is half written; when it is back, everything goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_away_costs_answers_and_nothing_else() {
    let Some(server) = postgres::shared("a_database_that_goes_away").await else { return };
    let database = server.database("faults").await;
    // postgres://postgres@127.0.0.1:PORT/NAME
    let (address, name) = database.url().rsplit('@').next().unwrap().split_once('/').unwrap();
    let target: SocketAddr = address.parse().unwrap();
    let relay = Relay::to(target).await.unwrap();
    let mut plane = ControlPlane::new(None);
    plane.on_database(&format!("postgres://postgres@{}/{name}", relay.address()));
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let agent = plane.agent(&id).await;

    relay.cut();
    let asked_at = Instant::now();
    let (status, problem) = plane.call(Method::GET, "/api/v1/resources", None).await;
    assert_eq!((status, problem["code"].as_str()), (503, Some("unavailable")), "{problem}");
    assert!(asked_at.elapsed() < Duration::from_secs(8), "{:?}", asked_at.elapsed());
    let body = json!({ "handle": "web-2", "blueprint": "local-node" });
    let (status, _) = plane.call(Method::POST, "/api/v1/resources", Some(body)).await;
    assert_eq!(status, 503);
    let ready = client().get(format!("{}/readyz", plane.url())).send().await.unwrap();
    assert_eq!(ready.status().as_u16(), 503);
    let alive = client().get(format!("{}/healthz", plane.url())).send().await.unwrap();
    assert_eq!(alive.status().as_u16(), 200, "it is the database that is away");

    relay.restore();
    wait::until(PATIENCE, "the control plane to be ready again", async || {
        let ready = client().get(format!("{}/readyz", plane.url())).send().await.unwrap();
        if ready.status().is_success() { Ok(()) } else { Err(ready.text().await.unwrap()) }
    })
    .await;
    assert_eq!(plane.get("/api/v1/resources").await.as_array().unwrap().len(), 1);
    assert_eq!(plane.agent(&id).await.pid, agent.pid, "the node was left alone");
    plane.delete(&id).await;
    plane.wait_for_phase(&id, "Deleted").await;
    plane.assert_each_event_once(&id, &["Requested", "Ready", "Deleting", "Deleted"]).await;
    plane.stop().await;
}
