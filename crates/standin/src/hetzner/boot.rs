//! The machine behind a server: a folder with its user data, and a process that the test or the
//! demo names. It dies with the server, as machines do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

const DOCUMENT: &str = "user-data";
/// Before a machine that ended boots again.
const REBOOT: Duration = Duration::from_millis(500);

/// How machines boot.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Words; `{directory}` is the folder of the machine and `{user_data}` its document.
    pub command: Vec<String>,
    /// Where the folders are.
    pub folder: PathBuf,
}

/// The machines that run.
#[derive(Debug)]
pub(super) struct Machines {
    boot: Option<Boot>,
    running: BTreeMap<u64, JoinHandle<()>>,
}

impl Machines {
    pub(super) const fn new(boot: Option<Boot>) -> Self {
        Self { boot, running: BTreeMap::new() }
    }

    pub(super) fn start(&mut self, server: u64, user_data: &str) {
        let Some(boot) = self.boot.clone() else { return };
        let directory = boot.folder.join(server.to_string());
        let task = keep(boot.command, directory, user_data.to_owned());
        self.running.insert(server, tokio::spawn(task));
    }

    pub(super) fn end(&mut self, server: u64) {
        // Dropping the child kills it: a machine does not say good-bye when it is deleted.
        let Some(task) = self.running.remove(&server) else { return };
        task.abort();
        let Some(boot) = &self.boot else { return };
        let directory = boot.folder.join(server.to_string());
        tokio::spawn(async move {
            let _aborted = task.await;
            if let Err(error) = tokio::fs::remove_dir_all(&directory).await {
                tracing::error!(%error, "the folder of a machine is still there");
            }
        });
    }

    pub(super) fn count(&self) -> usize {
        self.running.len()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.running.values().for_each(JoinHandle::abort);
    }
}

/// Boots the machine again whenever its process ends.
async fn keep(command: Vec<String>, directory: PathBuf, user_data: String) {
    if let Err(error) = prepare(&directory, &user_data).await {
        tracing::error!(error = format!("{error:#}"), "a machine has no folder and does not boot");
        return;
    }
    loop {
        match start(&command, &directory) {
            Ok(mut child) => {
                let ended = child.wait().await;
                tracing::warn!(?ended, "a machine ended and boots again");
            }
            Err(error) => tracing::error!(error = format!("{error:#}"), "a machine does not boot"),
        }
        tokio::time::sleep(REBOOT).await;
    }
}

async fn prepare(directory: &Path, user_data: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    tokio::fs::create_dir_all(directory).await?;
    let document = directory.join(DOCUMENT);
    tokio::fs::write(&document, user_data).await?;
    let mode = std::fs::Permissions::from_mode(0o600);
    Ok(tokio::fs::set_permissions(&document, mode).await?)
}

fn start(command: &[String], directory: &Path) -> anyhow::Result<Child> {
    let shown = directory.display().to_string();
    let document = directory.join(DOCUMENT).display().to_string();
    let word =
        |word: &String| word.replace("{directory}", &shown).replace("{user_data}", &document);
    let words: Vec<_> = command.iter().map(word).collect();
    let (program, arguments) = words.split_first().context("the command to boot is empty")?;
    let output = std::fs::File::create(directory.join("agent.log"))?;
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "RUST_LOG"))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {program}"))
}
