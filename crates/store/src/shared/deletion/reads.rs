//! Reads deletions.
//!
//! Lists go by id after a cursor, which is stable however the set changes
//! meanwhile.

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::{DeletionId, ProjectId};

use super::page::{after, fetch_one, fetch_page};
use super::{Connection, hydrate};
use crate::failure::Failure;

/// The columns of a deletion, with FROM and its table.
macro_rules! select_deletions {
    () => {
        select_deletions!("deletions")
    };
    ($from:literal) => {
        concat!(
            "SELECT id AS d_id, kind AS d_kind, target_id AS d_target_id, state AS d_state, \
             requested_by AS d_requested_by, reason AS d_reason, members AS d_members, \
             revision AS d_revision, requested_at AS d_requested_at, done_at AS d_done_at, \
             restorable_until AS d_restorable_until FROM ",
            $from,
            " "
        )
    };
}
pub(crate) use select_deletions;

pub(crate) const ALL: &str = concat!(select_deletions!(), "WHERE id > $1 ORDER BY id LIMIT $2");

/// Ids are unique over all kinds, so the kind need not be compared. The
/// project's own rows are selected first and ordered afterwards: otherwise the
/// plan walks the deletions of all projects in that order.
pub(crate) const OWN: &str = concat!(
    "WITH own AS MATERIALIZED (SELECT * FROM deletions WHERE target_id ",
    one_of!(
        "SELECT p.id FROM projects p WHERE p.id = $1 \
         UNION ALL SELECT r.id FROM resources r WHERE r.project_id = $1 \
         UNION ALL SELECT a.id FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id WHERE r.project_id = $1"
    ),
    ") ",
    select_deletions!("own"),
    "WHERE id > $2 ORDER BY id LIMIT $3"
);

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<Option<Deletion>, Failure> {
    let query = sqlx::query(concat!(select_deletions!(), "WHERE id = $1")).bind(id.as_uuid());
    fetch_one(connection, query, "d_id", hydrate::deletion).await
}

pub(crate) async fn list(
    connection: &mut Connection,
    page: Page<DeletionId>,
) -> Result<Listed<Deletion>, Failure> {
    let query = sqlx::query(ALL).bind(after(page)).bind(i64::from(page.limit));
    fetch_page(connection, query, (DeletionId::KIND, "d_id"), page, hydrate::deletion).await
}

pub(crate) async fn list_in(
    connection: &mut Connection,
    (project, page): (ProjectId, Page<DeletionId>),
) -> Result<Listed<Deletion>, Failure> {
    let query =
        sqlx::query(OWN).bind(project.as_uuid()).bind(after(page)).bind(i64::from(page.limit));
    fetch_page(connection, query, (DeletionId::KIND, "d_id"), page, hydrate::deletion).await
}
