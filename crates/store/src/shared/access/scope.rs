//! The project that something belongs to.

use slipway_app::access::port::Owned;
use slipway_core::ids::{ProjectId, ProvisionedResourceId, ResourceId};
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;

pub(crate) async fn project_of(
    connection: &mut Connection,
    owned: Owned,
) -> Result<Option<ProjectId>, Failure> {
    let query = match owned {
        Owned::Resource(id) => {
            sqlx::query("SELECT project_id FROM resources WHERE id = $1").bind(id.as_uuid())
        }
        Owned::Node(id) => {
            sqlx::query("SELECT project_id FROM nodes WHERE id = $1").bind(id.as_uuid())
        }
        Owned::Token(id) => {
            sqlx::query("SELECT project_id FROM bootstrap_tokens WHERE id = $1").bind(id.as_uuid())
        }
        Owned::Deletion(id) => sqlx::query(
            "SELECT CASE WHEN d.kind = $2 THEN d.target_id WHEN d.kind = $3 THEN \
             (SELECT r.project_id FROM resources r WHERE r.id = d.target_id) WHEN d.kind = $4 THEN \
             (SELECT a.project_id FROM provisioned_resources a WHERE a.id = d.target_id) END \
             AS project_id FROM deletions d WHERE d.id = $1",
        )
        .bind(id.as_uuid())
        .bind(ProjectId::KIND)
        .bind(ResourceId::KIND)
        .bind(ProvisionedResourceId::KIND),
    };
    let row = query.fetch_optional(&mut *connection).await?;
    let project = match row {
        Some(row) => row.try_get::<Option<Uuid>, _>("project_id")?,
        None => None,
    };
    Ok(project.map(ProjectId::new))
}
