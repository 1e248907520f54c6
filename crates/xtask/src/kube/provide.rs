//! Provides kube-apiserver and kube-controller-manager. Debian has no package
//! of the programs, but one of their source.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use slipway_testkit::kube::{self, ASSETS_VARIABLE, PINNED};

const SCRIPT: &str = include_str!("build.sh");
const UNFINISHED: &str = "unfinished-";

/// Whether the programs exist already or are the user's own.
pub fn nothing_to_build() -> bool {
    has_own() || kube::cache_folder().is_some_and(|folder| is_complete(&folder))
}

/// Whether there is a Go to build with.
pub fn go_installed() -> bool {
    let asked = Command::new("go").arg("version").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.status.success())
}

/// Ensures that the programs exist. Builds them if necessary, which takes
/// minutes the first time. Prints which ones are used.
pub fn provide() -> anyhow::Result<()> {
    if has_own() {
        println!("the programs that {ASSETS_VARIABLE} names, as they are");
    } else {
        let folder = kube::cache_folder()
            .with_context(|| format!("no place to build in: set HOME or {ASSETS_VARIABLE}"))?;
        if !is_complete(&folder) {
            build_alone(&folder)?;
        }
        for (name, _) in PINNED {
            let program = folder.join(name);
            let sum = kube::checksum(&program)
                .with_context(|| format!("cannot read {}", program.display()))?;
            println!("{sum}  {}", program.display());
        }
    }
    // Fails on programs whose checksum differs from the pinned one.
    match kube::find()? {
        Some(_) => Ok(()),
        None => bail!("kube-apiserver or etcd is not found although both were provided"),
    }
}

fn has_own() -> bool {
    std::env::var_os(ASSETS_VARIABLE).is_some_and(|value| !value.is_empty())
}

fn is_complete(folder: &Path) -> bool {
    PINNED.iter().all(|(name, _)| folder.join(name).is_file())
}

/// Builds in a folder beside the final one and moves it there in one step, so
/// that nobody ever finds half of it. Two concurrent checkouts build one after
/// the other, and the second finds it done.
fn build_alone(folder: &Path) -> anyhow::Result<()> {
    let parent = folder.parent().context("the cache folder has no parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let lock = parent.join("build.lock");
    let lock = File::create(&lock).with_context(|| format!("cannot make {}", lock.display()))?;
    // The kernel releases the lock when the process ends, however it ends.
    lock.lock().context("cannot wait for another build")?;
    if is_complete(folder) {
        return Ok(());
    }
    println!(
        "building kube-apiserver and kube-controller-manager once, into {}: \
         3 to 7 minutes on two cores",
        folder.display()
    );
    remove_leftovers(parent)?;
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(parent)
        .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
    let built = unfinished.path().join("built");
    fs::create_dir(&built).with_context(|| format!("cannot make {}", built.display()))?;
    run_script(&built)?;
    check(&built)?;
    remove_if_there(folder)?;
    fs::rename(&built, folder).with_context(|| format!("cannot move it to {}", folder.display()))
}

/// Removes the leftovers of killed builds: a gigabyte each. Under the lock
/// nobody else is building.
fn remove_leftovers(parent: &Path) -> anyhow::Result<()> {
    let reading = || format!("cannot read {}", parent.display());
    for entry in fs::read_dir(parent).with_context(reading)? {
        let entry = entry.with_context(reading)?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

fn run_script(out: &Path) -> anyhow::Result<()> {
    let status = Command::new("bash")
        .arg("-c")
        .arg(SCRIPT)
        .arg("build.sh")
        .arg(out)
        .stdin(Stdio::null())
        .status()
        .context("cannot run bash")?;
    if !status.success() {
        bail!(
            "the build failed ({status}). It needs Debian 12 with its sources; elsewhere set \
             {ASSETS_VARIABLE} to a folder with kube-apiserver, kube-controller-manager and etcd"
        );
    }
    Ok(())
}

/// A build with another checksum stays out of the cache, where it would be refused anyway.
fn check(built: &Path) -> anyhow::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    for (name, expected) in PINNED {
        let found = kube::checksum(&built.join(name))?;
        if found != expected {
            bail!(
                "the build of {name} has the SHA-256 {found} and not {expected}, which is pinned \
                 in crates/testkit/src/kube/binaries.rs: another Go or another source package?"
            );
        }
    }
    Ok(())
}

fn remove_if_there(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::remove_leftovers;

    #[test]
    fn only_what_a_killed_build_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["unfinished-a1b2/built", "v1.20.2"] {
            fs::create_dir_all(parent.path().join(name)).unwrap();
        }
        fs::write(parent.path().join("build.lock"), "").unwrap();
        remove_leftovers(parent.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["build.lock", "v1.20.2"]);
    }
}
