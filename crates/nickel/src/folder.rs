//! The one folder that may be read.
//!
//! On Linux the kernel resolves a path below the folder (`openat2` with
//! `RESOLVE_BENEATH`), so that neither `..` nor a symbolic link leaves it, whatever is
//! renamed meanwhile. Symbolic links that stay in the folder work: mounted ConfigMaps
//! consist of them. Elsewhere, and where a sandbox lacks that call, the canonical path is
//! compared and then opened. Somebody who can write to the folder could exchange a file
//! between the two.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use crate::failure::Exit;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only openat2 needs it"))]
    handle: File,
    canonical: PathBuf,
}

/// Why a file is not read.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    #[error("it is outside of the folder")]
    Outside,
    #[error("it is not a regular file")]
    NotAFile,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ReadError {
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// How the program ends: a file outside has its own code.
    pub(crate) fn exit(&self, otherwise: Exit) -> Exit {
        match self {
            Self::Outside => Exit::Outside,
            Self::NotAFile | Self::Io(_) => otherwise,
        }
    }
}

impl From<Errno> for ReadError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let canonical = path.canonicalize()?;
        let handle = File::open(&canonical)?;
        if !handle.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { handle, canonical })
    }

    /// The path of `file` in this folder. A symbolic link keeps its own name and is
    /// followed when it is read.
    pub(crate) fn relative(&self, file: &Path) -> Result<PathBuf, ReadError> {
        let name = file.file_name().ok_or(ReadError::NotAFile)?;
        let parent = folder_of(file).canonicalize()?;
        let parent = parent.strip_prefix(&self.canonical).map_err(|_| ReadError::Outside)?;
        Ok(parent.join(name))
    }

    /// The text of the file at `path`, which is relative to the folder.
    pub(crate) fn read(&self, path: &Path) -> Result<String, ReadError> {
        let mut file = self.open_file(path)?;
        if !file.metadata()?.is_file() {
            return Err(ReadError::NotAFile);
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    /// A named pipe must not block its opening, therefore `NONBLOCK`.
    const FLAGS: OFlags =
        OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

    #[cfg(target_os = "linux")]
    fn open_file(&self, path: &Path) -> Result<File, ReadError> {
        use rustix::fs::{ResolveFlags, openat2};
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.handle, path, Self::FLAGS, Mode::empty(), beneath) {
            Ok(file) => Ok(file.into()),
            Err(Errno::XDEV) => Err(ReadError::Outside),
            Err(Errno::NOSYS | Errno::PERM) => self.open_after_check(path),
            Err(errno) => Err(errno.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_file(&self, path: &Path) -> Result<File, ReadError> {
        self.open_after_check(path)
    }

    fn open_after_check(&self, path: &Path) -> Result<File, ReadError> {
        let canonical = self.canonical.join(path).canonicalize()?;
        if !canonical.starts_with(&self.canonical) {
            return Err(ReadError::Outside);
        }
        let flags = Self::FLAGS | OFlags::NOFOLLOW;
        Ok(rustix::fs::open(&canonical, flags, Mode::empty())?.into())
    }
}

/// The folder that `file` is in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::Command;

    use super::{Folder, ReadError};

    #[test]
    fn both_ways_to_open_stay_in_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir_all(inner.join("sub")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        fs::write(inner.join("sub/file"), "text").unwrap();
        symlink("sub/file", inner.join("stays")).unwrap();
        symlink("../secret", inner.join("leaves")).unwrap();
        symlink(outer.path(), inner.join("above")).unwrap();

        let folder = Folder::open(&inner).unwrap();
        type Open = fn(&Folder, &Path) -> Result<fs::File, ReadError>;
        for open in [Folder::open_file as Open, Folder::open_after_check] {
            for path in ["sub/file", "stays"] {
                open(&folder, Path::new(path)).expect(path);
            }
            for path in ["leaves", "above/secret", "../secret", "sub/../../secret"] {
                let refused = open(&folder, Path::new(path)).unwrap_err();
                assert!(matches!(refused, ReadError::Outside), "{path}: {refused:?}");
            }
            assert!(open(&folder, Path::new("missing")).unwrap_err().is_missing());
        }
    }

    #[test]
    fn a_folder_or_a_pipe_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let folder = Folder::open(folder.path()).unwrap();
        for path in ["sub", "pipe"] {
            assert!(matches!(folder.read(Path::new(path)), Err(ReadError::NotAFile)), "{path}");
        }
    }
}
