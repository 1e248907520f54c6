//! The agent as a process of its own: the lock, the session, the signals. The
//! process is this test binary itself, running only [`agent_process`].

use std::fs::File;
use std::process::{Child, Command, Stdio};

use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, getsid, kill_process};
use slipway_agent::node::{NodeOptions, run};
use tracing_subscriber::filter::LevelFilter;

use crate::stand_in::{NODE_KEY, NodeDirectory, RegisterAnswer, StandIn, TOKEN, eventually};

const DIRECTORY: &str = "SLIPWAY_TEST_NODE_DIRECTORY";

/// Not a test by itself: the body of the processes that the tests start. Run
/// without a directory it has nothing to do.
#[test]
#[ignore = "started by the other tests as a process"]
fn agent_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(run(NodeOptions { directory: directory.into() }));
    assert!(result.is_ok(), "{}", result.unwrap_err());
}

struct Process(Child);

impl Process {
    fn start(directory: &NodeDirectory) -> Self {
        let program = std::env::current_exe().unwrap();
        let child = Command::new(program)
            .args(["--exact", "process::agent_process", "--ignored", "--nocapture"])
            .env(DIRECTORY, &directory.path)
            // A machine without certificates: plain HTTP must not need them.
            .env("SSL_CERT_FILE", directory.file("no-certificates"))
            .env_remove("SSL_CERT_DIR")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(File::create(directory.file("stderr")).unwrap()))
            .spawn()
            .unwrap();
        Self(child)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    async fn exit(&mut self) -> std::process::ExitStatus {
        let mut status = None;
        eventually("the process ends", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn holder(directory: &NodeDirectory) -> Option<Pid> {
    let file = File::options().read(true).write(true).open(directory.file("agent.lock")).ok()?;
    fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).unwrap()?.pid
}

#[tokio::test]
async fn one_directory_has_one_agent_and_sigterm_ends_it() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let mut first = Process::start(&directory);
    directory.until_state("active").await;
    assert_eq!(holder(&directory), Some(first.pid()));
    assert_eq!(getsid(Some(first.pid())).unwrap(), first.pid(), "not in a session of its own");

    let mut second = Process::start(&directory);
    assert!(!second.exit().await.success());
    let message = std::fs::read_to_string(directory.file("stderr")).unwrap();
    assert!(message.contains("another agent holds the lock"), "{message}");
    assert_eq!(holder(&directory), Some(first.pid()));
    assert_eq!(server.calls().registers.len(), 1);

    kill_process(first.pid(), Signal::TERM).unwrap();
    let status = first.exit().await;
    assert!(status.success(), "{status}");
    assert_eq!(holder(&directory), None);
}

#[tokio::test]
async fn a_killed_process_leaves_a_free_lock_and_its_identity() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let mut first = Process::start(&directory);
    directory.until_state("active").await;
    kill_process(first.pid(), Signal::KILL).unwrap();
    first.exit().await;
    assert_eq!(holder(&directory), None);

    let second = Process::start(&directory);
    eventually("the second one holds the lock", || holder(&directory) == Some(second.pid())).await;
    let before = server.calls().heartbeats.len();
    server.until("a heartbeat", |calls| calls.heartbeats.len() > before).await;
    assert_eq!(server.calls().registers.len(), 1);
}

/// Runs in a process of its own, because only there the whole log is captured:
/// the enabled call sites are the same for all threads of a process.
#[tokio::test]
async fn no_secret_is_in_the_log_or_in_the_status() {
    let server = StandIn::start().await;
    // The stand-in quotes the token in its refusal.
    server.script(|calls| {
        calls.register_script.push_back(RegisterAnswer::Refuse(403, "token_expired"));
    });
    let directory = NodeDirectory::new(&server, &[]);
    let mut process = Process::start(&directory);
    let refused = directory.until_state("refused").await.to_string();
    assert!(refused.contains("[secret]"), "{refused}");
    directory.user_data(&server.url, TOKEN, &["busy_seconds: 0"]);
    let active = directory.until_state("active").await.to_string();
    server.script(|calls| calls.drain_id = Some("d-1".to_owned()));
    let drained = directory.until_state("drained").await.to_string();
    kill_process(process.pid(), Signal::TERM).unwrap();
    process.exit().await;

    let log = std::fs::read_to_string(directory.file("stderr")).unwrap();
    assert!(log.contains("the agent ends"), "nothing was captured:\n{log}");
    for text in [&refused, &active, &drained, &log] {
        assert!(!text.contains(TOKEN), "the token is in: {text}");
        assert!(!text.contains(NODE_KEY), "the node key is in: {text}");
    }
}
