//! The real agent as a process of its own, in a directory laid out as the local
//! engine does it. The agent takes everything from the document in there.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::Value;
use tokio::fs;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::injected::Injected;
use crate::context::Context;
use crate::journal::{JournalEntry, Name};

/// Interval of reading the agent's own status, and the delay before a restart.
const POLL: Duration = Duration::from_millis(50);
const RESTART: Duration = Duration::from_millis(500);

const DOCUMENT: &str = "user-data";
const STATUS: &str = "status.json";
const LEAVING: &str = "state/leaving.json";

pub(crate) struct Agent {
    context: Context,
    name: Name,
    directory: PathBuf,
    injected: Injected,
    task: JoinHandle<()>,
}

impl Agent {
    pub(super) async fn boot(
        context: &Context,
        name: &Name,
        injected: Injected,
    ) -> anyhow::Result<Self> {
        let directory = context.agent_folder.join(&name.namespace).join(&name.composite);
        fs::create_dir_all(&directory)
            .await
            .with_context(|| format!("cannot make {}", directory.display()))?;
        write_document(&directory, &injected).await?;
        let program = match &context.options.agent_program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("cannot find this program")?,
        };
        let keeping = keep(context.clone(), name.clone(), program, directory.clone());
        Ok(Self {
            context: context.clone(),
            name: name.clone(),
            directory,
            injected,
            task: tokio::spawn(keeping),
        })
    }

    pub(super) async fn update(&mut self, injected: Injected) {
        if self.injected == injected {
            return;
        }
        match write_document(&self.directory, &injected).await {
            Ok(()) => self.injected = injected,
            Err(error) => tracing::error!(error = format!("{error:#}"), "an agent is not told"),
        }
    }

    pub(super) async fn end(mut self) {
        let status = status(&self.directory).await;
        self.report_leave(status["node_id"].as_str()).await;
        // Dropping the task kills the process: machines do not say good-bye
        // when they are deleted.
        self.task.abort();
        let _aborted = (&mut self.task).await;
        if let Err(error) = fs::remove_dir_all(&self.directory).await {
            tracing::error!(%error, "the directory of an agent is still there");
        }
        self.context.journal.write(
            &self.name,
            JournalEntry::Stopped,
            status["node_id"].as_str(),
            None,
        );
    }
}

impl Agent {
    /// Reports the leave that the agent noted, with the agent's own time: the
    /// agent may have been ended right after.
    async fn report_leave(&self, node_id: Option<&str>) {
        let noted = fs::metadata(self.directory.join(LEAVING)).await;
        let noted = noted.and_then(|metadata| metadata.modified()).ok();
        if let Some(at) = noted.and_then(|at| Timestamp::try_from(at).ok()) {
            self.context.journal.write_at(at, &self.name, JournalEntry::Leaving, node_id, None);
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Atomic, so that the agent never reads a partial document.
async fn write_document(directory: &Path, injected: &Injected) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let unfinished = directory.join("user-data.unfinished");
    let writing = || format!("cannot write {}", unfinished.display());
    fs::write(&unfinished, &injected.document).await.with_context(writing)?;
    let mode = std::fs::Permissions::from_mode(0o600);
    fs::set_permissions(&unfinished, mode).await.with_context(writing)?;
    fs::rename(&unfinished, directory.join(DOCUMENT)).await.with_context(writing)
}

/// Runs the agent, restarts it if it dies, and journals its own status.
async fn keep(context: Context, name: Name, program: PathBuf, directory: PathBuf) {
    let mut said = String::new();
    loop {
        let mut child = match start(&program, &directory).await {
            Ok(child) => child,
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "an agent is not started");
                tokio::time::sleep(RESTART).await;
                continue;
            }
        };
        let ended = loop {
            tokio::select! {
                ended = child.wait() => break ended,
                () = tokio::time::sleep(POLL) => {
                    report(&context, &name, &status(&directory).await, &mut said);
                }
            }
        };
        tracing::warn!(?ended, composite = name.composite, "an agent ended and is started again");
        tokio::time::sleep(RESTART).await;
    }
}

async fn start(program: &Path, directory: &Path) -> anyhow::Result<Child> {
    let log = directory.join("agent.log");
    let output = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log)
        .await
        .with_context(|| format!("cannot open {}", log.display()))?
        .into_std()
        .await;
    let errors = output.try_clone().context("cannot share the log of an agent")?;
    Command::new(program)
        .args(["agent", "node", "--dir"])
        .arg(directory)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "RUST_LOG"))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// The agent's own status; null if there is none yet.
async fn status(directory: &Path) -> Value {
    let content = fs::read(directory.join(STATUS)).await.unwrap_or_default();
    serde_json::from_slice(&content).unwrap_or_default()
}

fn report(context: &Context, name: &Name, status: &Value, said: &mut String) {
    let state = status["state"].as_str().unwrap_or_default();
    if state == said {
        return;
    }
    let node_id = status["node_id"].as_str();
    let entry = match (state, said.as_str()) {
        // It becomes active again when the control plane cancels a drain.
        ("active", "" | "booting" | "enrolling" | "refused") => Some(JournalEntry::Registered),
        ("drained", _) => Some(JournalEntry::Drained),
        ("refused", _) => Some(JournalEntry::Refused),
        _ => None,
    };
    if let Some(entry) = entry {
        let detail = status["message"].as_str().filter(|_| matches!(entry, JournalEntry::Refused));
        context.journal.write(name, entry, node_id, detail);
    }
    state.clone_into(said);
}
