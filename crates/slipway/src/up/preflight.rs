//! Checks before anything is created, so that a start that cannot succeed leaves
//! no database and no key behind.

use std::io;
use std::path::Path;

use rustix::fs::Access;

use crate::config::Config;
use crate::error::Error;

/// Checks the substrate root if it is outside the data directory. The data
/// directory itself is checked when its lock is taken.
pub(super) fn check(config: &Config) -> Result<(), Error> {
    let root = &config.substrate_root;
    if root.starts_with(&config.data_dir) {
        return Ok(());
    }
    usable(root).map_err(|source| Error::FolderUnusable {
        key: "substrate_root",
        path: root.display().to_string(),
        source,
    })
}

/// Checks that the path is a writable folder, or can be created. This is no
/// guarantee: anything may happen between this check and the creation.
fn usable(path: &Path) -> io::Result<()> {
    let mut nearest = path;
    loop {
        match std::fs::metadata(nearest) {
            Ok(found) if !found.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match nearest.parent() {
                Some(parent) => nearest = parent,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(rustix::fs::access(nearest, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_usable_if_it_is_there_or_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        usable(folder.path()).unwrap();
        usable(&folder.path().join("a/b/c")).unwrap();
        for wrong in ["file", "file/a"] {
            assert!(usable(&folder.path().join(wrong)).is_err(), "{wrong}");
        }
    }
}
