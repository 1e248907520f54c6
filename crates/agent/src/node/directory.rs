//! The node directory: its paths, its lock and atomic writes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock};
use rustix::io::Errno;

use super::error::Error;

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
        write_file(&self.by_handle(path), content, mode).map_err(Error::file("write", path))
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

fn write_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = folder.join(name);
    // Created for the owner alone and widened afterwards, so that others can
    // never read a secret, whatever the umask and whatever mode a file left by
    // a crash had.
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}

/// `None` if there is no such file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path)(error)),
    }
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// The right to be the agent of a directory, kept until the process ends.
///
/// It is a POSIX record lock, because the kernel reports which process has such
/// a lock. Its one trap: the kernel drops it as soon as the process closes *any*
/// descriptor of the file. So this crate opens the lock file here and nowhere
/// else.
#[derive(Debug)]
pub(crate) struct LifeLock {
    _file: File,
}

impl LifeLock {
    pub(crate) fn take(directory: &Directory) -> Result<Self, Error> {
        let path = directory.path().join("agent.lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(Error::file("open", &path))?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::AGAIN | Errno::ACCESS) => {
                Err(Error::AlreadyRunning { directory: directory.path().to_owned() })
            }
            Err(error) => Err(Error::file("lock", &path)(error.into())),
        }
    }
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
        assert!(write_file(&target, b"{}", 0o600).is_err());
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
