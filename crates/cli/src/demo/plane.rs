//! The control plane of the demo: a child process, its directory and its log,
//! all owned by one value.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use slipway_core::access::key_text::ApiKeyText;
use slipway_core::secret::Secret;
use tempfile::TempDir;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};

use super::agents::Agents;
use crate::client::Client;
use crate::error::Error;
use crate::terminal::clean;

/// Opening and migrating a database takes well under a second; the control
/// plane gives up on an unreachable PostgreSQL server after 30 s.
const START_LIMIT: Duration = Duration::from_secs(35);
/// The control plane gives up on work in flight after 15 s and then ends in any
/// case.
const STOP_LIMIT: Duration = Duration::from_secs(25);
const PACE: Duration = Duration::from_millis(20);
const KUBECONFIGS: &str = "kubeconfigs";
/// The file in that folder; a cluster refers to it as `kubeconfig/demo`.
pub(super) const KUBECONFIG: &str = "demo";
const PROVIDER_TOKENS: &str = "provider-tokens";
/// The file in that folder; a cluster refers to it as `hetzner/demo@URL`.
pub(crate) const PROVIDER_TOKEN: &str = "demo";
const LOG: &str = "control-plane.log";
const LOG_TAIL: usize = 20;

/// Prefixes of variables that configure a control plane: ours, and the names of
/// the broker documents, which are accepted too.
const FOREIGN: [&str; 2] = ["SLIPWAY_", "PLEXSPHERE_"];

/// Short, so that the demo is short. The deadline of a drain is shorter than
/// the work of the busy node on purpose: passing it must change nothing. It is
/// also the least time for which an agent is frozen.
const SETTINGS: [(&str, &str); 5] = [
    ("--heartbeat-interval", "200ms"),
    ("--orphan-after", "10s"),
    ("--deregistering-deadline", "1s"),
    ("--stop-grace", "500ms"),
    ("--sweep-interval", "2s"),
];
/// The demo ends one lease after the last deletion. An outside action may take
/// a third of the lease; two seconds are enough for a remote API server.
const CLUSTER_SETTINGS: [&str; 2] = ["--lease", "6s"];
pub(super) const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

/// Settings of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    /// The name of its project, its local cluster and its key.
    pub(super) name: &'a str,
    pub(super) key: &'a Secret,
    pub(super) database_url: Option<&'a Secret>,
    /// The content of the kubeconfig called [`KUBECONFIG`].
    pub(super) kubeconfig: Option<&'a Secret>,
    /// The token of a provider, in the file called [`PROVIDER_TOKEN`].
    pub(super) provider_token: Option<&'a Secret>,
}

/// A running control plane.
#[derive(Debug)]
pub(super) struct Plane {
    child: Child,
    /// Its standard input. Nothing is written to it; it closes when this
    /// process ends, however it ends, and then the control plane shuts down.
    _lifeline: Option<ChildStdin>,
    /// Dropped after the child and before the directory if the demo panics.
    _last: LastAct,
    directory: TempDir,
    path: PathBuf,
    pub(super) agents: Agents,
}

/// Kills the remaining agents on drop.
#[derive(Debug)]
struct LastAct(Agents);

impl Drop for LastAct {
    fn drop(&mut self) {
        self.0.kill_all();
    }
}

/// The file that `up` writes once it serves.
#[derive(Debug, Deserialize)]
struct ServerFile {
    url: String,
}

impl Plane {
    /// Starts the process. It serves once [`Plane::connect`] returns.
    pub(super) fn start(run: Run<'_>) -> Result<Self, Error> {
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
        let agents = Agents::of_this_program(path.join("data").join("substrate"))
            .map_err(|error| failed("cannot read the file of this program", &error))?;
        let secrets = [
            ("kubeconfig", run.kubeconfig, KUBECONFIGS, KUBECONFIG),
            ("token", run.provider_token, PROVIDER_TOKENS, PROVIDER_TOKEN),
        ];
        for (what, secret, folder, name) in secrets {
            let Some(secret) = secret else { continue };
            let folder = path.join(folder);
            // In a directory that other users cannot read.
            fs::create_dir(&folder)
                .and_then(|()| fs::write(folder.join(name), secret.expose()))
                .map_err(|error| failed(&format!("cannot copy the {what}"), &error))?;
        }
        let dependencies = std::env::vars_os().map(|(name, _)| name);
        let mut child = command(&program, &path, run, dependencies)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            // Ctrl-C is for the demo, which then stops this child in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed("cannot start the control plane", &error))?;
        // Taken out of the child: `wait` closes a child's input first, and then
        // that would stop the control plane instead of the signal.
        let lifeline = child.stdin.take();
        let last = LastAct(agents.clone());
        Ok(Self { child, _lifeline: lifeline, _last: last, directory, path, agents })
    }

    /// Waits until it serves.
    pub(super) async fn connect(&mut self, key: &Secret) -> Result<Client, Error> {
        let file = self.path.join("data").join("server.json");
        let begun = Instant::now();
        loop {
            // The file is written atomically, so it is complete if it exists.
            if let Ok(text) = fs::read(&file) {
                let server: ServerFile = serde_json::from_slice(&text).map_err(|error| {
                    Error::Demo(format!("{} is not understood: {error}", file.display()))
                })?;
                return Client::new(&server.url, Some(key.clone()), None);
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

    /// Requests its end and waits. `None` if it had to be killed.
    pub(super) async fn stop(&mut self) -> Option<ExitStatus> {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            // It was not reaped yet, so the pid is still its own.
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

    /// Removes the directory; returns its path.
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

/// A command of this program that inherits nothing of the user's own server.
pub(crate) fn own_program() -> Result<Command, Error> {
    let program = std::env::current_exe()
        .map_err(|error| Error::Demo(format!("cannot find the path of this program: {error}")))?;
    Ok(without_settings(&program, std::env::vars_os().map(|(name, _)| name)))
}

/// Drops all `dependencies` (names of the variables that a child would inherit) that
/// configure a server or a client.
fn without_settings(program: &Path, dependencies: impl Iterator<Item = OsString>) -> Command {
    let mut command = Command::new(program);
    for variable in dependencies {
        let text = variable.to_string_lossy();
        if FOREIGN.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&variable);
        }
    }
    command
}

/// `slipway up` in `path`. Always names the database: it must never be the user's by
/// accident.
fn command(
    program: &Path,
    path: &Path,
    run: Run<'_>,
    dependencies: impl Iterator<Item = OsString>,
) -> Command {
    let data = path.join("data");
    let own = Secret::new(format!("sqlite:{}", data.join("slipway.db").display()));
    let mut command = without_settings(program, dependencies);
    command
        .args(["up", "--no-context"])
        .arg("--data-dir")
        .arg(data)
        .args(["--listen", "127.0.0.1:0", "--stop-with-stdin"])
        .args(SETTINGS.iter().flat_map(|(flag, value)| [flag, value]))
        .args(["--local-project", run.name, "--local-cluster", run.name])
        .args(["--admin-key-name", run.name])
        // Not as arguments, which other users can see.
        .env("SLIPWAY_ADMIN_KEY", run.key.expose())
        .env("SLIPWAY_DATABASE_URL", run.database_url.unwrap_or(&own).expose());
    if run.kubeconfig.is_some() {
        command.arg("--kubeconfig-dir").arg(path.join(KUBECONFIGS)).args(CLUSTER_SETTINGS);
    }
    if run.provider_token.is_some() {
        command.arg("--provider-token-dir").arg(path.join(PROVIDER_TOKENS)).args(CLUSTER_SETTINGS);
    }
    command
}

/// A key for this one run.
pub(super) fn draw_key() -> Result<Secret, Error> {
    let (mut short, mut long) = ([0; 6], [0; 24]);
    draw(&mut short)?;
    draw(&mut long)?;
    Ok(ApiKeyText::mint(short, long))
}

/// The name of this run's project, cluster and key, which separates it from
/// other runs and users of the same database.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes of the environment by the command: `None` removes a variable.
    fn environment(database_url: Option<&str>) -> Vec<(String, Option<String>)> {
        let theirs = ["SLIPWAY_DATABASE_URL", "SLIPWAY_CONFIG", "PLEXSPHERE_DSN", "PATH"];
        let database_url = database_url.map(Secret::new);
        let command = command(
            Path::new("/slipway"),
            Path::new("/tmp/demo"),
            Run {
                name: "demo-1",
                key: &Secret::new("key"),
                database_url: database_url.as_ref(),
                kubeconfig: None,
                provider_token: None,
            },
            theirs.into_iter().map(OsString::from),
        );
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        command.as_std().get_envs().map(|(name, value)| (text(name), value.map(text))).collect()
    }

    #[test]
    fn nothing_of_the_users_own_server_reaches_the_demonstration() {
        let changes = |database: &str| {
            [
                ("PLEXSPHERE_DSN", None),
                ("SLIPWAY_ADMIN_KEY", Some("key")),
                ("SLIPWAY_CONFIG", None),
                ("SLIPWAY_DATABASE_URL", Some(database)),
            ]
            .map(|(name, value)| (name.to_owned(), value.map(str::to_owned)))
        };
        assert_eq!(environment(None), changes("sqlite:/tmp/demo/data/slipway.db"));
        assert_eq!(environment(Some("postgres://x/y")), changes("postgres://x/y"));
    }
}
