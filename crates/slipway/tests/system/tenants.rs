//! Tenants as files, made by two control planes on one PostgreSQL: one is killed in the middle,
//! and every tenant is ready with exactly what it should have, or failed with nothing left.

use std::path::Path;

use serde_json::{Value, json};
use slipway_testkit::{postgres, wait};
use sqlx::{Connection as _, Row as _};

use crate::control_plane::{ControlPlane, TIMEOUT};

const EACH: usize = 6;

/// A folder of migrations and seeds, and the settings of a profile for it.
pub(crate) fn profile(folder: &Path, name: &str, seed: &str) -> Value {
    let own = folder.join(name);
    std::fs::create_dir_all(own.join("migrations")).unwrap();
    std::fs::create_dir_all(own.join("seeds")).unwrap();
    std::fs::write(own.join("target"), own.join("tenants").to_str().unwrap()).unwrap();
    let migration = "CREATE TABLE note (text TEXT NOT NULL)";
    std::fs::write(own.join("migrations/V1__notes.sql"), migration).unwrap();
    std::fs::write(own.join("seeds/01_notes.sql"), seed).unwrap();
    json!({
        "engine": "sqlite", "prefix": "t_", "target": { "file": own.join("target") },
        "migrations": own.join("migrations"), "seeds": own.join("seeds"),
        // Long enough to be killed in.
        "steps": [{ "name": "wait", "after": "migrate", "command": ["sleep", "0.4"] }],
    })
}

pub(crate) async fn made(plane: &ControlPlane, path: &str, body: &Value) -> Value {
    let (status, answer) = plane.call(reqwest::Method::POST, path, Some(body.clone())).await;
    assert_eq!(status, 201, "{path}: {answer}");
    answer
}

async fn states(plane: &ControlPlane) -> Vec<(String, String)> {
    let found = plane.get("/api/v1/tenants").await;
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(one, "target_name"), text(one, "state")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_made_whoever_is_killed() {
    let Some(server) = postgres::shared("tenants").await else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut first = ControlPlane::new(Some(server.database("tenants").await));
    first.set(&["--lease", "3s"]);
    let mut second = first.beside();
    first.start().await;
    second.start().await;
    let seeds = "INSERT INTO note (text) VALUES ('hello')";
    for (name, seed) in [("files", seeds), ("broken", "INSERT INTO nothing VALUES (1)")] {
        let body = json!({ "name": name, "settings": profile(folder.path(), name, seed) });
        made(&first, "/api/v1/tenant-profiles", &body).await;
    }
    let wrong = json!({ "name": "wrong", "settings": { "engine": "sqlite", "target": { "file": "/x" }, "seeds": "relative" } });
    let (status, answer) =
        first.call(reqwest::Method::POST, "/api/v1/tenant-profiles", Some(wrong)).await;
    assert_eq!((status, &answer["code"]), (422, &json!("tenant_profile_invalid")), "{answer}");
    assert_eq!(answer["details"]["field"], "settings.seeds", "{answer}");
    for project in ["east", "west"] {
        made(&first, "/api/v1/projects", &json!({ "name": project })).await;
    }
    for number in 0..EACH {
        for project in ["east", "west"] {
            let body = json!({ "name": format!("{project}-{number}"), "profile": "files" });
            made(&first, &format!("/api/v1/projects/{project}/tenants"), &body).await;
        }
    }
    let broken = json!({ "name": "unlucky", "profile": "broken" });
    let broken = made(&first, "/api/v1/projects/east/tenants", &broken).await;
    wait::until(TIMEOUT, "jobs under way", async || {
        states(&second).await.iter().any(|(_, state)| state == "migrated")
    })
    .await;
    first.kill();
    wait::until(TIMEOUT, "every job to end", async || {
        states(&second).await.iter().all(|(_, state)| state == "ready" || state == "failed")
    })
    .await;
    let ended = states(&second).await;
    assert_eq!(ended.len(), 2 * EACH + 1);
    for (name, state) in &ended {
        let lucky = name != "unlucky";
        assert_eq!(state == "ready", lucky, "{name} is {state}: {}", second.log_tail());
        let profile = if lucky { "files" } else { "broken" };
        let file = format!("{profile}/tenants/t_{}.db", name.replace('-', "_"));
        let file = folder.path().join(file);
        assert_eq!(file.exists(), lucky, "{}", file.display());
        if lucky {
            let mut tenant = sqlx::SqliteConnection::connect(file.to_str().unwrap()).await.unwrap();
            let notes = sqlx::query("SELECT count(*) AS notes FROM note");
            let notes: i64 = notes.fetch_one(&mut tenant).await.unwrap().get("notes");
            assert_eq!(notes, 1, "the seed of {name} ran once");
        }
    }
    let explained = second.get("/api/v1/explain/tenant/unlucky").await;
    assert!(explained["waiting_for"].as_str().unwrap().contains("slipway tenant retry unlucky"));
    assert!(explained["failure"]["reason"].as_str().unwrap().contains("nothing"), "{explained}");
    let id = broken["id"].as_str().unwrap();
    let audit = second.get(&format!("/api/v1/audit?id={id}&limit=50")).await.to_string();
    assert!(audit.contains("tenant.advance") && !audit.contains("no such table"), "{audit}");
    // The cause is gone, and so is the failure.
    std::fs::write(folder.path().join("broken/seeds/01_notes.sql"), seeds).unwrap();
    let (status, answer) =
        second.call(reqwest::Method::POST, &format!("/api/v1/tenants/{id}/retry"), None).await;
    assert_eq!(status, 202, "{answer}");
    wait::until(TIMEOUT, "the retry", async || {
        second.get("/api/v1/tenants/unlucky").await["state"] == "ready"
    })
    .await;
    closed_kept_and_destroyed(&second, folder.path()).await;
}

/// The file is moved aside, comes back as it was, and goes for good.
async fn closed_kept_and_destroyed(plane: &ControlPlane, folder: &Path) {
    let file = folder.join("files/tenants/t_east_0.db");
    let state = async |deletion: &str, state: &str| {
        wait::until(TIMEOUT, "a deletion", async || {
            plane.get(&format!("/api/v1/deletions/{deletion}")).await["state"] == state
        })
        .await;
    };
    let delete = async || {
        let (status, answer) =
            plane.call(reqwest::Method::DELETE, "/api/v1/tenants/east-0", None).await;
        assert_eq!(status, 200, "{answer}");
        answer["id"].as_str().unwrap().to_owned()
    };
    let deletion = delete().await;
    state(&deletion, "done").await;
    assert!(!file.exists(), "closed");
    let path = format!("/api/v1/deletions/{deletion}/restore");
    let (status, answer) = plane.call(reqwest::Method::POST, &path, Some(json!({}))).await;
    assert_eq!(status, 200, "{answer}");
    wait::until(TIMEOUT, "the file to be back", async || file.exists()).await;
    wait::until(TIMEOUT, "the tenant to be open", async || {
        plane.get("/api/v1/tenants/east-0").await["closed"] == false
    })
    .await;
    let deletion = delete().await;
    state(&deletion, "done").await;
    let path = format!("/api/v1/deletions/{deletion}/purge");
    let body = Some(json!({ "force": true, "reason": "over" }));
    let (status, answer) = plane.call(reqwest::Method::POST, &path, body).await;
    assert!((200..300).contains(&status), "{answer}");
    state(&deletion, "purged").await;
    let left = std::fs::read_dir(folder.join("files/tenants")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    let own = |name: &&std::ffi::OsString| name.to_string_lossy().contains("east_0");
    assert_eq!(left.iter().find(own), None, "{left:?}");
}
