//! The control plane of the demonstration: a child process, its directory, its
//! log. Owned from start to end by one value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use slipway_core::keys::ApiKeyText;
use slipway_core::secret::Secret;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::agents::Agents;
use crate::client::Client;
use crate::error::Error;
use crate::terminal::clean;

/// Opening a database and migrating it takes well under a second; a PostgreSQL
/// server that is not there is given up by the control plane after 30 s.
const START_LIMIT: Duration = Duration::from_secs(35);
/// Requests under way get up to 10 s; then it ends whatever happens.
const STOP_LIMIT: Duration = Duration::from_secs(15);
const PACE: Duration = Duration::from_millis(20);
const LOG: &str = "control-plane.log";
const LOG_TAIL: usize = 20;

/// Short, so that the demonstration is. The deadline of a drain is shorter
/// than the work of the busy node on purpose: passing it must change nothing.
const SETTINGS: [(&str, &str); 5] = [
    ("--heartbeat-interval", "200ms"),
    ("--orphan-after", "20s"),
    ("--deregistering-deadline", "2s"),
    ("--stop-grace", "1s"),
    ("--sweep-interval", "2s"),
];
pub(super) const DRAIN_DEADLINE: Duration = Duration::from_secs(2);

/// A running control plane.
#[derive(Debug)]
pub(super) struct Plane {
    child: Child,
    directory: TempDir,
    path: PathBuf,
    pub(super) agents: Agents,
}

/// What `up` writes when it serves.
#[derive(Debug, Deserialize)]
struct ServerFile {
    url: String,
}

impl Plane {
    /// Starts it. It serves when [`Plane::connect`] answers.
    pub(super) fn start(
        database_url: Option<&Secret>,
        key: &Secret,
        name: &str,
    ) -> Result<Self, Error> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Error::Demo(format!("{what}: {error}; nothing was started"))
        };
        let directory = tempfile::Builder::new()
            .prefix("slipway-demo-")
            .tempdir()
            .map_err(|error| failed("cannot make a temporary directory", &error))?;
        // The agents are started with the canonical path of their directory.
        let path = directory
            .path()
            .canonicalize()
            .map_err(|error| failed("cannot read the temporary directory", &error))?;
        let log = fs::File::create(path.join(LOG))
            .map_err(|error| failed("cannot write the log of the control plane", &error))?;
        let errors =
            log.try_clone().map_err(|error| failed("cannot write the log twice", &error))?;
        let program = std::env::current_exe()
            .map_err(|error| failed("cannot find the path of this program", &error))?;
        let mut command = Command::new(program);
        // What is set for the user's own server must not reach this one.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SLIPWAY_") {
                command.env_remove(name);
            }
        }
        command
            .arg("up")
            .arg("--data-dir")
            .arg(path.join("data"))
            .args(["--listen", "127.0.0.1:0"])
            .args(SETTINGS.iter().flat_map(|(flag, value)| [flag, value]))
            .args(["--local-project", name, "--local-cluster", name, "--admin-key-name", name])
            .env("SLIPWAY_ADMIN_KEY", key.expose())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            // A Ctrl-C is for the demonstration, which then ends this in order.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(url) = database_url {
            // Not as an argument: other users see those.
            command.env("SLIPWAY_DATABASE_URL", url.expose());
        }
        let child =
            command.spawn().map_err(|error| failed("cannot start the control plane", &error))?;
        let agents = Agents::under(path.join("data").join("substrate"));
        Ok(Self { child, directory, path, agents })
    }

    /// Waits until it serves.
    pub(super) async fn connect(&mut self, key: &Secret) -> Result<Client, Error> {
        let file = self.path.join("data").join("server.json");
        let begun = Instant::now();
        loop {
            // It appears whole or not at all, so one that is there can be read.
            if let Ok(text) = fs::read(&file) {
                let server: ServerFile = serde_json::from_slice(&text).map_err(|error| {
                    Error::Demo(format!("{} is not understood: {error}", file.display()))
                })?;
                return Client::new(&server.url, Some(key.clone()));
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Error::Demo(format!(
                    "the control plane ended before it served: {status}"
                )));
            }
            if begun.elapsed() > START_LIMIT {
                return Err(Error::Demo(format!(
                    "the control plane does not serve after {START_LIMIT:?}"
                )));
            }
            sleep(PACE).await;
        }
    }

    /// Asks it to end and waits for that. `None` if it had to be killed.
    pub(super) async fn stop(&mut self) -> Option<ExitStatus> {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            // Not waited for yet, so the pid is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
        match timeout(STOP_LIMIT, self.child.wait()).await {
            Ok(ended) => ended.ok(),
            Err(_) => {
                let _ = self.child.kill().await;
                None
            }
        }
    }

    /// The last lines of its log.
    pub(super) fn log_tail(&self) -> Vec<String> {
        let bytes = fs::read(self.path.join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].iter().map(|line| clean(line)).collect()
    }

    /// Removes the directory; answers the path that is gone.
    pub(super) fn remove_directory(self) -> Result<PathBuf, Error> {
        let path = self.path;
        match self.directory.close() {
            Ok(()) => Ok(path),
            Err(error) => Err(Error::Demo(format!("cannot remove {}: {error}", path.display()))),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.path
    }
}

/// A key for this one run.
pub(super) fn draw_key() -> Result<Secret, Error> {
    let (mut short, mut long) = ([0; 6], [0; 24]);
    draw(&mut short)?;
    draw(&mut long)?;
    Ok(ApiKeyText::mint(short, long))
}

/// The name of this run's project, cluster and key, which keeps it apart from
/// other runs and from everybody else in one database.
pub(super) fn draw_name() -> Result<String, Error> {
    let mut bytes = [0; 3];
    draw(&mut bytes)?;
    let suffix: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("demo-{suffix}"))
}

fn draw(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes)
        .map_err(|error| Error::Demo(format!("the system gives no random bytes: {error}")))
}
