//! The deletion brake, and what is declared protected.

use serde_json::{Value, json};

use crate::world::{KEY, World};

#[tokio::test]
async fn a_key_that_deletes_half_of_a_project_is_stopped_until_it_is_released() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for handle in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        ids.push(world.declare(handle).await);
    }
    let made = world.post("/api/v1/keys", r#"{"name":"ci","role":"operator"}"#).await.json();
    let ci = made["key"].as_str().unwrap();
    let delete = async |key: &str, id: &str, query: &str| {
        world.ask("DELETE", &format!("/api/v1/resources/{id}{query}"), key, "").await
    };
    for id in &ids[..4] {
        assert_eq!(delete(ci, id, "").await.status, 202);
    }
    let stopped = delete(ci, &ids[4], "").await;
    stopped.refused(409, "deletion_brake");
    let message = stopped.json()["detail"].as_str().unwrap().to_owned();
    assert!(message.contains("`slipway brake release ci`"), "{message}");
    assert!(message.contains("5 of 8 resources"), "{message}");
    let untouched = world.get(&format!("/api/v1/resources/{}", ids[4])).await.json();
    assert_eq!(untouched["deletion_id"], Value::Null);
    delete(ci, &ids[4], "?break_glass=true&reason=x").await.refused(403, "forbidden");
    let unsaid = delete(KEY, &ids[4], "?break_glass=true").await;
    assert_eq!(unsaid.refused(400, "invalid_input").as_deref(), Some("reason"));
    assert_eq!(delete(KEY, &ids[4], "?break_glass=true&reason=x").await.status, 202);

    assert_eq!(world.get("/api/v1/status").await.json()["brakes"], json!(["ci"]));
    let listed = world.get("/api/v1/brakes").await.json();
    assert_eq!((&listed[0]["key"], listed.as_array().unwrap().len()), (&json!("ci"), 1));
    let why = r#"{"reason":"meant","seconds":60}"#;
    let release = "/api/v1/brakes/ci/release";
    world.ask("POST", release, ci, why).await.refused(403, "forbidden");
    let long = world.post(release, r#"{"reason":"meant","seconds":3601}"#).await;
    assert_eq!(long.refused(400, "invalid_input").as_deref(), Some("seconds"));
    let released = world.post(release, why).await.json();
    assert!(released["released_until"].is_string(), "{released}");
    world.post(release, why).await.refused(409, "nothing_to_lift");
    world.post("/api/v1/brakes/nobody/release", why).await.refused(404, "key_not_found");
    assert_eq!(delete(ci, &ids[5], "").await.status, 202);
    assert_eq!(world.get("/api/v1/brakes").await.json(), json!([]));
}

#[tokio::test]
async fn what_is_declared_protected_is_protected_from_the_start() {
    let world = World::new().await;
    let resource = json!({ "handle": "books", "blueprint": "local-node", "protected": true });
    let books = world.post("/api/v1/resources", &resource.to_string()).await.json();
    world.create("/api/v1/projects", &json!({ "name": "shop", "protected": true })).await;
    let cluster = json!({ "name": "east", "engine": "local", "protected": true });
    world.create("/api/v1/clusters", &cluster).await;
    let blueprint =
        json!({ "slug": "s", "display_name": "S", "engine": "local", "protected": true });
    world.create("/api/v1/blueprints", &blueprint).await;
    let id = books["id"].as_str().unwrap();
    let resource = format!("resources/{id}");
    for path in [&*resource, "projects/shop", "clusters/east", "blueprints/s"] {
        let refused = world.ask("DELETE", &format!("/api/v1/{path}"), KEY, "").await;
        refused.refused(409, "protected");
    }
    let listed = world.get("/api/v1/protections").await.json();
    assert_eq!(listed.as_array().unwrap().len(), 4, "{listed}");
    let refused = world.ask("DELETE", "/api/v1/projects/default?cascade=true", KEY, "").await;
    refused.refused(409, "protected");
}
