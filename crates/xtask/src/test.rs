//! `cargo xtask test`: everything that has to be green, in the order of what
//! fails fastest.
//!
//! One PostgreSQL serves all test binaries. It ends with this process, however
//! that ends. A Kubernetes API is started by each test binary that needs one.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use slipway_testkit::postgres::{self, Postgres};

use crate::command_line::Verdict;
use crate::debian::{self, Provision};
use crate::deploy;
use crate::kube;
use crate::soak;
use crate::steps::Steps;
use crate::tidy;

/// Runs the whole of it on the workspace at `root`; `filters` go to the test
/// binaries.
pub fn run(root: &Path, filters: &[String]) -> anyhow::Result<Verdict> {
    run_with(|steps, provided_server| check_and_test(steps, root, provided_server, filters))
}

/// Runs the tests on a real Kubernetes API and nothing else: the test binaries
/// named `kube`, of whichever package.
pub fn run_kube(root: &Path, filters: &[String]) -> anyhow::Result<Verdict> {
    const SELECTED: [&str; 4] = ["test", "--workspace", "--test", "kube"];
    run_with(|steps, provided_server| {
        let cargo = Cargo::new(root);
        let build = [&SELECTED[..], &["--no-run"]].concat();
        steps.take(&format!("cargo {}", build.join(" ")), || cargo.run(&build, &[])).is_some()
            && test(steps, &cargo, provided_server, &SELECTED, filters)
    })
}

/// Installs what is missing, then goes on with `work`.
fn run_with(work: impl FnOnce(&mut Steps, Option<String>) -> bool) -> anyhow::Result<Verdict> {
    let mut steps = Steps::default();
    let provided_server =
        env::var(postgres::DATABASE_URL_VARIABLE).ok().filter(|url| !url.is_empty());
    let mut parts = Vec::from(debian::KUBERNETES);
    parts.push(debian::PYTHON);
    if provided_server.is_none() {
        parts.push(debian::POSTGRES);
    }
    match steps.take("install what is missing", || debian::provide(&parts)) {
        Some(Provision::Missing(request)) => {
            eprint!("{request}");
            return Ok(Verdict::NotCarriedOut);
        }
        Some(Provision::Complete) | None => {}
    }
    let went_through = steps.all_succeeded()
        && steps.take("provide Kubernetes", kube::provide).is_some()
        && work(&mut steps, provided_server);
    println!("{}", steps.table());
    Ok(if went_through { Verdict::Fine } else { Verdict::Failed })
}

fn check_and_test(
    steps: &mut Steps,
    root: &Path,
    provided_server: Option<String>,
    filters: &[String],
) -> bool {
    let cargo = Cargo::new(root);
    let mut step = |arguments: &[&str]| {
        let name = format!("cargo {}", arguments.join(" "));
        steps.take(&name, || cargo.run(arguments, &[])).is_some()
    };
    let checked = step(&["fmt", "--all", "--check"])
        && step(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    if !checked || steps.take("tidy", || tidy::check_and_report(root)).is_none() {
        return false;
    }
    if steps.take("deploy", || deploy::check(root)).is_none() {
        return false;
    }
    // Exactly what the tests need, so that the next step times the tests alone.
    let built = steps.take("cargo test --workspace --no-run", || {
        cargo.run(&["test", "--workspace", "--no-run"], &[])
    });
    if built.is_none() {
        return false;
    }
    let tested = test(steps, &cargo, provided_server, &["test", "--workspace"], filters);
    // With filters somebody wants those tests and their answer.
    let soaked = !(tested && filters.is_empty())
        || steps.take("soak for 60 s", || soak::run_in_test(root)).is_some();
    tested && soaked
}

/// Runs the tests that `selected` names, with every outside part in place.
fn test(
    steps: &mut Steps,
    cargo: &Cargo<'_>,
    provided_server: Option<String>,
    selected: &[&str],
    filters: &[String],
) -> bool {
    let Some(server) = steps.take("start PostgreSQL", || start_server(provided_server)) else {
        return false;
    };
    let environment = [
        (postgres::DATABASE_URL_VARIABLE, server.url()),
        (postgres::REQUIRE_VARIABLE, "1"),
        (slipway_testkit::kube::REQUIRE_VARIABLE, "1"),
    ];
    // One failing binary must not hide what the others find.
    let mut arguments = [selected, &["--no-fail-fast"]].concat();
    if !filters.is_empty() {
        arguments.push("--");
        arguments.extend(filters.iter().map(String::as_str));
    }
    let name = format!("cargo {}", selected.join(" "));
    let tested = steps.take(&name, || cargo.run(&arguments, &environment)).is_some();
    let stopped = steps.take("stop PostgreSQL", || stop_server(server)).is_some();
    tested && stopped
}

fn start_server(provided: Option<String>) -> anyhow::Result<Postgres> {
    match provided {
        Some(url) => {
            println!("the server that {} names", postgres::DATABASE_URL_VARIABLE);
            Postgres::at(&url)
        }
        None => Postgres::start(postgres::Options::default())?
            .context("PostgreSQL is not found any more: was it removed during the run?"),
    }
}

fn stop_server(server: Postgres) -> anyhow::Result<()> {
    let folder = server.folder().map(Path::to_owned);
    drop(server);
    match folder {
        Some(folder) if folder.exists() => {
            bail!("its folder {} is still there", folder.display())
        }
        _ => Ok(()),
    }
}

/// Cargo, as it would run without us around it.
#[derive(Debug)]
pub(crate) struct Cargo<'a> {
    program: OsString,
    root: &'a Path,
    target: PathBuf,
}

impl<'a> Cargo<'a> {
    pub(crate) fn new(root: &'a Path) -> Self {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self { program, root, target: target_folder(|name| env::var_os(name), root) }
    }

    /// The program of this name that a build in this profile leaves.
    pub(crate) fn built(&self, profile: &str, name: &str) -> PathBuf {
        self.root.join(&self.target).join(profile).join(name)
    }

    pub(crate) fn run(
        &self,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.root).stdin(Stdio::null());
        // `cargo run` describes the package it runs. Build scripts that look at
        // these would believe to be run for another package and run again.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(describes_a_package) {
                command.env_remove(name);
            }
        }
        command.env("CARGO_TARGET_DIR", &self.target);
        command.envs(environment.iter().copied());
        let status = command.status().context("cannot run cargo")?;
        if !status.success() {
            bail!("failed with {status}");
        }
        Ok(())
    }
}

fn describes_a_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

/// Where to build: what the user says, else the user's cache, so that several
/// checkouts share it and none grows by gigabytes.
fn target_folder(variable: impl Fn(&str) -> Option<OsString>, root: &Path) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    set("CARGO_TARGET_DIR")
        .or_else(|| Some(cache()?.join("slipway/target")))
        .unwrap_or_else(|| root.join("target"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{describes_a_package, target_folder};

    fn folder(variables: &[(&str, &str)]) -> PathBuf {
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        };
        target_folder(variable, Path::new("checkout"))
    }

    #[test]
    fn the_target_folder_is_the_users_choice_then_the_cache() {
        let (home, cache, target) =
            (("HOME", "h"), ("XDG_CACHE_HOME", "c"), ("CARGO_TARGET_DIR", "t"));
        assert_eq!(folder(&[home, cache, target]), Path::new("t"));
        assert_eq!(folder(&[home, cache]), Path::new("c/slipway/target"));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "")]), Path::new("h/.cache/slipway/target"));
        assert_eq!(folder(&[]), Path::new("checkout/target"));
    }

    #[test]
    fn only_what_describes_a_package_is_withheld_from_cargo() {
        for withheld in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_BIN_NAME"] {
            assert!(describes_a_package(withheld), "{withheld}");
        }
        for passed_on in ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_TERM_COLOR", "PATH"] {
            assert!(!describes_a_package(passed_on), "{passed_on}");
        }
    }
}
