//! The directory agent as a process of its own: killed in the middle, twice on one
//! folder, and its log. The process is this test binary, running only
//! [`agent_process`].

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use slipway_agent::fleet::{Target, run};
use slipway_testkit::wait::until;
use tracing_subscriber::filter::LevelFilter;

use crate::directory::{Folder, objects};
use crate::stand_in::{KEY, StandIn, TIMEOUT, config_map, run_once};

const FOLDER: &str = "SLIPWAY_TEST_FOLDER";
const SERVER: &str = "SLIPWAY_TEST_SERVER";

/// Not a test by itself: the body of the processes that the tests start.
#[test]
#[ignore = "started by the other tests as a process"]
fn agent_process() {
    let (Ok(folder), Ok(server)) = (std::env::var(FOLDER), std::env::var(SERVER)) else {
        return;
    };
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = slipway_agent::fleet::Options {
        server,
        key: slipway_agent::fleet::Key::Text(KEY.to_owned()),
        ca_file: None,
        id: None,
        name: None,
        cluster_name: None,
        poll: std::time::Duration::from_secs(1),
        once: false,
        target: Target::Directory { path: folder.into() },
    };
    let ended = runtime.block_on(run(options));
    assert!(ended.is_ok(), "{}", ended.unwrap_err());
}

struct Process(Child);

impl Process {
    fn start(server: &StandIn, folder: &Path, log: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::agent_process", "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .env(SERVER, &server.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(File::create(log).unwrap()))
            .spawn()
            .unwrap();
        Self(child)
    }

    async fn exit(&mut self) -> std::process::ExitStatus {
        until(TIMEOUT, "the process ends", async || self.0.try_wait().unwrap()).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Killed at many moments of deployments, upgrades and removals, the next process
/// converges: every file is of the last object, and none is left of the others.
#[tokio::test]
async fn a_process_that_is_killed_anywhere_leaves_work_that_the_next_one_finishes() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let logs = tempfile::tempdir().unwrap();
    for round in 0..6_u32 {
        for number in 1..=3 {
            let content: String = (0..30)
                .map(|index| config_map("n", &format!("s{number}-{}", index + round), "1"))
                .collect();
            match round {
                4 if number == 2 => server.mark(2),
                _ => server.offer(number, &content),
            };
        }
        let before = server.calls();
        let mut process =
            Process::start(&server, folder.path(), &logs.path().join(format!("{round}")));
        // Somewhere between the first file and the last report.
        until(TIMEOUT, "it began", async || {
            let wrote = objects_or_none(folder.path()) != Some(0);
            wrote && server.calls().polls > before.polls
        })
        .await;
        until(TIMEOUT, "some work", async || {
            let events = server.calls().events.len();
            events >= before.events.len() + (round as usize % 3)
        })
        .await;
        process.0.kill().unwrap();
        process.exit().await;
    }
    run_once(&server, folder.target()).await.unwrap();
    let mut expected: Vec<String> = (1..=3)
        .flat_map(|number| (0..30).map(move |index| format!("ConfigMap n/s{number}-{}", index + 5)))
        .collect();
    expected.sort_unstable();
    let found: Vec<_> = objects(folder.path()).into_keys().collect();
    assert_eq!(found, expected);
    let offered = server.calls().offered;
    for (_, first) in objects(folder.path()).into_values() {
        assert!(offered.values().any(|object| first.contains(&object.id)), "{first}");
    }
}

/// How many files there are; `None` while one of them is being replaced.
fn objects_or_none(folder: &Path) -> Option<usize> {
    Some(std::fs::read_dir(folder).ok()?.count())
}

#[tokio::test]
async fn one_folder_has_one_agent_and_the_log_has_no_key() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let logs = tempfile::tempdir().unwrap();
    let mut first = Process::start(&server, folder.path(), &logs.path().join("first"));
    let object = server.offer(1, &config_map("n", "a", "1"));
    server.reported(&object, "DEPLOY", "SUCCESS").await;
    let mut second = Process::start(&server, folder.path(), &logs.path().join("second"));
    assert!(!second.exit().await.success());
    let said = std::fs::read_to_string(logs.path().join("second")).unwrap();
    assert!(said.contains("another agent uses the folder"), "{said}");
    // The stand-in quotes the key in its refusals.
    server.script(|calls| calls.failing_polls = 1);
    server.until("the error", |calls| calls.failing_polls == 0).await;
    server.polled(1).await;
    first.0.kill().unwrap();
    first.exit().await;
    let log = std::fs::read_to_string(logs.path().join("first")).unwrap();
    assert!(log.contains("503"), "{log}");
    assert!(!log.contains(KEY), "the key is in the log: {log}");
}
