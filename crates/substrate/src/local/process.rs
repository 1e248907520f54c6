//! Identifies, starts and signals the agent process of a node directory.
//!
//! The agent is the process with the record lock on `agent.lock`, which it keeps
//! until it ends. A pid is only ever used together with the lock, see [`signal`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{
    Flock, FlockType, Pid, PidfdFlags, Signal, fcntl_getlk, pidfd_open, pidfd_send_signal,
};
use tokio::process::Command;
use tracing::Instrument;

const LOCK: &str = "agent.lock";
pub(super) const OUTPUT: &str = "agent.log";

/// The environment variables that an agent inherits. Its document has everything
/// else, and the server's environment may contain secrets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "RUST_LOG", "RUST_BACKTRACE"];

/// A process takes its lock within a few milliseconds, and within this time on an
/// overloaded machine. A second process that is started in between does no harm:
/// it finds the lock taken and ends.
const START_UP: Duration = Duration::from_secs(1);

/// Closing any descriptor of a file drops every record lock that the process has
/// on it, so reading a lock file on one thread would release the lock that another
/// thread just took. This mutex is locked during each use of a lock file, all of
/// which are short.
static LOCK_FILES: Mutex<()> = Mutex::new(());

fn lock_files() -> MutexGuard<'static, ()> {
    // The mutex guards no data that a panic could have left half done.
    LOCK_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The holder of the agent's lock of a node directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Nobody,
    /// Without a pid if the holder runs in a pid namespace that we cannot see.
    Process(Option<Pid>),
}

impl Holder {
    pub(super) fn pid(self) -> Option<Pid> {
        match self {
            Self::Process(pid) => pid,
            Self::Nobody => None,
        }
    }
}

pub(super) fn holder(directory: &Path) -> io::Result<Holder> {
    let _serialized = lock_files();
    match OpenOptions::new().read(true).write(true).open(directory.join(LOCK)) {
        Ok(file) => holder_of(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Holder::Nobody),
        Err(error) => Err(error),
    }
}

fn holder_of(file: &File) -> io::Result<Holder> {
    let found = fcntl_getlk(file, &Flock::from(FlockType::WriteLock))?;
    Ok(found.map_or(Holder::Nobody, |lock| Holder::Process(lock.pid)))
}

/// Runs `action` while no process can become the agent of the directory, not
/// even one that was started but has not yet taken its lock. `None` if there is
/// an agent.
pub(super) fn without_agent<T>(
    directory: &Path,
    action: impl FnOnce() -> io::Result<T>,
) -> io::Result<Option<T>> {
    let _serialized = lock_files();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(directory.join(LOCK))?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => action().map(Some),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sends a signal to the agent of a directory, if there is one.
///
/// *Guarantees:* no other process ever gets the signal. This opens a pidfd of the
/// holder's pid and then queries the lock again. If the same pid still has the
/// lock, the process behind the pidfd is the holder: the kernel does not reuse a
/// pid while its process lives, and the holder lives.
pub(super) fn signal(directory: &Path, signal: Signal) -> io::Result<()> {
    let Holder::Process(found) = holder(directory)? else {
        return Ok(());
    };
    let Some(pid) = found else {
        return Err(io::Error::other(
            "the agent lives in another pid namespace and cannot be signalled from here",
        ));
    };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if holder(directory)?.pid() != Some(pid) {
        return Ok(());
    }
    match pidfd_send_signal(&process, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug)]
pub(super) struct Starter {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// When an agent was last started for a directory. This only keeps repeated
    /// applies from starting many processes; the lock ensures one agent.
    recent: Mutex<HashMap<PathBuf, Instant>>,
}

impl Starter {
    pub(super) fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments, recent: Mutex::default() }
    }

    /// Makes sure that a directory has an agent. Returns as soon as the
    /// process is started; the agent is ready when it has the lock.
    ///
    /// Must be called on a runtime: a task awaits the end of the process, so
    /// that none becomes a zombie.
    pub(super) fn ensure_running(&self, directory: &Path) -> io::Result<()> {
        if holder(directory)? != Holder::Nobody || !self.is_first(directory) {
            return Ok(());
        }
        let started = self.start(directory);
        if started.is_err() {
            self.forget(directory);
        }
        started
    }

    fn start(&self, directory: &Path) -> io::Result<()> {
        let output = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(directory.join(OUTPUT))?;
        let errors = output.try_clone()?;
        let inherited = INHERITED.iter().filter_map(|&name| Some((name, std::env::var_os(name)?)));
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(directory)
            .current_dir(directory)
            .env_clear()
            .envs(inherited)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()?;
        tracing::info!(directory = %directory.display(), pid = child.id(), "started a node agent");
        let directory = directory.to_owned();
        let watch = async move {
            match child.wait().await {
                Ok(status) => {
                    tracing::info!(directory = %directory.display(), %status, "a node agent ended");
                }
                Err(error) => {
                    tracing::warn!(directory = %directory.display(), %error, "cannot wait for a node agent any more");
                }
            }
        };
        tokio::spawn(watch.in_current_span());
        Ok(())
    }

    fn is_first(&self, directory: &Path) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, started| started.elapsed() < START_UP);
        if recent.contains_key(directory) {
            return false;
        }
        recent.insert(directory.to_owned(), Instant::now());
        true
    }

    pub(super) fn forget(&self, directory: &Path) {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).remove(directory);
    }
}
