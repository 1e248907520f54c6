//! Leaks over HTTP. This server has no engine, so it can observe nothing
//! outside.

use std::time::Duration;

use serde_json::json;
use slipway_app::deletion::port::ReportedFinding;
use slipway_core::deletion::leak::{Finding, FindingKind, ObjectRef};
use slipway_core::ids::{LeakRecordId, ProvisionedResourceId};

use crate::world::World;

const ID: &str = "0192f0c1-2b3c-7d4e-8f50-123456789abc";
const PATH: &str = "/api/v1/leaks";

/// Records a leak, as the finder does.
pub(crate) async fn leaked(world: &World, kind: FindingKind) -> String {
    let store = &world.context.stores;
    let cluster = store.placement.cluster_list().await.unwrap().remove(0);
    let key = world.context.entropy.uuid();
    let finding = Finding {
        key,
        kind,
        subject: ProvisionedResourceId::new(world.context.entropy.uuid()).into(),
        object_ref: ObjectRef { namespace: "project".to_owned(), name: format!("pr-{key}") },
        uid: Some("uid-1".to_owned()),
        evidence: json!({ "pid": 7 }),
    };
    let fresh_id = LeakRecordId::new(world.context.entropy.uuid());
    let reported = [ReportedFinding { finding, fresh_id }];
    let seen =
        store.deletion.leak_findings_record(&cluster, &reported, Duration::ZERO).await.unwrap();
    seen.leaks[0].id.to_string()
}

#[tokio::test]
async fn leaks_are_listed_by_state_and_kind_and_shown() {
    let world = World::new().await;
    assert_eq!(world.get(PATH).await.json(), json!([]));
    let unclaimed = leaked(&world, FindingKind::UnclaimedObject).await;
    let missing = leaked(&world, FindingKind::MissingObject).await;
    let ids = async |query: &str| {
        let listed = world.get(&format!("{PATH}{query}")).await.json();
        let ids = listed.as_array().unwrap().iter().map(|leak| leak["id"].clone());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [json!(unclaimed), json!(missing)]);
    assert_eq!(ids("?state=all&kind=missing_object").await, [json!(missing)]);
    assert_eq!(ids("?state=resolved").await, [json!(null); 0]);
    let first = world.get(&format!("{PATH}?limit=1&state=open")).await;
    assert!(first.header("link").contains("&state=open"), "{first:?}");

    let shown = world.get(&format!("{PATH}/{unclaimed}")).await.json();
    assert_eq!((&shown["state"], &shown["cluster"]), (&json!("open"), &json!("local")));
    assert_eq!((&shown["uid"], &shown["evidence"]["pid"]), (&json!("uid-1"), &json!(7)));
    assert!(shown["remedy"].as_str().unwrap().contains("slipway leaks remove"));
    let metrics = world.ask("GET", "/metrics", "", "").await.text;
    assert!(metrics.contains(r#"slipway_open_leaks{kind="unclaimed_object"} 1"#), "{metrics}");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let world = World::new().await;
    let bad = |query: &str| format!("{PATH}?{query}");
    let field = async |path: &str| world.get(path).await.refused(400, "invalid_input");
    assert_eq!(field(&bad("state=closed")).await.as_deref(), Some("state"));
    assert_eq!(field(&bad("kind=")).await.as_deref(), Some("kind"));
    assert_eq!(field(&bad("colour=red")).await.as_deref(), Some("colour"));
    world.get(&format!("{PATH}/nonsense")).await.refused(404, "leak_not_found");
    world.get(&format!("{PATH}/{ID}")).await.refused(404, "leak_not_found");
    for verb in ["resolve", "remove"] {
        let path = format!("{PATH}/{ID}/{verb}");
        world.post(&path, r#"{"reason":"why"}"#).await.refused(404, "leak_not_found");
        let empty = world.post(&path, r#"{"reason":" "}"#).await;
        assert_eq!(empty.refused(400, "invalid_input").as_deref(), Some("reason"));
        let missing = world.post(&path, "{}").await;
        assert_eq!(missing.refused(400, "invalid_input").as_deref(), Some("reason"));
    }
}

#[tokio::test]
async fn a_server_without_the_engine_looks_at_nothing_and_concludes_nothing() {
    let world = World::new().await;
    let unclaimed = leaked(&world, FindingKind::UnclaimedObject).await;
    let missing = leaked(&world, FindingKind::MissingObject).await;
    assert_eq!(world.post(&format!("{PATH}/find"), "").await.json(), json!([]));
    let reason = r#"{"reason":"why"}"#;
    world.post(&format!("{PATH}/{unclaimed}/resolve"), reason).await.refused(409, "leak_not_gone");
    world
        .post(&format!("{PATH}/{missing}/remove"), reason)
        .await
        .refused(409, "leak_not_removable");
    // Another replica has the engine and removes it.
    let asked = world.post(&format!("{PATH}/{unclaimed}/remove"), reason).await;
    assert_eq!(asked.status.as_u16(), 202, "{asked:?}");
    assert_eq!(asked.header("location"), format!("{PATH}/{unclaimed}"));
    let leak = asked.json();
    assert_eq!((&leak["state"], &leak["removal_reason"]), (&json!("open"), &json!("why")));
    assert_eq!(leak["removal_requested_by"], "key:admin");
}
