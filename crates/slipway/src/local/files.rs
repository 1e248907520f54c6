//! Writes files atomically and durably.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A rename is durable once its folder is synced.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let fresh = with_suffix(path, ".new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates a folder that only its owner can enter, with a number at its end if
/// the name is taken: two folders of the same second have the same timestamp.
pub(super) fn make_folder(wanted: &Path) -> io::Result<PathBuf> {
    let mut path = wanted.to_path_buf();
    let mut number = 1_u32;
    loop {
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
                path = with_suffix(wanted, &format!("-{number}"));
            }
            Err(error) => return Err(error),
        }
    }
}

/// A timestamp as part of a file name: `20260131T120000Z`.
pub(super) fn stamp(now: slipway_core::Timestamp) -> String {
    let text = now.to_string();
    let seconds = text.split('.').next().unwrap_or(&text);
    let digits: String = seconds.chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    format!("{digits}Z")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("before");
        let made: Vec<_> = (0..3).map(|_| make_folder(&wanted).unwrap()).collect();
        assert_eq!(made, ["before", "before-2", "before-3"].map(|name| folder.path().join(name)));
        let mode = std::fs::metadata(&made[2]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(make_folder(&folder.path().join("none/before")).is_err());
    }

    #[test]
    fn a_private_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_stamp_is_a_file_name() {
        let moment = slipway_core::Timestamp::from_micros(1_769_860_800_123_456);
        assert_eq!(stamp(moment), "20260131T120000Z");
    }
}
