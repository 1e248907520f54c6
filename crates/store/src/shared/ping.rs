//! Whether the database can be used: read from, and written to.

use super::Backend;
use crate::failure::Failure;
use crate::patience;

/// After a time of read-only the answer is that of new connections: nobody who
/// was told that all is well meets one that is left of it.
pub(super) async fn ping(backend: &Backend) -> Result<(), Failure> {
    read_and_write(backend).await?;
    if patience::leave_read_only() {
        read_and_write(backend).await?;
    }
    Ok(())
}

/// The write touches no row, so it costs neither a lock nor a flush, and a
/// database that is read-only refuses it all the same.
async fn read_and_write(backend: &Backend) -> Result<(), Failure> {
    let mut reader = backend.reader().await?;
    sqlx::query("SELECT 1").execute(&mut *reader).await?;
    drop(reader);
    let mut writer = backend.writer().await?;
    sqlx::query("UPDATE schema_migrations SET name = name WHERE version < 0")
        .execute(&mut *writer)
        .await?;
    Ok(())
}
