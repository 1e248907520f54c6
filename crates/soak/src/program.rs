//! The programs of a soak, built for it unless the options name them.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Builds a program of a package and returns where cargo put it.
pub(super) fn build(package: &str, program: &str, debug: bool) -> anyhow::Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--package", package, "--bin", program]);
    command.arg("--message-format=json-render-diagnostics");
    if !debug {
        command.arg("--release");
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.context("cannot run cargo")?;
    ensure!(output.status.success(), "the build failed with {}", output.status);
    executable(&String::from_utf8_lossy(&output.stdout), program)
        .with_context(|| format!("cargo built no {program}"))
}

/// A binary in cargo's messages, one JSON object per line.
fn executable(messages: &str, program: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages
        .filter(|message| message["target"]["name"] == program)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    programs.next()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::executable;

    #[test]
    fn the_binary_is_found_among_libraries_and_other_programs() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"slipway_core"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"target/debug/other"}
{"reason":"compiler-artifact","target":{"name":"slipway"},"executable":"target/debug/slipway"}
{"reason":"build-finished","success":true}"#;
        let found = executable(messages, "slipway");
        assert_eq!(found.as_deref(), Some(Path::new("target/debug/slipway")));
        assert_eq!(executable("nothing", "slipway"), None);
    }
}
