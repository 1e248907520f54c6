//! A real PostgreSQL through the public interface of the crate: databases, the
//! end of a server, and the notice when PostgreSQL is not installed.
//!
//! Some tests need a process of their own to kill or to give another
//! environment. They start this same binary again with one test selected and
//! [`ROLE`] set; that test then plays the other role.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use slipway_testkit::postgres::{
    BINARIES_VARIABLE, DATABASE_URL_VARIABLE, Options, Postgres, REQUIRE_VARIABLE, shared,
};
use slipway_testkit::process::{Signal, Spawned, processes_with_argument, send_signal};
use slipway_testkit::wait::until;

const ROLE: &str = "SLIPWAY_TESTKIT_ROLE";
const TIMEOUT: Duration = Duration::from_secs(60);

/// This binary again, running only `test` in its other role.
fn mk_other_role(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this binary"));
    command.args(["--exact", test, "--nocapture"]).env(ROLE, "other").stdin(Stdio::null());
    command
}

fn plays_other_role() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// The output of `psql` for a query, or its error.
fn ask(url: &str, query: &str) -> Result<String, String> {
    let answer = Command::new("psql")
        .args(["-X", "-q", "-t", "-A", "-d", url, "-c", query])
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if answer.status.success() { Ok(text(&answer.stdout)) } else { Err(text(&answer.stderr)) }
}

/// Waits until the processes and files of a server in `folder` are gone.
async fn until_gone(folder: &str) {
    until(TIMEOUT, "the end of the server and its folder", async || {
        let processes = processes_with_argument(folder).map_err(|error| error.to_string())?;
        let folder_exists = PathBuf::from(folder).exists();
        if processes.is_empty() && !folder_exists {
            Ok(())
        } else {
            Err(format!("folder exists: {folder_exists}, processes: {processes:?}"))
        }
    })
    .await;
}

#[tokio::test]
async fn each_database_is_fresh_and_ends_with_its_value() {
    let Some(postgres) = shared("each_database_is_fresh_and_ends_with_its_value").await else {
        return;
    };
    let (one, two) = tokio::join!(postgres.database("fresh"), postgres.database("fresh"));
    assert_ne!(one.url(), two.url());
    ask(one.url(), "CREATE TABLE only_in_one (id int)").unwrap();
    assert!(ask(two.url(), "TABLE only_in_one").unwrap_err().contains("does not exist"));

    let url = one.url().to_owned();
    drop(one);
    assert!(ask(&url, "SELECT 1").unwrap_err().contains("does not exist"));
    assert_eq!(ask(two.url(), "SELECT 1").unwrap(), "1");
}

#[tokio::test]
async fn a_database_is_copied_from_its_template() {
    let Some(postgres) = shared("a_database_is_copied_from_its_template").await else {
        return;
    };
    let template = postgres.database("template").await;
    ask(template.url(), "CREATE TABLE copied AS SELECT 42 AS answer").unwrap();
    let (one, two) = tokio::join!(
        postgres.database_from_template("copy", template.name()),
        postgres.database_from_template("copy", template.name()),
    );
    ask(one.url(), "UPDATE copied SET answer = 43").unwrap();
    for (database, answer) in [(&one, "43"), (&two, "42"), (&template, "42")] {
        assert_eq!(ask(database.url(), "SELECT answer FROM copied").unwrap(), answer);
    }
}

#[tokio::test]
async fn a_connected_database_is_dropped_all_the_same() {
    let Some(postgres) = shared("a_connected_database_is_dropped_all_the_same").await else {
        return;
    };
    let database = postgres.database("connected").await;
    let mut connected = Spawned::start(
        Command::new("psql")
            .args(["-X", "-q", "-t", "-A", "-d", database.url()])
            .args(["-c", "SELECT 'connected'", "-c", "SELECT pg_sleep(600)"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(connected.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "connected");

    drop(database);
    let status = connected.exit(TIMEOUT).await.unwrap();
    assert!(!status.success(), "its session was not ended by the drop: {status}");
}

#[tokio::test]
async fn a_server_listens_on_loopback_only_and_ends_with_its_value() {
    let Some(postgres) = Postgres::start(Options { durable: true }).unwrap() else {
        // There is no shared server either, and the notice is printed.
        assert!(shared("a_server_ends_with_its_value").await.is_none());
        return;
    };
    let setting = |name: &str| ask(postgres.url(), &format!("SHOW {name}")).unwrap();
    assert_eq!(setting("listen_addresses"), "127.0.0.1");
    assert_eq!(setting("max_connections"), "300");
    assert_eq!(setting("fsync"), "on");
    let folder = postgres.folder().unwrap().to_str().unwrap().to_owned();
    assert_eq!(setting("unix_socket_directories"), folder);
    assert_ne!(processes_with_argument(&folder).unwrap(), []);

    drop(postgres);
    assert_eq!(processes_with_argument(&folder).unwrap(), []);
    assert!(!PathBuf::from(&folder).exists(), "{folder} was left behind");
}

#[tokio::test]
async fn a_server_ends_when_its_starter_is_killed() {
    const NAME: &str = "a_server_ends_when_its_starter_is_killed";
    if plays_other_role() {
        let postgres = Postgres::start(Options::default()).unwrap().unwrap();
        let mut report = std::io::stdout();
        std::io::Write::write_all(
            &mut report,
            format!("\nfolder={}\n", postgres.folder().unwrap().display()).as_bytes(),
        )
        .unwrap();
        // The process is killed before this returns: nobody closes our input earlier.
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        return;
    }
    if shared(NAME).await.is_none() {
        return;
    }
    let mut starter = Spawned::start(
        mk_other_role(NAME).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()),
    )
    .unwrap();
    let folder = BufReader::new(starter.child().stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("folder=").map(str::to_owned))
        .expect("the starter says where its server is");
    assert_ne!(processes_with_argument(&folder).unwrap(), []);

    starter.signal(Signal::Kill).unwrap();
    starter.exit(TIMEOUT).await.unwrap();
    until_gone(&folder).await;
}

#[tokio::test]
async fn a_server_ends_when_its_watchdog_is_terminated() {
    if shared("a_server_ends_when_its_watchdog_is_terminated").await.is_none() {
        return;
    }
    let postgres = Postgres::start(Options::default()).unwrap().unwrap();
    let folder = postgres.folder().unwrap().to_str().unwrap().to_owned();
    let processes = processes_with_argument(&folder).unwrap();
    let watchdog = processes
        .iter()
        .find(|process| process.command_line.contains("slipway-postgres-keeper"))
        .expect("a keeper among the processes of the server");
    send_signal(watchdog.pid, Signal::Terminate).unwrap();
    until_gone(&folder).await;
    // Its own drop then finds nothing left to do.
    drop(postgres);
}

#[tokio::test]
async fn a_missing_postgresql_is_said_once_and_the_test_passes() {
    const NAME: &str = "a_missing_postgresql_is_said_once_and_the_test_passes";
    if plays_other_role() {
        assert!(shared(NAME).await.is_none());
        assert!(shared("another_test").await.is_none());
        return;
    }
    let nothing = tempfile::tempdir().unwrap();
    let answer = mk_other_role(NAME)
        .env(BINARIES_VARIABLE, nothing.path())
        .env_remove(DATABASE_URL_VARIABLE)
        .env_remove(REQUIRE_VARIABLE)
        .output()
        .unwrap();
    let said = String::from_utf8(answer.stderr).unwrap();
    assert!(answer.status.success(), "{said}");
    let expected =
        format!("not run: {NAME}: PostgreSQL is not installed (apt-get install postgresql)");
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(said.matches("not run: ").count(), 1, "{said}");
}

#[tokio::test]
async fn a_missing_postgresql_fails_where_it_is_required() {
    const NAME: &str = "a_missing_postgresql_fails_where_it_is_required";
    if plays_other_role() {
        shared(NAME).await;
        return;
    }
    let nothing = tempfile::tempdir().unwrap();
    let answer = mk_other_role(NAME)
        .env(BINARIES_VARIABLE, nothing.path())
        .env(REQUIRE_VARIABLE, "1")
        .env_remove(DATABASE_URL_VARIABLE)
        .output()
        .unwrap();
    assert!(!answer.status.success());
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(said.contains("PostgreSQL is not installed"), "{said}");
}
