//! Bootstrap tokens issued by hand.

use serde_json::json;

use crate::world::{KEY, World};

const PUBLIC_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

/// A resource that waits for its node, as the loop leaves it.
async fn waiting(world: &World, handle: &str) -> (String, String) {
    let resource = world.declare(handle).await;
    let token = world.mint_token(&resource).await;
    world.set_phase(&resource, "Enrolling").await;
    (resource, token)
}

async fn register(world: &World, token: &str) -> crate::world::Answer {
    let body = json!({ "token": token, "public_key": PUBLIC_KEY }).to_string();
    world.ask("POST", "/v1/register", "", &body).await
}

#[tokio::test]
async fn a_token_by_hand_enrols_and_the_one_before_does_not() {
    let world = World::new().await;
    let (resource, before) = waiting(&world, "web-1").await;
    let path = format!("/api/v1/resources/{resource}/tokens");
    let issued = world.post(&path, r#"{"kind":"node","ttl_seconds":600}"#).await;
    assert_eq!(issued.status.as_u16(), 201, "{issued:?}");
    let document = issued.json();
    let token = document["token"].as_str().unwrap();
    let own = format!("/api/v1/tokens/{}", document["token_id"].as_str().unwrap());
    assert_eq!(issued.header("location"), own);
    assert_eq!((&document["issued_by"], &document["kind"]), (&json!("key:admin"), &json!("node")));
    let shown = world.get(&own).await;
    assert!(!shown.text.contains(token) && shown.json().get("token").is_none(), "{shown:?}");

    let refused = register(&world, &before).await;
    assert_eq!(refused.status.as_u16(), 403, "{refused:?}");
    let enrolled = register(&world, token).await;
    assert_eq!(enrolled.status.as_u16(), 201, "{enrolled:?}");
    assert_eq!(world.get(&own).await.json()["state"], "consumed");
    world.ask("DELETE", &own, KEY, "").await.refused(409, "token_not_revocable");
    world.post(&path, "{}").await.refused(409, "not_enrolling");
    let listed = world.get(&path).await.json();
    let mut states: Vec<_> =
        listed.as_array().unwrap().iter().map(|token| token["state"].as_str().unwrap()).collect();
    states.sort_unstable();
    assert_eq!(states, ["consumed", "revoked"]);
}

#[tokio::test]
async fn a_revoked_token_enrols_nobody() {
    let world = World::new().await;
    let (resource, _) = waiting(&world, "web-1").await;
    let path = format!("/api/v1/resources/{resource}/tokens");
    let issued = world.post(&path, "{}").await.json();
    let own = format!("/api/v1/tokens/{}", issued["token_id"].as_str().unwrap());
    assert_eq!(world.ask("DELETE", &own, KEY, "").await.status.as_u16(), 204);
    world.ask("DELETE", &own, KEY, "").await.refused(409, "token_not_revocable");
    let refused = register(&world, issued["token"].as_str().unwrap()).await;
    assert_eq!(refused.status.as_u16(), 403, "{refused:?}");
}

#[tokio::test]
async fn wrong_tokens_are_refused_by_field_and_by_phase() {
    let world = World::new().await;
    let early = world.declare("early").await;
    let path = |resource: &str| format!("/api/v1/resources/{resource}/tokens");
    world.post(&path(&early), "{}").await.refused(409, "not_enrolling");
    let (resource, _) = waiting(&world, "web-1").await;
    for (body, field) in [
        (r#"{"ttl_seconds":299}"#, "ttl_seconds"),
        (r#"{"ttl_seconds":86401}"#, "ttl_seconds"),
        (r#"{"kind":"bridge"}"#, "kind"),
        (r#"{"kind":"pet"}"#, "kind"),
        (r#"{"env_prefix":"test"}"#, "env_prefix"),
    ] {
        let answer = world.post(&path(&resource), body).await;
        assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some(field), "{body}");
    }
    world.ask("DELETE", &format!("/api/v1/resources/{resource}"), KEY, "").await;
    world.post(&path(&resource), "{}").await.refused(409, "not_enrolling");
}

/// As with keys: the same token, without its text.
#[tokio::test]
async fn a_repeated_issue_is_the_same_token_without_its_text() {
    let world = World::new().await;
    let (resource, _) = waiting(&world, "web-1").await;
    let path = format!("/api/v1/resources/{resource}/tokens");
    let send = || world.ask_with("POST", &path, ("idempotency-key", "k"), "{}");
    let (first, again) = (send().await.json(), send().await.json());
    assert_eq!(first["token_id"], again["token_id"]);
    assert!(first["token"].is_string() && again["token"].is_null(), "{first} {again}");
}
