//! A copy of a tenant's data in a file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use slipway_wire::tenants::Tenant;
use tempfile::NamedTempFile;

use crate::error::Error;
use crate::kind::Kind as _;
use crate::session::Session;
use crate::terminal::clean;

/// How every copy begins, by the engine of its tenant.
const BEGINNINGS: [&[u8]; 2] = [b"SQLite format 3\0", b"PGDMP"];

/// Writes the copy under another name, and gives it its own when all of it is on the disk. So a
/// file that has the name is whole. Without `force` nothing that has the name is replaced, also if it
/// came meanwhile.
pub(super) async fn export(
    session: &mut Session<'_>,
    tenant: &Tenant,
    path: &Path,
    force: bool,
) -> Result<(), Error> {
    if !force && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let mut part = Part::beside(path)?;
    let length = receive(session, tenant, &mut part).await?;
    part.keep(path, force)?;
    let name = clean(&tenant.name);
    session.terminal.say(&format!("{name}: {length} bytes in {}", path.display()));
    Ok(())
}

fn exists(path: &Path) -> Error {
    let path = path.display();
    Error::Usage(format!("{path} exists; choose another file, or add --force"))
}

/// A copy that is not complete: a new file that only its owner can read, with a name that nobody
/// else has. Dropped, it is gone.
struct Part(NamedTempFile);

impl Part {
    fn beside(path: &Path) -> Result<Self, Error> {
        let Some(name) = path.file_name() else {
            return Err(Error::Usage(format!("{} is no file", path.display())));
        };
        let mut prefix = name.to_owned();
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(&prefix).suffix(".part").rand_bytes(12).tempfile_in(folder(path));
        made.map(Self).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::Usage(format!("{}: {error}", self.0.path().display()))
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.0.write_all(piece).map_err(|error| self.failed(&error))
    }

    /// Gives it its name, durably.
    fn keep(self, path: &Path, force: bool) -> Result<(), Error> {
        self.0.as_file().sync_all().map_err(|error| self.failed(&error))?;
        let kept = match force {
            true => self.0.persist(path),
            false => self.0.persist_noclobber(path),
        };
        if let Err(failed) = kept {
            return Err(match failed.error.kind() {
                io::ErrorKind::AlreadyExists => exists(path),
                _ => Error::Usage(format!("{}: {}", path.display(), failed.error)),
            });
        }
        let synced = File::open(folder(path)).and_then(|folder| folder.sync_all());
        synced.map_err(|error| Error::Usage(format!("{}: {error}", folder(path).display())))
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Answers the length of the copy. One that breaks off is an error of the connection.
async fn receive(session: &Session<'_>, tenant: &Tenant, part: &mut Part) -> Result<u64, Error> {
    let path = [Tenant::PATH, tenant.id.as_str(), "export"];
    let mut pieces = session.client.post_stream(&path).await?;
    let (mut length, mut beginning) = (0, Vec::new());
    while let Some(piece) = session.client.next_piece(&mut pieces).await? {
        let piece = piece.as_ref();
        if beginning.len() < 16 {
            beginning.extend(piece.iter().take(16 - beginning.len()));
        }
        part.write(piece)?;
        length += u64::try_from(piece.len()).unwrap_or(u64::MAX);
    }
    if !BEGINNINGS.iter().any(|known| beginning.starts_with(known)) {
        return Err(session.client.unreadable("it is no copy of a database".to_owned()));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn copied(path: &Path, text: &str) -> Part {
        let mut part = Part::beside(path).unwrap();
        part.write(text.as_bytes()).unwrap();
        part
    }

    #[test]
    fn a_copy_has_a_file_of_its_own_until_it_is_complete() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("acme.dump");
        // What somebody else has there is neither written nor followed.
        fs::write(root.path().join("other"), "precious").unwrap();
        std::os::unix::fs::symlink(root.path().join("other"), root.path().join("acme.dump.part"))
            .unwrap();
        let (one, other) = (copied(&path, "one"), copied(&path, "other"));
        assert_eq!(names(root.path()).len(), 4, "two commands do not share a file");
        one.keep(&path, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = other.keep(&path, false).unwrap_err().to_string();
        assert!(refused.contains("--force"), "it came meanwhile: {refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        copied(&path, "forced").keep(&path, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "forced");
        assert_eq!(fs::read_to_string(root.path().join("other")).unwrap(), "precious");
        assert_eq!(names(root.path()), ["acme.dump", "acme.dump.part", "other"]);
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        drop(copied(&root.path().join("a"), "half"));
        fs::create_dir(root.path().join("folder")).unwrap();
        let kept = copied(&root.path().join("folder"), "x").keep(&root.path().join("folder"), true);
        kept.unwrap_err();
        assert_eq!(names(root.path()), ["folder"]);
        Part::beside(&root.path().join("none/a")).map(drop).unwrap_err();
        Part::beside(Path::new("..")).map(drop).unwrap_err();
    }
}
