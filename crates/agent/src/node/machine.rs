//! Facts about this machine and this process, read from the kernel.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::error::Error;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OWN_STAT: &str = "/proc/self/stat";

/// Field 22 of `/proc/<pid>/stat`, counted after the command name. The name is
/// in brackets and may itself contain spaces and brackets, so the count starts
/// after the last closing bracket, with field 3.
const START_TIME_AFTER_NAME: usize = 22 - 3;

/// Evidence for people about the process that has the lock; no decision uses it.
#[derive(Debug, Serialize)]
pub(crate) struct Evidence {
    pub(crate) pid: u32,
    /// Clock ticks since boot.
    pub(crate) start_time: u64,
    pub(crate) boot_id: String,
}

impl Evidence {
    pub(crate) fn collect() -> Result<Self, Error> {
        let stat =
            fs::read_to_string(OWN_STAT).map_err(Error::file("read", Path::new(OWN_STAT)))?;
        // If a kernel writes this file differently, only this evidence is
        // lost.
        let start_time = start_time(&stat).unwrap_or_default();
        Ok(Self { pid: std::process::id(), start_time, boot_id: boot_id()? })
    }
}

/// A moment that processes of the same boot can compare. The wall clock would
/// allow that across boots as well, but it jumps; and the work of a node does
/// not survive a boot anyway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BootMoment {
    boot_id: String,
    since_boot_ms: u64,
}

impl BootMoment {
    pub(crate) fn now() -> Result<Self, Error> {
        Ok(Self { boot_id: boot_id()?, since_boot_ms: since_boot_ms() })
    }

    /// `None` if the machine has booted since.
    pub(crate) fn elapsed(&self) -> Result<Option<Duration>, Error> {
        let now = Self::now()?;
        Ok((now.boot_id == self.boot_id)
            .then(|| Duration::from_millis(now.since_boot_ms.saturating_sub(self.since_boot_ms))))
    }
}

fn boot_id() -> Result<String, Error> {
    let text = fs::read_to_string(BOOT_ID).map_err(Error::file("read", Path::new(BOOT_ID)))?;
    Ok(text.trim().to_owned())
}

fn since_boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let milliseconds = u64::try_from(now.tv_nsec / 1_000_000).unwrap_or_default();
    seconds * 1000 + milliseconds
}

fn start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(START_TIME_AFTER_NAME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_name_with_brackets() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 424242 9 10";
        assert_eq!(start_time(stat), Some(424_242));
    }

    #[test]
    fn the_evidence_of_this_process_is_complete() {
        let evidence = Evidence::collect().unwrap();
        assert_eq!(evidence.pid, std::process::id());
        assert!(evidence.start_time > 0, "{evidence:?}");
        assert_eq!(evidence.boot_id.len(), 36, "{evidence:?}");
    }

    #[test]
    fn a_moment_of_another_boot_has_no_age() {
        let mut moment = BootMoment::now().unwrap();
        assert!(moment.elapsed().unwrap().is_some());
        moment.boot_id = "another".to_owned();
        assert_eq!(moment.elapsed().unwrap(), None);
    }
}
