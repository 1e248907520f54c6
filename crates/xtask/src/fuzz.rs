//! `cargo xtask fuzz`: schemathesis sends a real control plane everything that
//! its OpenAPI document allows and much that it does not. It fails on a 5xx
//! answer and on an answer that the document does not describe. Only run by
//! hand: it comes from PyPI.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use slipway_testkit::control_plane::{Config, ControlPlane};

use crate::cargo::Cargo;
use crate::command_line::Verdict;

/// The release behind the figures in our notes.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// The key of the control plane that is fuzzed and discarded.
const KEY: &str = "slipway_fuzz0001_abcdefghijklmnopqrstuvwxy";

const START_LIMIT: Duration = Duration::from_secs(40);

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_schema_conformance,response_headers_conformance,unsupported_method";

/// Runs `examples` per operation; the same seed sends the same requests.
pub fn run(root: &Path, examples: u32, seed: u64) -> anyhow::Result<Verdict> {
    let cargo = Cargo::new(root);
    cargo.run(&["build", "--package", "slipway"])?;
    let schemathesis = installed()?;
    let folder = tempfile::tempdir()?;
    let mut config = Config::new(&cargo.built("debug", "slipway"), folder.path(), KEY)?;
    // The requests must not depend on their speed.
    config.set(&["--rate-limit", "1000000", "--rate-burst", "1000000"]);
    config.set(&["--deletion-brake", "0"]);
    let mut plane = ControlPlane::new(config);
    tokio::runtime::Runtime::new()
        .context("cannot start a runtime")?
        .block_on(plane.start(START_LIMIT))?;
    let status = Command::new(schemathesis)
        .current_dir(folder.path())
        .arg("run")
        .arg(format!("{}/openapi.json", plane.config.url()))
        .args(["--header", &format!("Authorization: Bearer {KEY}")])
        .args(["--checks", CHECKS, "--request-timeout", "20"])
        .args(["--max-examples", &examples.to_string(), "--seed", &seed.to_string()])
        // The stream does not end, and a rotated key would end the run.
        .args(["--exclude-path", "/api/v1/events/stream", "--exclude-path-regex", "/keys/.id"])
        .stdin(Stdio::null())
        .status()
        .context("cannot run schemathesis")?;
    plane.kill();
    let log = plane.log_text();
    let failures: Vec<_> = log.lines().filter(|line| line.contains(" ERROR ")).collect();
    for line in &failures {
        eprintln!("{line}");
    }
    Ok(if status.success() && failures.is_empty() { Verdict::Fine } else { Verdict::Failed })
}

/// Installs it into a virtual environment in the user's cache at the first run.
fn installed() -> anyhow::Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let environment =
        cache.context("neither HOME nor XDG_CACHE_HOME is set")?.join("slipway").join(SCHEMATHESIS);
    let program = environment.join("bin").join("schemathesis");
    if program.exists() {
        return Ok(program);
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&environment).status();
    ensure!(made.is_ok_and(|status| status.success()), "python3 with venv is needed");
    let pip = environment.join("bin").join("pip");
    let status = Command::new(pip).args(["install", "--quiet", SCHEMATHESIS]).status()?;
    ensure!(status.success(), "{SCHEMATHESIS} could not be installed from PyPI");
    Ok(program)
}
