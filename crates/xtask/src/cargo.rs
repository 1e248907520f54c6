//! Runs cargo on the workspace with one target folder.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Cargo with the environment it would have outside `cargo xtask`.
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

    /// The path of a program that a build in this profile produces.
    pub(crate) fn built(&self, profile: &str, name: &str) -> PathBuf {
        self.root.join(&self.target).join(profile).join(name)
    }

    /// The folder of the workspace.
    pub(crate) fn root(&self) -> &Path {
        self.root
    }

    /// The path of a file kept beside the builds.
    pub(crate) fn beside_builds(&self, name: &str) -> PathBuf {
        self.root.join(&self.target).join(name)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let status = self.command(arguments).status().context("cannot run cargo")?;
        if !status.success() {
            bail!("failed with {status}");
        }
        Ok(())
    }

    /// A cargo command with these arguments, in the workspace.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.root).stdin(Stdio::null());
        forget_package(&mut command);
        command.env("CARGO_TARGET_DIR", &self.target);
        command
    }
}

/// `cargo run` sets variables that describe our package. Build scripts that
/// depend on these variables would think they belong to another package and run
/// again.
pub(crate) fn forget_package(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_a_package) {
            command.env_remove(name);
        }
    }
}

fn describes_a_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

/// The target folder: the user's choice, else the user's cache, so that several
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
