//! `cargo xtask soak`: builds the soak and runs it. `crates/soak` documents it
//! and has its options.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use slipway_testkit::postgres::DATABASE_URL_VARIABLE;

use crate::cargo::Cargo;
use crate::command_line::Verdict;

/// What continuous integration runs: one minute, always the same schedule.
const IN_TEST: [&str; 6] = ["--seed", "20260101", "--replicas", "2", "--resources", "12"];

/// Runs a soak on the workspace at `root`. The soak builds the program itself.
pub fn run(root: &Path, options: &[String]) -> anyhow::Result<Verdict> {
    let mut arguments = vec!["run", "--quiet", "--package", "slipway-soak", "--"];
    arguments.extend(options.iter().map(String::as_str));
    Ok(match Cargo::new(root).command(&arguments).status().context("cannot run cargo")?.code() {
        Some(0) => Verdict::Fine,
        Some(2) => Verdict::NotCarriedOut,
        _ => Verdict::Failed,
    })
}

/// The one-minute soak of continuous integration, with the programs that the
/// tests built. It has its own database server, because it crashes that.
pub fn run_in_test(root: &Path) -> anyhow::Result<()> {
    let cargo = Cargo::new(root);
    println!("by hand: cargo xtask soak {} --debug", IN_TEST.join(" "));
    let status = Command::new(cargo.built("debug", "slipway-soak"))
        .args(IN_TEST)
        .args(["--seconds", "60", "--debug", "--binary"])
        .arg(cargo.built("debug", "slipway"))
        .env_remove(DATABASE_URL_VARIABLE)
        .status()
        .context("cannot run the soak")?;
    if !status.success() {
        bail!("something was violated");
    }
    Ok(())
}
