//! API keys over HTTP: their life, and refusals.

use serde_json::json;
use sqlx::Connection as _;

use crate::world::{KEY, World};

#[tokio::test]
async fn a_key_is_made_rotated_and_revoked() {
    let world = World::new().await;
    let body = json!({ "name": "ci", "role": "operator", "ttl_seconds": 3_600 });
    let made = world.post("/api/v1/keys", &body.to_string()).await;
    assert_eq!(made.status.as_u16(), 201, "{made:?}");
    let document = made.json();
    let (id, first) = (document["id"].as_str().unwrap(), document["key"].as_str().unwrap());
    let path = format!("/api/v1/keys/{id}");
    assert_eq!((made.header("location"), made.header("etag")), (path.as_str(), "\"1\""));
    assert_eq!((&document["state"], &document["role"]), (&json!("usable"), &json!("operator")));
    assert_eq!(document["created_by"], "key:admin");
    let whoami = async |key: &str| world.ask("GET", "/api/v1/whoami", key, "").await;
    assert_eq!(whoami(first).await.json()["name"], "ci");
    assert!(whoami(first).await.json().get("key").is_none());

    let rotate = format!("{path}/rotate");
    let stale = world.ask_with("POST", &rotate, ("if-match", "\"7\""), "{}").await;
    stale.refused(412, "revision_stale");
    let rotated = world.post(&rotate, r#"{"overlap_seconds":60}"#).await;
    assert_eq!(rotated.status.as_u16(), 200, "{rotated:?}");
    let second = rotated.json()["key"].as_str().unwrap().to_owned();
    assert_ne!(second, first);
    for key in [first, second.as_str()] {
        assert_eq!(whoami(key).await.status.as_u16(), 200, "{key}");
    }
    let again = world.post(&rotate, "{}").await.json();
    let third = again["key"].as_str().unwrap();
    assert_eq!(whoami(third).await.status.as_u16(), 200);
    for key in [first, second.as_str()] {
        whoami(key).await.refused(401, "unauthenticated");
    }
    let shown = world.get(&path).await;
    assert!(!shown.text.contains(third) && !shown.text.contains("hash"), "{shown:?}");

    let revoke = format!("{path}?reason=left");
    for _ in 0..2 {
        assert_eq!(world.ask("DELETE", &revoke, KEY, "").await.status.as_u16(), 204);
    }
    whoami(third).await.refused(401, "unauthenticated");
    assert_eq!(world.get(&path).await.json()["state"], "revoked");
    world.post(&rotate, "{}").await.refused(409, "key_not_usable");
    let audit = world.get(&format!("/api/v1/audit?kind=api_key&id={id}")).await.json();
    let mut verbs: Vec<_> =
        audit.as_array().unwrap().iter().map(|entry| entry["verb"].as_str().unwrap()).collect();
    verbs.sort_unstable();
    assert_eq!(
        verbs,
        ["api_key.create", "api_key.revoke", "api_key.rotate", "api_key.rotate"],
        "and not twice what holds already"
    );
}

/// The clock of this world is fixed in January; that of the database goes on.
#[tokio::test]
async fn a_key_expires_by_the_clock_of_the_database() {
    let world = World::new().await;
    let ttl = json!({ "name": "ci", "role": "viewer", "ttl_seconds": 3_600 });
    let made = world.create("/api/v1/keys", &ttl).await;
    let (id, first) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let path = format!("/api/v1/keys/{id}");
    let rotated = world.post(&format!("{path}/rotate"), r#"{"overlap_seconds":60}"#).await.json();
    let second = rotated["key"].as_str().unwrap();
    let whoami =
        async |key: &str| world.ask("GET", "/api/v1/whoami", key, "").await.status.as_u16();
    assert_eq!((whoami(first).await, whoami(second).await), (200, 200));
    let a_second_ago = async |column: &str| {
        let url = format!("sqlite:{}", world.file.display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        let past =
            format!("UPDATE api_keys SET {column} = (unixepoch() - 1) * 1000000 WHERE name = 'ci'");
        sqlx::query(sqlx::AssertSqlSafe(past)).execute(&mut connection).await.unwrap();
    };
    a_second_ago("previous_until").await;
    assert_eq!((whoami(first).await, whoami(second).await), (401, 200), "the overlap is over");
    assert_eq!(world.get(&path).await.json()["previous_until"], json!(null));
    a_second_ago("expires_at").await;
    assert_eq!((whoami(first).await, whoami(second).await), (401, 401));
    assert_eq!(world.get(&path).await.json()["state"], "expired");
    let listed = world.get("/api/v1/keys").await.json();
    let found = listed.as_array().unwrap().iter().find(|listed| listed["id"] == id).unwrap();
    assert_eq!(found["state"], "expired");
}

#[tokio::test]
async fn wrong_keys_are_refused_by_field() {
    let world = World::new().await;
    let good = json!({ "name": "ci", "role": "viewer" });
    for (field, value, status, code) in [
        ("name", json!("Not A Name"), 400, "invalid_input"),
        ("name", json!("admin"), 409, "name_taken"),
        ("role", json!("king"), 400, "invalid_input"),
        ("project", json!("nowhere"), 422, "project_not_found"),
        ("ttl_seconds", json!(59), 400, "invalid_input"),
        ("ttl_seconds", json!(u64::MAX), 400, "invalid_input"),
        ("ttl_seconds", json!(-1), 400, "invalid_input"),
        ("secret", json!("x"), 400, "invalid_input"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        let answer = world.post("/api/v1/keys", &body.to_string()).await;
        assert_eq!(answer.refused(status, code).as_deref(), Some(field), "{body}");
    }
    let made = world.create("/api/v1/keys", &good).await;
    let rotate = format!("/api/v1/keys/{}/rotate", made["id"].as_str().unwrap());
    for body in [r#"{"overlap_seconds":604801}"#, r#"{"overlap_seconds":"x"}"#] {
        let answer = world.post(&rotate, body).await;
        let field = answer.refused(400, "invalid_input");
        assert_eq!(field.as_deref(), Some("overlap_seconds"), "{body}");
    }
}

#[tokio::test]
async fn the_last_admin_key_is_not_revoked() {
    let world = World::new().await;
    let own = world.get("/api/v1/whoami").await.json();
    let path = format!("/api/v1/keys/{}", own["id"].as_str().unwrap());
    world.ask("DELETE", &path, KEY, "").await.refused(409, "last_admin_key");
    let other = world.create("/api/v1/keys", &json!({ "name": "b", "role": "admin" })).await;
    assert_eq!(world.ask("DELETE", &path, KEY, "").await.status.as_u16(), 204);
    world.get("/api/v1/whoami").await.refused(401, "unauthenticated");
    let key = other["key"].as_str().unwrap();
    let path = format!("/api/v1/keys/{}", other["id"].as_str().unwrap());
    world.ask("DELETE", &path, key, "").await.refused(409, "last_admin_key");
}

/// The text of a key is stored nowhere, so a repeated request gets the same key
/// without its text.
#[tokio::test]
async fn a_repeated_create_is_the_same_key_without_its_text() {
    let world = World::new().await;
    let body = r#"{"name":"ci","role":"viewer"}"#;
    let send = || world.ask_with("POST", "/api/v1/keys", ("idempotency-key", "k"), body);
    let (first, again) = (send().await, send().await);
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201), "{again:?}");
    let (mut first, again) = (first.json(), again.json());
    let text = first["key"].take();
    assert_eq!(first, again, "all but the text");
    assert!(text.is_string() && again["key"].is_null());
    // Nor is it in any table of the database file.
    let text = text.as_str().unwrap();
    let secret = text.rsplit('_').next().unwrap();
    for file in [world.file.clone(), world.file.with_extension("db-wal")] {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{} holds the secret", file.display());
    }
}

#[tokio::test]
async fn whoever_asks_too_often_waits() {
    use slipway_core::access::rate::Rate;
    use slipway_server::StreamLimits;

    let rate = Rate { per_second: 1, burst: 3 };
    let world = World::limited(StreamLimits::default(), rate).await;
    let mut refused = None;
    for _ in 0..50 {
        let answer = world.get("/api/v1/whoami").await;
        if answer.status.as_u16() != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("fifty requests at once are more than three");
    refused.refused(429, "rate_limited");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert_eq!(refused.json()["details"]["retry_after_seconds"], wait);
    assert!((1..=2).contains(&wait), "{refused:?}");
    // Probes need no key and have no rate limit.
    assert_eq!(world.ask("GET", "/healthz", "", "").await.status.as_u16(), 200);
}

/// The key is not revoked but unusable: the answer says so, and why.
#[tokio::test]
async fn a_key_of_a_deleted_project_is_not_usable() {
    let world = World::new().await;
    world.create("/api/v1/projects", &json!({ "name": "gone" })).await;
    let body = json!({ "name": "ci", "role": "admin", "project": "gone" });
    let made = world.create("/api/v1/keys", &body).await;
    assert_eq!(made["state"], "usable");
    let deleted = world.ask("DELETE", "/api/v1/projects/gone", KEY, "").await;
    assert!(deleted.status.is_success(), "{deleted:?}");
    let key = made["key"].as_str().unwrap();
    world.ask("GET", "/api/v1/whoami", key, "").await.refused(401, "unauthenticated");
    let path = format!("/api/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["state"], "project_deleted");
    let listed = world.get("/api/v1/keys").await.json();
    let found = listed.as_array().unwrap().iter().find(|listed| listed["id"] == made["id"]);
    assert_eq!(found.unwrap()["state"], "project_deleted");
    world.post(&format!("{path}/rotate"), "{}").await.refused(409, "key_not_usable");
    let revoked = world.ask("DELETE", &path, KEY, "").await;
    assert_eq!(revoked.status.as_u16(), 204, "it can still be revoked");
    assert_eq!(world.get(&path).await.json()["state"], "revoked");
}
