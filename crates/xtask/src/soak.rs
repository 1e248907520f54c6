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

/// The jobs of tenants are tested for this long unless said otherwise.
const TENANTS_SECONDS: &str = "600";

/// Runs a soak on the workspace at `root`. The soak builds the program itself.
pub fn run(root: &Path, options: &[String]) -> anyhow::Result<Verdict> {
    if let Some(("tenants", rest)) = options.split_first().map(|(soak, rest)| (&**soak, rest)) {
        return run_tenants(root, rest);
    }
    let mut arguments = vec!["run", "--quiet", "--package", "slipway-soak", "--"];
    arguments.extend(options.iter().map(String::as_str));
    Ok(match Cargo::new(root).command(&arguments).status().context("cannot run cargo")?.code() {
        Some(0) => Verdict::Fine,
        Some(2) => Verdict::NotCarriedOut,
        _ => Verdict::Failed,
    })
}

/// The crash test of `crates/tenants`, for longer: `[SECONDS [SEED]]`.
fn run_tenants(root: &Path, options: &[String]) -> anyhow::Result<Verdict> {
    let is_number = |option: &String| option.parse::<u64>().is_ok();
    if options.len() > 2 || !options.iter().all(is_number) {
        eprintln!("usage: cargo xtask soak tenants [SECONDS [SEED]]");
        return Ok(Verdict::NotCarriedOut);
    }
    let test = ["test", "--package", "slipway-tenants", "--test", "tenants", "--"];
    let mut command = Cargo::new(root).command(&test);
    command.args(["crash::killed", "--nocapture"]);
    command.env("SLIPWAY_TENANTS_SECONDS", options.first().map_or(TENANTS_SECONDS, |text| text));
    if let Some(seed) = options.get(1) {
        command.env("SLIPWAY_TENANTS_SEED", seed);
    }
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { Verdict::Fine } else { Verdict::Failed })
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
