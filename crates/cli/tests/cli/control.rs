//! The mode on the command line.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{Reply, StandIn, mk_problem};

fn mk_control(mode: &str, obeys: bool) -> Value {
    let freeze = json!({
        "since": "2026-01-31T12:00:00Z", "until": "2026-01-31T14:00:00Z",
        "by": "key:admin", "reason": "a storm",
    });
    json!({
        "installation_id": "i", "mode": mode, "revision": 3,
        "freeze": if mode == "frozen" { freeze } else { Value::Null },
        "observing": null, "settled": obeys, "public_url": null,
        "replicas": [{
            "worker": "w", "seen_at": "2026-01-31T12:00:00Z", "obeys": obeys, "lapsed": false,
        }],
    })
}

#[tokio::test]
async fn a_freeze_sends_its_length_and_waits_until_all_obey() {
    let replies = vec![
        Reply::of(200, mk_control("frozen", false)),
        Reply::of(200, mk_control("frozen", true)),
    ];
    let server = StandIn::new(replies).await;
    let ended = server.run(&["freeze", "--reason", "a storm", "--for", "2h", "--wait"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.output.contains("frozen") && ended.output.contains("a storm"), "{ended:?}");
    assert!(ended.errors.contains("waiting for 1 of the replicas"), "{ended:?}");
    assert_eq!(server.lines(), ["PUT /api/v1/control/freeze", "GET /api/v1/control"]);
    let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
    assert_eq!(body, json!({ "reason": "a storm", "for_seconds": 7_200 }));
}

#[tokio::test]
async fn a_freeze_that_does_not_settle_ends_the_wait() {
    let server = StandIn::new(vec![Reply::of(200, mk_control("frozen", false))]).await;
    let line = ["freeze", "--reason", "x", "--wait", "--timeout", "0s"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::TimedOut, "{ended:?}");
    assert!(ended.errors.contains("still finish an action"), "{ended:?}");
}

fn mk_status() -> Value {
    let mk_loop = |name: &str, failed: u16, error: Option<&str>| {
        json!({
            "name": name, "activations": 7, "last_activation_at": "2026-01-31T12:00:00Z",
            "last_error": error, "claimed": 3, "failed": failed,
        })
    };
    json!({
        "phases": { "Ready": 12, "Enrolling": 1, "Failed": 0 },
        "blockers": { "namespace_not_ready": 2 },
        "nodes": { "healthy": 11, "unreachable": 1 },
        "leaks": { "orphan": 1 },
        "clusters": [
            { "name": "local", "engine": "local", "problem": null, "lag_seconds": null },
            { "name": "east", "engine": "crossplane", "problem": null, "lag_seconds": 95 },
        ],
        "loops": [
            mk_loop("resources/local", 0, None), mk_loop("resources/east", 0, None),
            mk_loop("outbox-relay", 1, None), mk_loop("heartbeat", 280, Some("no mark")),
        ],
    })
}

/// Names and not ids; the document has the mode and the counts side by side.
#[tokio::test]
async fn the_status_shows_the_installation_at_a_glance() {
    let replies = || vec![Reply::of(200, mk_control("acting", true)), Reply::of(200, mk_status())];
    let shown = StandIn::new(replies()).await.run(&["status"]).await;
    for expected in [
        "1 Enrolling, 12 Ready",
        "2 namespace_not_ready",
        "12 registered, 1 silent",
        "1 orphan",
        "local ok; east (due work waits for 95 s)",
        "resources/local ok; resources/east 95 s behind; outbox-relay ok, 1 failed earlier; \
         heartbeat fails: no mark",
    ] {
        assert!(shown.output.contains(expected), "{expected}: {}", shown.output);
    }
    let document = StandIn::new(replies()).await.run(&["status", "-o", "json"]).await;
    let document: Value = serde_json::from_str(&document.output).unwrap();
    assert_eq!((&document["mode"], &document["phases"]["Ready"]), (&"acting".into(), &12.into()));

    let refused = Reply::of(403, mk_problem(403, "forbidden"));
    let server = StandIn::new(vec![Reply::of(200, mk_control("frozen", true)), refused]).await;
    let shown = server.run(&["status"]).await;
    assert_eq!(shown.exit, Exit::Success, "a key of one project sees the mode: {shown:?}");
    assert!(shown.output.contains("frozen"), "{shown:?}");
}

#[tokio::test]
async fn lifting_resuming_status_and_withheld_ask_what_they_say() {
    let acting = || Reply::of(200, mk_control("acting", true));
    let line = json!([{
        "resource_id": "r", "provisioned_resource_id": "p", "project": "default",
        "handle": "web-1", "phase": "Pending", "action": "apply",
        "since": "2026-01-31T12:00:00Z", "message": "only observing",
    }]);
    let agent = |status: &str, heartbeat: Option<i64>| {
        json!({
            "agent_id": "a", "claimed_work_orders": 0, "cluster_name": "berlin",
            "connected_since": null, "health_degraded": 0, "health_failing": 1,
            "heartbeat_age_seconds": heartbeat, "k8s_api_latency_ms": null, "k8s_reachable": null,
            "last_event_at": null, "last_heartbeat": null, "name": "edge",
            "pending_object_count": 2, "pending_work_orders": 0,
            "seconds_since_last_event": null, "status": status, "ws_connected": false,
        })
    };
    let agents = json!([agent("ACTIVE", Some(5)), agent("ACTIVE", None), agent("INACTIVE", None)]);
    let mut replies = vec![acting(), acting(), acting(), Reply::of(200, mk_status())];
    replies.extend([agents, line].map(|body| Reply::of(200, body)));
    let server = StandIn::new(replies).await;
    assert_eq!(server.run(&["unfreeze", "--reason", "over it"]).await.exit, Exit::Success);
    assert_eq!(server.run(&["resume", "--reason", "looked"]).await.exit, Exit::Success);
    let status = server.run(&["status"]).await;
    assert!(status.output.contains("acting") && status.output.contains("w obeys"), "{status:?}");
    let agents = "3, of them 1 inactive, 1 silent, 3 behind, 3 unhealthy";
    assert!(status.output.contains(agents), "{status:?}");
    let withheld = server.run(&["withheld"]).await;
    assert!(withheld.output.contains("apply") && withheld.output.contains("web-1"), "{withheld:?}");
    assert_eq!(
        server.lines(),
        [
            "DELETE /api/v1/control/freeze?reason=over+it",
            "POST /api/v1/control/resume",
            "GET /api/v1/control",
            "GET /api/v1/status",
            "GET /api/v1/fleet",
            "GET /api/v1/control/withheld?limit=500",
        ]
    );
}
