//! The demos, as a newcomer runs them: those of the broker and of tenants on both databases,
//! and that of Fleet.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use slipway_testkit::process::{Signal, processes_with_argument, send_signal};
use slipway_testkit::{postgres, wait};
use sqlx::Connection as _;

use crate::control_plane::{TIMEOUT, binary};
use crate::hetzner;

/// Runs a demo, and checks that it leaves nothing; its last line.
fn demo(arguments: &[&str]) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = binary();
    // Its temporary folder is here, so that the test sees what it leaves.
    command.args(arguments).env("TMPDIR", folder.path());
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
    let (_, summary) = demo(&["demo"]);
    check(&summary, "sqlite");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_verifies_every_fact_on_postgresql() {
    let Some(server) = postgres::shared("the_demo_verifies_every_fact_on_postgresql").await else {
        return;
    };
    let database = server.database("demo").await;
    let (_, summary) = demo(&["demo", "--database-url", database.url()]);
    check(&summary, "postgres");
}

#[test]
fn the_demo_of_fleet_verifies_every_fact() {
    let (output, summary) = demo(&["fleet", "demo"]);
    assert_eq!(summary["agents"], json!(["directory", "directory", "directory"]), "{summary}");
    for (count, expected) in [
        ("delivered", 3),
        ("rolled_out", 3),
        ("removed_at_once", 2),
        ("removed_later", 1),
        ("restored", 3),
        ("removed_again", 3),
    ] {
        assert_eq!(summary[count], expected, "{count}: {summary}");
    }
    assert!(summary["duration_ms"].as_u64().unwrap() < 60_000, "{summary}");
    check_lines(output);
}

/// What a terminal of 80 columns shows, without colours for a file.
fn check_lines(output: Output) {
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let (_, shown) = lines.split_last().unwrap();
    for line in shown {
        assert!(line.chars().count() <= 80, "longer than 80 columns: {line}");
        assert!(!line.contains('\u{1b}'), "no colours without a terminal: {line}");
    }
}

fn check_tenants(summary: &Value, engine: &str) {
    for (count, expected) in [
        ("tenants", 5),
        ("ready", 4),
        ("cleaned_up", 1),
        ("migrated", 4),
        ("decommissioned", 1),
        ("restored", 1),
        ("purged", 5),
    ] {
        assert_eq!(summary[count], expected, "{count}: {summary}");
    }
    assert_eq!(summary["engine"], engine, "{summary}");
    assert!(summary["duration_ms"].as_u64().unwrap() < 60_000, "{summary}");
}

#[test]
fn the_demo_of_tenants_verifies_every_fact_in_files() {
    let (output, summary) = demo(&["tenant", "demo"]);
    check_tenants(&summary, "sqlite");
    check_lines(output);
}

#[test]
fn the_demo_of_workspaces_verifies_every_fact() {
    let (output, summary) = demo(&["workspace", "demo"]);
    for (key, count) in
        [("servers", 5), ("ready", 5), ("refused", 3), ("scaled_down", 1), ("torn_down", 4)]
    {
        assert_eq!(summary[key], count, "{key} of {summary}");
    }
    assert!(summary["facts"].as_u64().unwrap() >= 20, "{summary}");
    assert!(summary["duration_ms"].as_u64().unwrap() < 90_000, "{summary}");
    check_lines(output);
}

/// The same with servers of a provider, which a stand-in plays and counts.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_workspaces_verifies_every_fact_at_a_provider() {
    let folder = slipway_testkit::memory::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, hetzner::TOKEN).unwrap();
    let provider = hetzner::provider(&folder.path().join("machines")).await;
    let url = provider.url().to_owned();
    let told = tokio::task::spawn_blocking(move || {
        let token = token.to_str().unwrap();
        demo(&["workspace", "demo", "--hetzner", &url, "--token-file", token])
    });
    let (output, summary) = told.await.unwrap();
    assert_eq!(summary["engine"], "hetzner", "{summary}");
    for (key, count) in [("servers", 5), ("ready", 5), ("scaled_down", 1), ("torn_down", 4)] {
        assert_eq!(summary[key], count, "{key} of {summary}");
    }
    assert!(summary["duration_ms"].as_u64().unwrap() < 90_000, "{summary}");
    assert!(provider.servers("main").is_empty());
    assert_eq!((provider.machines(), provider.violations()), (0, Vec::<String>::new()));
    check_lines(output);
}

/// By a provisioner that is not superuser.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_tenants_verifies_every_fact_on_postgresql() {
    const TEST: &str = "the_demo_of_tenants_verifies_every_fact_on_postgresql";
    let Some(server) = postgres::shared(TEST).await else { return };
    let database = server.database("tenant_demo").await;
    let url = provisioner(&database).await;
    let (_, summary) = demo(&["tenant", "demo", "--database-url", &url]);
    check_tenants(&summary, "postgres");
}

/// The URL of a role that may make roles, and schemas in this database.
async fn provisioner(database: &postgres::TestDatabase) -> String {
    let mut connection = sqlx::PgConnection::connect(database.url()).await.unwrap();
    let role = database.name();
    for statement in [
        format!("CREATE ROLE {role} LOGIN CREATEROLE"),
        format!("GRANT CREATE ON DATABASE {role} TO {role}"),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    }
    database.url().replace("postgres@", &format!("{role}@"))
}

/// What it started is ended and removed, too, if somebody interrupts it.
#[tokio::test(flavor = "multi_thread")]
async fn a_demo_of_fleet_that_is_interrupted_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("output");
    let temporary = folder.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = binary();
    command.args(["fleet", "demo"]).env("TMPDIR", &temporary).stdin(Stdio::null());
    let output = std::fs::File::create(&log).unwrap();
    let mut demo = command.stdout(output).stderr(Stdio::null()).spawn().unwrap();
    let path = temporary.display().to_string();
    let processes = || processes_with_argument(&path).unwrap();
    wait::until(TIMEOUT, "a control plane and three agents", async || {
        let found = processes();
        if found.len() == 4 { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    send_signal(demo.id(), Signal::Interrupt).unwrap();
    let ended = tokio::task::spawn_blocking(move || demo.wait().unwrap()).await.unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(ended.code(), Some(1), "{text}");
    assert!(processes().is_empty(), "it left {:?}", processes());
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "it left {left:?}");
}
