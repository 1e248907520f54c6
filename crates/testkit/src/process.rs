//! Reads processes from `/proc`, and signals those that a test started.
//!
//! Owns: [`Spawned`], the guard under which a test starts a program. Must not:
//! select processes to signal by name; a caller names the id of a process
//! that it started or that its program reported.

use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::Context as _;

use crate::wait;

/// A living process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// The letter of `proc(5)`: `R` running, `S` sleeping, `T` stopped, …
    pub state: char,
    /// Program and arguments, joined by spaces.
    pub command_line: String,
}

/// Signals that tests send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGKILL: a crash that no program can handle.
    Kill,
    /// SIGTERM: the request to end.
    Terminate,
    /// SIGINT: what Ctrl-C sends.
    Interrupt,
    /// SIGSTOP: freezes, as a long pause of the machine would.
    Stop,
    /// SIGCONT: ends a freeze.
    Continue,
}

/// Every living process with `fragment` in its command line, by process id.
/// Leaves out zombies and the calling process.
pub fn processes_with_argument(fragment: &str) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        // A process that ended since the listing is not found.
        if let Some(process) = process(pid)
            && process.command_line.contains(fragment)
        {
            found.push(process);
        }
    }
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

/// Whether `pid` is a process that is neither gone nor a zombie.
pub fn is_alive(pid: u32) -> bool {
    process(pid).is_some()
}

/// The living process `pid`, if there is one.
pub fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = state_of(&stat)?;
    if matches!(state, 'Z' | 'X' | 'x') {
        return None;
    }
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command_line = String::from_utf8_lossy(&arguments).replace('\0', " ").trim_end().to_owned();
    Some(Process { pid, state, command_line })
}

/// The state letter of a `stat` line. The program's name precedes it in
/// parentheses and may itself contain spaces and parentheses, so the *last*
/// closing one counts.
fn state_of(stat: &str) -> Option<char> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.trim_start().chars().next()
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Sends `signal` to `pid`, a process that the test started.
pub fn send_signal(pid: u32, signal: Signal) -> io::Result<()> {
    let refused = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{pid} is not the id of a process that a test can have started"),
        )
    };
    // 0 would mean our whole process group and 1 the init process.
    if pid <= 1 {
        return Err(refused());
    }
    let target =
        i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).ok_or_else(refused)?;
    let signal = match signal {
        Signal::Kill => rustix::process::Signal::KILL,
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::Stop => rustix::process::Signal::STOP,
        Signal::Continue => rustix::process::Signal::CONT,
    };
    Ok(rustix::process::kill_process(target, signal)?)
}

/// A child process that does not outlive its guard: drop kills it (also when
/// frozen) and reaps it.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
}

impl Spawned {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        Ok(Self { child })
    }

    /// Its process id. Safe to signal while the guard lives and
    /// [`Spawned::exit`] has not returned: until reaped, an id is not reused.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child, for access to its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        send_signal(self.pid(), signal)
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// When it is still running after `timeout`.
    pub async fn exit(&mut self, timeout: Duration) -> anyhow::Result<ExitStatus> {
        let pid = self.pid();
        wait::until(timeout, &format!("the end of process {pid}"), async || {
            self.child.try_wait().transpose().ok_or_else(|| {
                format!("still there: {:?}", process(pid).map(|process| process.command_line))
            })
        })
        .await
        .with_context(|| format!("cannot wait for process {pid}"))
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        // Both fail only for a child that is already reaped.
        if self.child.kill().is_ok() {
            let _reaped = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::{
        Signal, Spawned, is_alive, process, processes_with_argument, send_signal, state_of,
    };
    use crate::wait::until;

    const TIMEOUT: Duration = Duration::from_secs(20);

    /// A shell that waits for its input to end, recognisable by `mark`.
    fn mk_waiting(mark: &str) -> Spawned {
        let mut command = Command::new("sh");
        command.args(["-c", "read -r _; exit 7", mark]).stdin(Stdio::piped());
        Spawned::start(&mut command).unwrap()
    }

    fn mk_mark(name: &str) -> String {
        format!("slipway-testkit-{name}-{}", std::process::id())
    }

    #[test]
    fn a_process_is_found_by_its_argument_and_gone_after_its_guard() {
        let mark = mk_mark("found");
        let spawned = mk_waiting(&mark);
        let pid = spawned.pid();
        let found = processes_with_argument(&mark).unwrap();
        assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [pid]);
        assert!(found[0].command_line.ends_with(&mark), "{found:?}");
        assert!(is_alive(pid));

        drop(spawned);
        assert!(!is_alive(pid));
        assert_eq!(processes_with_argument(&mark).unwrap(), []);
    }

    #[tokio::test]
    async fn a_zombie_is_not_alive() {
        let mark = mk_mark("zombie");
        let spawned = mk_waiting(&mark);
        let pid = spawned.pid();
        spawned.signal(Signal::Kill).unwrap();
        // Not reaped yet: `/proc` still has an entry, as a zombie.
        until(TIMEOUT, "the killed process to be dead", async || !is_alive(pid)).await;
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
        assert_eq!(processes_with_argument(&mark).unwrap(), []);
    }

    #[tokio::test]
    async fn a_process_can_be_frozen_and_resumed() {
        let spawned = mk_waiting(&mk_mark("frozen"));
        let state = || process(spawned.pid()).map(|process| process.state);
        spawned.signal(Signal::Stop).unwrap();
        until(TIMEOUT, "the process to freeze", async || state() == Some('T')).await;
        spawned.signal(Signal::Continue).unwrap();
        until(TIMEOUT, "the process to resume", async || state() != Some('T')).await;
        assert!(is_alive(spawned.pid()));
    }

    #[test]
    fn the_guard_ends_a_frozen_process_too() {
        let spawned = mk_waiting(&mk_mark("frozen-guard"));
        let pid = spawned.pid();
        spawned.signal(Signal::Stop).unwrap();
        drop(spawned);
        assert!(!is_alive(pid));
    }

    #[tokio::test]
    async fn exit_tells_how_a_process_ended() {
        let mut by_itself = mk_waiting(&mk_mark("exit"));
        drop(by_itself.child().stdin.take());
        assert_eq!(by_itself.exit(TIMEOUT).await.unwrap().code(), Some(7));

        let mut terminated = mk_waiting(&mk_mark("terminated"));
        terminated.signal(Signal::Terminate).unwrap();
        assert_eq!(terminated.exit(TIMEOUT).await.unwrap().signal(), Some(15));
    }

    #[test]
    fn ids_that_mean_more_than_one_process_are_refused() {
        for pid in [0, 1, u32::MAX] {
            let error = send_signal(pid, Signal::Continue).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{pid}");
        }
    }

    #[test]
    fn a_program_name_with_parentheses_does_not_hide_the_state() {
        assert_eq!(state_of("12 (a) Z (b) S 1 12 12"), Some('S'));
        assert_eq!(state_of("no parentheses"), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Spawned::start(&mut Command::new("no-such-program")).unwrap_err();
        assert!(error.to_string().contains("no-such-program"), "{error}");
    }
}
