//! The data directory of an embedded installation, locked by one process.
//!
//! SQLite itself would let several processes in, and each of two control planes on one
//! file would assume that it is the only one. So this module locks the directory as a
//! whole, with a lock that the kernel drops when the process ends, however it ends.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The lock; kept for as long as the store is open.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error(
        "the data directory {} is in use by another slipway process; stop that one, or give this \
         one a directory of its own",
        directory.display()
    )]
    DataDirectoryInUse { directory: PathBuf },
    #[error(
        "the data directory {} cannot be used: {source}; check that it may be created and written \
         by this user",
        directory.display()
    )]
    Unusable { directory: PathBuf, source: io::Error },
}

impl DirectoryLock {
    /// Creates the directory (for this user alone) if needed and locks it. Does
    /// not wait: another holder keeps the lock for long.
    pub fn acquire(directory: &Path) -> Result<Self, DirectoryError> {
        let unusable =
            |source| DirectoryError::Unusable { directory: directory.to_path_buf(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unusable)?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(directory.join("slipway.lock"))
            .map_err(unusable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                Err(DirectoryError::DataDirectoryInUse { directory: directory.to_path_buf() })
            }
            Err(errno) => Err(unusable(errno.into())),
        }
    }

    /// Whether some process has locked the directory now; creates nothing. The
    /// check takes the lock for a moment, in shared mode, so that two checks do not
    /// see each other; a control plane that starts in that very moment is refused.
    pub fn is_held(directory: &Path) -> io::Result<bool> {
        let file = match File::open(directory.join("slipway.lock")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_held_once_and_free_after_it_was_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("data");
        assert!(!DirectoryLock::is_held(&directory).unwrap() && !directory.exists());
        let held = DirectoryLock::acquire(&directory).unwrap();
        assert!(DirectoryLock::is_held(&directory).unwrap());
        let refused = DirectoryLock::acquire(&directory).unwrap_err();
        assert!(refused.to_string().contains(&directory.display().to_string()), "{refused}");
        assert!(matches!(refused, DirectoryError::DataDirectoryInUse { .. }));
        drop(held);
        DirectoryLock::acquire(&directory).unwrap();
    }
}
