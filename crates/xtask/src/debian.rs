//! Installs the external programs that a complete test run needs.
//!
//! Packages are only a way to get programs onto the machine: a service that a
//! package sets up is neither started nor used.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use slipway_testkit::{kube, postgres, process};

/// A program that comes with packages, and how to detect it.
#[derive(Debug)]
pub struct Part {
    name: &'static str,
    packages: &'static [&'static str],
    is_there: fn() -> bool,
}

/// The database server.
pub const POSTGRES: Part =
    Part { name: "PostgreSQL", packages: &["postgresql"], is_there: postgres::installed };

/// The programs behind the Kubernetes API of the tests: etcd, and Go until the
/// rest is built.
pub const KUBERNETES: [Part; 2] = [
    Part { name: "etcd", packages: &["etcd-server"], is_there: kube::etcd_installed },
    Part { name: "Go", packages: &["golang-go"], is_there: nothing_to_build_or_go },
];

/// Needed to install Helm and hadolint.
pub const PYTHON: Part =
    Part { name: "Python", packages: &["python3-venv"], is_there: tools_or_python };

fn tools_or_python() -> bool {
    crate::deploy::tools_installed() || crate::deploy::python_installed()
}

fn nothing_to_build_or_go() -> bool {
    crate::kube::nothing_to_build() || crate::kube::go_installed()
}

/// The outcome of [`provide`].
#[derive(Debug, PartialEq, Eq)]
pub enum Provision {
    /// Everything is installed now.
    Complete,
    /// We may not install it; the text says what to do.
    Missing(String),
}

/// Ensures that each of `parts` is installed: installs it as root on Debian,
/// otherwise says what to install.
pub fn provide(parts: &[Part]) -> anyhow::Result<Provision> {
    let missing: Vec<&Part> = parts.iter().filter(|part| !(part.is_there)()).collect();
    if missing.is_empty() {
        return Ok(Provision::Complete);
    }
    if !(process::is_root() && Path::new("/usr/bin/apt-get").exists()) {
        return Ok(Provision::Missing(request(&missing)));
    }
    apt_get(&["update"])?;
    let packages = missing.iter().flat_map(|part| part.packages);
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)?;
    for part in missing {
        if !(part.is_there)() {
            bail!(
                "{} is not found although its packages are installed: {}",
                part.name,
                part.packages.join(" ")
            );
        }
    }
    Ok(Provision::Complete)
}

fn request(missing: &[&Part]) -> String {
    let mut text = String::from("the tests need what is not installed here:\n");
    for part in missing {
        let _infallible =
            writeln!(text, "  {}: apt-get install {}", part.name, part.packages.join(" "));
    }
    text.push_str("install it and call again, or run `cargo test`, which goes on without it\n");
    text
}

fn apt_get(arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .context("cannot run apt-get")?;
    if !status.success() {
        bail!("apt-get {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Part, request};

    #[test]
    fn what_is_missing_is_named_with_its_packages() {
        let part = Part { name: "A part", packages: &["one", "two"], is_there: || false };
        let text = request(&[&part]);
        assert!(text.contains("A part: apt-get install one two"), "{text}");
    }
}
