//! A database that was restored while its tenants went on: what their targets have is neither
//! undone nor cleaned up until a person has looked.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;
use sqlx::{Connection as _, Row as _};

use crate::control_plane::{ControlPlane, TIMEOUT};
use crate::restore::copy_database;
use crate::tenants::{made, profile};

/// What a backup is taken of, while nobody uses it.
async fn backup(plane: &ControlPlane, folder: &Path) -> Option<String> {
    let Some(url) = plane.database_url() else {
        copy_database(&plane.data_dir(), folder);
        return None;
    };
    let (server, name) = url.rsplit_once('/').unwrap();
    let copy = format!("{name}_backup");
    let mut connection = sqlx::PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
    let create = format!("CREATE DATABASE {copy} TEMPLATE {name}");
    // The sessions of the killed process may be there for a moment.
    wait::until(TIMEOUT, "the copy", async || {
        let made = sqlx::query(sqlx::AssertSqlSafe(create.clone())).execute(&mut connection).await;
        made.map(drop).map_err(|error| error.to_string())
    })
    .await;
    Some(format!("{server}/{copy}"))
}

async fn fetch(plane: &ControlPlane, name: &str) -> Value {
    plane.get(&format!("/api/v1/tenants/{name}?show_deleted=true")).await
}

async fn until(plane: &ControlPlane, name: &str, what: &str, is: impl Fn(&Value) -> bool) {
    wait::until(TIMEOUT, what, async || {
        let found = fetch(plane, name).await;
        if is(&found) { Ok(()) } else { Err(format!("{found}\n{}", plane.log_tail())) }
    })
    .await;
}

async fn call(plane: &ControlPlane, method: Method, path: &str, body: Value) -> (u16, Value) {
    plane.call(method, path, Some(body)).await
}

async fn notes(file: &Path) -> i64 {
    let mut connection = sqlx::SqliteConnection::connect(file.to_str().unwrap()).await.unwrap();
    let count = sqlx::query("SELECT count(*) AS notes FROM note");
    count.fetch_one(&mut connection).await.unwrap().get("notes")
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_that_went_on_after_the_backup_wait_for_a_person() {
    for plane in ControlPlane::each("tenants_restored").await {
        let folder = tempfile::tempdir().unwrap();
        restored(plane, folder.path()).await;
    }
}

async fn restored(mut plane: ControlPlane, folder: &Path) {
    plane.set(&["--lease", "3s"]);
    plane.start().await;
    let gate = folder.join("gate");
    let mut settings = profile(folder, "files", "INSERT INTO note (text) VALUES ('hello')");
    let open = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    settings["steps"] = json!([
        { "name": "gate", "after": "migrate", "command": ["sh", "-c", open], "deadline_seconds": 60 }
    ]);
    made(&plane, "/api/v1/tenant-profiles", &json!({ "name": "files", "settings": settings }))
        .await;
    std::fs::write(&gate, "").unwrap();
    for name in ["kept", "moved"] {
        let body = json!({ "name": name, "profile": "files" });
        made(&plane, "/api/v1/projects/default/tenants", &body).await;
        until(&plane, name, "a ready tenant", |tenant| tenant["state"] == "ready").await;
    }
    std::fs::remove_file(&gate).unwrap();
    let body = json!({ "name": "half", "profile": "files" });
    made(&plane, "/api/v1/projects/default/tenants", &body).await;
    until(&plane, "half", "roles", |tenant| tenant["state"] == "role_created").await;
    plane.kill();
    let aside = folder.join("backup");
    let copy = backup(&plane, &aside).await;

    // After the backup one becomes ready, and one is decommissioned.
    std::fs::write(&gate, "").unwrap();
    plane.start().await;
    until(&plane, "half", "a ready tenant", |tenant| tenant["state"] == "ready").await;
    let (status, answer) = call(&plane, Method::DELETE, "/api/v1/tenants/moved", Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    until(&plane, "moved", "a closed tenant", |tenant| tenant["closed"] == true).await;
    let files = folder.join("files/tenants");
    let (half, moved, kept) =
        (files.join("t_half.db"), files.join("t_moved.db"), files.join("t_kept.db"));
    assert!(!moved.exists() && half.exists() && kept.exists());
    plane.stop().await;
    match copy {
        Some(url) => plane.on_database(&url),
        None => copy_database(&aside, &plane.data_dir()),
    }
    plane.start().await;
    assert_eq!(plane.get("/api/v1/control").await["mode"], "observing");
    let body = json!({ "reason": "looked" });
    assert_eq!(call(&plane, Method::POST, "/api/v1/control/resume", body).await.0, 200);

    // What the target does not contradict goes on by itself.
    let (status, _) = call(&plane, Method::DELETE, "/api/v1/tenants/kept", Value::Null).await;
    assert_eq!(status, 200);
    until(&plane, "kept", "a closed tenant", |tenant| tenant["closed"] == true).await;
    assert!(!kept.exists());

    // The unfinished job waits, and the tenant that it would make again is in use.
    let waiting = plane.get("/api/v1/explain/tenant/half").await;
    let waiting = waiting["waiting_for"].as_str().unwrap();
    assert!(waiting.contains("restored") && waiting.contains("tenant resume half"), "{waiting}");
    assert_eq!(
        (fetch(&plane, "half").await["state"].as_str(), notes(&half).await),
        (Some("role_created"), 1)
    );

    // The task finds that its target is ahead.
    let (status, _) = call(&plane, Method::DELETE, "/api/v1/tenants/moved", Value::Null).await;
    assert_eq!(status, 200);
    until(&plane, "moved", "a person to be asked for", |tenant| {
        tenant["waiting_reason"].is_string()
    })
    .await;
    let held = fetch(&plane, "moved").await;
    assert!(held["waiting_reason"].as_str().unwrap().contains("ahead"), "{held}");

    let body = json!({ "reason": "its file is aside" });
    let (status, answer) =
        call(&plane, Method::POST, "/api/v1/tenants/moved/resume", json!({ "reason": "" })).await;
    assert_eq!((status, &answer["details"]["field"]), (400, &json!("reason")), "{answer}");
    let path = format!("/api/v1/tenants/{}/resume", held["id"].as_str().unwrap());
    let (status, answer) = call(&plane, Method::POST, &path, body.clone()).await;
    assert_eq!(status, 202, "{answer}");
    until(&plane, "moved", "a closed tenant", |tenant| tenant["closed"] == true).await;
    let (status, answer) = call(&plane, Method::POST, &path, body.clone()).await;
    assert_eq!((status, &answer["code"]), (409, &json!("nothing_to_resume")), "{answer}");

    // A step that fails now cleans nothing up.
    let migration = folder.join("files/migrations/V1__notes.sql");
    let applied = std::fs::read_to_string(&migration).unwrap();
    std::fs::write(&migration, "CREATE TABLE other (id INTEGER)").unwrap();
    let path = "/api/v1/tenants/half/resume";
    assert_eq!(call(&plane, Method::POST, path, body.clone()).await.0, 202);
    wait::until(TIMEOUT, "a held job", async || {
        let found = plane.get("/api/v1/explain/tenant/half").await.to_string();
        if found.contains("was changed") && found.contains("a person") {
            Ok(())
        } else {
            Err(found)
        }
    })
    .await;
    assert_eq!(notes(&half).await, 1);
    std::fs::write(&migration, applied).unwrap();
    assert_eq!(call(&plane, Method::POST, path, body).await.0, 202);
    until(&plane, "half", "a ready tenant", |tenant| tenant["state"] == "ready").await;
    assert_eq!(notes(&half).await, 1, "seeded once");
    plane.stop().await;
}
