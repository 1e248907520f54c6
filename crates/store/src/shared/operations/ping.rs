//! Checks that the database accepts reads and writes.

use super::{Backend, Connection};
use crate::failure::Failure;

impl Backend {
    /// After the database was read-only, this checks again on new connections,
    /// so that after a successful answer nobody gets an old connection.
    pub(crate) async fn read_and_write(&self) -> Result<(), Failure> {
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

/// Touches no row, so it costs neither a lock nor a flush; a read-only database
/// refuses it all the same.
async fn write(connection: &mut Connection, (): ()) -> Result<(), Failure> {
    sqlx::query("UPDATE schema_migrations SET name = name WHERE version < 0")
        .execute(connection)
        .await?;
    Ok(())
}
