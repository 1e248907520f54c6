//! Purging tenants: first what is on the target, then the rows.

use slipway_core::subject::SubjectKind;
use uuid::Uuid;

use super::Connection;
use super::page::count;
use crate::failure::Failure;

/// Whether something of the tenant is still on its target. Then the task that removes it is
/// due, unless it is under way.
pub(crate) async fn waits(connection: &mut Connection, id: Uuid) -> Result<bool, sqlx::Error> {
    let statement = "SELECT count(*) AS found FROM tenants WHERE id = $1 AND present = 1";
    if count(connection, statement, id).await? == 0 {
        return Ok(false);
    }
    let due = sql!(
        "UPDATE tenants SET purging = 1, failures = 0, due_at = ",
        now,
        " WHERE id = $1 AND purging = 0"
    );
    sqlx::query(due).bind(id).execute(connection).await?;
    Ok(true)
}

/// The row of this id with its jobs; nothing refers to it any more.
pub(crate) async fn row(
    connection: &mut Connection,
    kind: SubjectKind,
    id: Uuid,
) -> Result<u64, Failure> {
    let mut removed = 0;
    let statement = match kind {
        SubjectKind::Tenant => {
            let jobs = sqlx::query("DELETE FROM tenant_jobs WHERE tenant_id = $1");
            let jobs = jobs.bind(id.to_string()).execute(&mut *connection).await?;
            removed += jobs.rows_affected();
            "DELETE FROM tenants WHERE id = $1 AND deleted_at IS NOT NULL"
        }
        SubjectKind::TenantProfile => {
            "DELETE FROM tenant_profiles WHERE id = $1 AND deleted_at IS NOT NULL"
        }
        _ => return Ok(0),
    };
    let query = sqlx::query(statement).bind(id);
    Ok(removed + query.execute(connection).await?.rows_affected())
}
