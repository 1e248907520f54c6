//! The network between the control plane and its database: lost, silent, half
//! open, slow.

use std::io::Read as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::Method;
use slipway_testkit::network::Relay;
use slipway_testkit::postgres::{self, TestDatabase};
use slipway_testkit::process::Signal;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

/// A control plane, not yet started, that reaches the database through a relay.
pub(crate) async fn on_relay(database: &TestDatabase) -> (ControlPlane, Relay) {
    // postgres://postgres@127.0.0.1:PORT/NAME
    let (address, name) = database.url().rsplit('@').next().unwrap().split_once('/').unwrap();
    let target: SocketAddr = address.parse().unwrap();
    let relay = Relay::to(target).await.unwrap();
    let mut plane = ControlPlane::new(None);
    plane.on_database(&format!("postgres://postgres@{}/{name}", relay.address()));
    (plane, relay)
}

/// While the database is unreachable, requests are refused soon with 503 and
/// nothing is half written; afterwards everything continues by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_away_costs_answers_and_nothing_else() {
    let Some(server) = postgres::shared("a_database_that_goes_away").await else { return };
    let database = server.database("faults").await;
    let (mut plane, relay) = on_relay(&database).await;
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let agent = plane.agent(&id).await;

    relay.cut();
    let asked_at = Instant::now();
    let (status, problem) = plane.call(Method::GET, "/api/v1/resources", None).await;
    assert_eq!((status, problem["code"].as_str()), (503, Some("unavailable")), "{problem}");
    assert!(asked_at.elapsed() < Duration::from_secs(8), "{:?}", asked_at.elapsed());
    plane.assert_refused_for_now("web-2", "unavailable").await;
    assert_eq!(plane.readiness().await.0, 503);
    let alive = plane.send(Method::GET, "/healthz", None).await;
    assert_eq!(alive.status().as_u16(), 200, "it is the database that is away");

    relay.restore();
    plane.wait_until_ready().await;
    assert_eq!(plane.get("/api/v1/resources").await.as_array().unwrap().len(), 1);
    assert_eq!(plane.agent(&id).await.pid, agent.pid, "the node was left alone");
    plane.assert_goes(&id).await;
    plane.stop().await;
}

/// An outage is one line of the database and one of the probe when it begins, and
/// one of each when it ends, however many requests, probes and passes of loops it
/// fails.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_database_is_logged_once() {
    let Some(server) = postgres::shared("an_outage_is_logged_once").await else { return };
    let database = server.database("logged_once").await;
    let (mut plane, relay) = on_relay(&database).await;
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    plane.wait_until_ready().await;
    let before = plane.log_text().len();
    let (begins, ends) = ("the database does not answer", "the database answers again");
    let (fails, succeeds) =
        ("provisioning broker reconcile tick failed", "reconcile ticks succeed again");
    let logged = async |line: &str, times: usize| {
        wait::until(TIMEOUT, line, async || {
            plane.log_text()[before..].matches(line).count() == times
        })
        .await;
    };
    for outage in 1..=2 {
        relay.cut();
        for number in 0..3 {
            plane.assert_refused_for_now(&format!("lost-{number}"), "unavailable").await;
            for path in ["/readyz", "/metrics", "/api/v1/resources", "/api/v1/events"] {
                plane.send(Method::GET, path, None).await;
            }
        }
        logged(fails, outage).await;
        relay.restore();
        plane.wait_until_ready().await;
        logged(ends, outage).await;
        logged(succeeds, outage).await;
        let text = plane.log_text()[before..].to_owned();
        assert_eq!(text.matches(fails).count(), outage, "{text}");
        let begun = |line: &&str| line.contains(begins) && !line.contains(fails);
        assert_eq!(text.lines().filter(begun).count(), outage, "{text}");
        let loud: Vec<_> = text
            .lines()
            .filter(|line| line.contains(" ERROR ") || line.contains(" WARN "))
            .filter(|line| !line.contains(begins) && !line.contains(fails))
            .collect();
        assert!(loud.is_empty(), "{loud:#?}");
    }
    plane.assert_goes(&id).await;
    plane.stop().await;
}

/// A control plane that is stopped inside a transaction, as by a pause of its
/// machine: PostgreSQL ends the idle transaction, and the caller is told to try
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_inside_a_transaction_is_answered_with_a_time_to_try_again() {
    let Some(server) = postgres::shared("a_pause_inside_a_transaction").await else { return };
    let database = server.database("paused").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    // PostgreSQL ends a transaction that is idle for a third of it.
    plane.set(&["--lease", "3s"]);
    plane.start().await;
    plane.wait_until_ready().await;
    // Of everything that runs now, only the declaration writes events.
    let held = database.hold_lock("outbox_events").await;
    let mut unanswered = plane.declare_unanswered("web-1");
    database.wait_for_connection("wait_event_type = 'Lock'").await;
    plane.signal(Signal::Stop);
    drop(held);
    let idle = "state = 'idle in transaction'";
    database.wait_for_connection(idle).await;
    database
        .wait_until(&format!(
            "NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'slipway' AND {idle})"
        ))
        .await;
    plane.signal(Signal::Continue);
    let answer = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        unanswered.read_to_string(&mut text).unwrap();
        text.to_lowercase()
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("http/1.0 503 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n") && answer.contains("unavailable"), "{answer}");
    assert_eq!(plane.get("/api/v1/resources").await.as_array().unwrap().len(), 0);
    plane.assert_works("web-1").await;
    plane.stop().await;
}

/// The server vanishes without closing: sent bytes are lost, and connections
/// stay open for ever. Every call ends all the same, and once the server is
/// reachable again nothing waits for the old connections.
#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_are_given_up() {
    let Some(server) = postgres::shared("half_open_connections").await else { return };
    let database = server.database("half_open").await;
    let (mut plane, relay) = on_relay(&database).await;
    // As few as it can work with: one that is lost for good would show.
    plane.set(&["--database-statement-timeout", "1s", "--database-connections", "3"]);
    // Six refusals take half a minute, in which no heartbeat is accepted either.
    plane.set(&["--orphan-after", "300s"]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let agent = plane.agent(&id).await;

    relay.swallow();
    let asked_at = Instant::now();
    for number in 0..6 {
        plane.assert_refused_for_now(&format!("lost-{number}"), "unavailable").await;
    }
    // An operation may take six seconds here, and three to get a connection.
    assert!(asked_at.elapsed() < Duration::from_secs(6 * 9), "{:?}", asked_at.elapsed());
    let (status, text) = plane.readiness().await;
    assert_eq!(status, 503, "{text}");

    relay.restore();
    plane.wait_until_ready().await;
    assert_eq!(plane.agent(&id).await.pid, agent.pid, "the node was left alone");
    assert_eq!(plane.get("/api/v1/resources").await.as_array().unwrap().len(), 1);
    plane.assert_goes(&id).await;
    plane.stop().await;
}

/// Nothing passes for a while, then everything arrives late: what was sent
/// before happens once or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_stall_ends_and_nothing_is_done_twice() {
    let Some(server) = postgres::shared("a_stall_ends").await else { return };
    let database = server.database("stall").await;
    let (mut plane, relay) = on_relay(&database).await;
    plane.set(&["--database-statement-timeout", "1s"]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    relay.silence();
    let asked_at = Instant::now();
    let (status, text) = plane.readiness().await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("provisioning-broker-reconcile"), "{text}");
    // Two seconds, whatever does not answer; one after the other they took six.
    assert!(asked_at.elapsed() < Duration::from_millis(5_500), "{:?}", asked_at.elapsed());
    plane.assert_refused_for_now("web-2", "unavailable").await;
    relay.restore();
    plane.wait_until_ready().await;
    plane.wait_for_phase(&id, "Ready").await;
    assert_eq!(
        plane.agents_of("").len(),
        plane.get("/api/v1/nodes").await.as_array().unwrap().len()
    );
    plane.assert_goes(&id).await;
    plane.stop().await;
}

/// A distant database makes everything slower and breaks nothing: no claim is
/// lost, nobody is told that it is unavailable, nothing happens twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_database_costs_time_and_nothing_else() {
    let Some(server) = postgres::shared("a_slow_database").await else { return };
    let database = server.database("slow").await;
    let (mut plane, relay) = on_relay(&database).await;
    plane.start().await;
    relay.slow_down(Duration::from_millis(25));
    plane.wait_until_ready().await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(plane.declare(&format!("web-{number}"), 0).await);
    }
    for id in &ids {
        plane.wait_for_phase(id, "Ready").await;
    }
    assert_eq!(plane.agents().len(), ids.len());
    for id in &ids {
        plane.assert_goes(id).await;
    }
    plane.stop().await;
}

/// A statement that waits for a lock ends at its limit with an error that
/// blames the lock; once the lock is gone the work continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_takes_too_long_is_ended() {
    let Some(server) = postgres::shared("a_statement_that_takes_too_long").await else { return };
    let database = server.database("long_statement").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    plane.set(&["--database-statement-timeout", "1s"]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let held = database.hold_lock("resources").await;
    plane.assert_refused_for_now("web-2", "unavailable").await;
    let (status, problem) =
        plane.call(Method::DELETE, &format!("/api/v1/resources/{id}?reason=test"), None).await;
    assert_eq!((status, problem["code"].as_str()), (503, Some("unavailable")), "{problem}");
    drop(held);
    wait::until(TIMEOUT, "the deletion to be taken", async || {
        let path = format!("/api/v1/resources/{id}?reason=test");
        plane.call(Method::DELETE, &path, None).await.0 == 202
    })
    .await;
    plane.wait_for_phase(&id, "Deleted").await;
    plane.assert_each_event_once(&id, &["Requested", "Ready", "Deleting", "Deleted"]).await;
    plane.stop().await;
}
