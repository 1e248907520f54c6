//! The watchdog process, which starts the servers and takes them down.
//!
//! The mechanism is that of `postgres/watchdog.rs`: a destructor does not run
//! when a test process is killed, so a small shell (`keeper.sh`) starts the
//! servers and reads from a pipe. However we end, the kernel closes our end,
//! and the shell ends the servers and removes their folder. There is no second
//! way to stop them.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};

use crate::memory;

const SCRIPT: &str = include_str!("keeper.sh");

/// A running watchdog. Drop ends everything that it started.
#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
    said: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Watchdog {
    /// Starts a watchdog with an empty folder. Unless `durable`, the folder is
    /// in memory if there is room: etcd syncs every write and has no option
    /// against it, and on a real disk that is most of the cost of a request.
    pub(super) fn start(durable: bool) -> anyhow::Result<Self> {
        let in_memory = if durable { None } else { memory::folder() };
        let parent = in_memory.map_or_else(env::temp_dir, Path::to_owned);
        let folder = tempfile::Builder::new()
            .prefix("slipway-kube-")
            .tempdir_in(&parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
        let mut shell = Command::new("sh")
            .arg("-c")
            .arg(SCRIPT)
            .arg("slipway-kube-keeper")
            .arg(folder.path())
            // No proxies and no settings of somebody's etcd may reach the servers.
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder.path())
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C reaches the whole process group of the terminal. In its
            // own group the watchdog lives long enough to clean up.
            .process_group(0)
            .spawn()
            .context("cannot start sh, which keeps the servers")?;
        let said = shell.stdout.take().context("the keeper has no output")?;
        // From here on the watchdog removes the folder.
        Ok(Self { shell, said: BufReader::new(said), folder: folder.keep() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts `<part>.sh` in the folder and returns its process id.
    pub(super) fn start_part(&mut self, part: &str) -> anyhow::Result<u32> {
        let said = self.order("start", part)?;
        said.parse().with_context(|| format!("the keeper started {part} and said {said:?}"))
    }

    /// Ends a part as a power cut would. Does nothing if it is not running.
    pub(super) fn kill_part(&mut self, part: &str) -> anyhow::Result<()> {
        self.stopped("kill", part)
    }

    /// Asks a part to end, and waits until it has.
    pub(super) fn terminate_part(&mut self, part: &str) -> anyhow::Result<()> {
        self.stopped("terminate", part)
    }

    fn stopped(&mut self, order: &str, part: &str) -> anyhow::Result<()> {
        match self.order(order, part)?.as_str() {
            "stopped" => Ok(()),
            said => bail!("the keeper was told to {order} {part} and said {said:?}"),
        }
    }

    fn order(&mut self, order: &str, part: &str) -> anyhow::Result<String> {
        let input = self.shell.stdin.as_mut().context("the keeper takes no orders")?;
        writeln!(input, "{order} {part}")
            .with_context(|| format!("cannot tell the keeper to {order} {part}"))?;
        let mut line = String::new();
        self.said.read_line(&mut line).context("cannot read what the keeper says")?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // Fails only if the process was already reaped; then it is gone as well.
        let _gone = self.shell.wait();
    }
}
