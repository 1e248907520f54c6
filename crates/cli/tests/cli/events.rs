//! Following events, and lists with empty pages.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn, mk_problem, mk_resource};

fn mk_event(position: i64) -> Value {
    json!({
        "id": ID, "position": position, "type": "broker.ProvisionedResourceReady",
        "aggregate_id": ID, "revision": 3, "occurred_at": "2026-01-31T12:00:00.000000Z",
        "payload": { "text": "two\nlines" },
    })
}

/// A stream that begins after a position, sends these events and breaks off.
fn mk_stream(after: i64, positions: &[i64]) -> Reply {
    let mut text = format!("retry: 1000\nid: {after}\n\n: alive\n\n");
    for position in positions {
        text += &format!("id: {position}\nevent: x\ndata: {}\n\n", mk_event(*position));
    }
    text += "id: 99\ndata: {\"half\":";
    Reply { stream: Some(text), ..Reply::of(200, Value::Null) }
}

#[tokio::test]
async fn following_resumes_where_it_was_cut_off() {
    let replies = vec![
        mk_stream(3, &[4, 5]),
        Reply::of(503, mk_problem(503, "unavailable")),
        mk_stream(5, &[6, 7]),
    ];
    let server = StandIn::new(replies).await;
    let line = ["event", "follow", "--after", "3", "--limit", "3", "-o", "json"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let shown: Vec<Value> =
        ended.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown, [mk_event(4), mk_event(5), mk_event(6)], "a line each, to the limit");
    let path = "GET /api/v1/events/stream?after=";
    assert_eq!(server.lines(), [format!("{path}3"), format!("{path}5"), format!("{path}5")]);
    assert!(ended.errors.contains("trying again"), "{ended:?}");
}

/// After a break before the first event, the client resumes where the stream
/// began and not at the end.
#[tokio::test]
async fn following_from_now_on_misses_nothing_either() {
    let server = StandIn::new(vec![mk_stream(8, &[]), mk_stream(8, &[9])]).await;
    let ended = server.run(&["event", "follow", "--limit", "1"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.output.trim().starts_with("9  2026-01-31 12:00:00Z  broker."), "{ended:?}");
    let lines = server.lines();
    assert_eq!(lines, ["GET /api/v1/events/stream", "GET /api/v1/events/stream?after=8"]);
}

#[tokio::test]
async fn what_cannot_be_followed_is_said_and_ends() {
    for (status, code, exit) in [
        (410, "cursor_expired", Exit::Refused),
        (400, "invalid_input", Exit::Refused),
        (401, "unauthenticated", Exit::Unauthenticated),
    ] {
        let server = StandIn::new(vec![Reply::of(status, mk_problem(status, code))]).await;
        let ended = server.run(&["event", "follow", "--after", "3"]).await;
        assert_eq!(ended.exit, exit, "{ended:?}");
        assert!(ended.errors.starts_with(&format!("error[{code}]")), "{ended:?}");
        assert_eq!(server.lines().len(), 1, "it is not asked again");
    }
}

#[tokio::test]
async fn an_empty_page_that_leads_on_is_not_the_end() {
    let empty = Reply {
        link: Some("</api/v1/resources?limit=500&cursor=c>; rel=\"next\"".to_owned()),
        ..Reply::of(200, json!([]))
    };
    let server =
        StandIn::new(vec![empty.clone(), Reply::of(200, json!([mk_resource("Ready")]))]).await;
    let ended = server.run(&["resource", "list"]).await;
    assert!(ended.output.contains("web-1"), "{ended:?}");

    // A link that leads in a circle does not loop for ever.
    let server = StandIn::new(vec![empty]).await;
    let ended = server.run(&["resource", "list"]).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Success, 2));
}

#[tokio::test]
async fn forgetting_a_subscription_wants_yes() {
    let server = StandIn::new(vec![Reply::of(204, Value::Null)]).await;
    let name = "event-log:/x/y";
    let ended = server.run(&["event", "unsubscribe", name]).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 0), "{ended:?}");
    let ended = server.run(&["event", "unsubscribe", name, "--yes"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.lines(), ["DELETE /api/v1/subscriptions/event-log:%2Fx%2Fy"]);
}
