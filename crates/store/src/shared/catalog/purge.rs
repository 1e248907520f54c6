//! Removes rows of the catalog that are purged.

use slipway_core::subject::SubjectKind;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;

/// The row of this id with what is part of it; nothing refers to it any more.
pub(crate) async fn row(
    connection: &mut Connection,
    kind: SubjectKind,
    id: Uuid,
) -> Result<u64, Failure> {
    let statements: &[&'static str] = match kind {
        SubjectKind::Project => &[
            "DELETE FROM credential_assignments WHERE project_id = $1",
            "DELETE FROM projects WHERE id = $1 AND deleted_at IS NOT NULL",
        ],
        SubjectKind::Cloud => &["DELETE FROM clouds WHERE id = $1 AND deleted_at IS NOT NULL"],
        SubjectKind::Credential => {
            &["DELETE FROM cloud_credentials WHERE id = $1 AND deleted_at IS NOT NULL"]
        }
        SubjectKind::Blueprint => &[
            "DELETE FROM blueprint_versions WHERE blueprint_id = $1",
            "DELETE FROM blueprints WHERE id = $1 AND deleted_at IS NOT NULL",
        ],
        SubjectKind::Label => {
            &["DELETE FROM label_definitions WHERE id = $1 AND deleted_at IS NOT NULL"]
        }
        _ => &[],
    };
    let mut removed = 0;
    for statement in statements {
        let query = sqlx::query(*statement).bind(id);
        removed += query.execute(&mut *connection).await?.rows_affected();
    }
    Ok(removed)
}
