//! Removes rows of the placement that are purged.

use slipway_core::subject::SubjectKind;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;

/// What the placement keeps about this thing, or the cluster that it is.
pub(crate) async fn row(
    connection: &mut Connection,
    kind: SubjectKind,
    id: Uuid,
) -> Result<u64, Failure> {
    let statements: &[&'static str] = match kind {
        SubjectKind::Project => &["DELETE FROM cluster_assignments WHERE project_id = $1"],
        SubjectKind::Blueprint => &["DELETE FROM blueprint_definitions WHERE blueprint_id = $1"],
        SubjectKind::Cluster => &[
            "DELETE FROM blueprint_definitions WHERE cluster_id = $1",
            "DELETE FROM clusters WHERE id = $1 AND deleted_at IS NOT NULL",
        ],
        _ => &[],
    };
    let mut removed = 0;
    for statement in statements {
        let query = sqlx::query(*statement).bind(id);
        removed += query.execute(&mut *connection).await?.rows_affected();
    }
    Ok(removed)
}
