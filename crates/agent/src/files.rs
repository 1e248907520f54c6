//! Files of an agent: written so that a crash leaves the old content or the new, and
//! a lock that a process has until it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

/// Replaces a file through a temporary one beside it. Readers find either the old
/// content or the new, also after a crash. Creates missing folders of the path.
pub(crate) fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    replace_through(&folder.join(name), path, content, mode)
}

/// The same through this temporary file, which is on the same file system.
pub(crate) fn replace_through(
    temporary: &Path,
    path: &Path,
    content: &[u8],
    mode: u32,
) -> io::Result<()> {
    // Created for the owner alone and widened afterwards, so that others can
    // never read a secret, whatever the umask and whatever mode a file left by
    // a crash had.
    let _ = fs::remove_file(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    sync_folder_of(path)
}

/// Makes what was created, renamed or removed in the folder of a path outlive a crash.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// `None` if there is no such file.
pub(crate) fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A lock that this process has until it ends.
///
/// It is a POSIX record lock, because the kernel reports which process has such
/// a lock. Its one trap: the kernel drops it as soon as the process closes *any*
/// descriptor of the file. So this crate opens a lock file here and nowhere
/// else.
#[derive(Debug)]
pub(crate) struct LifeLock {
    _file: File,
}

impl LifeLock {
    /// `None` if another process has it.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
