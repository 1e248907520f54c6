//! The demo, as a newcomer runs it, on both databases.

use std::process::{Output, Stdio};

use serde_json::Value;
use slipway_testkit::postgres;
use slipway_testkit::process::processes_with_argument;

use crate::control_plane::binary;

fn demo(arguments: &[&str]) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = binary();
    // Its temporary folder is here, so that the test sees what it leaves.
    command.arg("demo").args(arguments).env("TMPDIR", folder.path());
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(left.is_empty(), "it left {left:?}");
    let processes = processes_with_argument(&folder.path().display().to_string()).unwrap();
    assert!(processes.is_empty(), "it left {processes:?}");
    let summary = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    (output, summary)
}

fn check(summary: &Value, database: &str) {
    assert_eq!(summary["provisioned"], 3, "{summary}");
    assert_eq!(summary["ready"], 3, "{summary}");
    assert_eq!(summary["deleted"], 3, "{summary}");
    assert_eq!(summary["database"], database, "{summary}");
    assert!(summary["duration_ms"].as_u64().unwrap() < 60_000, "{summary}");
}

#[test]
fn the_demo_verifies_every_fact_on_the_embedded_default() {
    let (_, summary) = demo(&[]);
    check(&summary, "sqlite");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_verifies_every_fact_on_postgresql() {
    let Some(server) = postgres::shared("the_demo_verifies_every_fact_on_postgresql").await else {
        return;
    };
    let database = server.database("demo").await;
    let (_, summary) = demo(&["--database-url", database.url()]);
    check(&summary, "postgres");
}
