//! What the command line says while it waits for tenants.

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::tenants::{made, profile};
use crate::tenants_exported::{done, refused};

fn document(name: &str) -> String {
    let (version, metadata) = ("apiVersion: slipway.dev/v1", format!("{{ name: {name} }}"));
    format!("{version}\nkind: Tenant\nmetadata: {metadata}\nspec: {{ profile: files }}\n---\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_are_for_every_tenant_and_name_the_one_that_failed() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let mut settings = profile(folder, "files", "INSERT INTO note (text) VALUES ('hello')");
    settings["steps"] =
        json!([{ "name": "wait", "after": "migrate", "command": ["sleep", "0.4"] }]);
    let body = json!({ "name": "files", "settings": settings });
    made(&plane, "/api/v1/tenant-profiles", &body).await;
    let names = ["acme", "globex", "initech"];
    std::fs::write(folder.join("tenants.yaml"), names.map(document).concat()).unwrap();
    done(&plane, folder, "apply -f tenants.yaml --wait");
    let found = plane.get("/api/v1/tenants").await;
    let states: Vec<_> = found.as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, [&Value::from("ready"); 3], "{found}");

    let migrations = folder.join("files/migrations");
    std::fs::write(migrations.join("V2__more.sql"), "CREATE TABLE more (id INTEGER)").unwrap();
    done(&plane, folder, "tenant migrate files --wait");
    std::fs::write(migrations.join("V3__broken.sql"), "INSERT INTO nothing VALUES (1)").unwrap();
    let said = refused(&plane, folder, "tenant migrate files --wait", 7);
    let line = said.lines().find(|line| line.contains("(canary) failed: ")).unwrap_or_default();
    assert!(names.iter().any(|name| line.contains(name)), "{said}");
    assert!(line.contains("V3__broken.sql") && line.contains("nothing"), "{said}");
}
