//! API keys across starts of the real binary, on both databases: a withdrawn key
//! stays withdrawn, replicas agree, and an idempotent create has one answer.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::postgres;

use crate::control_plane::{ControlPlane, KEY, client};

impl ControlPlane {
    async fn call_as(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let request = client().request(method, format!("{}{path}", self.url())).bearer_auth(key);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null))
    }

    async fn whoami(&self, key: &str) -> (u16, Value) {
        self.call_as(key, Method::GET, "/api/v1/whoami", None).await
    }

    /// Rotates the key by itself; returns its new text.
    async fn rotate(&self, key: &str, overlap: u64) -> String {
        let (status, own) = self.whoami(key).await;
        assert_eq!(status, 200, "{own}");
        let path = format!("/api/v1/keys/{}/rotate", own["id"].as_str().unwrap());
        let body = json!({ "overlap_seconds": overlap });
        let (status, rotated) = self.call_as(key, Method::POST, &path, Some(body)).await;
        assert_eq!(status, 200, "{rotated}");
        rotated["key"].as_str().unwrap().to_owned()
    }

    fn warnings(&self) -> usize {
        let refused =
            |line: &&str| line.contains("WARN") && line.contains("is not installed again");
        self.log_text().lines().filter(refused).count()
    }
}

/// The environment still has the key of the first start.
#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_admin_key_is_refused_after_every_restart() {
    for mut plane in ControlPlane::each("a_withdrawn_admin_key").await {
        plane.start().await;
        let second = plane.rotate(KEY, 3_600).await;
        let current = plane.rotate(&second, 0).await;
        // The last one under another name: that must not revive it either.
        for (start, name) in (1..).zip(["admin", "admin", "root"]) {
            plane.stop().await;
            plane.set(&["--admin-key-name", name]);
            plane.start().await;
            for old in [KEY, second.as_str()] {
                assert_eq!(plane.whoami(old).await.0, 401, "start {start} as {name}");
            }
            let (status, own) = plane.whoami(&current).await;
            assert_eq!((status, &own["name"]), (200, &json!("admin")), "start {start} as {name}");
            assert_eq!(plane.warnings(), start, "one line each:\n{}", plane.log_tail());
        }
        assert!(plane.log_text().contains("SLIPWAY_ADMIN_KEY"), "the remedy is named");

        // A new text is the way back in: it replaces the key of its name.
        let fresh = "slipway_newnewnw_zyxwvutsrqponmkjihgfedcba";
        plane.stop().await;
        plane.set(&["--admin-key-name", "admin"]);
        plane.set_environment("SLIPWAY_ADMIN_KEY", fresh);
        plane.start().await;
        assert_eq!((plane.whoami(fresh).await.0, plane.whoami(&current).await.0), (200, 401));
        let audit = "/api/v1/audit?verb=api_key.replace";
        let (_, audit) = plane.call_as(fresh, Method::GET, audit, None).await;
        let entries = audit.as_array().unwrap();
        assert_eq!(entries.len(), 1, "{audit}");
        assert!(entries[0]["actor"].as_str().unwrap().starts_with("replica:"), "{audit}");

        plane.stop().await;
        plane.set_environment("SLIPWAY_ADMIN_KEY", KEY);
        plane.start().await;
        assert_eq!((plane.whoami(fresh).await.0, plane.whoami(KEY).await.0), (200, 401));
        plane.stop().await;
    }
}

/// Of two keys that are configured under one name on an empty database, one works,
/// on both replicas, whatever is started again.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_together_agree_on_one_key() {
    const OTHER: &str = "slipway_othother_zyxwvutsrqponmkjihgfedcba";
    let Some(server) = postgres::shared("replicas_agree_on_one_key").await else { return };
    let mut first = ControlPlane::new(Some(server.database("one_key").await));
    let mut second = first.beside();
    second.set_environment("SLIPWAY_ADMIN_KEY", OTHER);
    tokio::join!(first.start(), second.start());
    let valid = async |plane: &ControlPlane| {
        let found = [plane.whoami(KEY).await.0, plane.whoami(OTHER).await.0];
        assert!([[200, 401], [401, 200]].contains(&found), "{found:?}");
        found
    };
    let agreed = valid(&first).await;
    assert_eq!(valid(&second).await, agreed);
    for _ in 0..2 {
        first.stop().await;
        first.start().await;
        second.stop().await;
        second.start().await;
        assert_eq!((valid(&first).await, valid(&second).await), (agreed, agreed));
    }
    second.stop().await;
    first.stop().await;
}

/// The clock of the replica is two hours off, in either direction; that of
/// PostgreSQL is right, and decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_expires_by_the_clock_of_the_database() {
    let Some(server) = postgres::shared("a_key_expires_by_the_database").await else { return };
    let database = server.database("key_expiry").await;
    let mut plane = ControlPlane::new(None);
    plane.on_database(database.url());
    let orders = plane.take_orders();
    plane.start().await;
    let off = Duration::from_secs(2 * 3_600);
    let make = async |name: &str| {
        let body = json!({ "name": name, "role": "viewer", "ttl_seconds": 3_600 });
        let (status, made) = plane.call(Method::POST, "/api/v1/keys", Some(body)).await;
        assert_eq!(status, 201, "{made}");
        made["key"].as_str().unwrap().to_owned()
    };
    let (living, expired) = (make("living").await, make("expired").await);
    let rotated = plane.rotate(KEY, 3_600).await;
    database
        .execute(&["UPDATE api_keys SET expires_at = clock_timestamp() WHERE name = 'expired'"])
        .await;
    for shift in [Ok(off), Err(off), Ok(Duration::ZERO)] {
        orders.shift_clock(shift).unwrap();
        let (status, own) = plane.whoami(&living).await;
        assert_eq!((status, &own["state"]), (200, &json!("usable")), "{shift:?}: {own}");
        assert_eq!(plane.whoami(&expired).await.0, 401, "{shift:?}");
        assert_eq!(plane.whoami(KEY).await.0, 200, "within its overlap: {shift:?}");
    }
    database
        .execute(&["UPDATE api_keys SET previous_until = clock_timestamp() WHERE name = 'admin'"])
        .await;
    orders.shift_clock(Err(off)).unwrap();
    assert_eq!((plane.whoami(KEY).await.0, plane.whoami(&rotated).await.0), (401, 200));
    plane.stop().await;
}

/// Status, headers and body are those of one answer, although what was created
/// changes while the answers are made.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_identical_creates_get_one_answer() {
    for mut plane in ControlPlane::each("concurrent_identical_creates").await {
        plane.set(&["--rate-limit", "100000", "--rate-burst", "100000"]);
        plane.start().await;
        let client = client();
        for round in 0..40 {
            let name = format!("team-{round}");
            let create = async || {
                let request = client.post(format!("{}/api/v1/projects", plane.url()));
                let request = request.bearer_auth(KEY).header("idempotency-key", &name);
                let response = request.json(&json!({ "name": name })).send().await.unwrap();
                let header = |name| response.headers().get(name).cloned();
                let head = (response.status().as_u16(), header("location"), header("etag"));
                (head, response.text().await.unwrap())
            };
            let change = async || {
                for number in 0..8 {
                    let labels = json!({ "labels": { "round": number.to_string() } });
                    let path = format!("/api/v1/projects/{name}");
                    // 404 until it is created.
                    plane.call(Method::PATCH, &path, Some(labels)).await;
                }
            };
            let creates = futures::future::join_all((0..8).map(|_| create()));
            let (answers, ()) = tokio::join!(creates, change());
            assert_eq!(answers[0].0.0, 201, "{answers:?}");
            for answer in &answers {
                assert_eq!(answer, &answers[0], "round {round}");
            }
        }
        plane.stop().await;
    }
}
