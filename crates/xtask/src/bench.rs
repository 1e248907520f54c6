//! `cargo xtask bench`: builds the benchmarks in the shipped profile and runs
//! them. `docs/performance.md` says what they measure.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::cargo::Cargo;
use crate::command_line::Verdict;
use crate::kube;

/// Runs the benchmark with these arguments. Its last line is one JSON object.
pub fn run(root: &Path, arguments: &[String]) -> anyhow::Result<Verdict> {
    if arguments.first().is_some_and(|bench| bench == "crossplane") {
        kube::provide()?;
    }
    let cargo = Cargo::new(root);
    let mut build = vec!["build", "--release", "--package", "slipway-bench"];
    if arguments.first().is_some_and(|bench| bench == "fleet") {
        // It starts the shipped program, which it finds beside itself.
        build.extend(["--package", "slipway"]);
    }
    cargo.run(&build)?;
    let program = cargo.built("release", "slipway-bench");
    let status = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    Ok(if status.success() { Verdict::Fine } else { Verdict::Failed })
}
