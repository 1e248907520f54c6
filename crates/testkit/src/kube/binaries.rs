//! Finds the programs, and refuses those whose checksum differs from the pinned
//! one.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};
use ring::digest::{Context, SHA256};

/// Names a folder with the user's own programs, as kubebuilder's tools do. When
/// it is set, only this folder is searched, and no checksum is verified.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The programs that are built here and the SHA-256 of each. The build is
/// reproducible to the byte; these hold for amd64 and Debian 12's Go 1.19.8.
pub const PINNED: [(&str, &str); 2] = [
    (API_SERVER, "e2e8cdb17d6a0419e551a856497e69d2d4a78898962177a1c70fd5b0fc5f455b"),
    (CONTROLLER_MANAGER, "8fbffde28b1282cc4346c648ddd889a44175c93089e41c04159204a29010918b"),
];

const API_SERVER: &str = "kube-apiserver";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const ETCD: &str = "etcd";
const VERSION: &str = "v1.20.2";

/// Where each program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    pub api_server: PathBuf,
    pub controller_manager: PathBuf,
    pub etcd: PathBuf,
}

/// The programs of this machine; `None` if one is missing.
///
/// An error names a program whose checksum is wrong: such a program is neither
/// used nor silently replaced.
pub fn find() -> anyhow::Result<Option<Binaries>> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    find_among(variable, cfg!(target_arch = "x86_64").then_some(&PINNED))
}

/// As [`find`], but verifies each checksum once in a process: hashing takes a
/// third of a second of a core, and a process may start many environments.
pub(super) fn find_once() -> anyhow::Result<Option<Binaries>> {
    static FOUND: OnceLock<Binaries> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(Some(found.clone()));
    }
    Ok(find()?.map(|found| FOUND.get_or_init(|| found).clone()))
}

/// Folder of the programs that we built; `None` without a home directory.
pub fn cache_folder() -> Option<PathBuf> {
    cache_folder_by(|name| env::var_os(name).filter(|value| !value.is_empty()))
}

/// Whether etcd is installed; Debian has it as a package.
pub fn etcd_installed() -> bool {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    find_etcd(&variable).is_some()
}

/// The SHA-256 of a file, in hexadecimal.
pub fn checksum(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    // ring, because it is as fast in a debug build: the first test of every
    // process hashes 120 MB.
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => digest.update(&buffer[..read]),
        }
    }
    let mut text = String::new();
    for byte in digest.finish().as_ref() {
        let _infallible = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn find_among(
    variable: impl Fn(&str) -> Option<OsString>,
    pinned: Option<&[(&str, &str)]>,
) -> anyhow::Result<Option<Binaries>> {
    let own = variable(ASSETS_VARIABLE).map(PathBuf::from);
    let Some(folder) = own.clone().or_else(|| cache_folder_by(&variable)) else {
        return Ok(None);
    };
    let (api_server, controller_manager) =
        (folder.join(API_SERVER), folder.join(CONTROLLER_MANAGER));
    let Some(etcd) = find_etcd(&variable) else {
        return Ok(None);
    };
    if !api_server.is_file() || (own.is_none() && !controller_manager.is_file()) {
        return Ok(None);
    }
    if own.is_none() {
        for (name, expected) in pinned.unwrap_or_default() {
            check(&folder.join(name), expected)?;
        }
    }
    Ok(Some(Binaries { api_server, controller_manager, etcd }))
}

fn check(program: &Path, expected: &str) -> anyhow::Result<()> {
    let found = checksum(program).with_context(|| format!("cannot read {}", program.display()))?;
    if found != expected {
        bail!(
            "{} has the SHA-256 {found} and not {expected}: remove it and run `cargo xtask test` \
             to build it again, or set {ASSETS_VARIABLE} to use it as it is",
            program.display()
        );
    }
    Ok(())
}

fn cache_folder_by(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    Some(cache.join("slipway/kube").join(VERSION))
}

fn find_etcd(variable: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let searched = variable("PATH").unwrap_or_default();
    variable(ASSETS_VARIABLE)
        .map(PathBuf::from)
        .into_iter()
        .chain(env::split_paths(&searched))
        .map(|folder| folder.join(ETCD))
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::path::Path;

    use super::{checksum, find_among};

    /// SHA-256 of "text".
    const KNOWN: &str = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
    const PINS: [(&str, &str); 2] = [("kube-apiserver", KNOWN), ("kube-controller-manager", KNOWN)];

    fn mk_programs(folder: &Path, names: &[&str]) {
        fs::create_dir_all(folder).unwrap();
        for name in names {
            fs::write(folder.join(name), "text").unwrap();
        }
    }

    fn found(variables: &[(&str, &Path)]) -> anyhow::Result<Option<super::Binaries>> {
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, path)| OsString::from(path))
        };
        find_among(variable, Some(&PINS))
    }

    #[test]
    fn programs_are_taken_from_the_cache_if_they_are_what_was_pinned() {
        let root = tempfile::tempdir().unwrap();
        let (cache, path) = (root.path().join("cache"), root.path().join("path"));
        let variables = [("XDG_CACHE_HOME", &*cache), ("PATH", &*path)];
        assert_eq!(found(&variables).unwrap(), None);
        mk_programs(&path, &["etcd"]);
        let folder = cache.join("slipway/kube/v1.20.2");
        mk_programs(&folder, &["kube-apiserver"]);
        assert_eq!(found(&variables).unwrap(), None, "half of the programs");
        mk_programs(&folder, &["kube-controller-manager"]);
        let binaries = found(&variables).unwrap().unwrap();
        assert_eq!(binaries.api_server, folder.join("kube-apiserver"));
        assert_eq!(binaries.etcd, path.join("etcd"));

        fs::write(folder.join("kube-apiserver"), "another").unwrap();
        let refused = found(&variables).unwrap_err().to_string();
        assert!(refused.contains("kube-apiserver has the SHA-256"), "{refused}");
        assert!(refused.contains(KNOWN), "{refused}");
        assert_eq!(refused.lines().count(), 1);
    }

    #[test]
    fn somebodys_own_programs_are_taken_as_they_are() {
        let root = tempfile::tempdir().unwrap();
        mk_programs(root.path(), &["kube-apiserver", "etcd"]);
        fs::write(root.path().join("kube-apiserver"), "another").unwrap();
        let binaries = found(&[("KUBEBUILDER_ASSETS", root.path())]).unwrap().unwrap();
        assert_eq!(binaries.api_server, root.path().join("kube-apiserver"));
        assert_eq!(binaries.etcd, root.path().join("etcd"));

        let nothing = root.path().join("nothing");
        let cached = ("XDG_CACHE_HOME", root.path());
        assert_eq!(found(&[("KUBEBUILDER_ASSETS", &*nothing), cached]).unwrap(), None);
    }

    #[test]
    fn a_checksum_is_that_of_the_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "text").unwrap();
        assert_eq!(checksum(file.path()).unwrap(), KNOWN);
    }
}
