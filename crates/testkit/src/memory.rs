//! The folder in memory for data that is useless after a test.
//!
//! SQLite and etcd sync every commit, PostgreSQL makes hundreds of files for a
//! database, and on a real disk tests spend most of their time there. No test depends on the disk: a killed process loses
//! nothing that it wrote to a file, wherever the file is.

use std::io;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

const FOLDER: &str = "/dev/shm";

/// Room for one run of all tests: two API servers with the data of a thousand
/// objects each, whose etcd writes its log in segments of 64 MB, and the
/// databases of the tests beside them, with up to 1 GB of PostgreSQL's log.
const ROOM: u64 = 4 << 30;

/// A new folder for the files of one test: in memory if possible, else where
/// temporary files are. Drop removes it.
pub fn tempdir() -> io::Result<tempfile::TempDir> {
    folder().map_or_else(tempfile::tempdir, tempfile::tempdir_in)
}

/// The folder for everything; `None` if it does not exist, is not writable, has too little
/// room, as in a container with the defaults of its runtime, or lets no program
/// be executed in it, which some tests do.
pub fn folder() -> Option<&'static Path> {
    let folder = Path::new(FOLDER);
    let found = statvfs(folder).ok()?;
    let has_room = found.f_bavail.saturating_mul(found.f_frsize) >= ROOM;
    let executes = !found.f_flag.contains(StatVfsMountFlags::NOEXEC);
    let writable = || access(folder, Access::WRITE_OK).is_ok();
    (has_room && executes && writable()).then_some(folder)
}
