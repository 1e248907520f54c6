//! Inspects a file that another process may have open.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::Access;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::Connection;
use super::shared::schema;
use crate::config::OpenError;
use crate::inspect::{Inspection, Setting};
use crate::private_files::beside;

pub(crate) const HAS_SCHEMA: &str = "SELECT count(*) > 0 AS there FROM sqlite_schema \
     WHERE type = 'table' AND name = 'schema_migrations'";

/// A control plane writes for milliseconds at a time, so this is ample.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn inspect(file: &Path) -> Result<Inspection, OpenError> {
    let mut connection = open(file).await.map_err(OpenError::Sqlite)?;
    let seen = read_inspection(&mut connection, file).await.map_err(OpenError::Sqlite);
    // The connection wrote nothing, so an error of closing it loses nothing.
    let _ = connection.close().await;
    seen
}

/// Opens the file read-only and unchanged: the last process to close a file
/// that it opened for writing checkpoints the log into it, and that is a write.
/// If there is no log, no process has the file open, and `immutable` then
/// creates no log files beside it either. A control plane that starts in this
/// very moment may be misread, once.
async fn open(file: &Path) -> Result<Connection, sqlx::Error> {
    let idle = !["-wal", "-journal"].iter().any(|end| beside(file, end).exists());
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(false);
    options.read_only(true).immutable(idle).busy_timeout(TIMEOUT).connect().await
}

async fn read_inspection(
    connection: &mut Connection,
    file: &Path,
) -> Result<Inspection, sqlx::Error> {
    let row = sqlx::query("SELECT sqlite_version() AS version").fetch_one(&mut *connection).await?;
    let version: String = row.try_get("version")?;
    let schema = schema::read_inspection(connection).await?;
    let durability = vec![
        // In either mode an acknowledged commit is on the disk, so neither is unsafe;
        // a start switches to `wal`, which lets readers run beside the writer.
        Setting { name: "journal_mode", unsafe_value: false, value: journal(file)?.to_owned() },
        // Each of our connections sets it; it is no property of the file.
        Setting { name: "synchronous", value: "full".to_owned(), unsafe_value: false },
    ];
    let now = schema::now(connection).await?;
    let unwritable = unwritable(file);
    Ok(Inspection { version: format!("SQLite {version}"), schema, unwritable, durability, now })
}

/// Reads the header of the file: a read-only connection may answer `delete` for
/// any file. Byte 18 is the write format, and 2 means WAL.
fn journal(file: &Path) -> Result<&'static str, std::io::Error> {
    let mut header = [0; 19];
    std::fs::File::open(file)?.read_exact(&mut header)?;
    Ok(if header[18] == 2 { "wal" } else { "delete" })
}

/// Asks the file system, since an inspection writes nothing to find out. The
/// folder counts too: the log is created in it.
fn unwritable(file: &Path) -> Option<String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    [Some(file), folder].into_iter().flatten().find_map(|path| {
        let denied = rustix::fs::access(path, Access::WRITE_OK).err()?;
        Some(format!("{}: {denied}", path.display()))
    })
}
