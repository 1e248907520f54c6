//! A copy of a tenant's data in a file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use slipway_wire::tenants::Tenant;

use crate::error::Error;
use crate::kind::Kind as _;
use crate::session::Session;
use crate::terminal::clean;

/// How every copy begins, by the engine of its tenant.
const BEGINNINGS: [&[u8]; 2] = [b"SQLite format 3\0", b"PGDMP"];

/// Writes the copy under another name, and gives it its own when all of it is on the disk. So a
/// file that has the name is whole.
pub(super) async fn export(
    session: &mut Session<'_>,
    tenant: &Tenant,
    path: &Path,
    force: bool,
) -> Result<(), Error> {
    if !force && path.exists() {
        let path = path.display();
        return Err(Error::Usage(format!("{path} exists; choose another file, or add --force")));
    }
    let part = beside(path);
    let failed = |error: io::Error| Error::Usage(format!("{}: {error}", part.display()));
    let mut options = File::options();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(&part).map_err(failed)?;
    let received = receive(session, tenant, &mut file, &part).await;
    let length = match received {
        Ok(length) => length,
        Err(error) => {
            // What is there is no copy, and the first error is the one that counts.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    };
    let name = || {
        file.sync_all()?;
        fs::rename(&part, path)?;
        File::open(
            path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")),
        )?
        .sync_all()
    };
    name().map_err(failed)?;
    let name = clean(&tenant.name);
    session.terminal.say(&format!("{name}: {length} bytes in {}", path.display()));
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// Answers the length of the copy. One that breaks off is an error of the connection.
async fn receive(
    session: &Session<'_>,
    tenant: &Tenant,
    file: &mut File,
    part: &Path,
) -> Result<u64, Error> {
    let failed = |error: io::Error| Error::Usage(format!("{}: {error}", part.display()));
    let path = [Tenant::PATH, tenant.id.as_str(), "export"];
    let mut pieces = session.client.post_stream(&path).await?;
    let (mut length, mut beginning) = (0, Vec::new());
    while let Some(piece) = session.client.next_piece(&mut pieces).await? {
        let piece = piece.as_ref();
        if beginning.len() < 16 {
            beginning.extend(piece.iter().take(16 - beginning.len()));
        }
        file.write_all(piece).map_err(failed)?;
        length += u64::try_from(piece.len()).unwrap_or(u64::MAX);
    }
    if !BEGINNINGS.iter().any(|known| beginning.starts_with(known)) {
        return Err(session.client.unreadable("it is no copy of a database".to_owned()));
    }
    Ok(length)
}
