//! One control plane of a soak: what was done to it, and what it can be asked
//! meanwhile.

use std::fs;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use slipway_testkit::control_plane::{Client, Config, ControlPlane};
use slipway_testkit::process::Signal;

use super::options::Options;

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
    pub(super) state: State,
    name: String,
    process: ControlPlane,
    /// How many things keep it from its database.
    cuts: usize,
    /// It lost its database since it was started.
    disturbed: bool,
}

impl Plane {
    /// One that does not run yet. `config` has what differs between the planes of a
    /// soak; all of them get the same flags.
    pub(super) fn new(
        number: usize,
        mut config: Config,
        heartbeat: Duration,
        public_url: &str,
    ) -> anyhow::Result<Self> {
        let name = format!("plane-{number}");
        config.folder = config.folder.join(&name);
        fs::create_dir_all(&config.folder).context("cannot make the folder of a plane")?;
        let lease = format!("{}ms", Options::LEASE.as_millis());
        let heartbeat = format!("{}ms", heartbeat.as_millis());
        config.set(&["--lease", &lease, "--heartbeat-interval", &heartbeat]);
        config.set(&["--reconcile-interval", "2s", "--stop-grace", "1s", "--orphan-after", "60s"]);
        config.set(&["--deregistering-deadline", "2s", "--database-statement-timeout", "2s"]);
        config.set(&["--public-url", public_url]);
        let process = ControlPlane::new(config);
        Ok(Self { state: State::Down, name, process, cuts: 0, disturbed: false })
    }

    pub(super) fn client(&self) -> Client {
        self.process.client()
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

    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        self.process.launch()?;
        self.state = State::Starting;
        self.disturbed = self.cuts > 0;
        Ok(())
    }

    /// Notices that it came up. False if it gave up its start because its
    /// database went away meanwhile, as it may: whoever supervises it starts it
    /// again. An error if it ended by itself otherwise.
    pub(super) fn observe(&mut self) -> anyhow::Result<bool> {
        if self.state != State::Down
            && let Some(status) = self.process.exited()?
        {
            if self.state == State::Starting && self.disturbed {
                self.kill();
                return Ok(false);
            }
            anyhow::bail!("{} ended by itself with {status}:\n{}", self.name, self.log_tail(&[]));
        }
        if self.state == State::Starting && self.process.serves() {
            self.state = if self.cuts == 0 { State::Up } else { State::CutOff };
        }
        if self.state == State::CutOff && self.cuts == 0 && self.is_ready() {
            self.state = State::Up;
        }
        Ok(true)
    }

    fn is_ready(&self) -> bool {
        self.client().call("GET", "/readyz", None).is_ok_and(|answer| answer.status == 200)
    }

    pub(super) fn kill(&mut self) {
        self.process.kill();
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
        self.process.exited()
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.process.signal(signal).with_context(|| self.name.clone())
    }

    /// The last lines of its log that hold one of the words; any without words.
    pub(super) fn log_tail(&self, words: &[&str]) -> String {
        self.process.log_tail(words)
    }
}
