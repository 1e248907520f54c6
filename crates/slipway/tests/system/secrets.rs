//! No secret leaks: not into the log at its most verbose level, not into
//! metrics, not into any answer but the one that shows it once, not into the
//! data folder except where a node gets its own.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, client};

/// A secret and the only files that may contain it, by their names.
struct Known {
    what: &'static str,
    text: String,
    may_lie_in: &'static [&'static str],
}

fn contains(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(files_below(&entry.path())),
            kind if kind.is_file() => found.push(entry.path()),
            // A socket or a pipe stores nothing.
            _ => {}
        }
    }
    found
}

impl Known {
    fn assert_absent(&self, place: &str, bytes: &[u8]) {
        assert!(!contains(bytes, &self.text), "{} is in {place}", self.what);
    }

    fn assert_absent_below(&self, folder: &Path) {
        for file in files_below(folder) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if !self.may_lie_in.contains(&name.as_str()) {
                // A file that is gone by now stores nothing.
                let bytes = std::fs::read(&file).unwrap_or_default();
                self.assert_absent(&file.display().to_string(), &bytes);
            }
        }
    }
}

/// The answers of all GET routes that could show a secret.
async fn everything_shown(plane: &ControlPlane, id: &str) -> Vec<(String, String)> {
    let mut shown = Vec::new();
    for path in [
        "/metrics".to_owned(),
        "/readyz".to_owned(),
        "/api/v1/whoami".to_owned(),
        "/api/v1/keys?limit=100".to_owned(),
        "/api/v1/nodes".to_owned(),
        "/api/v1/events?limit=500".to_owned(),
        "/api/v1/audit?limit=500".to_owned(),
        "/api/v1/audit/export".to_owned(),
        "/api/v1/resources".to_owned(),
        "/api/v1/loops".to_owned(),
        "/api/v1/deletions".to_owned(),
        format!("/api/v1/resources/{id}"),
        format!("/api/v1/resources/{id}/explain"),
        format!("/api/v1/resources/{id}/tokens"),
    ] {
        let response = plane.send(Method::GET, &path, None).await;
        let status = response.status().as_u16();
        let headers = format!("{:?}", response.headers());
        let text = headers + &response.text().await.unwrap();
        assert_eq!(status, 200, "{path}: {text}");
        shown.push((path, text));
    }
    shown
}

async fn assert_nowhere(plane: &ControlPlane, id: &str, secrets: &[Known]) {
    let shown = everything_shown(plane, id).await;
    let log = plane.log_text();
    assert!(log.contains("DEBUG"), "the log is talkative");
    let database = std::fs::read(plane.data_dir().join("slipway.db")).unwrap();
    let pending = std::fs::read(plane.data_dir().join("slipway.db-wal")).unwrap();
    assert!(contains(&[database, pending].concat(), "web-1"), "the look itself works");
    for secret in secrets {
        secret.assert_absent("the log", log.as_bytes());
        for (path, text) in &shown {
            secret.assert_absent(path, text.as_bytes());
        }
        secret.assert_absent_below(&plane.data_dir());
    }
}

fn text_of(answer: &Value, field: &str) -> String {
    answer[field].as_str().unwrap_or_else(|| panic!("{field} in {answer}")).to_owned()
}

/// The word of a document with this prefix.
fn word(document: &str, beginning: &str) -> String {
    let mut words = document.split(|c: char| c.is_whitespace() || "\"'".contains(c));
    words.find(|word| word.starts_with(beginning)).unwrap().to_owned()
}

/// With the shipped agent, which enrols, drains and leaves.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_left_lying_about() {
    let mut plane = ControlPlane::new(None);
    plane.set_environment("RUST_LOG", "trace");
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let directory = plane.node_directory(&id).await;
    let token_file = directory.join("rootfs/etc/plexd/bootstrap-token");
    wait::until(TIMEOUT, "the token file to be removed", async || !token_file.exists()).await;
    let user_data = std::fs::read_to_string(directory.join("user-data")).unwrap();
    let identity = std::fs::read_to_string(directory.join("state/identity.json")).unwrap();
    let secrets = [
        Known { what: "the admin key", text: KEY.to_owned(), may_lie_in: &[] },
        Known {
            what: "the bootstrap token of the loop",
            text: word(&user_data, "psb_"),
            may_lie_in: &["user-data"],
        },
        Known {
            what: "the node's own key",
            text: word(&identity, "nsk_"),
            may_lie_in: &["identity.json"],
        },
    ];
    assert_nowhere(&plane, &id, &secrets).await;
    plane.assert_goes(&id).await;
    plane.stop().await;
    let log = plane.log_text();
    for secret in &secrets {
        secret.assert_absent("the log", log.as_bytes());
        // The node's documents are gone with the node.
        Known { may_lie_in: &[], text: secret.text.clone(), ..*secret }
            .assert_absent_below(&plane.data_dir());
    }
}

/// With keys made and rotated, and a token issued, by hand. The test plays the
/// node: the agents get an address at which nothing answers.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_once_is_shown_nowhere_else() {
    let mut plane = ControlPlane::new(None);
    plane.set_environment("RUST_LOG", "trace");
    plane.set(&["--public-url", "http://127.0.0.1:1", "--log-format", "json"]);
    plane.start().await;
    let key = json!({ "name": "someone", "role": "viewer" });
    let (status, key) = plane.call(Method::POST, "/api/v1/keys", Some(key)).await;
    assert_eq!(status, 201, "{key}");
    let rotate = format!("/api/v1/keys/{}/rotate", text_of(&key, "id"));
    let overlap = json!({ "overlap_seconds": 60 });
    let (status, rotated) = plane.call(Method::POST, &rotate, Some(overlap)).await;
    assert_eq!(status, 200, "{rotated}");

    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Enrolling").await;
    let path = format!("/api/v1/resources/{id}/tokens");
    let (status, issued) = plane.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(status, 201, "{issued}");
    let token = text_of(&issued, "token");
    let register = json!({
        "token": token,
        "public_key": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
        "hostname": "by-hand",
        "capabilities": ["drain"],
    });
    let node = |path: String, bearer: &str, body: Value| {
        client().post(format!("{}{path}", plane.url())).bearer_auth(bearer).json(&body).send()
    };
    // Once as an invalid request: the refusal must not repeat what was sent.
    let refused = json!({ "token": format!("{token}x"), "public_key": "none" });
    let refused = node("/v1/register".to_owned(), &token, refused).await.unwrap();
    assert_eq!(refused.status().as_u16(), 400);
    let refused = refused.text().await.unwrap();
    let registered = node("/v1/register".to_owned(), &token, register).await.unwrap();
    let registered: Value = registered.json().await.unwrap();
    let node_key = text_of(&registered, "node_secret_key");
    let node_id = text_of(&registered, "node_id");
    plane.wait_for_phase(&id, "Ready").await;

    let known = |what, text: &str| Known { what, text: text.to_owned(), may_lie_in: &[] };
    let secrets = [
        known("the admin key", KEY),
        known("a made key", &text_of(&key, "key")),
        known("a rotated key", &text_of(&rotated, "key")),
        known("an issued token", &token),
        known("a node's key", &node_key),
    ];
    for secret in &secrets {
        secret.assert_absent("a refusal", refused.as_bytes());
    }
    assert_nowhere(&plane, &id, &secrets).await;

    plane.delete(&id).await;
    let heartbeat = format!("/v1/nodes/{node_id}/heartbeat");
    let drain = wait::until(TIMEOUT, "the node to be told to drain", async || {
        let heartbeat = node(heartbeat.clone(), &node_key, json!({})).await.unwrap();
        let answer: Value = heartbeat.json().await.unwrap();
        answer["drain"]["drain_id"].as_str().map(str::to_owned)
    })
    .await;
    let done = json!({ "drain_id": drain });
    let done = node(format!("/v1/nodes/{node_id}/drain"), &node_key, done).await.unwrap();
    assert_eq!(done.status().as_u16(), 204);
    plane.wait_for_phase(&id, "Deleted").await;
    assert_nowhere(&plane, &id, &secrets).await;
    plane.stop().await;
}
