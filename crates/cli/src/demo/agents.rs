//! The agent processes under one substrate root, as the kernel lists them. An
//! agent is started with its directory as an argument, so a process is one of
//! ours if an argument lies under our root, and no other process is touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Looks for agents of one root.
#[derive(Debug, Clone)]
pub(super) struct Agents {
    root: PathBuf,
}

/// A process that was there a moment ago.
#[derive(Debug, Clone)]
pub(super) struct AgentProcess {
    pid: Pid,
    directory: PathBuf,
    pub(super) stopped: bool,
}

impl Agents {
    pub(super) fn under(root: PathBuf) -> Self {
        Self { root }
    }

    /// Every agent of this root. A process that ends while it is looked at is
    /// not listed; a zombie has no arguments and is not listed either.
    pub(super) fn all(&self) -> Vec<AgentProcess> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter_map(Pid::from_raw)
            .filter_map(|pid| self.look(pid))
            .collect()
    }

    /// The agents of one composite.
    pub(super) fn of(&self, xr_name: &str) -> Vec<AgentProcess> {
        let mut all = self.all();
        all.retain(|agent| agent.belongs_to(xr_name));
        all
    }

    fn look(&self, pid: Pid) -> Option<AgentProcess> {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let directory = directory_argument(&arguments, &self.root)?;
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program stands in brackets and may hold anything.
        let state = status.rsplit(')').next()?.trim_start().chars().next()?;
        Some(AgentProcess { pid, directory, stopped: state == 'T' })
    }

    /// Signals an agent. The pid is pinned before it is looked at again, so
    /// that a process which got the same pid meanwhile is never signalled.
    pub(super) fn signal(&self, agent: &AgentProcess, signal: Signal) -> io::Result<()> {
        let process = match pidfd_open(agent.pid, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(Errno::SRCH) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if self.look(agent.pid).is_none_or(|now| now.directory != agent.directory) {
            return Ok(());
        }
        match pidfd_send_signal(&process, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends what is left, for the way out after a failure.
    pub(super) fn kill_all(&self) {
        for agent in self.all() {
            // Whoever cannot be killed ends when its directory is gone.
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
    arguments
        .split(|byte| *byte == 0)
        .filter_map(|argument| std::str::from_utf8(argument).ok())
        .map(PathBuf::from)
        .find(|argument| argument != root && argument.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_arguments_under_the_root_count() {
        let root = Path::new("/tmp/demo/data/substrate");
        let find = |text: &str| directory_argument(text.as_bytes(), root);
        let node = "/tmp/demo/data/substrate/p-1/pr-1";
        assert_eq!(find(&format!("slipway\0agent\0node\0{node}\0")), Some(PathBuf::from(node)));
        assert_eq!(find("slipway\0up\0--data-dir\0/tmp/demo/data\0"), None);
        assert_eq!(find("x\0/tmp/demo/data/substrate\0"), None);
        assert_eq!(find("x\0/tmp/demo/data/substrate-2/p-1/pr-1\0"), None);
        assert_eq!(find(""), None);
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
