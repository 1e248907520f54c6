//! Reads what was made for the target of a deletion, by pages of resources. Each page is a
//! few statements over the whole set.

use slipway_app::deletion::port::{ReportPage, ReportScope};
use slipway_app::ports::store::Page;
use slipway_core::Timestamp;
use slipway_core::deletion::report::{Made, MadeAttempt, MadeNamespace, MadeNode, MadeToken};
use slipway_core::ids::{ProjectId, ResourceId};
use slipway_core::nodes::node::DeregisteredHow;
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{after, hydrate, now};
use super::{Connection, Row, leak_rows, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

/// A line, and where it belongs: its resource, its kind, its id.
type Placed = ((Uuid, u8, Uuid), Made);

/// A page of resources with all that was made for each, in the order of their ids.
pub(crate) async fn page(
    connection: &mut Connection,
    (scope, page): (ReportScope, Page<ResourceId>),
) -> Result<ReportPage, Failure> {
    let (resources, attempt) = match scope {
        ReportScope::Project(project) => {
            let found = sqlx::query(
                "SELECT id FROM resources WHERE project_id = $1 AND id > $2 ORDER BY id LIMIT $3",
            )
            .bind(project.as_uuid())
            .bind(after(page))
            .bind(i64::from(page.limit))
            .fetch_all(&mut *connection)
            .await?;
            let ids = found.iter().map(|row| row.try_get::<Uuid, _>("id"));
            (ids.collect::<Result<Vec<_>, _>>()?, None)
        }
        _ if page.after.is_some() => (Vec::new(), None),
        ReportScope::Resource(resource) => (vec![resource.as_uuid()], None),
        ReportScope::Attempt(attempt) => {
            let found = sqlx::query("SELECT resource_id FROM provisioned_resources WHERE id = $1")
                .bind(attempt.as_uuid())
                .fetch_optional(&mut *connection)
                .await?;
            let resource = found.map(|row| row.try_get("resource_id")).transpose()?;
            (resource.into_iter().collect(), Some(attempt.as_uuid()))
        }
    };
    let full = resources.len() >= page.limit as usize;
    let next = resources.last().filter(|_| full).copied().map(ResourceId::new);
    let mut placed = Vec::new();
    let ids = IdList(resources);
    let now = now(connection).await?;
    attempts(connection, &ids, &mut placed).await?;
    nodes(connection, &ids, &mut placed).await?;
    tokens(connection, &ids, now, &mut placed).await?;
    leaks(connection, &ids, &mut placed).await?;
    if let Some(attempt) = attempt {
        placed.retain(|((_, _, id), made)| *id == attempt || belongs(made, attempt));
    }
    placed.sort_by_key(|(key, _)| *key);
    let made = placed.into_iter().map(|(_, made)| made).collect();
    Ok(ReportPage { made, next })
}

/// Whether it belongs to this attempt and to no other of its resource.
fn belongs(made: &Made, attempt: Uuid) -> bool {
    matches!(made, Made::Leak { leak, .. } if leak.subject.id == attempt)
}

async fn attempts(
    connection: &mut Connection,
    resources: &IdList,
    placed: &mut Vec<Placed>,
) -> Result<(), Failure> {
    let found = sqlx::query(sql!(
        "SELECT a.id, a.resource_id, r.handle, a.attempt, a.xr_name, a.status, a.phase_since, \
         a.created_at, a.absence_proven_at, a.abandoned_at, a.kept_outside, c.name AS cluster, \
         CASE WHEN a.abandoned_at IS NOT NULL THEN (SELECT e.actor FROM audit_entries e \
            WHERE e.subject_kind = 'resource' AND e.subject_id = a.resource_id \
            AND e.verb = 'resource.abandon' ORDER BY e.id DESC LIMIT 1) END AS abandoned_by, \
         CASE WHEN a.abandoned_at IS NOT NULL THEN (SELECT e.reason FROM audit_entries e \
            WHERE e.subject_kind = 'resource' AND e.subject_id = a.resource_id \
            AND e.verb = 'resource.abandon' ORDER BY e.id DESC LIMIT 1) END AS abandoned_reason \
         FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
         LEFT JOIN clusters c ON c.id = a.partition WHERE a.resource_id ",
        (one_of "$1")
    ))
    .bind(resources.clone())
    .fetch_all(connection)
    .await?;
    for row in &found {
        placed.push(read(row, 0, |row| {
            Ok(Made::Attempt(MadeAttempt {
                id: rows::get(row, "id")?,
                resource: rows::get(row, "handle")?,
                number: rows::get(row, "attempt")?,
                composite: rows::get(row, "xr_name")?,
                cluster: rows::get(row, "cluster")?,
                phase: rows::get(row, "status")?,
                phase_since: rows::time(row, "phase_since")?,
                made_at: rows::time(row, "created_at")?,
                absence_proven_at: rows::time_or_null(row, "absence_proven_at")?,
                abandoned_at: rows::time_or_null(row, "abandoned_at")?,
                abandoned_by: rows::get(row, "abandoned_by")?,
                abandoned_reason: rows::get(row, "abandoned_reason")?,
                kept: rows::json_or_null(row, "kept_outside")?.unwrap_or_default(),
            }))
        })?);
    }
    Ok(())
}

async fn nodes(
    connection: &mut Connection,
    resources: &IdList,
    placed: &mut Vec<Placed>,
) -> Result<(), Failure> {
    let found = sqlx::query(sql!(
        "SELECT n.id, n.resource_id, r.handle, n.hostname, n.registered_at, n.deregistered_at, \
         n.deregistered_how, n.deregistered_by, \
         CASE WHEN n.key_hash IS NULL THEN 1 ELSE 0 END AS revoked \
         FROM nodes n JOIN resources r ON r.id = n.resource_id WHERE n.resource_id ",
        (one_of "$1")
    ))
    .bind(resources.clone())
    .fetch_all(connection)
    .await?;
    for row in &found {
        placed.push(read(row, 1, |row| {
            let how: Option<String> = rows::get(row, "deregistered_how")?;
            Ok(Made::Node(MadeNode {
                id: rows::get(row, "id")?,
                resource: rows::get(row, "handle")?,
                hostname: rows::get(row, "hostname")?,
                registered_at: rows::time(row, "registered_at")?,
                deregistered_at: rows::time_or_null(row, "deregistered_at")?,
                how: how.as_deref().and_then(DeregisteredHow::parse),
                by: rows::get(row, "deregistered_by")?,
                key_revoked: rows::get::<i32>(row, "revoked")? == 1,
            }))
        })?);
    }
    Ok(())
}

async fn tokens(
    connection: &mut Connection,
    resources: &IdList,
    now: Timestamp,
    placed: &mut Vec<Placed>,
) -> Result<(), Failure> {
    let found = sqlx::query(sql!(
        "SELECT t.id, a.resource_id, r.handle, t.issued_at, t.expires_at, t.consumed_at, \
         t.revoked_at FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
         JOIN bootstrap_tokens t ON t.provisioned_resource_id = a.id WHERE a.resource_id ",
        (one_of "$1")
    ))
    .bind(resources.clone())
    .fetch_all(connection)
    .await?;
    for row in &found {
        placed.push(read(row, 2, |row| {
            Ok(Made::Token(MadeToken {
                id: rows::get(row, "id")?,
                resource: rows::get(row, "handle")?,
                now,
                issued_at: rows::time(row, "issued_at")?,
                expires_at: rows::time(row, "expires_at")?,
                consumed_at: rows::time_or_null(row, "consumed_at")?,
                revoked_at: rows::time_or_null(row, "revoked_at")?,
            }))
        })?);
    }
    Ok(())
}

async fn leaks(
    connection: &mut Connection,
    resources: &IdList,
    placed: &mut Vec<Placed>,
) -> Result<(), Failure> {
    let found = sqlx::query(sql!(
        "SELECT l.*, a.resource_id, r.handle FROM provisioned_resources a \
         JOIN resources r ON r.id = a.resource_id JOIN leak_records l ON l.subject_id = a.id \
         AND l.subject_kind = 'provisioned_resource' WHERE a.resource_id ",
        (one_of "$1")
    ))
    .bind(resources.clone())
    .fetch_all(connection)
    .await?;
    for row in &found {
        let leak = Box::new(leak_rows::read(row)?);
        let resource = Some(row.try_get("handle")?);
        let key = (row.try_get("resource_id")?, 3, leak.id.as_uuid());
        placed.push((key, Made::Leak { resource, leak }));
    }
    Ok(())
}

/// The namespace of a project, and the leaks that name the project.
pub(crate) async fn placement(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<Vec<Made>, Failure> {
    let found = sqlx::query(
        "SELECT s.project_id AS id, s.namespace, s.namespace_phase, s.created_at, s.updated_at, \
         c.name, c.engine FROM cluster_assignments s JOIN clusters c ON c.id = s.cluster_id \
         WHERE s.project_id = $1",
    )
    .bind(project.as_uuid())
    .fetch_optional(&mut *connection)
    .await?;
    let namespace = found.map(|row| {
        hydrate(&row, "id", |row| {
            Ok(Made::Namespace(MadeNamespace {
                id: rows::get(row, "id")?,
                name: rows::get(row, "namespace")?,
                cluster: rows::get(row, "name")?,
                outside: rows::get::<String>(row, "engine")? == "crossplane",
                phase: rows::get(row, "namespace_phase")?,
                made_at: rows::time(row, "created_at")?,
                updated_at: rows::time(row, "updated_at")?,
            }))
        })
    });
    let mut made: Vec<_> = namespace.transpose()?.into_iter().collect();
    let leaks = sqlx::query(
        "SELECT * FROM leak_records WHERE subject_kind = 'project' AND subject_id = $1 ORDER BY id",
    )
    .bind(project.as_uuid())
    .fetch_all(connection)
    .await?;
    for row in &leaks {
        made.push(Made::Leak { resource: None, leak: Box::new(leak_rows::read(row)?) });
    }
    Ok(made)
}

fn read(
    row: &Row,
    kind: u8,
    read: impl FnOnce(&Row) -> Result<Made, Fault>,
) -> Result<Placed, Failure> {
    let key = (row.try_get("resource_id")?, kind, row.try_get("id")?);
    Ok((key, hydrate(row, "id", read)?))
}
