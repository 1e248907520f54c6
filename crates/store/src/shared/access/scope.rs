//! The project that something belongs to, and lists for one project.

use slipway_app::access::port::Owned;
use slipway_app::events::port::PositionedEvent;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::deletion::record::Deletion;
use slipway_core::events::positions::Span;
use slipway_core::ids::{DeletionId, NodeId, ProjectId, ProvisionedResourceId, ResourceId};
use slipway_core::nodes::node::Node;
use sqlx::Row as _;
use uuid::Uuid;

use super::events::outbox;
use super::page::{after, fetch_page};
use super::{Connection, deletion, nodes};
use crate::failure::Failure;

/// Ids are unique over all kinds, so the kind need not be compared. The
/// project's own rows are selected first and ordered afterwards: otherwise the
/// plan walks the deletions of all projects in that order.
pub(crate) const DELETIONS: &str = concat!(
    "WITH own AS MATERIALIZED (SELECT * FROM deletions WHERE target_id ",
    one_of!(
        "SELECT p.id FROM projects p WHERE p.id = $1 \
         UNION ALL SELECT r.id FROM resources r WHERE r.project_id = $1 \
         UNION ALL SELECT a.id FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id WHERE r.project_id = $1"
    ),
    ") ",
    deletion_columns!("own"),
    "WHERE id > $2 ORDER BY id LIMIT $3"
);

/// Compared and ordered as pairs, because only the index of pairs has this
/// order: by the position alone the plan walks the events of all projects. The
/// rows after the project's own belong to the next project and are filtered out. An
/// event without a project compares as null and is never among them.
pub(crate) const EVENTS: &str = concat!(
    positioned_events!(
        "(SELECT * FROM event_positions WHERE (project_id, position) > ($2, $1) \
         ORDER BY project_id, position LIMIT $3)"
    ),
    "WHERE p.project_id = $2 ORDER BY p.position"
);

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

pub(crate) async fn nodes(
    connection: &mut Connection,
    (project, page): (ProjectId, Page<NodeId>),
) -> Result<Listed<Node>, Failure> {
    let query = sqlx::query(concat!(
        "SELECT ",
        node_columns!(),
        " FROM nodes WHERE project_id = $1 AND id > $2 ORDER BY id LIMIT $3"
    ))
    .bind(project.as_uuid())
    .bind(after(page))
    .bind(i64::from(page.limit));
    fetch_page(connection, query, (NodeId::KIND, "id"), page, nodes::hydrate::node).await
}

pub(crate) async fn deletions(
    connection: &mut Connection,
    (project, page): (ProjectId, Page<DeletionId>),
) -> Result<Listed<Deletion>, Failure> {
    let query = sqlx::query(DELETIONS)
        .bind(project.as_uuid())
        .bind(after(page))
        .bind(i64::from(page.limit));
    fetch_page(connection, query, (DeletionId::KIND, "d_id"), page, deletion::hydrate::deletion)
        .await
}

pub(crate) async fn events(
    connection: &mut Connection,
    (project, page): (ProjectId, Page<i64>),
) -> Result<Vec<PositionedEvent>, Failure> {
    let found = sqlx::query(EVENTS)
        .bind(page.after.unwrap_or(0))
        .bind(project.as_uuid())
        .bind(i64::from(page.limit))
        .fetch_all(&mut *connection)
        .await?;
    Ok(found.iter().map(outbox::event).collect::<Result<_, _>>()?)
}

pub(crate) async fn event_span(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<Span, Failure> {
    let row = sqlx::query(
        "SELECT pruned_position, last_position, coalesce(\
         (SELECT position FROM event_prunes WHERE project_id = $1), 0) AS own FROM outbox_head",
    )
    .bind(project.as_uuid())
    .fetch_one(&mut *connection)
    .await?;
    Ok(outbox::span(&row)?.of_project(row.try_get("own")?))
}
