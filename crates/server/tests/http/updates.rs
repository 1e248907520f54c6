//! Changing what is declared: in place, and by another attempt.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::{KEY, World};

const VERSIONS: &str = "/api/v1/blueprints/small/versions";

/// A blueprint with two versions, and a resource of the first.
async fn world() -> (World, String) {
    let world = World::new().await;
    let body = json!({ "slug": "small", "display_name": "Small", "engine": "local" });
    world.create("/api/v1/blueprints", &body).await;
    let version = |name: &str, mesh_role: &str| {
        json!({
            "version": name, "injection_strategy": "cloud-init-user-data",
            "provider_kinds": ["local"], "mesh_role": mesh_role,
            "parameter_schema": { "parameters": [
                { "name": "size", "type": "integer" },
                { "name": "zone", "type": "string", "immutable": true },
            ] },
        })
    };
    for (name, mesh_role) in [("v1", "node"), ("v2", "node"), ("v3", "standalone")] {
        let made = world.create(VERSIONS, &version(name, mesh_role)).await;
        assert_eq!(made["parameter_schema"]["parameters"][1]["immutable"], true);
    }
    let body = r#"{"handle":"web-1","blueprint":"small","version":"v1",
        "parameters":{"size":3,"zone":"a"}}"#;
    let declared = world.post("/api/v1/resources", body).await.json();
    (world, format!("/api/v1/resources/{}", declared["id"].as_str().unwrap()))
}

async fn patch(world: &World, path: &str, body: &Value) -> crate::world::Answer {
    world.ask("PATCH", path, KEY, &body.to_string()).await
}

#[tokio::test]
async fn a_difference_is_shown_and_then_written_once() {
    let (world, path) = world().await;
    let body = json!({ "version": "v2", "parameters": { "size": 5 }, "labels": { "tier": "web" } });
    let dry = format!("{path}?dry_run=true");
    let before = world.get(&path).await.json();
    let shown = patch(&world, &dry, &body).await.json();
    let changes = json!([
        { "field": "version", "before": "v1", "after": "v2" },
        { "field": "parameters.size", "before": 3, "after": 5 },
        { "field": "labels.tier", "after": "web" },
    ]);
    assert_eq!((&shown["changes"], &shown["dry_run"]), (&changes, &true.into()));
    assert_eq!(world.get(&path).await.json(), before, "nothing is written");

    let updated = patch(&world, &path, &body).await;
    assert_eq!(updated.status, StatusCode::OK, "{updated:?}");
    assert_eq!(updated.header("etag"), "\"2\"");
    let document = updated.json();
    assert_eq!(document["changes"], changes);
    assert_eq!(document["blueprint_version"], "v2");
    assert_eq!(document["attempt"]["parameters"], json!({ "size": 5, "zone": "a" }));
    assert!(document["update_pending_since"].is_string(), "{document}");
    let detail = world.get(&path).await.json();
    assert_eq!(detail["observed"], Value::Null, "nothing was observed yet");

    let again = patch(&world, &path, &body).await;
    assert_eq!((again.header("etag"), &again.json()["changes"]), ("\"2\"", &json!([])));
    let audit = world.get("/api/v1/audit?verb=resource.update").await.json();
    let [entry] = &audit.as_array().unwrap()[..] else { panic!("{audit}") };
    let changed = json!({ "version": { "from": "v1", "to": "v2" }, "parameters": ["size"] });
    assert_eq!(entry["details"]["changed"], changed);

    // A parameter that is taken away, and taken away again.
    let unset = json!({ "parameters": { "size": null } });
    let taken = patch(&world, &path, &unset).await.json();
    assert_eq!(taken["attempt"]["parameters"], json!({ "zone": "a" }));
    assert_eq!(patch(&world, &path, &unset).await.json()["changes"], json!([]));
}

#[tokio::test]
async fn what_cannot_be_updated_says_what_to_do() {
    let (world, path) = world().await;
    for (body, status, code, field) in [
        (json!({ "parameters": { "zone": "b" } }), 422, "parameter_immutable", "parameters.zone"),
        (json!({ "version": "v3" }), 422, "version_needs_replace", "version"),
        (json!({ "version": "v9" }), 422, "blueprint_not_found", "version"),
        (
            json!({ "parameters": { "size": "x" } }),
            422,
            "parameter_values_invalid",
            "parameters.size",
        ),
        (
            json!({ "parameters": { "sise": 1 } }),
            422,
            "parameter_values_invalid",
            "parameters.sise",
        ),
        (json!({ "labels": { "a b": "c" } }), 400, "invalid_input", "labels.a b"),
        (json!({ "handle": "x" }), 400, "invalid_input", "handle"),
    ] {
        for path in [path.clone(), format!("{path}?dry_run=true")] {
            let answer = patch(&world, &path, &body).await;
            assert_eq!(answer.refused(status, code).as_deref(), Some(field), "{body}");
        }
    }
    let refused = patch(&world, &path, &json!({ "parameters": { "zone": "b" } })).await.json();
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("slipway resource replace web-1 --param zone=…"), "{detail}");
    let stale = world.ask_with("PATCH", &path, ("if-match", "\"9\""), r#"{"labels":{}}"#).await;
    stale.refused(412, "revision_stale");

    world.ask("POST", &format!("{VERSIONS}/v2/retire"), KEY, "").await;
    let retired = patch(&world, &path, &json!({ "version": "v2" })).await;
    retired.refused(422, "blueprint_version_retired");
    world.ask("POST", &format!("{VERSIONS}/v1/retire"), KEY, "").await;
    let stays = patch(&world, &path, &json!({ "parameters": { "size": 4 } })).await;
    assert_eq!(stays.status, StatusCode::OK, "what was made from it stays on it: {stays:?}");

    let id = path.rsplit('/').next().unwrap();
    world.fail(id, "no room").await;
    let failed = patch(&world, &path, &json!({ "parameters": { "size": 5 } })).await;
    failed.refused(409, "resource_failed");
    assert_eq!(
        patch(&world, &path, &json!({ "labels": { "a": "b" } })).await.status,
        StatusCode::OK
    );
    world.ask("DELETE", &path, KEY, "").await;
    patch(&world, &path, &json!({ "parameters": { "size": 5 } })).await.refused(409, "leaving");
}

#[tokio::test]
async fn a_replacement_takes_what_an_update_does_not() {
    let (world, path) = world().await;
    let replace = format!("{path}/replace");
    let body = r#"{"reason":"another zone","version":"v3","parameters":{"zone":"b"}}"#;
    let protection = path.replace("/resources/", "/protections/resource/");
    world.ask("PUT", &protection, KEY, r#"{"reason":"it has the ledger"}"#).await;
    world.post(&replace, body).await.refused(409, "protected");
    world.ask("DELETE", &protection, KEY, "").await;
    world
        .ask_with("POST", &replace, ("if-match", "\"9\""), body)
        .await
        .refused(412, "revision_stale");
    let empty = world.post(&replace, r#"{"reason":" "}"#).await;
    assert_eq!(empty.refused(400, "invalid_input").as_deref(), Some("reason"));

    let replaced = world.post(&replace, body).await;
    assert_eq!(replaced.status, StatusCode::ACCEPTED, "{replaced:?}");
    assert_eq!(replaced.json()["phase"], "Deregistering");
    let explained = world.get(&format!("{path}/explain")).await.json();
    assert_eq!(explained["facts"]["next_parameters"], json!({ "size": 3, "zone": "b" }));
    world.post(&replace, body).await.refused(409, "leaving");
    patch(&world, &path, &json!({ "parameters": { "size": 5 } })).await.refused(409, "leaving");
}

#[tokio::test]
async fn a_surge_shows_two_attempts_and_can_be_aborted() {
    let (world, path) = world().await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    let replace = format!("{path}/replace");
    let surge = |version: &str| json!({ "version": version, "surge": true }).to_string();
    world.post(&replace, &surge("v2")).await.refused(409, "surge_needs_ready");
    world.set_phase(&id, "Ready").await;
    let denied = world.post(&replace, &surge("v2")).await;
    assert_eq!(denied.refused(422, "surge_not_allowed").as_deref(), Some("surge"));
    world.post(&replace, r#"{"abort":true}"#).await.refused(409, "nothing_to_abort");
    let both = world.post(&replace, r#"{"abort":true,"surge":true}"#).await;
    assert_eq!(both.refused(400, "invalid_input").as_deref(), Some("abort"));

    let body = json!({
        "version": "v4", "injection_strategy": "cloud-init-user-data",
        "provider_kinds": ["local"], "surge": true,
        "parameter_schema": { "parameters": [
            { "name": "size", "type": "integer" }, { "name": "zone", "type": "string" },
        ] },
    });
    assert_eq!(world.create(VERSIONS, &body).await["surge"], true);
    let manual = json!({ "slug": "by-hand", "display_name": "By hand", "engine": "manual" });
    world.create("/api/v1/blueprints", &manual).await;
    let refused = world.post("/api/v1/blueprints/by-hand/versions", &body.to_string()).await;
    assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("surge"));

    let declared = r#"{"handle":"web-2","blueprint":"small","version":"v4"}"#;
    let declared = world.post("/api/v1/resources", declared).await.json();
    let id = declared["id"].as_str().unwrap();
    let path = format!("/api/v1/resources/{id}");
    world.set_phase(id, "Ready").await;
    let body = r#"{"surge":true,"parameters":{"size":7}}"#;
    let surged = world.post(&format!("{path}/replace"), body).await;
    assert_eq!(surged.status, StatusCode::ACCEPTED, "{surged:?}");
    let seen = surged.json();
    assert_eq!((&seen["phase"], &seen["attempt"]["number"]), (&json!("Ready"), &json!(1)));
    let second = &seen["second_attempt"];
    assert_eq!((&second["number"], &second["phase"]), (&json!(2), &json!("Pending")));
    assert_eq!((&second["comes_in_use"], &second["parameters"]["size"]), (&json!(true), &json!(7)));
    world.post(&format!("{path}/replace"), body).await.refused(409, "surge_under_way");
    let update = json!({ "parameters": { "size": 5 } });
    patch(&world, &path, &update).await.refused(409, "surge_under_way");
    let labels = patch(&world, &path, &json!({ "labels": { "a": "b" } })).await;
    assert_eq!(labels.status, StatusCode::OK, "{labels:?}");
    let attempts = world.get(&format!("{path}/attempts")).await.json();
    let in_use: Vec<_> = attempts.as_array().unwrap().iter().map(|one| &one["in_use"]).collect();
    assert_eq!(in_use, [&json!(false), &json!(true)]);
    let explained = world.get(&format!("{path}/explain")).await.json();
    let waits = explained["waiting_for"].as_str().unwrap();
    assert!(waits.contains("attempt 2 to be Ready"), "{explained}");
    let about = explained["parts"][0]["about"].as_str().unwrap();
    assert!(about.contains("replaces attempt 1 once it is Ready"), "{explained}");

    let aborted = world.post(&format!("{path}/replace"), r#"{"abort":true}"#).await.json();
    assert_eq!(aborted["phase"], "Ready");
    assert_eq!(aborted["second_attempt"]["phase"], "Deregistering");
    assert_eq!(aborted["second_attempt"]["comes_in_use"], false);
    assert_eq!(aborted["deletion_id"], Value::Null, "the resource stays");
    let audit = world.get("/api/v1/audit?verb=resource.replace").await.json();
    let said: Vec<_> = audit.as_array().unwrap().iter().map(|one| &one["details"]).collect();
    assert!(said.iter().any(|one| one["surge"] == true), "{audit}");
    assert!(said.iter().any(|one| one["abort"] == true), "{audit}");
}
