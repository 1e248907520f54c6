//! Lists: pages, filters, links, and what they refuse.

use serde_json::Value;
use sqlx::Connection as _;

use crate::world::World;

fn handles(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["handle"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_follow_their_links_to_the_end() {
    let world = World::new().await;
    for handle in ["a", "b", "c", "d", "e"] {
        world.declare(handle).await;
    }
    let mut path = "/api/v1/resources?limit=2&project=default".to_owned();
    let mut seen = Vec::new();
    // Three pages, and the third has no link: one more would be read, and seen.
    for page in 0..4 {
        let answer = world.get(&path).await;
        assert!(page < 3, "the last page links to another: {answer:?}");
        seen.extend(handles(&answer.json()).into_iter().map(str::to_owned));
        let Some(link) = answer.headers.get("link") else {
            break;
        };
        let link = link.to_str().unwrap();
        let target = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
        assert!(target.contains("project=default"), "a filter stays: {link}");
        path = target.to_owned();
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn filters_narrow_and_unknown_parameters_are_refused() {
    let world = World::new().await;
    world.declare("a").await;
    world.declare("b").await;
    let found = world.get("/api/v1/resources?handle=b").await.json();
    assert_eq!(handles(&found), ["b"]);
    assert_eq!(handles(&world.get("/api/v1/resources?phase=Ready").await.json()), [""; 0]);
    assert_eq!(handles(&world.get("/api/v1/resources?phase=Pending").await.json()), ["a", "b"]);
    for (query, field) in [
        ("phase=Sleeping", "phase"),
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
        ("show_deleted=maybe", "show_deleted"),
        ("color=red", "color"),
    ] {
        let answer = world.get(&format!("/api/v1/resources?{query}")).await;
        assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some(field), "{query}");
    }
    for list in ["nodes", "deletions", "events", "loops"] {
        let answer = world.get(&format!("/api/v1/{list}?color=red")).await;
        assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some("color"), "{list}");
    }
}

#[tokio::test]
async fn events_come_by_position() {
    let world = World::new().await;
    world.declare("a").await;
    world.declare("b").await;
    assert_eq!(world.context.store.outbox_relay(100).await.unwrap(), 2);
    let first = world.get("/api/v1/events?limit=1").await;
    let events = first.json();
    assert_eq!(events[0]["type"], "broker.ProvisionedResourceRequested");
    let position = events[0]["position"].as_i64().unwrap();
    let next = format!("</api/v1/events?limit=1&cursor={position}>; rel=\"next\"");
    assert_eq!(first.header("link"), next);
    let second = world.get(&format!("/api/v1/events?limit=5&cursor={position}")).await;
    assert_eq!(second.json()[0]["position"], position + 1);
    assert!(!second.headers.contains_key("link"));
}

#[tokio::test]
async fn a_cursor_from_the_future_is_refused() {
    let world = World::new().await;
    world.declare("a").await;
    world.relay().await;
    assert_eq!(world.get("/api/v1/events?cursor=1").await.json(), serde_json::json!([]));
    for cursor in ["2", "-1"] {
        let answer = world.get(&format!("/api/v1/events?cursor={cursor}")).await;
        assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some("cursor"), "{cursor}");
    }
}

#[tokio::test]
async fn a_cursor_that_is_too_old_is_410_and_names_what_is_left() {
    let world = World::new().await;
    for handle in ["a", "b", "c"] {
        world.declare(handle).await;
    }
    world.relay().await;
    let removed = world.context.store.event_prune(std::time::Duration::ZERO, 2).await.unwrap();
    assert_eq!(removed, 2);
    for path in
        ["/api/v1/events?cursor=1", "/api/v1/events?cursor=0", "/api/v1/events/stream?after=1"]
    {
        let answer = world.get(path).await;
        answer.refused(410, "cursor_expired");
        assert_eq!(answer.json()["details"]["oldest_position"], 3, "{path}");
    }
    for path in ["/api/v1/events?cursor=2", "/api/v1/events"] {
        assert_eq!(world.get(path).await.json()[0]["position"], 3, "{path}");
    }
}

/// A page on which nothing can be shown says what is held, and leads on.
#[tokio::test]
async fn a_page_of_held_rows_does_not_end_the_list() {
    let world = World::new().await;
    for handle in ["a", "b", "c"] {
        world.declare(handle).await;
    }
    let mut connection =
        sqlx::SqliteConnection::connect(&format!("sqlite:{}", world.file.display())).await.unwrap();
    let spoil = "UPDATE provisioned_resources SET deletion_requested_at = created_at WHERE \
         resource_id IN (SELECT id FROM resources WHERE handle IN ('a', 'b'))";
    sqlx::query(spoil).execute(&mut connection).await.unwrap();
    let first = world.get("/api/v1/resources?limit=2").await;
    assert_eq!(first.json(), serde_json::json!([]));
    assert_eq!(first.header("slipway-held-rows").split(',').count(), 2);
    let link = first.header("link");
    let target = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    let second = world.get(target).await;
    assert_eq!(handles(&second.json()), ["c"]);
    assert!(!second.headers.contains_key("slipway-held-rows"), "{second:?}");
}
