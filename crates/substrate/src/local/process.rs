//! The agent process of a node directory: who it is, starting it, ending it.
//!
//! Identity is the record lock on `agent.lock`, which the agent holds for
//! life. A pid is only ever used together with the lock, see [`signal`].

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
const OUTPUT: &str = "agent.log";

/// What an agent inherits. Everything else it has to know is in its document;
/// the server's environment may hold secrets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "RUST_LOG", "RUST_BACKTRACE"];

/// A process takes its lock within a few milliseconds; on a machine that is
/// short of everything within this. A second one that is started in between
/// does no harm, it finds the lock taken and ends.
const START_UP: Duration = Duration::from_secs(1);

/// Closing any descriptor of a file drops every record lock that the process
/// has on it, so that looking at a lock file on one thread would release what
/// another thread just took. Held over each use of a lock file; they are short.
static LOCK_FILES: Mutex<()> = Mutex::new(());

fn lock_files() -> MutexGuard<'static, ()> {
    // It guards no data that a panic could have left half done.
    LOCK_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who holds the lock of a node directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Nobody,
    /// Without a pid if the holder lives in a pid namespace that we cannot see.
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

/// Does `action` while nobody else can become the agent of the directory, not
/// even a process that was started but has not yet come to its lock. `None` if
/// there is an agent.
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
/// *Guarantees:* no other process ever gets it. The pid of the holder is
/// turned into a pidfd, and the lock is asked again: if the same pid still
/// holds it, the process behind the pidfd is the holder, because a pid is not
/// given away while its process lives, and the holder lives.
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

/// Starts agents.
#[derive(Debug)]
pub(super) struct Starter {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// When an agent was started for a directory. Only keeps repeated applies
    /// from starting a crowd; the lock is what keeps agents apart.
    recent: Mutex<HashMap<PathBuf, Instant>>,
}

impl Starter {
    pub(super) fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments, recent: Mutex::default() }
    }

    /// Makes sure that a directory has an agent. Returns as soon as the
    /// process is started; it is ready when it holds the lock.
    ///
    /// Must be called on a runtime: the end of the process is awaited by a
    /// task, so that none becomes a zombie.
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
                    tracing::warn!(directory = %directory.display(), %error, "lost sight of a node agent");
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
