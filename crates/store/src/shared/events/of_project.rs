//! The events of one project, for readers that reach nothing else.

use slipway_app::events::port::PositionedEvent;
use slipway_app::ports::store::Page;
use slipway_core::events::positions::Span;
use slipway_core::ids::ProjectId;
use sqlx::Row as _;

use super::outbox::positioned_events;
use super::{Connection, outbox};
use crate::failure::Failure;

/// Compared and ordered as pairs, because only the index of pairs has this
/// order: by the position alone the plan walks the events of all projects. The
/// rows after the project's own belong to the next project and are filtered out.
pub(crate) const OWN: &str = concat!(
    positioned_events!(
        "(SELECT * FROM event_positions WHERE (project_id, position) > ($2, $1) \
         ORDER BY project_id, position LIMIT $3)"
    ),
    "WHERE p.project_id = $2 ORDER BY p.position"
);

pub(crate) async fn list(
    connection: &mut Connection,
    (project, page): (ProjectId, Page<i64>),
) -> Result<Vec<PositionedEvent>, Failure> {
    let found = sqlx::query(OWN)
        .bind(page.after.unwrap_or(0))
        .bind(project.as_uuid())
        .bind(i64::from(page.limit))
        .fetch_all(&mut *connection)
        .await?;
    Ok(found.iter().map(outbox::event).collect::<Result<_, _>>()?)
}

pub(crate) async fn span(connection: &mut Connection, project: ProjectId) -> Result<Span, Failure> {
    let row = sqlx::query(
        "SELECT pruned_position, last_position, coalesce(\
         (SELECT position FROM event_prunes WHERE project_id = $1), 0) AS own FROM outbox_head",
    )
    .bind(project.as_uuid())
    .fetch_one(&mut *connection)
    .await?;
    Ok(outbox::span(&row)?.of_project(row.try_get("own")?))
}
