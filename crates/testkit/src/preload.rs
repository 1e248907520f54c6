//! Manipulates a program under test without its knowledge: shifts its wall
//! clock, and stops it in the middle of file operations. A small library
//! (`preload.c`), loaded before the C library, does this. So the program needs
//! no code for tests, and third-party code in it (a database) is affected as
//! well.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

const SOURCE: &str = include_str!("preload.c");

/// Size of the structure in the source.
const ORDERS_LENGTH: u64 = 256;
const STOP_AT: u64 = 8;
const FRAGMENT_AT: u64 = 16;
const STOPPED: i64 = 2;

/// The orders for the programs that are started with their environment.
#[derive(Debug)]
pub struct Orders {
    file: File,
    path: PathBuf,
    library: PathBuf,
}

impl Orders {
    /// Builds the library in `folder`, with the C compiler that Rust links with
    /// anyway, and writes orders that change nothing.
    pub fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let (source, library) = (folder.join("preload.c"), folder.join("preload.so"));
        fs::write(&source, SOURCE).with_context(|| format!("write {}", source.display()))?;
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .context("cannot run cc (apt-get install gcc)")?;
        if !built.status.success() {
            bail!("cc: {}", String::from_utf8_lossy(&built.stderr));
        }
        let path = folder.join("orders");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .with_context(|| format!("make {}", path.display()))?;
        file.set_len(ORDERS_LENGTH).context("make room for orders")?;
        Ok(Self { file, path, library })
    }

    /// The environment variables for a program that has to follow these orders.
    pub fn environment(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), ("SLIPWAY_TEST_ORDERS", &self.path)]
    }

    /// Shifts the wall clock: `Ok` forward, `Err` backward.
    pub fn shift_clock(&self, by: Result<Duration, Duration>) -> anyhow::Result<()> {
        let nanos = |duration: Duration| i64::try_from(duration.as_nanos());
        let shift = match by {
            Ok(forward) => nanos(forward)?,
            Err(back) => -nanos(back)?,
        };
        self.write(0, shift)
    }

    /// The next process that creates a folder with `fragment` in its path stops
    /// right before that, as by SIGSTOP.
    pub fn stop_before_folder(&self, fragment: &str) -> anyhow::Result<()> {
        let mut text = fragment.as_bytes().to_vec();
        text.push(0);
        if text.len() as u64 > ORDERS_LENGTH - FRAGMENT_AT {
            bail!("the fragment is too long");
        }
        self.file.write_all_at(&text, FRAGMENT_AT)?;
        self.write(STOP_AT, 1)
    }

    /// Whether a process has stopped itself.
    pub fn has_stopped(&self) -> anyhow::Result<bool> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, STOP_AT)?;
        Ok(i64::from_ne_bytes(bytes) == STOPPED)
    }

    fn write(&self, at: u64, value: i64) -> anyhow::Result<()> {
        self.file.write_all_at(&value.to_ne_bytes(), at).context("write orders")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Signal, Spawned, process};
    use crate::wait::until;

    fn seconds_of(command: &mut Command) -> u64 {
        let output = command.args(["+%s"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    #[test]
    fn a_program_believes_another_time() {
        let folder = tempfile::tempdir().unwrap();
        let orders = Orders::in_folder(folder.path()).unwrap();
        let real = seconds_of(&mut Command::new("date"));
        let day = Duration::from_secs(86_400);
        for (shift, expected) in [(Ok(day), real + 86_400), (Err(day), real - 86_400)] {
            orders.shift_clock(shift).unwrap();
            let mut date = Command::new("date");
            let shown = seconds_of(date.envs(orders.environment()));
            assert!((expected..expected + 30).contains(&shown), "{shown} {expected}");
        }
    }

    #[tokio::test]
    async fn a_program_stops_before_it_makes_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let orders = Orders::in_folder(folder.path()).unwrap();
        orders.stop_before_folder("/second").unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let mut command = Command::new("mkdir");
        command.args([&first, &second]).envs(orders.environment());
        let mut program = Spawned::start(&mut command).unwrap();
        let limit = Duration::from_secs(20);
        until(limit, "it to stop", async || {
            process(program.pid()).is_some_and(|process| process.state == 'T')
        })
        .await;
        assert!(orders.has_stopped().unwrap() && first.exists() && !second.exists());
        program.signal(Signal::Continue).unwrap();
        assert!(program.exit(limit).await.unwrap().success());
        assert!(second.exists());
    }
}
