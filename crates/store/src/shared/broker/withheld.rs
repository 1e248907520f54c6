//! The actions that the mode withholds, and how many attempts are yet to be checked.

use slipway_app::operations::port::WithheldAction;
use slipway_app::ports::store::Page;
use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::ids::{ProvisionedResourceId, ResourceId};
use sqlx::Row as _;

use super::Connection;
use super::page::after;
use crate::failure::Failure;
use crate::micros::Micros;

pub(crate) async fn list(
    connection: &mut Connection,
    page: Page<ProvisionedResourceId>,
) -> Result<Vec<WithheldAction>, Failure> {
    // One line per attempt: a withheld action is more informative than "unreadable".
    let found = sqlx::query(sql!(
        "SELECT a.id, a.resource_id, p.name AS project, r.handle, a.status, b.code, b.since, \
         b.message, b.evidence ->> 'action' AS action FROM blockers b \
         JOIN provisioned_resources a ON a.id = b.subject_id \
         JOIN resources r ON r.id = a.resource_id JOIN projects p ON p.id = a.project_id \
         WHERE b.subject_kind = $1 AND b.subject_id > $2 AND (b.code IN ($3, $4) OR (b.code = $5 \
         AND NOT EXISTS (SELECT 1 FROM blockers o WHERE o.subject_kind = b.subject_kind \
         AND o.subject_id = b.subject_id AND o.code IN ($3, $4)))) ORDER BY a.id LIMIT $6"
    ))
    .bind(ProvisionedResourceId::KIND)
    .bind(after(page))
    .bind(BlockerCode::Frozen.as_str())
    .bind(BlockerCode::ObserveOnly.as_str())
    .bind(BlockerCode::SubstrateUnknown.as_str())
    .bind(i64::from(page.limit))
    .fetch_all(&mut *connection)
    .await?;
    found
        .iter()
        .map(|row| {
            Ok(WithheldAction {
                provisioned_resource_id: ProvisionedResourceId::new(row.try_get("id")?),
                resource_id: ResourceId::new(row.try_get("resource_id")?),
                project: row.try_get("project")?,
                handle: row.try_get("handle")?,
                phase: row.try_get("status")?,
                action: row.try_get("action")?,
                since: row.try_get::<Micros, _>("since")?.into(),
                message: row.try_get("message")?,
            })
        })
        .collect()
}

pub(crate) async fn unchecked(connection: &mut Connection, (): ()) -> Result<u64, Failure> {
    let row = sqlx::query(sql!(
        "SELECT count(*) AS open FROM provisioned_resources WHERE status NOT IN ($1, $2) \
         AND due_at IS NOT NULL AND (lease_until > ",
        now,
        " OR due_at <= ",
        now,
        ")"
    ))
    .bind(Phase::Failed.as_str())
    .bind(Phase::Deleted.as_str())
    .fetch_one(&mut *connection)
    .await?;
    Ok(u64::try_from(row.try_get::<i64, _>("open")?).unwrap_or(0))
}
