//! Removes the rows of nodes when what they belong to is purged.

use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;
use crate::id_list::IdList;

/// Nodes, tokens and machines of these attempts, in the order of their references. None of
/// the nodes is registered, so no address names one.
pub(crate) async fn of_attempts(
    connection: &mut Connection,
    attempts: &IdList,
) -> Result<u64, Failure> {
    const STATEMENTS: [&str; 3] = [
        sql!("DELETE FROM nodes WHERE provisioned_resource_id ", (one_of "$1")),
        sql!("DELETE FROM bootstrap_tokens WHERE provisioned_resource_id ", (one_of "$1")),
        sql!("DELETE FROM manual_machines WHERE provisioned_resource_id ", (one_of "$1")),
    ];
    let mut removed = 0;
    for statement in STATEMENTS {
        let query = sqlx::query(statement).bind(attempts.clone());
        removed += query.execute(&mut *connection).await?.rows_affected();
    }
    Ok(removed)
}

/// Addresses of a project in which nobody lives.
pub(crate) async fn of_project(
    connection: &mut Connection,
    (project, limit): (Uuid, u32),
) -> Result<u64, Failure> {
    let removed = sqlx::query(
        "DELETE FROM mesh_addresses WHERE project_id = $1 AND host IN (\
         SELECT host FROM mesh_addresses WHERE project_id = $1 ORDER BY host LIMIT $2)",
    )
    .bind(project)
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(removed.rows_affected())
}
