//! One control plane process: started, killed, paused. Its port and its data
//! directory stay the same, so that its agents find it again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use slipway_testkit::process::{Signal, Spawned};

use super::options::Options;
use super::world::KEY;

/// What every control plane of a soak is started with.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
    /// `None` is SQLite in the data directory.
    pub(super) database_url: Option<String>,
    pub(super) heartbeat: Duration,
}

impl Settings {
    pub(super) fn substrate_root(&self) -> PathBuf {
        self.folder.join("substrate")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Up,
    /// Started, and not yet answering.
    Starting,
    Paused,
    Down,
}

#[derive(Debug)]
pub(super) struct Plane {
    pub(super) port: u16,
    pub(super) state: State,
    name: String,
    folder: PathBuf,
    process: Option<Spawned>,
}

impl Plane {
    pub(super) fn new(number: usize, port: u16, settings: &Settings) -> Self {
        let name = format!("plane-{number}");
        let folder = settings.folder.join(&name);
        Self { port, state: State::Down, name, folder, process: None }
    }

    pub(super) fn start(&mut self, settings: &Settings) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder).context("cannot make the data directory")?;
        // Of an earlier life; it would be taken for a sign of this one.
        match fs::remove_file(self.server_file()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let log = File::options().create(true).append(true).open(self.log())?;
        let lease = format!("{}ms", Options::LEASE.as_millis());
        let heartbeat = format!("{}ms", settings.heartbeat.as_millis());
        let mut command = Command::new(&settings.binary);
        command
            // Nothing of whoever runs the soak.
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("RUST_BACKTRACE", "1")
            .env("SLIPWAY_ADMIN_KEY", KEY)
            .args(["up", "--listen", &format!("127.0.0.1:{}", self.port)])
            .arg("--data-dir")
            .arg(self.folder.join("data"))
            .arg("--substrate-root")
            .arg(settings.substrate_root())
            .args(["--lease", &lease, "--heartbeat-interval", &heartbeat])
            .args(["--reconcile-interval", "2s", "--stop-grace", "1s", "--orphan-after", "60s"])
            .args(["--deregistering-deadline", "2s"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Some(url) = &settings.database_url {
            command.env("SLIPWAY_DATABASE_URL", url);
        }
        self.process = Some(Spawned::start(&mut command)?);
        self.state = State::Starting;
        Ok(())
    }

    /// Notices that it came up. An error if it ended by itself.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        if let Some(process) = &mut self.process
            && let Some(status) = process.child().try_wait()?
        {
            anyhow::bail!("{} ended by itself with {status}:\n{}", self.name, self.log_tail(&[]));
        }
        if self.state == State::Starting && self.server_file().exists() {
            self.state = State::Up;
        }
        Ok(())
    }

    pub(super) fn kill(&mut self) {
        self.process = None;
        self.state = State::Down;
    }

    pub(super) fn pause(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::Stop)?;
        self.state = State::Paused;
        Ok(())
    }

    pub(super) fn resume(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::Continue)?;
        self.state = State::Up;
        Ok(())
    }

    pub(super) fn terminate(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::Terminate)
    }

    /// How it ended after [`Plane::terminate`], once it has.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let process = self.process.as_mut().context("the control plane does not run")?;
        Ok(process.child().try_wait()?)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let process = self.process.as_ref().context("the control plane does not run")?;
        process.signal(signal).with_context(|| format!("cannot signal {}", self.name))
    }

    fn server_file(&self) -> PathBuf {
        self.folder.join("data/server.json")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// The last lines of its log that hold one of the words; any without words.
    pub(super) fn log_tail(&self, words: &[&str]) -> String {
        tail(&self.log(), words)
    }
}

fn tail(path: &Path, words: &[&str]) -> String {
    const LINES: usize = 25;
    let text = fs::read_to_string(path).unwrap_or_default();
    let wanted = |line: &&str| words.is_empty() || words.iter().any(|word| line.contains(word));
    let mut lines: Vec<&str> = text.lines().rev().filter(wanted).take(LINES).collect();
    lines.reverse();
    lines.join("\n")
}
