//! `cargo xtask test`: everything that has to be green, ordered by what fails
//! fastest.
//!
//! Test binaries run side by side ([`crate::test_binaries`]). One PostgreSQL
//! serves all of them and ends with this process, however that ends. Each test
//! binary that needs a Kubernetes API starts its own.

use std::env;
use std::path::Path;

use anyhow::{Context as _, bail};
use slipway_testkit::postgres::{self, Postgres};

use crate::cargo::Cargo;
use crate::command_line::Verdict;
use crate::debian::{self, Provision};
use crate::deploy;
use crate::kube;
use crate::soak;
use crate::stages::Stages;
use crate::test_binaries::{self, Jobs};
use crate::tidy;

/// Runs everything on the workspace at `root`; `filters` go to the test
/// binaries.
pub fn run(root: &Path, filters: &[String]) -> anyhow::Result<Verdict> {
    run_with(|stages, provided_server| check_and_test(stages, root, provided_server, filters))
}

/// Runs only the tests on a real Kubernetes API: the test binaries named `kube`
/// of every package.
pub fn run_kube(root: &Path, filters: &[String]) -> anyhow::Result<Verdict> {
    run_with(|stages, provided_server| {
        let cargo = Cargo::new(root);
        test(stages, &cargo, provided_server, &["--workspace", "--test", "kube"], filters)
    })
}

/// Installs missing programs, then runs `work`.
fn run_with(work: impl FnOnce(&mut Stages, Option<String>) -> bool) -> anyhow::Result<Verdict> {
    let mut stages = Stages::default();
    let provided_server =
        env::var(postgres::DATABASE_URL_VARIABLE).ok().filter(|url| !url.is_empty());
    let mut parts = Vec::from(debian::KUBERNETES);
    parts.push(debian::PYTHON);
    if provided_server.is_none() {
        parts.push(debian::POSTGRES);
    }
    match stages.take("install what is missing", || debian::provide(&parts)) {
        Some(Provision::Missing(request)) => {
            eprint!("{request}");
            return Ok(Verdict::NotCarriedOut);
        }
        Some(Provision::Complete) | None => {}
    }
    let went_through = stages.all_succeeded()
        && stages.take("provide Kubernetes", kube::provide).is_some()
        && work(&mut stages, provided_server);
    println!("{}", stages.table());
    Ok(if went_through { Verdict::Fine } else { Verdict::Failed })
}

fn check_and_test(
    stages: &mut Stages,
    root: &Path,
    provided_server: Option<String>,
    filters: &[String],
) -> bool {
    let cargo = Cargo::new(root);
    let mut stage = |arguments: &[&str]| {
        let name = format!("cargo {}", arguments.join(" "));
        stages.take(&name, || cargo.run(arguments)).is_some()
    };
    let checked = stage(&["fmt", "--all", "--check"])
        && stage(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    if !checked || stages.take("tidy", || tidy::check_and_report(root)).is_none() {
        return false;
    }
    if stages.take("deploy", || deploy::check(root)).is_none() {
        return false;
    }
    let tested = test(stages, &cargo, provided_server, &["--workspace"], filters);
    // With filters the user wants only those tests.
    let soaked = !(tested && filters.is_empty())
        || stages.take("soak for 60 s", || soak::run_in_test(root)).is_some();
    tested && soaked
}

/// Builds and runs the tests that `selected` names, with every external server in place.
fn test(
    stages: &mut Stages,
    cargo: &Cargo<'_>,
    provided_server: Option<String>,
    selected: &[&str],
    filters: &[String],
) -> bool {
    let name = format!("cargo test {} --no-run", selected.join(" "));
    let Some(binaries) = stages.take(&name, || test_binaries::build(cargo, selected)) else {
        return false;
    };
    let Some(server) = stages.take("start PostgreSQL", || start_server(provided_server)) else {
        return false;
    };
    let environment = [
        (postgres::DATABASE_URL_VARIABLE, server.url()),
        (postgres::REQUIRE_VARIABLE, "1"),
        (slipway_testkit::kube::REQUIRE_VARIABLE, "1"),
    ];
    let jobs = Jobs { binaries, environment: &environment, filters };
    let mut ended = Vec::new();
    let tested = stages.take("tests", || jobs.run(cargo, &mut ended)).is_some();
    for job in &ended {
        stages.note(&job.name, job.time, job.succeeded);
    }
    let stopped = stages.take("stop PostgreSQL", || stop_server(server)).is_some();
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
