//! Settings of deletions, and purging by hand.

use serde_json::{Value, json};

use crate::world::{KEY, World};

async fn put(world: &World, path: &str, body: Value) -> (u16, Value) {
    let answer = world.ask("PUT", path, KEY, &body.to_string()).await;
    (answer.status.as_u16(), answer.json())
}

#[tokio::test]
async fn settings_are_set_shown_resolved_and_removed() {
    let world = World::new().await;
    let path = "/api/v1/deletion-settings/default/label";
    let (status, set) = put(
        &world,
        "/api/v1/deletion-settings/default/resource",
        json!({ "grace_seconds": 3600, "approve_above": 20, "reason": "policy" }),
    )
    .await;
    assert_eq!(status, 200, "{set}");
    assert_eq!((&set["project"], &set["kind"]), (&json!("default"), &json!("resource")), "{set}");
    assert_eq!((&set["grace_seconds"], &set["approve_above"]), (&json!(3600), &json!(20)));
    let (status, all) =
        put(&world, "/api/v1/deletion-settings/-/-", json!({ "purge_protected": true })).await;
    assert_eq!((status, &all["project"], &all["kind"]), (200, &Value::Null, &Value::Null));
    let listed = world.get("/api/v1/deletion-settings").await.json();
    let scopes: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(scopes, [&Value::Null, &json!("resource")], "the general ones come first");

    // Of a field the first one that says something counts.
    let id = world.declare("web-1").await;
    let deletion = world.ask("DELETE", &format!("/api/v1/resources/{id}"), KEY, "").await.json();
    assert_eq!(deletion["state"], "scheduled", "{deletion}");
    assert_eq!(deletion["purge_protected"], true, "{deletion}");

    for (body, field) in [
        (json!({}), "grace"),
        (json!({ "grace_seconds": 40_000_000 }), "grace"),
        (json!({ "retention_seconds": 400_000_000 }), "retention"),
        (json!({ "approve_above": -1 }), "approve_above"),
    ] {
        let (status, refused) = put(&world, path, body).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid_input")), "{refused}");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    let (status, refused) =
        put(&world, "/api/v1/deletion-settings/-/node", json!({ "approve_above": 1 })).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("resource"), "{refused}");
    let (status, refused) =
        put(&world, "/api/v1/deletion-settings/nobody/-", json!({ "approve_above": 1 })).await;
    assert_eq!((status, &refused["code"]), (404, &json!("project_not_found")), "{refused}");

    for path in ["/api/v1/deletion-settings/default/resource", "/api/v1/deletion-settings/-/-"] {
        for _ in 0..2 {
            let removed = world.ask("DELETE", &format!("{path}?reason=over"), KEY, "").await;
            assert_eq!(removed.status.as_u16(), 204, "{removed:?}");
        }
    }
    assert_eq!(world.get("/api/v1/deletion-settings").await.json(), json!([]));
}

#[tokio::test]
async fn a_purge_counts_first_and_needs_force_and_a_reason() {
    let world = World::new().await;
    world.create("/api/v1/clouds", &json!({ "name": "east", "provider": "p" })).await;
    let credential = json!({ "cloud": "east", "name": "x" });
    let credential = world.create("/api/v1/credentials", &credential).await;
    let delete = async |path: String| world.ask("DELETE", &path, KEY, "").await.json();
    let id = |document: &Value| document["id"].as_str().unwrap().to_owned();
    let of_credential = id(&delete(format!("/api/v1/credentials/{}", id(&credential))).await);
    let (_, set) =
        put(&world, "/api/v1/deletion-settings/-/cloud", json!({ "purge_protected": true })).await;
    assert_eq!(set["purge_protected"], true, "{set}");
    let of_cloud = id(&delete("/api/v1/clouds/east".to_owned()).await);
    world.ask("DELETE", "/api/v1/deletion-settings/-/cloud", KEY, "").await;
    let purge = async |id: &str, body: Value| {
        let answer = world.post(&format!("/api/v1/deletions/{id}/purge"), &body.to_string()).await;
        (answer.status.as_u16(), answer.json())
    };

    let (status, counted) = purge(&of_cloud, json!({})).await;
    assert_eq!((status, &counted["state"], &counted["total"]), (200, &json!("done"), &json!(1)));
    assert_eq!(counted["tables"], json!([{ "table": "clouds", "rows": 1 }]), "{counted}");
    assert_eq!(counted["sample"][0]["name"], "east", "{counted}");
    let codes: Vec<_> =
        counted["withheld"].as_array().unwrap().iter().map(|one| one["code"].clone()).collect();
    assert_eq!(codes, ["purge_protected", "in_use"], "{counted}");
    let (status, refused) = purge(&of_cloud, json!({ "force": true })).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!("reason")), "{refused}");
    let force = json!({ "force": true, "reason": "privacy" });
    let (status, refused) = purge(&of_cloud, force.clone()).await;
    assert_eq!((status, &refused["code"]), (409, &json!("purge_withheld")), "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("credential x"), "{refused}");

    let (status, begun) = purge(&of_credential, force.clone()).await;
    assert_eq!((status, &begun["state"]), (202, &json!("purging")), "{begun}");
    let deletion = world.get(&format!("/api/v1/deletions/{of_credential}")).await.json();
    assert_eq!(deletion["state"], "purging", "it is written before anything goes");
    let step = world.context.stores.deletion.purge_batch(of_credential.parse().unwrap(), 50).await;
    assert!(!step.unwrap().is_left);
    let (status, refused) = purge(&of_cloud, force).await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("--despite-protection"), "{refused}");
    let despite = json!({ "force": true, "reason": "privacy", "despite_protection": true });
    let (status, begun) = purge(&of_cloud, despite.clone()).await;
    assert_eq!((status, &begun["state"]), (202, &json!("purging")), "{begun}");
    let (status, again) = purge(&of_cloud, despite).await;
    assert_eq!((status, &again["state"]), (202, &json!("purging")), "again changes nothing");
    let audit = world.get("/api/v1/audit?verb=deletion.purge&limit=1").await.json();
    assert_eq!(audit[0]["reason"], "privacy", "{audit}");
    assert_eq!(audit[0]["details"]["despite_protection"], true, "{audit}");
}
