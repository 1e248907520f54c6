//! Figures of the machine and of this process.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Clock of `/proc/self/stat`; the kernel's user interface fixes it at 100.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time of this process so far, all threads, in seconds.
pub(crate) fn cpu_seconds() -> anyhow::Result<f64> {
    Ok(Stat::of("self")?.own)
}

/// The same of another process.
pub(crate) fn cpu_seconds_of(pid: u32) -> anyhow::Result<f64> {
    Ok(Stat::of(&pid.to_string())?.own)
}

/// Processor time of a PostgreSQL server with all of its processes, including
/// those that ended.
pub(crate) fn server_cpu_seconds(data: &Path) -> anyhow::Result<f64> {
    let lock = fs::read_to_string(data.join("postmaster.pid"))?;
    let postmaster = lock.lines().next().unwrap_or_default();
    let root = Stat::of(postmaster)?;
    let mut seconds = root.own + root.ended_children;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else { continue };
        // A process that ended since the listing counts as an ended child next time.
        if let Ok(stat) = Stat::of(pid)
            && stat.parent == postmaster
        {
            seconds += stat.own;
        }
    }
    Ok(seconds)
}

/// Fields of `/proc/<pid>/stat`, times in seconds.
struct Stat {
    parent: String,
    own: f64,
    ended_children: f64,
}

impl Stat {
    fn of(pid: &str) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The second field is the program's name in parentheses and may contain
        // anything. After it: the parent is the 2nd field, and the 12th to 15th
        // are user and system time, its own and that of ended children.
        let (_, fields) = stat.rsplit_once(')').context("an unexpected /proc/<pid>/stat")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let time = |index: usize| -> anyhow::Result<f64> {
            let ticks = fields.get(index).context("a short /proc/<pid>/stat")?;
            Ok(ticks.parse::<f64>()? / TICKS_PER_SECOND)
        };
        Ok(Self {
            parent: fields.get(1).copied().unwrap_or_default().to_owned(),
            own: time(11)? + time(12)?,
            ended_children: time(13)? + time(14)?,
        })
    }
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
    Ok(kilobytes.parse::<u64>()? * 1_024)
}

/// Processor, number of cores and memory, in one line.
pub(crate) fn describe() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let model = value(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = value(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{model}, {cores} cores, {memory}, Linux {}", kernel.trim())
}
