//! The world under soak: control planes, their database, their substrate root,
//! and the faults that have to be undone at a given time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;
use slipway_testkit::control_plane::{Answer, Config, signal_agent};
use slipway_testkit::postgres::{self, Postgres, TestDatabase};
use slipway_testkit::process::Signal;

use super::agents;
use super::cluster::Cluster;
use super::lines::{Lines, address_in};
use super::options::{Database, Options};
use super::plane::{Plane, State};
use super::schedule::{Hurt, Line, Spoil};

/// The admin key of every control plane of a soak. Loopback only.
pub(super) const KEY: &str = "slipway_soaksoak_abcdefghijkmnopqrstuvwxyz";

/// A start takes a second; on a busy machine a few.
const START_LIMIT: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(20);

/// How to end a fault.
#[derive(Clone, Copy, Debug)]
enum Undo {
    StartPlane(usize),
    ResumePlane(usize),
    ThawAgent(u32),
    RestoreLine(Line),
    StartDatabase,
}

/// The programs that a world runs.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) slipway: PathBuf,
    /// The stand-in for Crossplane, in a scenario with a cluster.
    pub(super) standin: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) planes: Vec<Plane>,
    pub(super) cluster: Option<Cluster>,
    root: PathBuf,
    undo: Vec<(Instant, Undo)>,
    /// The next control plane to ask, round robin.
    turn: usize,
    lines: Lines,
    // Dropped in this order: databases before their server.
    _database: Option<TestDatabase>,
    server: Option<Postgres>,
    folder: tempfile::TempDir,
}

impl World {
    /// Creates everything and starts the control planes.
    pub(super) fn start(
        options: &Options,
        programs: &Programs,
        server: Option<&str>,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("slipway-soak-")
            .tempdir()
            .context("cannot make a folder")?;
        // A copy: a soak takes hours, and builds replace the original meanwhile.
        let own_copy = |program: &Path| {
            let copy = folder.path().join(program.file_name().unwrap_or_default());
            fs::copy(program, &copy)
                .with_context(|| format!("cannot copy {}", program.display()))?;
            anyhow::Ok(copy)
        };
        let own_binary = own_copy(&programs.slipway)?;
        let cluster = programs
            .standin
            .as_deref()
            .map(|program| {
                let standin = own_copy(program)?;
                Cluster::start(folder.path(), &standin, options.seed, options.resources)
            })
            .transpose()?;
        let flags = cluster.as_ref().map(Cluster::flags);
        let (server, database) = match options.database {
            Database::Sqlite => (None, None),
            Database::Postgres => {
                let (server, database) = make_database(server)?;
                (Some(server), Some(database))
            }
        };
        // At most a hundred heartbeats a second, so that two cores have room for the rest.
        let heartbeat = Duration::from_millis(200)
            .max(Duration::from_millis(10) * u32::try_from(options.resources).unwrap_or(1));
        let url = database.as_ref().map(TestDatabase::url);
        let address = url.and_then(address_in).and_then(|address| address.parse().ok());
        let mut configs: Vec<Config> = (0..options.replicas)
            .map(|_| Config::new(&own_binary, folder.path(), KEY))
            .collect::<Result<_, _>>()?;
        let ports: Vec<u16> = configs.iter().map(|config| config.port).collect();
        let lines = Lines::new(&ports, address)?;
        // Shared by all control planes, and canonical as in the process table.
        let root = folder.path().canonicalize()?.join("substrate");
        let mut planes = Vec::new();
        for (number, mut config) in configs.drain(..).enumerate() {
            config.substrate_root = Some(root.clone());
            config.database_url = url.map(|url| lines.database_url(number, url));
            config.set(&flags.iter().flatten().map(String::as_str).collect::<Vec<_>>());
            planes.push(Plane::new(number, config, heartbeat, &lines.public_url(number))?);
        }
        let mut world = Self {
            planes,
            cluster,
            root,
            undo: Vec::new(),
            turn: 0,
            lines,
            _database: database,
            server,
            folder,
        };
        for plane in 0..world.planes.len() {
            world.planes[plane].start()?;
            world.wait_until_up()?;
        }
        if let Some(cluster) = &mut world.cluster {
            cluster.furnish(&world.planes[0].client())?;
            cluster.begin_faults();
        }
        Ok(world)
    }

    /// How many projects the scenario has of its own.
    pub(super) fn projects(&self) -> usize {
        self.cluster.as_ref().map_or(0, Cluster::projects)
    }

    pub(super) fn root(&self) -> PathBuf {
        self.root.clone()
    }

    /// Lets time pass, and ends faults that are due.
    pub(super) fn pass(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        loop {
            self.undo_due(Instant::now())?;
            for plane in &mut self.planes {
                if !plane.observe()? {
                    plane.start()?;
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            nap(left.min(POLL));
        }
    }

    /// Ends every fault now, and waits until every control plane answers.
    pub(super) fn undo_all(&mut self) -> anyhow::Result<()> {
        let far = Instant::now() + Duration::from_secs(86_400);
        self.undo_due(far)?;
        self.cluster.iter().for_each(Cluster::end_faults);
        for plane in &mut self.planes {
            // A plane without known faults has to prove its health too.
            if plane.state == State::Up {
                plane.state = State::CutOff;
            }
        }
        self.wait_until_up()
    }

    fn undo_due(&mut self, now: Instant) -> anyhow::Result<()> {
        let (due, later) = self.undo.drain(..).partition(|(at, _)| *at <= now);
        self.undo = later;
        for (_, undo) in due {
            match undo {
                Undo::StartPlane(plane) => self.planes[plane].start()?,
                Undo::ResumePlane(plane) => self.planes[plane].resume()?,
                Undo::RestoreLine(line) => {
                    self.lines.restore(line);
                    if let Line::Database(plane) = line {
                        self.planes[plane].reconnect();
                    }
                }
                Undo::StartDatabase => {
                    self.server.as_mut().context("there is a server")?.start_again()?;
                    self.planes.iter_mut().for_each(Plane::reconnect);
                }
                Undo::ThawAgent(pid) => {
                    // Its process id may have been reused since it was frozen.
                    let living = agents::living(&self.root())?;
                    if living.values().flatten().any(|process| process.pid == pid) {
                        signal_agent(pid, Signal::Continue)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn wait_until_up(&mut self) -> anyhow::Result<()> {
        let limit = Instant::now() + START_LIMIT;
        let is_starting = |plane: &Plane| matches!(plane.state, State::Starting | State::CutOff);
        while self.planes.iter().any(is_starting) {
            self.pass(POLL)?;
            if Instant::now() > limit {
                let logs: Vec<_> = self.planes.iter().map(|plane| plane.log_tail(&[])).collect();
                bail!("a control plane did not come up in {START_LIMIT:?}:\n{}", logs.join("\n\n"));
            }
        }
        Ok(())
    }

    /// Waits until every control plane is up; false after the limit.
    pub(super) fn wait_for_all(&mut self, limit: Duration) -> anyhow::Result<bool> {
        let end = Instant::now() + limit;
        while self.planes.iter().any(|plane| plane.state != State::Up) {
            if Instant::now() > end {
                return Ok(false);
            }
            self.pass(POLL)?;
        }
        Ok(true)
    }

    /// Injects a fault into a control plane that is up; false if it is not.
    pub(super) fn hurt(&mut self, plane: usize, hurt: Hurt) -> anyhow::Result<bool> {
        if self.planes[plane].state != State::Up {
            return Ok(false);
        }
        let (time, undo) = match hurt {
            Hurt::Kill { down } => {
                self.planes[plane].kill();
                (down, Undo::StartPlane(plane))
            }
            Hurt::Pause { frozen } => {
                self.planes[plane].pause()?;
                (frozen, Undo::ResumePlane(plane))
            }
        };
        self.undo.push((Instant::now() + Duration::from_millis(time), undo));
        Ok(true)
    }

    /// Injects a fault into a line for a while; false if the line does not
    /// exist or already has a fault.
    pub(super) fn spoil(&mut self, line: Line, how: Spoil, time: u64) -> bool {
        let is_it = |(_, undo): &(Instant, Undo)| matches!(undo, Undo::RestoreLine(other) if *other == line);
        if self.undo.iter().any(is_it) || !self.lines.spoil(line, how) {
            return false;
        }
        if let Line::Database(plane) = line {
            self.planes[plane].cut_off();
        }
        self.undo.push((Instant::now() + Duration::from_millis(time), Undo::RestoreLine(line)));
        true
    }

    /// Stops the database server for a while; false if it is not ours.
    pub(super) fn crash_database(&mut self, down: u64) -> anyhow::Result<bool> {
        let is_down = self.undo.iter().any(|(_, undo)| matches!(undo, Undo::StartDatabase));
        let Some(server) = self.server.as_mut().filter(|server| server.folder().is_some()) else {
            return Ok(false);
        };
        if is_down {
            return Ok(false);
        }
        server.crash()?;
        self.planes.iter_mut().for_each(Plane::cut_off);
        self.undo.push((Instant::now() + Duration::from_millis(down), Undo::StartDatabase));
        Ok(true)
    }

    /// Freezes an agent for a while.
    pub(super) fn freeze(&mut self, pid: u32, frozen: u64) -> anyhow::Result<()> {
        signal_agent(pid, Signal::Stop)?;
        let until = Instant::now() + Duration::from_millis(frozen);
        self.undo.push((until, Undo::ThawAgent(pid)));
        Ok(())
    }

    /// A control plane that is up, round robin; waits for one if none is.
    pub(super) fn any_up(&mut self) -> anyhow::Result<usize> {
        let limit = Instant::now() + START_LIMIT;
        loop {
            let count = self.planes.len();
            self.turn += 1;
            let found = (0..count)
                .map(|offset| (self.turn + offset) % count)
                .find(|plane| self.planes[*plane].state == State::Up);
            if let Some(plane) = found {
                return Ok(plane);
            }
            if Instant::now() > limit {
                bail!("no control plane came up in {START_LIMIT:?}");
            }
            self.pass(POLL)?;
        }
    }

    /// Sends a request to a control plane that is up.
    pub(super) fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Answer> {
        let plane = self.any_up()?;
        self.call_at(plane, method, path, body)
    }

    /// Sends a request to this control plane.
    pub(super) fn call_at(
        &self,
        plane: usize,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Answer> {
        self.planes[plane].client().call(method, path, body).with_context(|| {
            let log = self.planes[plane].log_tail(&[]);
            format!("plane {plane} is up and does not answer {method} {path}; its log:\n{log}")
        })
    }

    /// Reads a document that must exist.
    pub(super) fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        let answer = self.call("GET", path, None)?;
        if answer.status != 200 {
            bail!("GET {path} is answered {}: {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }

    /// Every item of a list, page by page.
    pub(super) fn list(
        &mut self,
        path: &str,
        mut cursor: Option<String>,
        key: &str,
    ) -> anyhow::Result<Vec<Value>> {
        const PAGE: usize = 500;
        let mut items = Vec::new();
        loop {
            let after = cursor.as_ref().map(|cursor| format!("&cursor={cursor}"));
            let page = self.get(&format!("{path}?limit={PAGE}{}", after.unwrap_or_default()))?;
            let Value::Array(page) = page else { bail!("GET {path} is not answered by a list") };
            let full = page.len() == PAGE;
            items.extend(page);
            let last = items.last().map(|item| &item[key]);
            cursor = last.map(|last| last.as_str().map_or_else(|| last.to_string(), str::to_owned));
            if !full {
                return Ok(items);
            }
        }
    }

    /// Ends every control plane by SIGTERM; an error names those that do not end.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        for plane in &mut self.planes {
            plane.terminate()?;
        }
        let limit = Instant::now() + START_LIMIT;
        for (number, plane) in self.planes.iter_mut().enumerate() {
            let status = loop {
                if let Some(status) = plane.ended()? {
                    break status;
                }
                if Instant::now() > limit {
                    bail!("plane {number} does not end on SIGTERM:\n{}", plane.log_tail(&[]));
                }
                nap(POLL);
            };
            if !status.success() {
                bail!("plane {number} ended with {status}:\n{}", plane.log_tail(&[]));
            }
        }
        Ok(())
    }

    /// Keeps the folder and returns its path.
    pub(super) fn keep(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }
}

impl Drop for World {
    /// Kills all of them before the first is dropped with its agents, so that
    /// none restarts an agent.
    fn drop(&mut self) {
        self.planes.iter_mut().for_each(Plane::kill);
    }
}

#[expect(clippy::disallowed_methods, reason = "a schedule is made of pauses")]
pub(super) fn nap(time: Duration) {
    std::thread::sleep(time);
}

fn make_database(server: Option<&str>) -> anyhow::Result<(Postgres, TestDatabase)> {
    let server = match server {
        Some(url) => Postgres::at(url)?,
        None => Postgres::start(postgres::Options::default())?
            .context("PostgreSQL is not installed (apt-get install postgresql)")?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let database = runtime.block_on(server.database("soak"));
    Ok((server, database))
}
