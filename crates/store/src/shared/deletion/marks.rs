//! The marks that deletions leave on rows. Each room has the statements for its tables;
//! another kind of deletable thing adds a line to [`ALL`].

use slipway_app::deletion::port as app;
use slipway_core::deletion::write::{Mark, Members};
use slipway_core::ids::DeletionId;
use slipway_core::subject::{Subject, SubjectKind};

use super::broker::marks as resources;
use super::catalog::{blueprint, cloud, credential, label, project};
use super::fleet::{agent, generator, stack, template};
use super::nodes::mesh;
use super::placement::cluster;
use super::table::Marks;
use super::tenants::{profile, tenant};
use super::topology::workspace;
use super::{Connection, writes};
use crate::failure::Failure;

/// In the order in which rows refer to each other: what contains something comes first.
const ALL: [(SubjectKind, Marks); 14] = [
    (SubjectKind::Project, project::MARKS),
    (SubjectKind::Cloud, cloud::MARKS),
    (SubjectKind::Credential, credential::MARKS),
    (SubjectKind::Cluster, cluster::MARKS),
    (SubjectKind::Blueprint, blueprint::MARKS),
    (SubjectKind::Label, label::MARKS),
    (SubjectKind::Resource, resources::MARKS),
    (SubjectKind::Agent, agent::MARKS),
    (SubjectKind::Generator, generator::MARKS),
    (SubjectKind::Stack, stack::MARKS),
    (SubjectKind::Template, template::MARKS),
    (SubjectKind::TenantProfile, profile::MARKS),
    (SubjectKind::Tenant, tenant::MARKS),
    (SubjectKind::Workspace, workspace::MARKS),
];

/// The statements for a kind and for what can carry the same deletion: what may be in it.
pub(crate) fn with_members(kind: SubjectKind) -> impl Iterator<Item = Marks> {
    let members: &[Marks] = match kind {
        SubjectKind::Project => {
            &[resources::MARKS, agent::MARKS, generator::MARKS, stack::MARKS, template::MARKS]
        }
        SubjectKind::Generator => &[stack::MARKS, template::MARKS],
        _ => &[],
    };
    of(kind).into_iter().chain(members.iter().copied())
}

/// The statements for a kind; none for an attempt, which has no mark of its own.
pub(crate) fn of(kind: SubjectKind) -> Option<Marks> {
    ALL.into_iter().find(|(one, _)| *one == kind).map(|(_, marks)| marks)
}

pub(crate) async fn mark(connection: &mut Connection, mark: &Mark) -> Result<(), Failure> {
    let Subject { kind, id } = mark.subject;
    let Some(marks) = of(kind) else { return Err(Failure::NotFound { kind: kind.as_str() }) };
    match kind {
        SubjectKind::Project if mark.deleted_at.is_some() => mesh::clear(connection, id).await?,
        SubjectKind::Cluster if mark.deleted_at.is_some() => {
            cluster::forget_definitions(connection, id).await?;
        }
        _ => {}
    }
    marks.mark(connection, mark, || writes::stale(kind.as_str(), id, mark.revision)).await
}

/// Marks the resources that no deletion has marked, and takes over the scheduled ones of
/// those that one has.
pub(crate) async fn members(connection: &mut Connection, members: &Members) -> Result<(), Failure> {
    let Members { project, deletion_id } = *members;
    resources::mark_all(connection, project, deletion_id).await?;
    sqlx::query(
        "UPDATE deletions SET parent_id = $2, revision = revision + 1 \
         WHERE project_id = $1 AND kind = 'resource' AND state = 'scheduled'",
    )
    .bind(project.as_uuid())
    .bind(deletion_id.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn unmark(
    connection: &mut Connection,
    id: DeletionId,
    kind: SubjectKind,
) -> Result<(), Failure> {
    for marks in with_members(kind) {
        sqlx::query(marks.unmark).bind(id.as_uuid()).execute(&mut *connection).await?;
    }
    sqlx::query(
        "UPDATE deletions SET parent_id = NULL, revision = revision + 1 WHERE parent_id = $1",
    )
    .bind(id.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}

/// The rows that carry the id of a deletion.
pub(crate) async fn members_of(
    connection: &mut Connection,
    (id, limit): (DeletionId, u32),
) -> Result<app::Members, Failure> {
    let mut members = app::Members::default();
    for (kind, marks) in ALL {
        let left = i64::from(limit) - i64::try_from(members.shown.len()).unwrap_or(i64::MAX);
        let (found, count) = marks.members(connection, id, left.max(0)).await?;
        members.count += count;
        members.shown.extend(
            found.into_iter().map(|(id, name)| app::Member { subject: Subject { kind, id }, name }),
        );
    }
    Ok(members)
}
