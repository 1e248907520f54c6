//! One control plane process: started, killed, paused. Its port and its data
//! directory stay the same, so that its agents find it again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use slipway_testkit::process::{Signal, Spawned};

use super::http::{self, Request};
use super::options::Options;
use super::world::KEY;

/// What every control plane of a soak is started with.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
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
    /// Cut off from its database, or just back: it runs and cannot be asked.
    CutOff,
    Down,
}

#[derive(Debug)]
pub(super) struct Plane {
    pub(super) port: u16,
    pub(super) state: State,
    name: String,
    folder: PathBuf,
    /// `None` is SQLite in the data directory.
    database_url: Option<String>,
    public_url: String,
    /// How many things keep it from its database.
    cuts: usize,
    /// It lost its database since it was started.
    disturbed: bool,
    process: Option<Spawned>,
}

impl Plane {
    pub(super) fn new(
        number: usize,
        port: u16,
        settings: &Settings,
        database_url: Option<String>,
        public_url: String,
    ) -> Self {
        let name = format!("plane-{number}");
        let folder = settings.folder.join(&name);
        Self {
            port,
            state: State::Down,
            name,
            folder,
            database_url,
            public_url,
            cuts: 0,
            disturbed: false,
            process: None,
        }
    }

    /// It loses its database. Whatever it says meanwhile proves nothing.
    pub(super) fn cut_off(&mut self) {
        self.cuts += 1;
        self.disturbed = true;
        if self.state == State::Up {
            self.state = State::CutOff;
        }
    }

    /// It has its database again, and has to notice by itself.
    pub(super) fn reconnect(&mut self) {
        self.cuts = self.cuts.saturating_sub(1);
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
            .args(["--deregistering-deadline", "2s", "--database-statement-timeout", "2s"])
            .args(["--public-url", &self.public_url])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Some(url) = &self.database_url {
            command.env("SLIPWAY_DATABASE_URL", url);
        }
        self.process = Some(Spawned::start(&mut command)?);
        self.state = State::Starting;
        self.disturbed = self.cuts > 0;
        Ok(())
    }

    /// Notices that it came up. False if it gave up its start because its
    /// database went away meanwhile, as it may: whoever supervises it starts it
    /// again. An error if it ended by itself otherwise.
    pub(super) fn look(&mut self) -> anyhow::Result<bool> {
        if let Some(process) = &mut self.process
            && let Some(status) = process.child().try_wait()?
        {
            if self.state == State::Starting && self.disturbed {
                self.kill();
                return Ok(false);
            }
            anyhow::bail!("{} ended by itself with {status}:\n{}", self.name, self.log_tail(&[]));
        }
        if self.state == State::Starting && self.server_file().exists() {
            self.state = if self.cuts == 0 { State::Up } else { State::CutOff };
        }
        if self.state == State::CutOff && self.cuts == 0 && self.is_ready() {
            self.state = State::Up;
        }
        Ok(true)
    }

    fn is_ready(&self) -> bool {
        let request = Request { method: "GET", path: "/readyz".to_owned(), body: None };
        http::call(self.port, &request).is_ok_and(|answer| answer.status == 200)
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
        // What happened to its connections meanwhile it learns now.
        self.state = State::CutOff;
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
