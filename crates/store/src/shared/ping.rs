//! Whether the database can be used: read from, and written to.

use super::{Backend, Connection};
use crate::failure::Failure;

impl Backend {
    /// After a time of read-only the answer is that of new connections: nobody
    /// who was told that all is well meets one that is left of it.
    pub(super) async fn read_and_write(&self) -> Result<(), Failure> {
        loop {
            self.database.read((), read).await?;
            self.database.statement((), write).await?;
            if !self.database.leave_read_only() {
                return Ok(());
            }
        }
    }
}

async fn read(connection: &mut Connection, (): ()) -> Result<(), Failure> {
    sqlx::query("SELECT 1").execute(connection).await?;
    Ok(())
}

/// Touches no row, so it costs neither a lock nor a flush, and a database that
/// is read-only refuses it all the same.
async fn write(connection: &mut Connection, (): ()) -> Result<(), Failure> {
    sqlx::query("UPDATE schema_migrations SET name = name WHERE version < 0")
        .execute(connection)
        .await?;
    Ok(())
}
