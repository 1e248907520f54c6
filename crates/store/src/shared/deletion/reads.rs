//! Reads deletions.

use std::time::Duration;

use slipway_app::ports::store::Page;
use slipway_core::Timestamp;
use slipway_core::blocker::Blocker;
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::DeletionId;
use slipway_durable::database::End;
use sqlx::Row as _;

use super::page::{Query, after, fetch_one, fetch_page};
use super::{Connection, blockers, hydrate};
use crate::failure::Failure;
use crate::micros::Micros;

/// The columns of a deletion, with FROM and its table.
macro_rules! select_deletions {
    () => {
        select_deletions!("deletions")
    };
    ($from:literal) => {
        concat!(
            "SELECT id AS d_id, kind AS d_kind, target_id AS d_target_id, state AS d_state, \
             requested_by AS d_requested_by, reason AS d_reason, name AS d_name, \
             project_id AS d_project_id, parent_id AS d_parent_id, cascade AS d_cascade, \
             resources AS d_resources, keep AS d_keep, stacks AS d_stacks, \
             erases AS d_erases, revision AS d_revision, \
             requested_at AS d_requested_at, scheduled_for AS d_scheduled_for, \
             done_at AS d_done_at, retention AS d_retention, \
             restorable_until AS d_restorable_until, purge_protected AS d_purge_protected, \
             ended_at AS d_ended_at FROM ",
            $from,
            " "
        )
    };
}
pub(crate) use select_deletions;

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<Option<Deletion>, Failure> {
    let query = sqlx::query(concat!(select_deletions!(), "WHERE id = $1")).bind(id.as_uuid());
    fetch_one(connection, query, "d_id", hydrate::deletion).await
}

/// Scheduled ones whose time has come, or whose parent runs.
pub(crate) async fn due(
    connection: &mut Connection,
    page: Page<DeletionId>,
) -> Result<Vec<Deletion>, Failure> {
    let query = sqlx::query(concat!(
        select_deletions!(),
        "WHERE id IN (SELECT id FROM deletions WHERE state = 'scheduled' AND scheduled_for <= ",
        sql!(now),
        " UNION SELECT c.id FROM deletions p JOIN deletions c ON c.parent_id = p.id \
         WHERE p.state = 'running' AND p.kind = 'project' AND c.state = 'scheduled') \
         AND id > $1 ORDER BY id LIMIT $2"
    ))
    .bind(after(page))
    .bind(i64::from(page.limit));
    some(connection, query, page).await
}

/// Running ones of containers.
pub(crate) async fn containers(
    connection: &mut Connection,
    page: Page<DeletionId>,
) -> Result<Vec<Deletion>, Failure> {
    let query = sqlx::query(concat!(
        select_deletions!(),
        "WHERE state = 'running' AND kind IN ('project', 'tenant', 'workspace') AND id > $1 ORDER BY id LIMIT $2"
    ))
    .bind(after(page))
    .bind(i64::from(page.limit));
    some(connection, query, page).await
}

/// The readable ones; the log names the others.
async fn some(
    connection: &mut Connection,
    query: Query<'_>,
    page: Page<DeletionId>,
) -> Result<Vec<Deletion>, Failure> {
    let key = (DeletionId::KIND, "d_id");
    Ok(fetch_page(connection, query, key, page, hydrate::deletion).await?.items)
}

/// How long until the next scheduled one is due.
pub(crate) async fn next_due(
    connection: &mut Connection,
    (): (),
) -> Result<Option<Duration>, Failure> {
    let row = sqlx::query(sql!(
        "SELECT scheduled_for, ",
        now,
        " AS now FROM deletions WHERE state = 'scheduled' ORDER BY scheduled_for LIMIT 1"
    ))
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let time: Timestamp = row.try_get::<Micros, _>("scheduled_for")?.into();
    let now: Timestamp = row.try_get::<Micros, _>("now")?.into();
    Ok(Some(time.since(now)))
}

pub(crate) async fn blockers_of(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<Vec<Blocker>, Failure> {
    blockers::of_subject(connection, id.into()).await
}

pub(crate) async fn block(
    connection: &mut Connection,
    (id, blockers): (DeletionId, &[Blocker]),
) -> Result<End<()>, Failure> {
    blockers::replace(connection, &[(id.into(), blockers)]).await?;
    Ok(End::Commit(()))
}
