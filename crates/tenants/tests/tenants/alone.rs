//! The crate builds, and its examples run, outside of this workspace: copied with `durable`
//! alone, without the other crates and without the network.
//!
//! The copy has a fixed folder beside the build of the tests, and only files that changed are
//! written, so that a second run builds nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATES: [&str; 2] = ["durable", "tenants"];
const EXAMPLES: [&str; 2] = ["provision", "crash"];

/// Nothing here is run for long, so what builds fastest will do.
const PROFILE: &str = "[profile.dev]\ndebug = false\nincremental = true\n";

#[test]
fn the_crate_and_its_examples_work_outside_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace");
    let binary = std::env::current_exe().expect("this binary");
    // target/debug/deps/tenants-…
    let folder = binary.ancestors().nth(3).expect("a target folder").join("tenants-alone");
    let (copy, target) = (folder.join("workspace"), folder.join("target"));
    let mut files = BTreeSet::new();
    write(&mut files, copy.join("Cargo.toml"), &workspace(&read(&root.join("Cargo.toml"))));
    // Cargo removes from its lock what these crates do not need, so ours is kept beside it.
    let (lock, ours) = (read(&root.join("Cargo.lock")), copy.join("Cargo.lock.workspace"));
    if fs::read_to_string(&ours).ok().as_ref() != Some(&lock) {
        write(&mut files, copy.join("Cargo.lock"), &lock);
        write(&mut files, ours, &lock);
    }
    for name in CRATES {
        let (from, to) = (root.join("crates").join(name), copy.join("crates").join(name));
        write(&mut files, to.join("Cargo.toml"), &manifest(&read(&from.join("Cargo.toml"))));
        for part in ["src", "examples"] {
            copied(&mut files, &from.join(part), &to.join(part));
        }
    }
    remove_others(&files, &copy.join("crates"));
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--offline", "--package", "slipway-tenants", "--examples"]);
    run(build.arg("--target-dir").arg(&target).current_dir(&copy));
    for example in EXAMPLES {
        run(&mut Command::new(target.join("debug/examples").join(example)));
    }
}

/// The manifest of a workspace with these crates alone; versions and lints are ours.
fn workspace(ours: &str) -> String {
    let (_, shared) = ours.split_once("[workspace.package]").expect("a workspace");
    let (shared, _) = shared.split_once("[profile.dev]").expect("profiles");
    let is_kept = |line: &&str| {
        let of_ours = line.starts_with("slipway-");
        !of_ours || CRATES.iter().any(|name| line.starts_with(&format!("slipway-{name} ")))
    };
    let shared: Vec<_> = shared.lines().filter(is_kept).collect();
    let members = CRATES.map(|name| format!("\"crates/{name}\"")).join(", ");
    let shared = shared.join("\n");
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n[workspace.package]{shared}\n{PROFILE}"
    )
}

/// The manifest of a crate without what its tests start.
fn manifest(ours: &str) -> String {
    let lines = ours.lines().filter(|line| !line.starts_with("slipway-testkit"));
    lines.map(|line| format!("{line}\n")).collect()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Writes a file unless it is the same already: its time tells cargo what to build.
fn write(files: &mut BTreeSet<PathBuf>, file: PathBuf, text: &str) {
    if fs::read_to_string(&file).ok().as_deref() != Some(text) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, text).expect("a file");
    }
    files.insert(file);
}

fn copied(files: &mut BTreeSet<PathBuf>, from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() { copied(files, &path, &to) } else { write(files, to, &read(&path)) }
    }
}

/// Removes what an earlier version of the crates had.
fn remove_others(files: &BTreeSet<PathBuf>, folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            remove_others(files, &path);
        } else if !files.contains(&path) {
            fs::remove_file(path).expect("a file of ours");
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}
