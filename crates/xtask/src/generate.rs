//! `cargo xtask generate`: writes the files that are generated from the code
//! and from the chart. A test compares each with its current source.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::cargo::Cargo;
use crate::command_line::Verdict;
use crate::deploy;

/// Builds the program and lets it write its generated documents.
pub fn run(root: &Path) -> anyhow::Result<Verdict> {
    let cargo = Cargo::new(root);
    cargo.run(&["build", "--package", "slipway"])?;
    let program = cargo.built("debug", "slipway");
    let generated = [
        ("cli", "docs/cli.md"),
        ("api", "docs/openapi.json"),
        ("blueprint", "docs/blueprint-metadata.schema.json"),
        ("documents", "docs/schemas/slipway.dev-v1.json"),
    ];
    for (about, path) in generated {
        let output = Command::new(&program)
            .args(["reference", about])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let status = output.status;
        ensure!(status.success(), "{} reference {about} ended with {status}", program.display());
        let path = root.join(path);
        fs::write(&path, output.stdout)
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    deploy::generate(root)?;
    Ok(Verdict::Fine)
}
