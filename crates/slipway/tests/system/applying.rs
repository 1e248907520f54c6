//! SIGKILL of the command and of the server in the middle of an apply and of a prune: applying
//! again ends with what the files say, and nothing was made twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use slipway_testkit::process::{Signal, Spawned};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

/// Labels are a transaction each, which makes an apply of them long enough to be killed in.
const LABELS: usize = 200;
const RESOURCES: usize = 300;
const SOURCE: &str = "killed";

fn write_folder(folder: &Path, labels: usize, resources: usize) {
    let _old = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    let document = |kind: &str, name: String, spec: &str| {
        format!(
            "---\napiVersion: slipway.dev/v1\nkind: {kind}\nmetadata: {{ name: {name} }}\nspec: {spec}\n"
        )
    };
    let mut text = String::new();
    for number in 0..labels {
        text.write_str(&document("Label", format!("l-{number}"), "{ description: d }")).unwrap();
    }
    std::fs::write(folder.join("labels.yaml"), &text).unwrap();
    text.clear();
    for number in 0..resources {
        let name = format!("r-{number}");
        text.write_str(&document("Resource", name, "{ blueprint: local-node }")).unwrap();
    }
    std::fs::write(folder.join("resources.yaml"), &text).unwrap();
}

fn slipway(plane: &ControlPlane, line: &str, folder: &Path) -> Command {
    let mut command = binary();
    command.args(line.split(' ')).env("SLIPWAY_SERVER", plane.url()).env("SLIPWAY_KEY", KEY);
    command.current_dir(folder.parent().unwrap()).stdin(Stdio::null());
    command
}

fn done(plane: &ControlPlane, line: &str, folder: &Path) -> String {
    let output = slipway(plane, line, folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{line}` failed: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn begin(plane: &ControlPlane, line: &str, folder: &Path) -> Spawned {
    let mut command = slipway(plane, line, folder);
    Spawned::start(command.stdout(Stdio::null()).stderr(Stdio::null())).unwrap()
}

/// How many objects the source declared.
async fn declared(plane: &ControlPlane) -> u64 {
    let sources = plane.get("/api/v1/apply-sources").await;
    let own = sources.as_array().unwrap().iter().find(|one| one["name"] == SOURCE);
    own.map_or(0, |own| own["objects"].as_u64().unwrap())
}

/// Every item of a list, page by page.
async fn all(plane: &ControlPlane, path: &str) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    loop {
        let after = items.last().map(|item| format!("&cursor={}", item["id"].as_str().unwrap()));
        let page = format!("{path}?limit=500{}", after.unwrap_or_default());
        let page = plane.get(&page).await.as_array().unwrap().clone();
        let is_last = page.len() < 500;
        items.extend(page);
        if is_last {
            return items;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_was_killed_is_finished_by_the_next() {
    const APPLY: &str = "apply -f folder --source killed --yes";
    const PRUNE: &str = "apply -f folder --source killed --prune --yes";
    for mut plane in ControlPlane::each("an_apply_that_was_killed").await {
        plane.start().await;
        plane.wait_until_ready().await;
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("folder");
        // What is declared waits, so that there are no hundreds of processes.
        done(&plane, "freeze --reason killed --for 1h", &folder_made(&folder));
        write_folder(&folder, LABELS, RESOURCES);

        let mut command = begin(&plane, APPLY, &folder);
        wait::until(TIMEOUT, "the first objects", async || declared(&plane).await > 0).await;
        command.signal(Signal::Kill).unwrap();
        assert!(!command.exit(TIMEOUT).await.unwrap().success());

        let before = declared(&plane).await;
        let mut command = begin(&plane, APPLY, &folder);
        wait::until(TIMEOUT, "more objects", async || declared(&plane).await > before).await;
        plane.kill();
        assert!(!command.exit(TIMEOUT).await.unwrap().success(), "the server was killed");
        plane.start().await;

        done(&plane, APPLY, &folder);
        let again = done(&plane, APPLY, &folder);
        assert_eq!(again.trim(), format!("{} unchanged", LABELS + RESOURCES));
        done(&plane, "diff -f folder --source killed", &folder);
        assert_eq!(declared(&plane).await, (LABELS + RESOURCES) as u64);
        each_once(&plane).await;

        // The same for a prune: half of the labels and a few resources go.
        write_folder(&folder, LABELS / 2, RESOURCES - 20);
        let mut command = begin(&plane, PRUNE, &folder);
        wait::until(TIMEOUT, "the first deletions", async || {
            !plane.get("/api/v1/deletions").await.as_array().unwrap().is_empty()
        })
        .await;
        command.signal(Signal::Kill).unwrap();
        command.exit(TIMEOUT).await.unwrap();
        done(&plane, PRUNE, &folder);
        let labels = all(&plane, "/api/v1/labels").await;
        let left = labels.iter().filter(|one| one["key"].as_str().unwrap().starts_with("l-"));
        assert_eq!(left.count(), LABELS / 2);
        let deletions = all(&plane, "/api/v1/deletions").await;
        let targets: BTreeSet<_> =
            deletions.iter().map(|one| one["target_id"].as_str().unwrap()).collect();
        assert_eq!((deletions.len(), targets.len()), (LABELS / 2 + 20, LABELS / 2 + 20));
        plane.stop().await;
    }
}

/// The folder in which commands run that read none.
fn folder_made(folder: &Path) -> std::path::PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    folder.to_owned()
}

/// Every resource is there once, and was announced once.
async fn each_once(plane: &ControlPlane) {
    let resources = all(plane, "/api/v1/resources").await;
    let handles: BTreeSet<_> = resources.iter().map(|one| one["handle"].to_string()).collect();
    assert_eq!((resources.len(), handles.len()), (RESOURCES, RESOURCES));
    let requested = async || {
        let events = plane.events().await.into_iter();
        let requested = events.filter(|(_, kind)| kind.ends_with("Requested"));
        requested.map(|(attempt, _)| attempt).collect::<Vec<_>>()
    };
    wait::until(TIMEOUT, "the events", async || requested().await.len() >= RESOURCES).await;
    let requested = requested().await;
    let attempts: BTreeSet<_> = requested.iter().collect();
    assert_eq!((requested.len(), attempts.len()), (RESOURCES, RESOURCES));
    assert_eq!(json!(resources[0]["phase"]), json!("Pending"));
}
