//! One control plane of a soak: the faults it got, and whether it can answer
//! requests now.

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
    /// Started, and not answering yet.
    Starting,
    Paused,
    /// Without its database, or just reconnected: it runs and cannot answer requests.
    CutOff,
    Down,
}

#[derive(Debug)]
pub(super) struct Plane {
    pub(super) state: State,
    name: String,
    process: ControlPlane,
    /// The number of current faults between it and its database.
    cuts: usize,
    /// Whether it lost its database since its start.
    disturbed: bool,
}

impl Plane {
    /// A control plane that is not running yet. `config` has the differences
    /// between the planes of a soak; all of them get the same flags.
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
        // The soak deletes more than any caller should.
        config.set(&["--deletion-brake", "0"]);
        config.set(&["--deregistering-deadline", "2s", "--database-statement-timeout", "2s"]);
        config.set(&["--public-url", public_url]);
        let process = ControlPlane::new(config);
        Ok(Self { state: State::Down, name, process, cuts: 0, disturbed: false })
    }

    pub(super) fn client(&self) -> Client {
        self.process.client()
    }

    /// Notes the loss of its database. Its answers prove nothing until it is back.
    pub(super) fn cut_off(&mut self) {
        self.cuts += 1;
        self.disturbed = true;
        if self.state == State::Up {
            self.state = State::CutOff;
        }
    }

    /// Notes that the database is reachable again; the plane must detect that by itself.
    pub(super) fn reconnect(&mut self) {
        self.cuts = self.cuts.saturating_sub(1);
    }

    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        self.process.launch()?;
        self.state = State::Starting;
        self.disturbed = self.cuts > 0;
        Ok(())
    }

    /// Detects that it came up. False if it gave up its start because its
    /// database went away, which is allowed: the supervisor restarts it. An
    /// error if it ended for another reason.
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
        // It only now learns what happened to its connections.
        self.state = State::CutOff;
        Ok(())
    }

    pub(super) fn terminate(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::Terminate)
    }

    /// Its exit status after [`Plane::terminate`], once it has ended.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.process.exited()
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.process.signal(signal).with_context(|| self.name.clone())
    }

    /// The last lines of its log that contain one of the words; without words, any lines.
    pub(super) fn log_tail(&self, words: &[&str]) -> String {
        self.process.log_tail(words)
    }
}
