//! Finds the programs of an installed PostgreSQL.
//!
//! Debian keeps them out of the search path (`/usr/lib/postgresql/15/bin`), so
//! that folder is searched first, newest version first.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// When set, the only folder that is searched: for an installation in an
/// unusual folder or, with an empty folder, to test the behaviour without
/// PostgreSQL.
pub const BINARIES_VARIABLE: &str = "SLIPWAY_TEST_POSTGRES_BIN";

const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";
const PROGRAMS: [&str; 4] = ["initdb", "pg_ctl", "postgres", "psql"];

/// Whether a PostgreSQL server can be started here.
pub fn installed() -> bool {
    find().is_some()
}

/// The folder with the programs of the newest PostgreSQL found.
pub(super) fn find() -> Option<PathBuf> {
    if let Some(folder) = env::var_os(BINARIES_VARIABLE) {
        return first_complete([PathBuf::from(folder)]);
    }
    let versions = newest_first(Path::new(DEBIAN_FOLDER));
    let configured = folder_of_pg_config();
    let searched = env::var_os("PATH").unwrap_or_default();
    first_complete(versions.into_iter().chain(configured).chain(env::split_paths(&searched)))
}

/// `psql`, the only program needed for a server that we did not start.
pub(super) fn find_psql() -> PathBuf {
    find().map_or_else(|| PathBuf::from("psql"), |folder| folder.join("psql"))
}

fn first_complete(folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.into_iter().find(|folder| PROGRAMS.iter().all(|program| folder.join(program).is_file()))
}

/// The `bin` folders of the versions under `parent`. Compared as numbers: 15
/// is newer than 9.6.
fn newest_first(parent: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(Vec<u32>, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = version_of(&entry.file_name())?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, folder)| folder).collect()
}

fn version_of(name: &OsString) -> Option<Vec<u32>> {
    name.to_str()?.split('.').map(|part| part.parse().ok()).collect()
}

fn folder_of_pg_config() -> Option<PathBuf> {
    let answer = Command::new("pg_config").arg("--bindir").output().ok()?;
    let folder = String::from_utf8(answer.stdout).ok()?;
    answer.status.success().then(|| PathBuf::from(folder.trim()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{PROGRAMS, first_complete, newest_first};

    fn mk_installation(parent: &Path, version: &str, programs: &[&str]) -> PathBuf {
        let folder = parent.join(version).join("bin");
        fs::create_dir_all(&folder).unwrap();
        for program in programs {
            fs::write(folder.join(program), "").unwrap();
        }
        folder
    }

    #[test]
    fn the_newest_complete_installation_is_taken() {
        let parent = tempfile::tempdir().unwrap();
        mk_installation(parent.path(), "9.6", &PROGRAMS);
        let fifteen = mk_installation(parent.path(), "15", &PROGRAMS);
        // Debian may have only the client programs of a newer version.
        mk_installation(parent.path(), "17", &["psql"]);
        mk_installation(parent.path(), "not-a-version", &PROGRAMS);

        let versions = newest_first(parent.path());
        assert_eq!(versions.len(), 3, "{versions:?}");
        assert_eq!(first_complete(versions), Some(fifteen));
    }

    #[test]
    fn nothing_installed_is_nothing_found() {
        let parent = tempfile::tempdir().unwrap();
        assert_eq!(first_complete(newest_first(parent.path())), None);
        assert_eq!(newest_first(&parent.path().join("absent")), Vec::<PathBuf>::new());
    }
}
