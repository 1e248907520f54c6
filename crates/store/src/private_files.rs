//! The files of a SQLite database belong to their owner alone: whoever reads them
//! knows everything that was declared, and whoever writes them is an administrator.
//!
//! SQLite gives its journals the mode of the database, so it is enough to create the
//! database with the right mode, and to narrow what an older version or a person left
//! wider. The mode of the folder does not replace this: files are copied and moved.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The rights of everybody but the owner.
const OTHERS: u32 = 0o077;

/// The database and the journals that SQLite keeps beside it.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Creates the database as an empty file, which is a valid one, if there is none, and
/// narrows what is there.
pub(crate) fn prepare(database: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(database) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    narrow_files(database);
    Ok(())
}

/// Takes the rights of others from the files of this database, with a line in the log
/// for each. A file that belongs to somebody else cannot be narrowed; that is only
/// logged, since a control plane that does not start protects nothing.
pub fn narrow_files(database: &Path) {
    for (path, mode) in files_open_to_others(database) {
        let narrow = Permissions::from_mode(mode & !OTHERS);
        let (file, was) = (path.display(), format!("{mode:03o}"));
        if let Err(error) = std::fs::set_permissions(&path, narrow) {
            tracing::warn!(
                %file, was, %error,
                "others can use this file of the database, and that cannot be changed; \
                 chmod 600 it as its owner"
            );
        } else {
            tracing::warn!(
                %file, was,
                "others could use this file of the database; now only its owner can"
            );
        }
    }
}

/// The files of this database that others than their owner can use, with their modes.
pub fn files_open_to_others(database: &Path) -> Vec<(PathBuf, u32)> {
    let files = SUFFIXES.iter().map(|suffix| beside(database, suffix));
    let found = files.filter_map(|path| {
        let mode = std::fs::metadata(&path).ok()?.permissions().mode() & 0o777;
        (mode & OTHERS != 0).then_some((path, mode))
    });
    found.collect()
}

/// The file whose name is that of the database with this at its end.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreConfig;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Also the journals, which exist while the store is open.
    #[tokio::test]
    async fn a_database_is_made_for_its_owner_alone_and_narrowed_if_it_is_wider() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("slipway.db");
        let config = || StoreConfig::new(format!("sqlite:{}", file.display()));
        let all = ["", "-wal", "-shm"].map(|suffix| beside(&file, suffix));
        let store = crate::open(config()).await.unwrap();
        assert_eq!(all.each_ref().map(|path| mode(path)), [0o600; 3]);
        assert_eq!(files_open_to_others(&file), []);
        // What a version before wrote and a crash left. A copy, since the last
        // connection to close the database removes its journals.
        let copy = folder.path().join("copy").join("slipway.db");
        std::fs::create_dir(copy.parent().unwrap()).unwrap();
        let left = ["", "-wal", "-shm"].map(|suffix| beside(&copy, suffix));
        for (from, to) in all.iter().zip(&left) {
            std::fs::copy(from, to).unwrap();
            std::fs::set_permissions(to, Permissions::from_mode(0o644)).unwrap();
        }
        drop(store);
        assert_eq!(files_open_to_others(&copy).len(), 3);
        let store = crate::open(StoreConfig::new(format!("sqlite:{}", copy.display()))).await;
        assert_eq!(left.each_ref().map(|path| mode(path)), [0o600; 3]);
        drop(store.unwrap());
        // Narrowing adds no right.
        std::fs::set_permissions(&copy, Permissions::from_mode(0o440)).unwrap();
        narrow_files(&copy);
        assert_eq!(mode(&copy), 0o400);
    }
}
