//! Whether the database can be used: read from, and written to.

use super::Backend;
use crate::failure::Failure;

/// The write touches no row, so it costs neither a lock nor a flush, and a
/// database that is read-only refuses it all the same.
pub(super) async fn ping(backend: &Backend) -> Result<(), Failure> {
    let mut reader = backend.reader().await?;
    sqlx::query("SELECT 1").execute(&mut *reader).await?;
    drop(reader);
    let mut writer = backend.writer().await?;
    sqlx::query("UPDATE schema_migrations SET name = name WHERE version < 0")
        .execute(&mut *writer)
        .await?;
    Ok(())
}
