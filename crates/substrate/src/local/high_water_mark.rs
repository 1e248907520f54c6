//! The high-water mark: the highest heartbeat of this installation, in a file of
//! the substrate root. It is outside the database on purpose: if the mark is ahead
//! of the database, the database was restored to an earlier state.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::files;

/// One file per installation, `slipway-high-water-mark-<installation>`.
pub(super) const PREFIX: &str = "slipway-high-water-mark-";

/// `None` if nothing was written yet. Content that is no number is an error: to
/// treat it as a first start would hide a restore.
pub(super) fn read(root: &Path, installation: &str) -> io::Result<Option<i64>> {
    let path = root.join(format!("{PREFIX}{installation}"));
    let Some(content) = files::read_if_there(&path)? else { return Ok(None) };
    let heartbeat = std::str::from_utf8(&content).ok().and_then(|text| text.trim().parse().ok());
    heartbeat.map(Some).ok_or_else(|| {
        io::Error::other(format!(
            "{} holds no number; remove it only if the database was never restored",
            path.display()
        ))
    })
}

/// Replicas that share the root write one after the other, and the highest value
/// stays.
pub(super) fn write(root: &Path, installation: &str, heartbeat: i64) -> io::Result<()> {
    let folder = File::open(root)?;
    flock(&folder, FlockOperation::LockExclusive)?;
    if read(root, installation)?.is_some_and(|found| found >= heartbeat) {
        return Ok(());
    }
    files::replace(&root.join(format!("{PREFIX}{installation}")), heartbeat.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_only_grows_whoever_writes() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path(), "a").unwrap(), None);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let root = folder.path();
                scope.spawn(move || {
                    for step in 0..25 {
                        write(root, "a", step * 4 + writer).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(folder.path(), "a").unwrap(), Some(99));
        write(folder.path(), "a", 5).unwrap();
        assert_eq!(read(folder.path(), "a").unwrap(), Some(99));
        assert_eq!(read(folder.path(), "b").unwrap(), None, "each installation has its own");
    }

    #[test]
    fn what_is_no_number_is_not_taken_for_a_first_start() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("slipway-high-water-mark-a"), "").unwrap();
        assert!(read(folder.path(), "a").is_err());
        assert!(write(folder.path(), "a", 1).is_err());
    }
}
