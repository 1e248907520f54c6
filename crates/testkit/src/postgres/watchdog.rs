//! The watchdog process, which starts a PostgreSQL server and takes it down.
//!
//! A destructor does not run when a test process is killed, when it aborts, or
//! for a static at a normal exit. So this process does not stop the server
//! itself: a small shell (`keeper.sh`) starts it and reads from a pipe that
//! nobody writes to. However we end, the kernel closes our end, and the shell
//! stops the server, removes its folder and ends. There is no second way to
//! stop it.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};

use crate::memory;
use crate::process::is_root;

const SCRIPT: &str = include_str!("keeper.sh");

/// A running watchdog with its server. Drop ends both.
#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
    said: Option<BufReader<ChildStdout>>,
    folder: PathBuf,
}

/// Why the server did not start.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another process took the port first; retry with another port.
    PortTaken,
    /// Anything else, with the end of the server's log.
    Other(anyhow::Error),
}

impl Watchdog {
    /// Starts a server of `programs` in a new folder. `settings` receives that
    /// folder and returns lines for `postgresql.conf`. Unless `durable`, the
    /// folder is in memory if there is room: on a disk a quarter of the server's
    /// time goes into making and removing the files of databases.
    pub(super) fn start(
        programs: &Path,
        durable: bool,
        settings: impl FnOnce(&Path) -> Vec<String>,
    ) -> Result<Self, Failure> {
        let mut watchdog = Self::spawn(programs, durable, settings).map_err(Failure::Other)?;
        let said = watchdog.next_line().map_err(Failure::Other)?;
        if said == "ready" {
            return Ok(watchdog);
        }
        let log = fs::read_to_string(watchdog.folder.join("log")).unwrap_or_default();
        if log.contains("Address already in use") {
            return Err(Failure::PortTaken);
        }
        let end: Vec<&str> = log.lines().rev().take(20).collect();
        let end = end.into_iter().rev().collect::<Vec<_>>().join("\n");
        Err(Failure::Other(anyhow::anyhow!(
            "the PostgreSQL in {} did not start; the end of its log:\n{end}",
            programs.display()
        )))
    }

    /// The server's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn spawn(
        programs: &Path,
        durable: bool,
        settings: impl FnOnce(&Path) -> Vec<String>,
    ) -> anyhow::Result<Self> {
        // PostgreSQL refuses to run as root. The account that it then runs
        // under can enter `/tmp`, but maybe not root's TMPDIR.
        let account = if is_root() { Some(postgres_account()?) } else { None };
        let on_disk = || if account.is_some() { "/tmp".into() } else { env::temp_dir() };
        let in_memory = if durable { None } else { memory::folder() };
        let parent = in_memory.map_or_else(on_disk, Path::to_owned);
        let folder = tempfile::Builder::new()
            .prefix("slipway-postgres-")
            .tempdir_in(&parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;

        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(SCRIPT)
            .arg("slipway-postgres-keeper")
            .arg(folder.path())
            .arg(programs)
            .args(settings(folder.path()))
            // PGDATA, PGPORT and similar variables must not reach the server.
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder.path())
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C reaches the whole process group of the terminal. In its
            // own group the watchdog lives long enough to clean up.
            .process_group(0);
        if let Some(Account { user, group }) = account {
            chown(folder.path(), Some(user), Some(group))
                .with_context(|| format!("cannot give {} away", folder.path().display()))?;
            command.uid(user).gid(group);
        }
        let mut shell = command.spawn().context("cannot start sh, which keeps PostgreSQL")?;
        let said = shell.stdout.take().map(BufReader::new);
        // From here on the watchdog removes the folder.
        let folder = folder.keep();
        Ok(Self { shell, said, folder })
    }

    /// Ends the server and every connection to it, as a power cut would.
    pub(super) fn crash(&mut self) -> anyhow::Result<()> {
        self.order("crash", "stopped")
    }

    pub(super) fn start_again(&mut self) -> anyhow::Result<()> {
        self.order("start", "ready")
    }

    fn order(&mut self, order: &str, expected: &str) -> anyhow::Result<()> {
        let Some(input) = &mut self.shell.stdin else {
            bail!("the keeper of PostgreSQL takes no orders");
        };
        writeln!(input, "{order}").context("cannot order the keeper of PostgreSQL")?;
        match self.next_line()? {
            said if said == expected => Ok(()),
            said => bail!("the keeper of PostgreSQL was told to {order} and said {said:?}"),
        }
    }

    fn next_line(&mut self) -> anyhow::Result<String> {
        let Some(output) = &mut self.said else {
            bail!("the keeper of PostgreSQL has no output to read");
        };
        let mut line = String::new();
        output.read_line(&mut line).context("cannot read what the keeper of PostgreSQL says")?;
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

struct Account {
    user: u32,
    group: u32,
}

/// The account that Debian's package creates. `id` resolves it, because
/// accounts need not be in `/etc/passwd`.
fn postgres_account() -> anyhow::Result<Account> {
    let ask = |option: &str| -> anyhow::Result<u32> {
        let answer = Command::new("id")
            .args([option, "postgres"])
            .output()
            .context("cannot run id to look up the account postgres")?;
        if !answer.status.success() {
            bail!(
                "PostgreSQL does not run as root and there is no account postgres: \
                 make one (useradd --system postgres) or run the tests as another user"
            );
        }
        let text = String::from_utf8_lossy(&answer.stdout);
        text.trim().parse().with_context(|| format!("id answered {text:?} for postgres"))
    };
    Ok(Account { user: ask("-u")?, group: ask("-g")? })
}
