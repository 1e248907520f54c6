//! One control plane process and the lives that it has.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::agents::{agents_below, signal_agent};
use super::client::Client;
use super::config::Config;
use crate::process::{Process, Signal, Spawned};

const TAIL: usize = 25;
const POLL: Duration = Duration::from_millis(10);

/// A control plane, running or not. Dropped, it is killed, and then every agent
/// below its substrate root.
#[derive(Debug)]
pub struct ControlPlane {
    /// Read at each start.
    pub config: Config,
    process: Option<Spawned>,
}

impl ControlPlane {
    /// One that does not run yet.
    pub fn new(config: Config) -> Self {
        Self { config, process: None }
    }

    /// Starts the process. It serves when [`ControlPlane::serves`] says so.
    pub fn launch(&mut self) -> anyhow::Result<()> {
        // The file of an earlier life would be taken for a sign of this one.
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

    /// Whether it has come up: it writes its address when it serves, and takes
    /// the file away when it stops in order.
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

    /// Ends it as a crash would: SIGKILL, also if it is paused.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Signals the process.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let process = self.process.as_ref().context("the control plane does not run")?;
        process.signal(signal).context("cannot signal the control plane")
    }

    /// Asks it as its first administrator.
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

    /// The last lines of its log that hold one of the words; any without words.
    pub fn log_tail(&self, words: &[&str]) -> String {
        let text = self.log_text();
        let wanted = |line: &&str| words.is_empty() || words.iter().any(|word| line.contains(word));
        let mut lines: Vec<&str> = text.lines().rev().filter(wanted).take(TAIL).collect();
        lines.reverse();
        lines.join("\n")
    }

    fn running(&mut self) -> anyhow::Result<&mut Spawned> {
        self.process.as_mut().context("the control plane does not run")
    }

    fn server_file(&self) -> PathBuf {
        self.config.data_dir().join("server.json")
    }
}

impl Drop for ControlPlane {
    /// The control plane first, so that it cannot start an agent again.
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
        // Another process writes it: a test beside this one might fork while the
        // file is open for writing here, and nobody could run it until then.
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
        // The file of its first life is no sign of the second.
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
