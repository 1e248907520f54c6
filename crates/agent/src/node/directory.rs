//! The node directory: its paths, its lock and atomic writes.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::error::Error;
use crate::files::{self, LifeLock};

/// How often the agent checks whether its directory still exists.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// Kept open so that the kernel does not reuse the inode number for a
    /// directory that is created after this one was removed, and so that a write
    /// goes into this directory or nowhere, see [`Directory::by_handle`].
    handle: rustix::fd::OwnedFd,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let path = path.canonicalize().map_err(Error::file("find the node directory", path))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(io::Error::from)
            .map_err(Error::file("open the node directory", &path))?;
        let stat = rustix::fs::fstat(&handle)
            .map_err(io::Error::from)
            .map_err(Error::file("inspect the node directory", &path))?;
        Ok(Self { path, device: stat.st_dev, inode: stat.st_ino, handle })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn user_data(&self) -> PathBuf {
        self.path.join("user-data")
    }

    pub(crate) fn evidence(&self) -> PathBuf {
        self.path.join("agent.json")
    }

    pub(crate) fn status(&self) -> PathBuf {
        self.path.join("status.json")
    }

    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.path.join("state").join(name)
    }

    /// The path below `rootfs/` for an absolute path of the document.
    pub(crate) fn rootfs(&self, absolute: &Path) -> PathBuf {
        let relative = absolute.strip_prefix("/").unwrap_or(absolute);
        self.path.join("rootfs").join(relative)
    }

    /// False once the path leads nowhere or to another directory. A path that
    /// cannot be read does not count as gone.
    pub(crate) fn is_there(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(found) => (found.dev(), found.ino()) == (self.device, self.inode),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    pub(crate) async fn gone(&self) {
        while self.is_there() {
            tokio::time::sleep(POLL).await;
        }
    }

    /// Readers find either the old content or the new, also after a crash.
    /// Creates missing folders of the path.
    pub(crate) fn write_atomically(
        &self,
        path: &Path,
        content: &[u8],
        mode: u32,
    ) -> Result<(), Error> {
        // A directory of the same name that somebody created meanwhile belongs
        // to another node.
        if !self.is_there() {
            return Err(Error::file("write in the removed directory of", path)(
                io::ErrorKind::NotFound.into(),
            ));
        }
        files::replace(&self.by_handle(path), content, mode).map_err(Error::file("write", path))
    }

    /// Creates a folder that only its owner can read.
    pub(crate) fn create_folder(&self, path: &Path) -> Result<(), Error> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.by_handle(path))
            .map_err(Error::file("create", path))
    }

    /// The same path by the open handle instead of the name. By name, creating
    /// missing folders would recreate a directory that somebody removed a moment
    /// ago. It would contain no object, so nobody could say what it is, and it
    /// would keep the node from being created anew.
    fn by_handle(&self, path: &Path) -> PathBuf {
        let handle = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        path.strip_prefix(&self.path).map_or_else(|_| path.to_owned(), |below| handle.join(below))
    }
}

/// `None` if there is no such file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    files::read_if_there(path).map_err(Error::file("read", path))
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    files::remove_if_there(path).map_err(Error::file("remove", path))
}

/// The right to be the agent of a directory, kept until the process ends.
pub(crate) fn lock(directory: &Directory) -> Result<LifeLock, Error> {
    let path = directory.path().join("agent.lock");
    let lock = LifeLock::take(&path).map_err(Error::file("lock", &path))?;
    lock.ok_or_else(|| Error::AlreadyRunning { directory: directory.path().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_has_its_mode_and_leaves_no_temporary_one() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let path = directory.state("identity.json");
        for (content, mode) in [(&b"one"[..], 0o600), (&b"two"[..], 0o644)] {
            directory.write_atomically(&path, content, mode).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    /// Found by the soak test: an agent that enrolled while its directory was
    /// removed created it again, with nothing but its state in it.
    #[test]
    fn a_removed_directory_is_not_brought_back_to_life() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node");
        fs::create_dir(&path).unwrap();
        let directory = Directory::open(&path).unwrap();
        fs::remove_dir(&path).unwrap();
        assert!(directory.create_folder(&directory.state("")).is_err());
        // Also if the directory is removed between the check and the write.
        let target = directory.by_handle(&directory.state("identity.json"));
        assert!(files::replace(&target, b"{}", 0o600).is_err());
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_created_anew_under_the_same_name_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node");
        fs::create_dir(&path).unwrap();
        let directory = Directory::open(&path).unwrap();
        assert!(directory.is_there());
        fs::remove_dir(&path).unwrap();
        assert!(!directory.is_there());
        fs::create_dir(&path).unwrap();
        assert!(!directory.is_there());
        let refused = directory.write_atomically(&directory.status(), b"{}", 0o644);
        assert!(refused.is_err());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "the new directory was written to");
    }
}
