//! Runs the test binaries of the workspace side by side.
//!
//! `cargo test` runs them one after the other, and most of ours wait for
//! leases, servers and processes rather than for a core. Two at a time, the
//! longest first, fill the cores. The output of a binary is printed when
//! it ends, so that the lines of two never mix.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use slipway_testkit::process::Spawned;

use crate::cargo::{Cargo, forget_package};

/// Two cores bear two binaries, of which some run three tests at a time. With a third
/// everything takes a third longer: loops that poll take more of the cores for the same work.
const AT_ONCE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

/// Overrides the number of concurrent binaries, for a machine with more cores
/// or to find tests that depend on others.
const AT_ONCE_VARIABLE: &str = "SLIPWAY_TEST_BINARIES_AT_ONCE";

/// Tests at a time in a binary whose tests wait for servers and processes most of
/// their time; the others run as many as there are cores.
const THREADS_OF_WAITING: &str = "3";

/// Where the test harness reads that number.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// File beside the builds that records how long each took.
const TIMES: &str = "slipway-test-times.json";

const DOC_TESTS: &str = "doc tests";

/// A program that `cargo test` would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestBinary {
    /// Package and target, such as `slipway --test kube`.
    name: String,
    executable: PathBuf,
    /// The folder of its package, where cargo starts it.
    package: PathBuf,
}

/// The binaries to run, and their arguments and environment.
#[derive(Debug)]
pub(crate) struct Jobs<'a> {
    pub(crate) binaries: Vec<TestBinary>,
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// Names of tests, or options of the test harness.
    pub(crate) filters: &'a [String],
}

/// How one of them ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) time: Duration,
    pub(crate) succeeded: bool,
}

/// Builds the test binaries that `selected` names and returns their paths.
pub(crate) fn build(cargo: &Cargo<'_>, selected: &[&str]) -> anyhow::Result<Vec<TestBinary>> {
    let no_run = ["--no-run", "--message-format=json-render-diagnostics"];
    let mut command = cargo.command(&[&["test"], selected, &no_run].concat());
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "failed with {}", output.status);
    let binaries = read_messages(&String::from_utf8_lossy(&output.stdout));
    ensure!(!binaries.is_empty(), "cargo built no test binary");
    Ok(binaries)
}

fn read_messages(messages: &str) -> Vec<TestBinary> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| test_binary(&message)).collect()
}

/// `None` for other messages, such as one about a program that tests start.
fn test_binary(message: &Value) -> Option<TestBinary> {
    if message["profile"]["test"] != true {
        return None;
    }
    let target = &message["target"];
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let folder = package.file_name()?.to_str()?.to_owned();
    let name = match (target["kind"][0].as_str()?, target["name"].as_str()?) {
        ("test", name) => format!("{folder} --test {name}"),
        ("bin", name) => format!("{folder} --bin {name}"),
        _ => format!("{folder} --lib"),
    };
    Some(TestBinary { name, executable: message["executable"].as_str()?.into(), package })
}

impl TestBinary {
    fn waits(&self) -> bool {
        ["--test kube", "--test system"].iter().any(|kind| self.name.ends_with(kind))
    }
}

impl Jobs<'_> {
    /// Runs all of them, whatever fails, and records each result in `ended`. An
    /// error names those that failed.
    pub(crate) fn run(self, cargo: &Cargo<'_>, ended: &mut Vec<Ended>) -> anyhow::Result<()> {
        let mut times = Times::read(&cargo.beside_builds(TIMES));
        let logs = tempfile::tempdir().context("cannot make a folder for the output of tests")?;
        let mut commands: Vec<_> = self
            .binaries
            .iter()
            .map(|binary| (&*binary.name, self.command(binary, cargo)))
            .collect();
        // A run of one kind of test binary has no doc tests.
        if self.binaries.iter().any(|binary| binary.name.ends_with("--lib")) {
            commands.push((DOC_TESTS, self.doc_tests(cargo)));
        }
        // Ascending, because the longest is taken from the end.
        commands.sort_by(|(one, _), (other, _)| times.of(one).total_cmp(&times.of(other)));
        let at_once = match env::var(AT_ONCE_VARIABLE) {
            Ok(text) => text.parse().with_context(|| format!("{AT_ONCE_VARIABLE}={text}"))?,
            Err(_) => AT_ONCE,
        };
        let (waiting, done) = (Mutex::new(commands), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for number in 0..at_once.get() {
                let log = logs.path().join(number.to_string());
                let (waiting, done) = (&waiting, &done);
                scope.spawn(move || {
                    while let Some((name, command)) = pop(waiting) {
                        println!("     Started {name}");
                        let (job, output) = run_one(name, command, &log);
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        println!("     Running {name} ({:.1} s)\n{output}", job.time.as_secs_f64());
                        done.push(job);
                    }
                });
            }
        });
        *ended = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        ended.sort_by_key(|job| std::cmp::Reverse(job.time));
        let failed: Vec<_> = ended.iter().filter(|job| !job.succeeded).collect();
        if !failed.is_empty() {
            let names: Vec<_> = failed.iter().map(|job| &*job.name).collect();
            bail!("tests failed in {}", names.join(", "));
        }
        // Filtered runs do not show how long a binary takes.
        if self.filters.is_empty() {
            times.keep(ended)?;
        }
        Ok(())
    }

    /// The command with which cargo would start the binary.
    fn command(&self, binary: &TestBinary, cargo: &Cargo<'_>) -> Command {
        let mut command = Command::new(&binary.executable);
        forget_package(&mut command);
        command
            .args(self.filters)
            .current_dir(&binary.package)
            .env("CARGO_MANIFEST_DIR", &binary.package)
            // As in `.cargo/config.toml`.
            .env("INSTA_WORKSPACE_ROOT", cargo.root())
            .envs(self.environment.iter().copied())
            .stdin(Stdio::null());
        if binary.waits() && env::var_os(THREADS_VARIABLE).is_none() {
            command.env(THREADS_VARIABLE, THREADS_OF_WAITING);
        }
        command
    }

    fn doc_tests(&self, cargo: &Cargo<'_>) -> Command {
        let mut command = cargo.command(&["test", "--workspace", "--doc", "--no-fail-fast"]);
        if !self.filters.is_empty() {
            command.arg("--").args(self.filters);
        }
        command.envs(self.environment.iter().copied());
        command
    }
}

fn pop<T>(waiting: &Mutex<Vec<T>>) -> Option<T> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// Runs one to its end; returns its result and its output.
fn run_one(name: &str, command: Command, log: &Path) -> (Ended, String) {
    let started = Instant::now();
    let run = run_into(command, log);
    let (time, succeeded) = (started.elapsed(), matches!(run, Ok(true)));
    let mut output = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    if let Err(error) = run {
        output.push_str(&format!("{name}: {error:#}\n"));
    }
    (Ended { name: name.to_owned(), time, succeeded }, output)
}

fn run_into(mut command: Command, log: &Path) -> anyhow::Result<bool> {
    let file = File::create(log).context("cannot write the output of tests")?;
    command.stdout(file.try_clone()?).stderr(file);
    // Killed if we panic; otherwise we wait for its end.
    let mut process = Spawned::start(&mut command)?;
    Ok(process.child().wait()?.success())
}

/// Seconds that each took in the last complete run.
struct Times {
    file: PathBuf,
    seconds: BTreeMap<String, f64>,
}

impl Times {
    /// A missing or unreadable file means no known times.
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let read: Option<Value> = serde_json::from_str(&text).ok();
        let rows = read.iter().filter_map(Value::as_object).flatten();
        let seconds =
            rows.filter_map(|(name, time)| Some((name.clone(), time.as_f64()?))).collect();
        Self { file: file.to_owned(), seconds }
    }

    /// An unknown time is guessed by the kind of the binary.
    fn of(&self, name: &str) -> f64 {
        let guess = match name.split_once(" --test ") {
            Some((_, "kube")) => 300.0,
            Some(_) => 60.0,
            None => 10.0,
        };
        self.seconds.get(name).copied().unwrap_or(guess)
    }

    fn keep(&mut self, ended: &[Ended]) -> anyhow::Result<()> {
        for job in ended {
            self.seconds.insert(job.name.clone(), job.time.as_secs_f64().round());
        }
        let text = serde_json::to_string_pretty(&self.seconds)?;
        fs::write(&self.file, text).with_context(|| format!("cannot write {}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    use super::{Ended, TestBinary, Times, read_messages, run_one};

    #[test]
    fn only_what_cargo_test_would_run_is_run() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"w/crates/slipway/Cargo.toml","target":{"kind":["test"],"name":"kube"},"profile":{"test":true},"executable":"t/kube-1"}
{"reason":"compiler-artifact","manifest_path":"w/crates/slipway/Cargo.toml","target":{"kind":["bin"],"name":"slipway"},"profile":{"test":false},"executable":"t/slipway"}
{"reason":"compiler-artifact","manifest_path":"w/crates/core/Cargo.toml","target":{"kind":["lib"],"name":"slipway_core"},"profile":{"test":true},"executable":"t/core-1"}
{"reason":"compiler-artifact","manifest_path":"w/crates/core/Cargo.toml","target":{"kind":["lib"],"name":"slipway_core"},"profile":{"test":false},"executable":null}
{"reason":"build-finished","success":true}"#;
        let binary = |name: &str, executable: &str, package: &str| TestBinary {
            name: name.to_owned(),
            executable: PathBuf::from(executable),
            package: PathBuf::from(package),
        };
        assert_eq!(
            read_messages(messages),
            [
                binary("slipway --test kube", "t/kube-1", "w/crates/slipway"),
                binary("core --lib", "t/core-1", "w/crates/core"),
            ]
        );
    }

    #[test]
    fn the_output_of_a_failing_one_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let (job, output) = run_one("core --lib", command, &folder.path().join("log"));
        assert_eq!((job.succeeded, &*output), (false, "one\ntwo\n"));
        let missing = Command::new("no-such-program");
        let (job, output) = run_one("core --lib", missing, &folder.path().join("log"));
        assert!(!job.succeeded && output.contains("no-such-program"), "{output}");
    }

    #[test]
    fn times_of_the_last_run_order_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("times");
        let mut times = Times::read(&file);
        assert!(times.of("slipway --test kube") > times.of("store --test conformance"));
        let ended = |name: &str, seconds| Ended {
            name: name.to_owned(),
            time: Duration::from_secs(seconds),
            succeeded: true,
        };
        times.keep(&[ended("core --lib", 400), ended("slipway --test kube", 20)]).unwrap();
        let times = Times::read(&file);
        assert!(times.of("core --lib") > times.of("slipway --test kube"));
        assert!(Times::read(Path::new("not/there")).seconds.is_empty());
    }
}
