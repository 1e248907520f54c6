//! Checks space, permissions and file system of the folders of this machine.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use slipway_store::{DirectoryLock, Location, StoreConfig};

use super::finding::{Area, Finding};
use crate::config::Config;

const MIB: u64 = 1 << 20;
/// A full disk stops every decision. A busy control plane writes a few hundred
/// MiB of log before SQLite folds it, so less than this is a matter of hours...
const SCARCE: u64 = 1024 * MIB;
/// ... and less than this of minutes.
const NEARLY_FULL: u64 = 100 * MIB;

/// File systems on which locks or written data do not last.
const NETWORK: [(u64, &str); 4] =
    [(0x6969, "NFS"), (0xff53_4d42, "CIFS"), (0xfe53_4d42, "SMB2"), (0x0102_1997, "9p")];
const IN_MEMORY: u64 = 0x0102_1994;

/// The files in the data directory, beside the database, that only their owner may use.
const SECRET_FILES: [&str; 2] = ["signing.pk8", "worker"];

pub(super) fn inspect(config: &Config) -> Vec<Finding> {
    let mut area = Area::new("disk");
    data_directory(&mut area, &config.data_dir);
    space(&mut area, &config.data_dir);
    secrets(&mut area, config);
    signing_key(&mut area, &config.data_dir);
    // Every start makes the root before the key, so one without the other lost its root.
    let started_before = config.data_dir.join("signing.pk8").exists();
    substrate_root(&mut area, &config.substrate_root, started_before);
    if config.data_dir.join("slipway.restoring").exists() {
        area.warning(
            "restore",
            "a restore was interrupted",
            "run `slipway restore` again; what was there is kept in before-restore-*",
        );
    }
    area.into_findings()
}

/// Whether a control plane runs on the directory of the SQLite file.
pub(super) fn is_held(config: &Config) -> bool {
    let folder = database_file(config).and_then(|file| file.parent().map(Path::to_path_buf));
    // The check of the folder reports one that cannot be read.
    folder.is_some_and(|folder| DirectoryLock::is_held(&folder).unwrap_or(false))
}

fn data_directory(area: &mut Area, directory: &Path) {
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => match existing_ancestor(directory) {
            Some(parent) if may_write(parent) => {
                area.ok("data_directory", format!("{shown} is not there yet; it can be made"));
            }
            _ => area.problem(
                "data_directory",
                format!("{shown} is not there and cannot be made"),
                "choose another with --data-dir, or let this user write the folder above it",
            ),
        },
        Err(error) => area.problem(
            "data_directory",
            format!("{shown}: {error}"),
            "let this user enter the folders above it",
        ),
        Ok(metadata) if !metadata.is_dir() => {
            area.problem("data_directory", format!("{shown} is no folder"), "choose another");
        }
        Ok(_) if !may_write(directory) => area.problem(
            "data_directory",
            format!("{shown} cannot be written by this user"),
            format!("run as its owner, or chown it: chown -R USER {shown}"),
        ),
        Ok(metadata) if metadata.mode() & 0o077 != 0 => area.warning(
            "data_directory",
            format!("{shown} is open to others (mode {:o})", metadata.mode() & 0o777),
            format!("chmod 700 {shown}"),
        ),
        Ok(_) => area.ok("data_directory", format!("{shown} is writable and this user's alone")),
    }
}

fn space(area: &mut Area, directory: &Path) {
    let Some(existing) = existing_ancestor(directory) else { return };
    match (rustix::fs::statvfs(existing), rustix::fs::statfs(existing)) {
        (Ok(space), Ok(kind)) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let shown = format!("{} MiB free", free / MIB);
            if free < NEARLY_FULL {
                area.problem("space", shown, "make room: without space nothing can be recorded");
            } else if free < SCARCE {
                area.warning("space", shown, "make room, or move the data directory");
            } else {
                area.ok("space", shown);
            }
            let magic = kind.f_type.cast_unsigned() & 0xffff_ffff;
            if let Some((_, name)) = NETWORK.iter().find(|(known, _)| *known == magic) {
                area.problem(
                    "file_system",
                    format!("{} lies on {name}, where locks cannot be trusted", existing.display()),
                    "keep the data directory on a disk of this machine, or use PostgreSQL",
                );
            } else if magic == IN_MEMORY {
                area.warning(
                    "file_system",
                    format!("{} lies in memory and is gone with the next boot", existing.display()),
                    "choose a folder on a disk with --data-dir",
                );
            } else {
                area.ok("file_system", "of this machine");
            }
        }
        (Err(error), _) | (_, Err(error)) => area.warning(
            "space",
            format!("cannot be found out: {error}"),
            format!("check with `df {}`", existing.display()),
        ),
    }
}

/// The file of a SQLite database.
fn database_file(config: &Config) -> Option<PathBuf> {
    let store = StoreConfig::new(config.database_url.expose());
    match slipway_store::locate(&store) {
        Ok(Location::Sqlite(path)) => Some(path),
        _ => None,
    }
}

fn secrets(area: &mut Area, config: &Config) {
    let mut open = Vec::new();
    for name in SECRET_FILES {
        let path = config.data_dir.join(name);
        if std::fs::metadata(&path).is_ok_and(|file| file.mode() & 0o077 != 0) {
            open.push(path.display().to_string());
        }
    }
    if let Some(database) = database_file(config) {
        let files = slipway_store::files_open_to_others(&database);
        open.extend(files.iter().map(|(path, _)| path.display().to_string()));
    }
    if open.is_empty() {
        area.ok("permissions", "nobody else can use the key or the database");
    } else {
        area.warning(
            "permissions",
            format!("others may use {}", open.join(", ")),
            format!("chmod 600 {}; a start narrows the database by itself", open.join(" ")),
        );
    }
}

fn signing_key(area: &mut Area, directory: &Path) {
    let path = directory.join("signing.pk8");
    match std::fs::read(&path) {
        Ok(bytes) if ring::signature::Ed25519KeyPair::from_pkcs8(&bytes).is_ok() => {
            area.ok("signing_key", "it can be used");
        }
        Ok(_) => area.problem(
            "signing_key",
            format!("{} holds no usable key", path.display()),
            "restore it from a backup; a new one means that nodes enrol anew",
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            area.ok("signing_key", "none yet; the first start draws it");
        }
        Err(error) => area.problem(
            "signing_key",
            format!("{}: {error}", path.display()),
            "let the user of the control plane read it",
        ),
    }
}

fn substrate_root(area: &mut Area, root: &Path, started_before: bool) {
    let shown = root.display();
    let uid = root.join("substrate.uid");
    match std::fs::metadata(root) {
        Err(error) if error.kind() == ErrorKind::NotFound && started_before => area.problem(
            "substrate_root",
            format!("{shown} is gone, and a control plane has run with this data directory"),
            "mount or restore it; until then nothing there is called absent. If its nodes are lost for good, abandon their resources",
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            area.ok(
                "substrate_root",
                format!("{shown} is not there yet; the first start makes it"),
            );
        }
        Err(error) => area.problem(
            "substrate_root",
            format!("{shown}: {error}"),
            "mount it, or let this user read it; until then nothing there is called absent",
        ),
        Ok(_) if !may_write(root) => area.problem(
            "substrate_root",
            format!("{shown} cannot be written by this user"),
            "run as its owner, or choose another with --substrate-root",
        ),
        Ok(_) if !uid.exists() => area.warning(
            "substrate_root",
            format!("{shown} has no identity (substrate.uid)"),
            "if nodes lived there, mount or restore it; a fresh one gets its identity at the start",
        ),
        Ok(_) => area.ok("substrate_root", format!("{shown} is writable and has its identity")),
    }
}

fn existing_ancestor(path: &Path) -> Option<&Path> {
    path.ancestors().find(|ancestor| ancestor.exists())
}

fn may_write(folder: &Path) -> bool {
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}
