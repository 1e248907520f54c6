//! What the machine says of itself and of this process.

use std::fs;

use anyhow::Context as _;

/// The clock of `/proc/self/stat`; the kernel's user interface fixes it at 100.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time of this process so far, all threads, in seconds.
pub(crate) fn cpu_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field is the program's name in parentheses and may hold
    // anything; utime and stime are the 12th and 13th after it.
    let (_, fields) = stat.rsplit_once(')').context("an unexpected /proc/self/stat")?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    match (fields.next(), fields.next()) {
        (Some(Ok(user)), Some(Ok(system))) => Ok((user + system) / TICKS_PER_SECOND),
        _ => anyhow::bail!("an unexpected /proc/self/stat"),
    }
}

/// Memory of this process that is resident, in bytes.
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
