//! Looking at a file that another process may have open.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::{Connection, schema};
use crate::config::OpenError;
use crate::inspect::{Inspection, Setting};

pub(crate) const HAS_SCHEMA: &str = "SELECT count(*) > 0 AS there FROM sqlite_schema \
     WHERE type = 'table' AND name = 'schema_migrations'";

/// A control plane writes for milliseconds at a time.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn inspect(file: &Path) -> Result<Inspection, OpenError> {
    let mut connection = open(file).await.map_err(OpenError::Sqlite)?;
    let seen = read_inspection(&mut connection, file).await.map_err(OpenError::Sqlite);
    // Nothing is lost with a connection that wrote nothing.
    let _ = connection.close().await;
    seen
}

/// As it is, and for reading: whoever opens it for writing and is the last to
/// close it folds the log into it, and that is a write. Where there is no log
/// nobody has it open, and then not even the files of a log are made beside it.
/// A control plane that starts in this very moment may be misread, once.
async fn open(file: &Path) -> Result<Connection, sqlx::Error> {
    let idle = !["-wal", "-journal"].iter().any(|end| beside(file, end).exists());
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(false);
    options.read_only(true).immutable(idle).busy_timeout(TIMEOUT).connect().await
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

async fn read_inspection(
    connection: &mut Connection,
    file: &Path,
) -> Result<Inspection, sqlx::Error> {
    let row = sqlx::query("SELECT sqlite_version() AS version").fetch_one(&mut *connection).await?;
    let version: String = row.try_get("version")?;
    let schema = schema::read_inspection(connection).await?;
    let durability = vec![
        // With either kind a commit is on the disk when it is answered, so
        // neither is unsafe; a start makes it `wal`, for its readers' sake.
        Setting { name: "journal_mode", unsafe_value: false, value: journal(file)?.to_owned() },
        // Each connection of ours sets it; it is no property of the file.
        Setting { name: "synchronous", value: "full".to_owned(), unsafe_value: false },
    ];
    let now = schema::now(connection).await?;
    let unwritable = unwritable(file);
    Ok(Inspection { version: format!("SQLite {version}"), schema, unwritable, durability, now })
}

/// By the header of the file: a connection that is only to read may say `delete`
/// of any. Byte 18 is the format that is written, and 2 is the log's.
fn journal(file: &Path) -> Result<&'static str, std::io::Error> {
    let mut header = [0; 19];
    std::fs::File::open(file)?.read_exact(&mut header)?;
    Ok(if header[18] == 2 { "wal" } else { "delete" })
}

/// What the file system says, since nothing is written to find out. The folder
/// counts too: the log is made in it.
fn unwritable(file: &Path) -> Option<String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    [Some(file), folder].into_iter().flatten().find_map(|path| {
        let denied = rustix::fs::access(path, Access::WRITE_OK).err()?;
        Some(format!("{}: {denied}", path.display()))
    })
}
