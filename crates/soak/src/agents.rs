//! Finds the agents of a substrate root in the process table, and the
//! directories of their nodes. An agent's directory is its last argument and
//! has the name of the composite.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use slipway_testkit::control_plane::agents_below;
use slipway_testkit::process::Process;

/// Living agents by composite name.
pub(super) fn living(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<Process>>> {
    let mut agents: BTreeMap<String, Vec<Process>> = BTreeMap::new();
    for process in agents_below(root)? {
        let name = process.command_line.rsplit('/').next().unwrap_or_default().to_owned();
        agents.entry(name).or_default().push(process);
    }
    Ok(agents)
}

/// Node directories by composite name. Directories that are being laid out or
/// were retired are included under their temporary names.
pub(super) fn directories(root: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for namespace in entries(root)? {
        if namespace.is_dir() {
            for node in entries(&namespace)? {
                let name = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
                found.insert(name, node);
            }
        }
    }
    Ok(found)
}

/// A folder that vanished before the listing has no entries.
fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.with_context(|| format!("cannot list {}", folder.display()))?,
    };
    listed.map(|entry| Ok(entry?.path())).collect()
}

/// Marks a node as permanently failed. False if its directory does not exist.
pub(super) fn mark_failed(root: &Path, name: &str) -> anyhow::Result<bool> {
    let Some(directory) = directories(root)?.remove(name) else {
        return Ok(false);
    };
    match fs::write(directory.join("failure.json"), r#"{"message":"the soak says so"}"#) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        written => written.map(|()| true).context("cannot mark a node as failed"),
    }
}

/// Attempts of `rm -r` by a person: one fails if the agent writes a file after
/// `rm` has listed the folder.
const REMOVALS: usize = 50;

/// Removes a node directory as a person with `rm -r` would. False if it does not exist.
pub(super) fn remove_by_hand(root: &Path, name: &str) -> anyhow::Result<bool> {
    let Some(directory) = directories(root)?.remove(name) else {
        return Ok(false);
    };
    for _ in 0..REMOVALS {
        match fs::remove_dir_all(&directory) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.exists() => {
                return Ok(true);
            }
            Err(_) => {}
        }
    }
    anyhow::bail!("{} cannot be removed", directory.display())
}
