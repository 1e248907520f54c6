//! Writes files so that a reader, and the next start after a crash, finds either
//! the old content or the new.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Only the owner may read what is below a root: objects carry tokens.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Writes a file that does not exist yet and syncs it, but not its folder.
pub(super) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The caller must have locked the folder, so that nobody else uses the temporary
/// name.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    remove_if_there(&temporary)?;
    create(&temporary, content)?;
    fs::rename(&temporary, path)?;
    sync_folder(path.parent().unwrap_or(Path::new("/")))
}

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// `None` if there is no such file.
pub(super) fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    ignore_not_found(fs::remove_file(path))
}

/// Another replica may remove the same tree at the same time.
pub(super) fn remove_tree_if_there(path: &Path) -> io::Result<()> {
    ignore_not_found(fs::remove_dir_all(path))
}

fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
