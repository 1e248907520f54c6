//! Copies of tenants by the command line: whole or not there, and nothing is decommissioned
//! without one that was asked for.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use slipway_testkit::{postgres, wait};
use sqlx::{Connection as _, Row as _};

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};
use crate::tenants::{made, profile};

pub(crate) fn slipway(plane: &ControlPlane, folder: &Path, line: &str) -> Output {
    let mut command = binary();
    command.args(line.split(' ')).env("SLIPWAY_SERVER", plane.url()).env("SLIPWAY_KEY", KEY);
    command.current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

pub(crate) fn done(plane: &ControlPlane, folder: &Path, line: &str) {
    let output = slipway(plane, folder, line);
    assert!(output.status.success(), "`{line}`: {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn refused(plane: &ControlPlane, folder: &Path, line: &str, exit: i32) -> String {
    let output = slipway(plane, folder, line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(exit), "`{line}`: {said}");
    said
}

async fn provision(plane: &ControlPlane, name: &str, profile: &str, settings: &Value) {
    let body = json!({ "name": profile, "settings": settings });
    made(plane, "/api/v1/tenant-profiles", &body).await;
    let body = json!({ "name": name, "profile": profile });
    made(plane, "/api/v1/projects/default/tenants", &body).await;
    wait::until(TIMEOUT, "the tenant", async || {
        let found = plane.get(&format!("/api/v1/tenants/{name}")).await;
        if found["state"] == "ready" { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_copied_before_it_is_decommissioned() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let seed = "INSERT INTO note (text) VALUES ('hello')";
    let mut settings = profile(folder, "files", seed);
    settings["steps"] = json!([]);
    provision(&plane, "acme", "files", &settings).await;

    done(&plane, folder, "tenant export acme --file copy.db");
    let copy = folder.join("copy.db");
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let mut copied = sqlx::SqliteConnection::connect(copy.to_str().unwrap()).await.unwrap();
    let notes = sqlx::query("SELECT text FROM note").fetch_all(&mut copied).await.unwrap();
    assert_eq!(notes.iter().map(|row| row.get(0)).collect::<Vec<String>>(), ["hello"]);
    let said = refused(&plane, folder, "tenant export acme --file copy.db", 2);
    assert!(said.contains("--force"), "{said}");
    done(&plane, folder, "tenant export acme --file copy.db --force");

    // What somebody else has beside it stays.
    std::fs::write(folder.join("own.db.part"), "own").unwrap();
    done(&plane, folder, "tenant export acme --file own.db");
    assert_eq!(std::fs::read_to_string(folder.join("own.db.part")).unwrap(), "own");

    // Without a copy nothing is deleted.
    let database = folder.join("files/tenants/t_acme.db");
    std::fs::rename(&database, folder.join("away")).unwrap();
    let said = refused(&plane, folder, "tenant decommission acme --export lost.db --yes", 1);
    assert!(said.contains("cannot be copied") && said.contains("t_acme.db"), "{said}");
    std::fs::rename(folder.join("away"), &database).unwrap();
    refused(&plane, folder, "tenant decommission acme --export none/lost.db --yes", 2);
    let left = |name: &str| {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(name)).count()
    };
    assert_eq!(left("lost.db"), 0, "neither a copy nor a part of one");
    assert_eq!(plane.get("/api/v1/tenants/acme").await["deletion_id"], Value::Null);

    done(&plane, folder, "tenant decommission acme --export before.db --yes");
    wait::until(TIMEOUT, "the closing", async || {
        plane.get("/api/v1/tenants/acme?show_deleted=true").await["closed"] == true
    })
    .await;
    done(&plane, folder, "tenant export acme --file after.db");
    for name in ["before.db", "after.db"] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        assert!(bytes.starts_with(b"SQLite format 3\0"), "{name}");
    }

    let Some(server) = postgres::shared("tenants_exported").await else { return };
    let target = server.database("tenants_exported").await;
    let mut settings = profile(folder, "schemas", seed);
    std::fs::write(folder.join("schemas/target"), target.url()).unwrap();
    settings["engine"] = json!("postgres");
    settings["steps"] = json!([]);
    settings["prefix"] = json!(format!("x{}_", std::process::id()));
    settings["secrets"] = json!({ "directory": folder.join("secrets") });
    provision(&plane, "globex", "schemas", &settings).await;
    done(&plane, folder, "tenant decommission globex --export globex.dump --yes");
    let listed = std::process::Command::new("pg_restore")
        .args(["--file=-", "--data-only"])
        .arg(folder.join("globex.dump"))
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("\nhello\n"), "{listed}");
}
