//! The agent processes under one substrate root, as the kernel lists them. A
//! process is one of ours if it runs this same executable and was started as
//! `agent node --dir` with a directory under our root. Any other process with
//! such a path among its arguments, such as an editor or `tail -f …/agent.log`,
//! is neither counted nor signalled.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Finds the agents of one root.
#[derive(Debug, Clone)]
pub(super) struct Agents {
    root: PathBuf,
    program: FileIdentity,
}

/// Identity of a file, independent of its name. A path would not do: another
/// file may have replaced it since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Follows links, such as `/proc/<pid>/exe`.
    fn of(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        Ok(Self { device: file.dev(), inode: file.ino() })
    }
}

/// A process that existed when it was observed.
#[derive(Debug, Clone)]
pub(super) struct AgentProcess {
    pid: Pid,
    directory: PathBuf,
    pub(super) stopped: bool,
}

impl Agents {
    pub(super) fn of_this_program(root: PathBuf) -> io::Result<Self> {
        Ok(Self { root, program: FileIdentity::of("/proc/self/exe")? })
    }

    /// Every agent of this root. A process that ends during the scan is not
    /// listed; nor is a zombie, which has no arguments.
    pub(super) fn all(&self) -> Vec<AgentProcess> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter_map(Pid::from_raw)
            .filter_map(|pid| self.observe(pid))
            .collect()
    }

    /// The agents of one composite.
    pub(super) fn of(&self, xr_name: &str) -> Vec<AgentProcess> {
        let mut all = self.all();
        all.retain(|agent| agent.belongs_to(xr_name));
        all
    }

    fn observe(&self, pid: Pid) -> Option<AgentProcess> {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let directory = directory_argument(&arguments, &self.root)?;
        if FileIdentity::of(format!("/proc/{pid}/exe")).ok()? != self.program {
            return None;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The program's name is in brackets and may contain anything.
        let state = status.rsplit(')').next()?.trim_start().chars().next()?;
        Some(AgentProcess { pid, directory, stopped: state == 'T' })
    }

    /// Signals an agent. A pidfd pins the process before it is observed again,
    /// so that a process which reused the pid is never signalled.
    pub(super) fn signal(&self, agent: &AgentProcess, signal: Signal) -> io::Result<()> {
        let process = match pidfd_open(agent.pid, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(Errno::SRCH) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if self.observe(agent.pid).is_none_or(|now| now.directory != agent.directory) {
            return Ok(());
        }
        match pidfd_send_signal(&process, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Kills the remaining agents.
    pub(super) fn kill_all(&self) {
        for agent in self.all() {
            // An agent that cannot be killed ends when its directory is gone.
            let _ = self.signal(&agent, Signal::KILL);
        }
    }
}

impl AgentProcess {
    pub(super) fn belongs_to(&self, xr_name: &str) -> bool {
        self.directory.ends_with(xr_name)
    }
}

fn directory_argument(arguments: &[u8], root: &Path) -> Option<PathBuf> {
    let arguments: Vec<_> = arguments.split(|byte| *byte == 0).collect();
    arguments
        .windows(4)
        .filter(|window| window[..3] == [&b"agent"[..], b"node", b"--dir"])
        .filter_map(|window| std::str::from_utf8(window[3]).ok())
        .map(PathBuf::from)
        .find(|directory| directory != root && directory.starts_with(root))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn only_the_directory_of_an_agent_under_the_root_counts() {
        let root = Path::new("/tmp/demo/data/substrate");
        let find = |text: &str| directory_argument(text.as_bytes(), root);
        let node = "/tmp/demo/data/substrate/p-1/pr-1";
        let agent = format!("slipway\0agent\0node\0--dir\0{node}\0");
        assert_eq!(find(&agent), Some(PathBuf::from(node)));
        assert_eq!(find(&format!("tail\0-f\0{node}/agent.log\0")), None);
        assert_eq!(find(&format!("slipway\0agent\0node\0{node}\0")), None);
        assert_eq!(find("slipway\0up\0--data-dir\0/tmp/demo/data\0"), None);
        assert_eq!(find("x\0agent\0node\0--dir\0/tmp/demo/data/substrate\0"), None);
        assert_eq!(find("x\0agent\0node\0--dir\0/tmp/demo/data/substrate-2/p-1/pr-1\0"), None);
        assert_eq!(find(""), None);
    }

    /// A process that waits for the end of its input, and ends with the test.
    struct Waiting(Child);

    impl Waiting {
        fn start(program: &Path, arguments: &[&str]) -> Self {
            let mut command = Command::new(program);
            Self(command.args(arguments).stdin(Stdio::piped()).spawn().unwrap())
        }

        fn has_ended(&mut self) -> bool {
            self.0.try_wait().unwrap().is_some()
        }
    }

    impl Drop for Waiting {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Two processes with the directory of a node among their arguments: one
    /// reads its log, and one was started like an agent, from the shell's
    /// executable. Only a search for that executable finds it.
    #[test]
    fn only_an_agent_of_the_same_executable_is_seen_and_ended() {
        let root = tempfile::tempdir().unwrap();
        let shell = Path::new("/bin/sh");
        let node = root.path().join("p-1").join("pr-1").display().to_string();
        let log = format!("{node}/agent.log");
        let mut reader = Waiting::start(shell, &["-c", "read line", "tail", "-f", &log]);
        let mut agent =
            Waiting::start(shell, &["-c", "read line", "agent", "node", "--dir", &node]);

        let program = FileIdentity::of(shell).unwrap();
        let agents = Agents { root: root.path().to_owned(), program };
        let ours = Agents::of_this_program(root.path().to_owned()).unwrap();
        let begun = Instant::now();
        // Until `exec`, a child has the arguments of this test.
        while agents.all().is_empty() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        let seen: Vec<_> = agents.all().iter().map(|agent| agent.pid.as_raw_pid()).collect();
        assert_eq!(seen, [i32::try_from(agent.0.id()).unwrap()]);
        assert!(ours.all().is_empty(), "{:?}", ours.all());
        ours.kill_all();
        assert!(!agent.has_ended(), "it is not of this executable");
        agents.kill_all();
        agent.0.wait().unwrap();
        assert!(!reader.has_ended(), "it is nobody's agent");
    }

    #[test]
    fn an_agent_belongs_to_the_composite_it_is_named_after() {
        let agent = AgentProcess {
            pid: Pid::INIT,
            directory: PathBuf::from("/root/p-1/pr-12"),
            stopped: false,
        };
        assert!(agent.belongs_to("pr-12"));
        assert!(!agent.belongs_to("pr-1"));
    }
}
