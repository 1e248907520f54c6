//! Lists: pages, filters, links, and refusals.

use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::world::{KEY, World};

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
    // Three pages, and the third has no link; a fourth would fail the test.
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
    assert_eq!(world.context.stores.events.outbox_relay(100).await.unwrap(), 2);
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
    let removed =
        world.context.stores.events.event_prune(std::time::Duration::ZERO, 2).await.unwrap();
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

/// A page without readable rows names the quarantined rows, and links to the next page.
#[tokio::test]
async fn a_page_of_quarantined_rows_does_not_end_the_list() {
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
    assert_eq!(first.header("slipway-quarantined-rows").split(',').count(), 2);
    let link = first.header("link");
    let target = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    let second = world.get(target).await;
    assert_eq!(handles(&second.json()), ["c"]);
    assert!(!second.headers.contains_key("slipway-quarantined-rows"), "{second:?}");
}

/// Every list is paged by the rows read and not by those that can be shown:
/// behind two bad rows on a page of two there is a good one.
#[tokio::test]
async fn no_list_ends_behind_rows_that_cannot_be_read() {
    let world = World::new().await;
    let resource = world.declare("web-1").await;
    for name in ["one", "two", "three"] {
        world.create("/api/v1/projects", &json!({ "name": name })).await;
        world.create("/api/v1/clouds", &json!({ "name": name, "provider": "p" })).await;
        world.create("/api/v1/keys", &json!({ "name": name, "role": "viewer" })).await;
        world.mint_token(&resource).await;
        let gone = world.ask("DELETE", &format!("/api/v1/projects/{name}"), KEY, "").await;
        assert!(gone.status.is_success(), "{gone:?}");
    }
    let tokens = format!("/api/v1/resources/{resource}/tokens");
    let table = [
        ("/api/v1/projects?show_deleted=true", "projects", "labels = '[]'"),
        ("/api/v1/clouds", "clouds", "endpoint = '[]'"),
        ("/api/v1/keys", "api_keys", "hash = x'00'"),
        ("/api/v1/deletions", "deletions", "kind = 'x'"),
        (tokens.as_str(), "bootstrap_tokens", "kind = 'new'"),
        // Newest first; the entries come from the requests above.
        ("/api/v1/audit", "audit_entries", "details = 'no json'"),
    ];
    let file = format!("sqlite:{}", world.file.display());
    let mut connection = sqlx::SqliteConnection::connect(&file).await.unwrap();
    sqlx::query("PRAGMA ignore_check_constraints = 1").execute(&mut connection).await.unwrap();
    let id = |item: &Value| {
        let id = item.get("id").or(item.get("token_id")).and_then(Value::as_str);
        id.unwrap_or_else(|| panic!("no id: {item}")).to_owned()
    };
    for (path, rows, spoilt) in table {
        let ids: Vec<_> = world.get(path).await.json().as_array().unwrap().iter().map(id).collect();
        assert!(ids.len() >= 3, "{path}: {ids:?}");
        // The key of this test is the first.
        let skipped = usize::from(rows == "api_keys");
        for id in &ids[skipped..skipped + 2] {
            let spoil = format!("UPDATE {rows} SET {spoilt} WHERE id = $1");
            let spoil = sqlx::query(sqlx::AssertSqlSafe(spoil));
            let spoil = spoil.bind(uuid::Uuid::try_parse(id).unwrap());
            assert_eq!(spoil.execute(&mut connection).await.unwrap().rows_affected(), 1);
        }
        let (mut shown, mut held) = (Vec::new(), Vec::new());
        let mark = if path.contains('?') { '&' } else { '?' };
        let mut next = Some(format!("{path}{mark}limit={}", skipped + 2));
        while let Some(asked) = next {
            let answer = world.get(&asked).await;
            let items = answer.json();
            shown.extend(items.as_array().unwrap().iter().map(id));
            let named = answer.headers.get("slipway-quarantined-rows");
            held.extend(named.map(|ids| ids.to_str().unwrap().to_owned()));
            next = answer.headers.get("link").map(|link| {
                let link = link.to_str().unwrap();
                link.strip_prefix('<').unwrap().split_once('>').unwrap().0.to_owned()
            });
        }
        let good: Vec<_> = ids[..skipped].iter().chain(&ids[skipped + 2..]).cloned().collect();
        assert_eq!(shown, good, "{path}");
        assert_eq!(held, [ids[skipped..skipped + 2].join(",")], "{path} names what it left out");
    }
}
