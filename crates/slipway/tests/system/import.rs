//! A catalog in folders, imported by the real binary into a real server; and
//! the manifests with which a person starts an agent by hand.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, KEY, binary};

/// Relative to the package, where cargo starts its tests.
const CATALOG: &str = "tests/catalog";

fn run(plane: &ControlPlane, line: &[&str]) -> Output {
    binary()
        .args(line)
        .env("SLIPWAY_SERVER", plane.url())
        .env("SLIPWAY_KEY", KEY)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The exit code, and each entry with its outcome.
fn import(plane: &ControlPlane, folder: &Path) -> (Option<i32>, Value) {
    let output = run(plane, &["blueprint", "import", folder.to_str().unwrap(), "-o", "json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let entries: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?} {said}"));
    let outcome =
        |entry: &Value| (entry["slug"].as_str().unwrap().to_owned(), entry["outcome"].clone());
    let outcomes = entries.as_array().unwrap().iter().map(outcome).collect();
    (output.status.code(), Value::Object(outcomes))
}

fn copied(slug: &str, into: &Path) {
    let target = into.join(slug);
    fs::create_dir_all(&target).unwrap();
    for name in ["metadata.json", "xrd.yaml", "composition.yaml"] {
        fs::copy(Path::new(CATALOG).join(slug).join(name), target.join(name)).unwrap();
    }
}

fn edited(file: &Path, edit: impl Fn(String) -> String) {
    fs::write(file, edit(fs::read_to_string(file).unwrap())).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_is_imported_once_and_drift_is_refused() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let folder = tempfile::tempdir().unwrap();
    let catalog = folder.path().join("catalog");
    for slug in ["agent", "bucket", "server"] {
        copied(slug, &catalog);
    }
    let all = |outcome: &str| json!({ "agent": outcome, "bucket": outcome, "server": outcome });
    assert_eq!(import(&plane, folder.path()), (Some(0), all("imported")));
    assert_eq!(import(&plane, &catalog), (Some(0), all("unchanged")), "a second time");
    let path = "/api/v1/blueprints/server/versions/v1alpha1";
    let published = plane.get(path).await;

    edited(&catalog.join("server/xrd.yaml"), |text| format!("# edited\n{text}"));
    let drift = json!({ "agent": "unchanged", "bucket": "unchanged", "server": "drift" });
    assert_eq!(import(&plane, &catalog), (Some(1), drift));
    assert_eq!(plane.get(path).await, published, "a version never changes");
    let told = run(&plane, &["blueprint", "import", catalog.join("server").to_str().unwrap()]);
    let shown = String::from_utf8_lossy(&told.stdout);
    assert!(shown.contains("drift") && shown.contains("`xrd` differs"), "{shown}");

    // A slug that a blueprint of another engine has.
    copied("server", folder.path());
    let taken = folder.path().join("local-node");
    fs::rename(folder.path().join("server"), &taken).unwrap();
    edited(&taken.join("metadata.json"), |text| text.replace("\"server\"", "\"local-node\""));
    assert_eq!(import(&plane, &taken), (Some(1), json!({ "local-node": "conflict" })));

    // One invalid entry keeps the others from being sent.
    let mixed = folder.path().join("mixed");
    copied("agent", &mixed);
    copied("server", &mixed);
    fs::rename(mixed.join("server"), mixed.join("fresh")).unwrap();
    edited(&mixed.join("fresh/metadata.json"), |text| text.replace("\"server\"", "\"fresh\""));
    edited(&mixed.join("agent/xrd.yaml"), |text| text.replace("served: true", "served: false"));
    let invalid = json!({ "agent": "invalid", "fresh": "not_sent" });
    assert_eq!(import(&plane, &mixed), (Some(1), invalid));
    let slugs = plane.get("/api/v1/blueprints").await;
    let slugs: Vec<_> = slugs.as_array().unwrap().iter().map(|found| &found["slug"]).collect();
    assert!(!slugs.contains(&&json!("fresh")), "{slugs:?}");

    let empty = run(&plane, &["blueprint", "import", CATALOG.strip_suffix("catalog").unwrap()]);
    assert_eq!(empty.status.code(), Some(0), "the folder that holds it: {empty:?}");
    let nothing = folder.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    let nothing = run(&plane, &["blueprint", "import", nothing.to_str().unwrap()]);
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_written_out_as_a_daemon_set() {
    let mut plane = ControlPlane::new(None);
    // Nobody enrols, so that the token stays open.
    plane.set(&["--public-url", "http://127.0.0.1:9", "--orphan-after", "300s"]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Enrolling").await;
    for (how, documents) in [("secret", 4), ("env", 3)] {
        let image = "registry.example/plexd:1";
        let line = ["token", "issue", "web-1", "--daemon-set", how, "--image", image];
        let output = run(&plane, &line);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.matches("---\n").count(), documents, "{how}");
        assert_eq!(text.matches("psb_live_").count(), 1, "{how}");
        assert!(text.contains(&format!("image: {image}")), "{how}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("psb_"), "{how}");
    }
    let without = run(&plane, &["token", "issue", "web-1", "--daemon-set", "env"]);
    assert_eq!(without.status.code(), Some(2), "an image is needed");
    plane.delete(&id).await;
    plane.wait_for_phase(&id, "Deleted").await;
    plane.stop().await;
}
