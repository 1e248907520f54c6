//! The three sites of the demo: an agent, which runs as a process or does not, and what
//! it deploys to. What a site has is read there, without the agent.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, ChildStdin};
use tokio::time::timeout;

use super::content::{self, NAMESPACE};
use crate::demo::own_program;
use crate::error::Error;
use crate::renderers::Renderers;
use crate::terminal::clean;

/// The cluster names of the agents. The first is the canary, the last one goes offline.
pub(super) const NAMES: [&str; 3] = ["berlin", "oslo", "porto"];

/// An agent ends within a pass.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const LOG_TAIL: usize = 5;

/// What an agent deploys to.
#[derive(Debug, Clone)]
enum Target {
    Folder(PathBuf),
    Cluster { kubeconfig: PathBuf, renderers: Renderers },
}

#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: &'static str,
    /// Empty until the agent was made.
    pub(super) agent_id: String,
    target: Target,
    key_file: PathBuf,
    log: PathBuf,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// Its standard input, which closes with the demo, however that ends.
    _lifeline: Option<ChildStdin>,
}

impl Site {
    /// The site of a name within the directory of this run.
    pub(super) fn folder(name: &'static str, directory: &Path) -> Self {
        let path = directory.join("sites");
        Self {
            name,
            agent_id: String::new(),
            target: Target::Folder(path.join(name)),
            key_file: path.join(format!("{name}.key")),
            log: path.join(format!("{name}.log")),
            process: None,
        }
    }

    pub(super) fn on_cluster(self, kubeconfig: &Path, renderers: Renderers) -> Self {
        let kubeconfig = kubeconfig.to_owned();
        Self { target: Target::Cluster { kubeconfig, renderers }, ..self }
    }

    /// `directory` or `cluster`, as the command of its agent.
    pub(super) const fn kind(&self) -> &'static str {
        match self.target {
            Target::Folder(_) => "directory",
            Target::Cluster { .. } => "cluster",
        }
    }

    /// Gives the site its agent.
    pub(super) fn assign(&mut self, agent_id: String, key: &str) -> Result<(), Error> {
        let failed =
            |error| Error::Demo(format!("cannot write {}: {error}", self.key_file.display()));
        let folder = self.key_file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.key_file);
        file.and_then(|mut file| file.write_all(key.as_bytes())).map_err(failed)?;
        self.agent_id = agent_id;
        Ok(())
    }

    /// Starts its agent.
    pub(super) fn start(&mut self, server: &str) -> Result<(), Error> {
        let failed =
            |error| Error::Demo(format!("cannot start the agent of {}: {error}", self.name));
        let log =
            fs::OpenOptions::new().append(true).create(true).open(&self.log).map_err(failed)?;
        let errors = log.try_clone().map_err(failed)?;
        let mut command = own_program()?;
        command
            .args(["agent", self.kind(), "--server", server, "--poll", "1s", "--stop-with-stdin"])
            .arg("--key-file")
            .arg(&self.key_file);
        match &self.target {
            Target::Folder(path) => command.arg("--path").arg(path),
            Target::Cluster { kubeconfig, .. } => {
                command.arg("--kubeconfig").arg(kubeconfig).args(["--namespace", NAMESPACE])
            }
        };
        // Ctrl-C is for the demo, which then stops its agents in order.
        command.stdin(Stdio::piped()).stdout(log).stderr(errors).process_group(0);
        let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
        let lifeline = child.stdin.take();
        self.process = Some(Process { child, _lifeline: lifeline });
        Ok(())
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref()?.child.id()
    }

    /// Ends its agent by its process id; whether it ended in order.
    pub(super) async fn stop(&mut self) -> bool {
        let Some(Process { mut child, _lifeline }) = self.process.take() else { return true };
        if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            // It was not reaped yet, so the pid is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
        drop(_lifeline);
        match timeout(STOP_LIMIT, child.wait()).await {
            Ok(ended) => ended.is_ok_and(|status| status.success()),
            Err(_) => {
                let _ = child.kill().await;
                false
            }
        }
    }

    /// What the site has, as a line; `run` is the beginning of the names.
    pub(super) async fn content(&self, run: &str, stack_id: &str) -> Result<String, Error> {
        let mut entries = BTreeMap::new();
        match &self.target {
            Target::Folder(path) => {
                for file in files(path) {
                    let text = fs::read_to_string(&file).unwrap_or_default();
                    let (first, body) = text.split_once('\n').unwrap_or_default();
                    let is_ours =
                        [format!("agent={} ", self.agent_id), format!("stack={stack_id} ")]
                            .iter()
                            .all(|mark| first.contains(mark));
                    let object = serde_json::from_str::<Value>(body).unwrap_or_default();
                    let found = content::entry(&object, run).filter(|_| is_ours);
                    // Whatever else is in the folder of an agent is no part of the stack.
                    let name = || file.file_name().unwrap_or_default().to_string_lossy();
                    let (key, shown) =
                        found.unwrap_or_else(|| (name().into_owned(), "?".to_owned()));
                    entries.insert(key, shown);
                }
            }
            Target::Cluster { kubeconfig, renderers } => {
                for object in listed(renderers, kubeconfig, None).await? {
                    let Some((key, shown)) = content::entry(&object, run) else { continue };
                    let labels = &object["metadata"]["labels"];
                    let is_ours = labels["fleet.slipway.dev/agent"] == *self.agent_id
                        && labels["fleet.slipway.dev/stack"] == *stack_id;
                    entries.insert(key, if is_ours { shown } else { "?".to_owned() });
                }
            }
        }
        Ok(content::line(&entries))
    }

    /// Removes what its agent keeps on a cluster for good, and whatever a story that broke
    /// off left there. Folders go with the directory of the run.
    pub(super) async fn clear(&self) -> Result<usize, Error> {
        let Target::Cluster { kubeconfig, renderers } = &self.target else { return Ok(0) };
        if self.agent_id.is_empty() {
            return Ok(0);
        }
        let selector = format!("fleet.slipway.dev/agent={}", self.agent_id);
        (renderers.remove_config_maps)(kubeconfig.clone(), NAMESPACE, selector.clone())
            .await
            .map_err(Error::Demo)?;
        Ok(listed(renderers, kubeconfig, Some(selector)).await?.len())
    }

    /// The last lines of its agent's log.
    pub(super) fn log_tail(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].iter().map(|line| clean(line)).collect()
    }
}

async fn listed(
    renderers: &Renderers,
    kubeconfig: &Path,
    selector: Option<String>,
) -> Result<Vec<Value>, Error> {
    let listed = (renderers.config_maps)(kubeconfig.to_owned(), NAMESPACE, selector);
    listed.await.map_err(Error::Demo)
}

/// The files of a folder, without what begins with a dot. There are none before the agent
/// made the folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    entries.filter(|entry| !is_hidden(&entry.file_name())).map(|entry| entry.path()).collect()
}
