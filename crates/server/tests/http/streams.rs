//! Event streams: resuming, limits, and every way a stream ends.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Response, StatusCode};
use futures::StreamExt;
use serde_json::{Value, json};
use slipway_server::StreamLimits;
use tokio::time::timeout;

use crate::world::{KEY, World};

const STREAM: &str = "/api/v1/events/stream";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Reads a stream frame by frame.
struct Reader {
    body: BodyDataStream,
    text: String,
}

impl Reader {
    fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The next frame; `None` at the end.
    async fn frame(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(frame);
            }
            let bytes = timeout(TIMEOUT, self.body.next()).await.expect("a frame or the end")?;
            self.text += std::str::from_utf8(&bytes.unwrap()).unwrap();
        }
    }

    /// The position of the next event, after checking its fields.
    async fn position(&mut self) -> i64 {
        loop {
            let frame = self.frame().await.expect("an event");
            let field = |name: &str| {
                frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
            };
            let Some(data) = field("data: ") else { continue };
            let event: Value = serde_json::from_str(&data).unwrap();
            assert_eq!(field("id: ").unwrap(), event["position"].to_string());
            assert_eq!(field("event: ").unwrap(), event["type"].as_str().unwrap());
            return event["position"].as_i64().unwrap();
        }
    }
}

/// So long that only a wake within this process makes progress.
fn long_timeouts() -> StreamLimits {
    StreamLimits { poll: Duration::from_secs(3_600), ..StreamLimits::default() }
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_told_and_follows_what_happens() {
    let world = World::with(long_timeouts()).await;
    for handle in ["a", "b", "c"] {
        world.declare(handle).await;
    }
    world.relay().await;
    let mut all = Reader::of(world.open(&format!("{STREAM}?after=0"), &[]).await);
    let mut resumed =
        Reader::of(world.open(&format!("{STREAM}?after=0"), &[("last-event-id", "2")]).await);
    let mut live = Reader::of(world.open(STREAM, &[]).await);
    assert_eq!([all.position().await, all.position().await, all.position().await], [1, 2, 3]);
    assert_eq!(resumed.position().await, 3, "the header wins over the address");
    assert_eq!(live.frame().await.as_deref(), Some("retry: 1000\nid: 3"), "where it begins");
    world.declare("d").await;
    world.relay().await;
    for reader in [&mut all, &mut resumed, &mut live] {
        assert_eq!(reader.position().await, 4);
    }
}

#[tokio::test]
async fn what_another_replica_relayed_is_found_by_polling() {
    let world = World::new().await;
    let mut live = Reader::of(world.open(STREAM, &[]).await);
    assert_eq!(live.frame().await.as_deref(), Some("retry: 1000\nid: 0"));
    world.declare("a").await;
    // Numbered without a wake.
    world.context.stores.events.outbox_relay(100).await.unwrap();
    assert_eq!(live.position().await, 1);
}

#[tokio::test]
async fn a_reader_far_behind_what_is_kept_in_memory_misses_nothing() {
    let world = World::with(StreamLimits { recent: 2, ..long_timeouts() }).await;
    let mut keeps_up = Reader::of(world.open(STREAM, &[]).await);
    keeps_up.frame().await;
    for round in 0..4 {
        for number in 0..5 {
            world.declare(&format!("r-{round}-{number}")).await;
        }
        world.relay().await;
        for expected in 1..=5 {
            assert_eq!(keeps_up.position().await, round * 5 + expected);
        }
    }
    let mut behind = Reader::of(world.open(&format!("{STREAM}?after=0"), &[]).await);
    for expected in 1..=20 {
        assert_eq!(behind.position().await, expected);
    }
}

#[tokio::test]
async fn wrong_positions_are_refused_by_field() {
    let world = World::new().await;
    for (query, header, field) in [
        ("?after=x", "", "after"),
        ("?after=-1", "", "after"),
        ("?after=1", "", "after"),
        ("", "x", "last-event-id"),
        ("", "7", "last-event-id"),
        ("?since=1", "", "since"),
    ] {
        let mut request = axum::http::Request::get(format!("{STREAM}{query}"))
            .header("authorization", format!("Bearer {KEY}"));
        if !header.is_empty() {
            request = request.header("last-event-id", header);
        }
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        let named = answer.refused(400, "invalid_input");
        assert_eq!(named.as_deref(), Some(field), "{query} {header}");
    }
}

#[tokio::test]
async fn one_stream_too_many_is_503_until_a_place_is_free() {
    let world = World::with(StreamLimits { streams: 1, ..StreamLimits::default() }).await;
    let first = Reader::of(world.open(STREAM, &[]).await);
    let metrics = world.ask("GET", "/metrics", "", "").await;
    assert!(metrics.text.contains("\nslipway_event_streams 1\n"), "{}", metrics.text);
    let refused = world.get(STREAM).await;
    refused.refused(503, "unavailable");
    assert_eq!(refused.header("retry-after"), "1");
    drop(first);
    let mut second = Reader::of(world.open(STREAM, &[]).await);
    // The poller of the first has ended or is ending; the second still has one.
    world.declare("a").await;
    world.relay().await;
    assert_eq!(second.position().await, 1);
}

/// A key gets its share, the keys of one project get one together, and others
/// still find a stream.
#[tokio::test]
async fn no_key_and_no_project_takes_all_streams() {
    use slipway_core::access::role::Role;
    let limits = StreamLimits { streams: 10, of_key: 2, of_project: 3, ..StreamLimits::default() };
    let world = World::with(limits).await;
    world.project("own").await;
    let (_, viewer) = world.key("viewer", Role::Viewer, None).await;
    let (_, bound) = world.key("bound", Role::Viewer, Some("own")).await;
    let (_, second) = world.key("second", Role::Viewer, Some("own")).await;
    let refused = async |key: &str| {
        let refused = world.ask("GET", STREAM, key, "").await;
        refused.refused(429, "rate_limited");
        assert_eq!(refused.header("retry-after"), "5");
        refused.json()["detail"].as_str().unwrap().to_owned()
    };
    let open = async |key: &str| Reader::of(world.open_as(key, STREAM, &[]).await);
    let mut streams = vec![open(&viewer).await, open(&viewer).await];
    assert!(refused(&viewer).await.contains("2 streams of this key"));
    streams.extend([open(&bound).await, open(&bound).await, open(&second).await]);
    assert!(refused(&second).await.contains("3 streams of the keys of this project"));
    streams.push(open(KEY).await);
    // What ends gives its share back.
    streams.remove(0);
    streams.push(open(&viewer).await);
    assert!(refused(&viewer).await.contains("this key"));
}

#[tokio::test]
async fn streams_end_at_the_stop_and_after_their_time() {
    let world = World::with(long_timeouts()).await;
    let mut reader = Reader::of(world.open(STREAM, &[]).await);
    reader.frame().await.expect("the beginning");
    world.stop.send_replace(true);
    assert_eq!(reader.frame().await, None);
    let mut late = Reader::of(world.open(STREAM, &[]).await);
    late.frame().await.expect("the beginning");
    assert_eq!(late.frame().await, None, "and none begins after it");

    let lasting = Duration::from_millis(50);
    let world = World::with(StreamLimits { lasting, ..long_timeouts() }).await;
    let mut reader = Reader::of(world.open(STREAM, &[]).await);
    reader.frame().await.expect("the beginning");
    assert_eq!(reader.frame().await, None, "the key is looked at again when it resumes");
}

#[tokio::test]
async fn subscriptions_are_shown_counted_and_forgotten() {
    let world = World::new().await;
    let id = slipway_core::ids::SubscriptionId::new(world.context.entropy.uuid());
    world.context.stores.events.subscription_open(id, "event-log:/x").await.unwrap();
    world.declare("a").await;
    world.relay().await;
    let shown = world.get("/api/v1/subscriptions").await.json();
    assert_eq!((&shown[0]["position"], &shown[0]["last_position"]), (&0.into(), &1.into()));
    let metrics = world.ask("GET", "/metrics", "", "").await.text;
    let lag = r#"slipway_subscription_lag_events{subscription="event-log:/x"} 1"#;
    assert!(metrics.contains(lag), "{metrics}");
    assert!(metrics.contains("slipway_events_unrelayed 0"), "{metrics}");
    let path = "/api/v1/subscriptions/event-log%3A%2Fx";
    assert_eq!(world.ask("DELETE", path, KEY, "").await.status, StatusCode::NO_CONTENT);
    world.ask("DELETE", path, KEY, "").await.refused(404, "subscription_not_found");
    let metrics = world.ask("GET", "/metrics", "", "").await.text;
    assert!(!metrics.contains("event-log"), "{metrics}");
}

/// A key that is bound to a project receives that project's events. Other
/// events only move the position at which it resumes.
#[tokio::test]
async fn a_bound_reader_gets_its_own_events_and_everybodys_positions() {
    let world = World::with(long_timeouts()).await;
    world.project("own").await;
    world.declare("a").await;
    world.declare_in("own", "b").await;
    world.declare("c").await;
    world.relay().await;
    let (_, key) = world.key("bound", slipway_core::access::role::Role::Viewer, Some("own")).await;
    let mut reader = Reader::of(world.open_as(&key, &format!("{STREAM}?after=0"), &[]).await);
    assert_eq!(reader.position().await, 2);
    assert_eq!(reader.frame().await.as_deref(), Some("id: 3"));
    world.declare_in("own", "d").await;
    world.relay().await;
    assert_eq!(reader.position().await, 4);
}

/// A bound reader misses nothing if other projects' events are no longer kept;
/// it does if its own are not.
#[tokio::test]
async fn a_bound_reader_is_too_old_only_if_something_of_its_own_is_gone() {
    let world = World::new().await;
    world.project("own").await;
    let (_, key) = world.key("bound", slipway_core::access::role::Role::Viewer, Some("own")).await;
    world.declare_in("own", "mine-1").await;
    for handle in ["a", "b", "c"] {
        world.declare(handle).await;
    }
    world.relay().await;
    let prune = async |count| {
        let removed = world.context.stores.events.event_prune(Duration::ZERO, count).await.unwrap();
        assert_eq!(removed, u64::from(count));
    };
    prune(3).await;
    let poll = async |cursor: i64| {
        world.ask("GET", &format!("/api/v1/events?cursor={cursor}"), &key, "").await
    };
    assert_eq!(poll(1).await.json(), json!([]), "it has seen all that there was for it");
    poll(0).await.refused(410, "cursor_expired");
    world.get("/api/v1/events?cursor=1").await.refused(410, "cursor_expired");
    let stream = world.open_as(&key, "/api/v1/events/stream?after=1", &[]).await;
    assert_eq!(stream.status().as_u16(), 200, "and a stream goes on behind what is gone");
    drop(stream);

    world.declare_in("own", "mine-2").await;
    world.relay().await;
    assert_eq!(poll(1).await.json()[0]["position"], 5);
    prune(2).await;
    poll(1).await.refused(410, "cursor_expired");
    assert_eq!(poll(5).await.json(), json!([]));
}
