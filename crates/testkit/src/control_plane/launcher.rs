//! One control plane process, across its restarts.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::agents::{agents_below, signal_agent};
use super::client::Client;
use super::config::Config;
use crate::process::{Process, Signal, Spawned};

const TAIL: usize = 25;
/// Enough for [`TAIL`] lines. Tests ask for the tail at every poll, and the
/// whole log of a long test has megabytes.
const TAIL_BYTES: u64 = 64 << 10;
const POLL: Duration = Duration::from_millis(10);

/// A control plane, running or not. Drop kills it, and then every agent below
/// its substrate root.
#[derive(Debug)]
pub struct ControlPlane {
    /// The launcher reads it at each start.
    pub config: Config,
    process: Option<Spawned>,
}

impl ControlPlane {
    /// A control plane that is not running yet.
    pub fn new(config: Config) -> Self {
        Self { config, process: None }
    }

    /// Starts the process without waiting until [`ControlPlane::serves`].
    pub fn launch(&mut self) -> anyhow::Result<()> {
        // A file left by an earlier process would look like a sign of this one.
        match fs::remove_file(self.server_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context("cannot remove the server file of an earlier life");
            }
            _ => {}
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.config.log())
            .context("cannot write the log of the control plane")?;
        let mut command = self.config.command();
        command.stdout(Stdio::null()).stderr(log);
        self.process = Some(Spawned::start(&mut command)?);
        Ok(())
    }

    /// Launches it and waits until it serves. An error if it ends before that.
    pub async fn start(&mut self, timeout: Duration) -> anyhow::Result<()> {
        self.launch()?;
        let begun = tokio::time::Instant::now();
        while !self.serves() {
            if let Some(status) = self.exited()? {
                bail!("the control plane ended with {status}:\n{}", self.log_tail(&[]));
            }
            if begun.elapsed() > timeout {
                bail!("it does not serve after {timeout:?}:\n{}", self.log_tail(&[]));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Whether it serves: it writes its address to a file when it begins to
    /// serve, and removes the file on an orderly stop.
    pub fn serves(&self) -> bool {
        self.server_file().exists()
    }

    /// How the process ended, if it has.
    pub fn exited(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.running()?.child().try_wait()?)
    }

    /// Waits until it ends by itself; then it is not running any more.
    ///
    /// # Panics
    /// When it still runs after `timeout`.
    pub async fn exit(&mut self, timeout: Duration) -> anyhow::Result<ExitStatus> {
        let status = self.running()?.exit(timeout).await;
        self.process = None;
        status
    }

    /// Sends SIGKILL, as in a crash; works on a paused process too.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Signals the process.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let process = self.process.as_ref().context("the control plane does not run")?;
        process.signal(signal).context("cannot signal the control plane")
    }

    /// The id of the process.
    pub fn pid(&self) -> anyhow::Result<u32> {
        Ok(self.process.as_ref().context("the control plane does not run")?.pid())
    }

    /// A client with the first administrator's key.
    pub fn client(&self) -> Client {
        Client { port: self.config.port, key: self.config.admin_key.clone() }
    }

    /// The living agents below its substrate root.
    pub fn agents(&self) -> anyhow::Result<Vec<Process>> {
        agents_below(&self.config.substrate_root())
    }

    /// Everything that it logged so far.
    pub fn log_text(&self) -> String {
        fs::read_to_string(self.config.log()).unwrap_or_default()
    }

    /// The last lines of its log that contain one of the words; without words, any lines.
    pub fn log_tail(&self, words: &[&str]) -> String {
        let text = if words.is_empty() { self.log_end() } else { self.log_text() };
        let wanted = |line: &&str| words.is_empty() || words.iter().any(|word| line.contains(word));
        let mut lines: Vec<&str> = text.lines().rev().filter(wanted).take(TAIL).collect();
        lines.reverse();
        lines.join("\n")
    }

    /// The end of the log; its first line may be cut off.
    fn log_end(&self) -> String {
        let read = || {
            let mut log = File::open(self.config.log())?;
            let start = log.metadata()?.len().saturating_sub(TAIL_BYTES);
            log.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            log.read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_default()
    }

    fn running(&mut self) -> anyhow::Result<&mut Spawned> {
        self.process.as_mut().context("the control plane does not run")
    }

    fn server_file(&self) -> PathBuf {
        self.config.data_dir().join("server.json")
    }
}

impl Drop for ControlPlane {
    /// Kills the control plane first, so that it cannot restart an agent.
    fn drop(&mut self) {
        self.kill();
        let killed = self.agents().and_then(|agents| {
            agents.iter().try_for_each(|agent| signal_agent(agent.pid, Signal::Kill))
        });
        if let Err(error) = killed {
            assert!(std::thread::panicking(), "agents are left: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{Config, ControlPlane};

    const TIMEOUT: Duration = Duration::from_secs(20);

    /// A control plane whose program is this shell script.
    fn mk_plane(folder: &tempfile::TempDir, script: &str) -> ControlPlane {
        let program = folder.path().join("slipway");
        // A separate process writes the file: if a concurrent test forked while
        // this process had it open for writing, executing it would fail
        // (ETXTBSY).
        let mut write = Command::new("sh");
        write.args(["-c", "printf '#!/bin/sh\n%s\n' \"$1\" > \"$2\" && chmod 700 \"$2\"", "sh"]);
        assert!(write.arg(script).arg(&program).status().unwrap().success());
        ControlPlane::new(Config::new(&program, folder.path(), "key").unwrap())
    }

    #[tokio::test]
    async fn it_serves_once_its_file_is_there_and_is_gone_after_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        // The fifth argument is the data directory: up --listen A --data-dir D.
        let script = "mkdir -p \"$5\"; echo up >&2; : > \"$5/server.json\"; exec sleep 600";
        let mut plane = mk_plane(&folder, script);
        plane.start(TIMEOUT).await.unwrap();
        assert_eq!((plane.serves(), plane.exited().unwrap()), (true, None));
        plane.kill();
        assert!(plane.exited().is_err(), "it does not run");
        // The file of the first start must not count for the second.
        plane.launch().unwrap();
        plane.kill();
        assert!(plane.log_text().starts_with("up"));
    }

    #[tokio::test]
    async fn one_that_ends_before_it_serves_is_reported_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut plane = mk_plane(&folder, "echo no database >&2; exit 3");
        let error = plane.start(TIMEOUT).await.unwrap_err().to_string();
        assert!(error.contains("3") && error.contains("no database"), "{error}");
    }
}
