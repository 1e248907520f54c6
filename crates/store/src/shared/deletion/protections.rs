//! The table of protections.

use slipway_app::ports::store::Page;
use slipway_core::deletion::protection::{Lifted, Protection, ProtectionSnapshot};
use slipway_core::deletion::record::DeletionState;
use slipway_core::ids::ProjectId;
use slipway_core::subject::{Subject, SubjectKind};
use uuid::Uuid;

use super::catalog::project;
use super::page::{hydrate, now};
use super::row_set::RowSet;
use super::transaction::Load;
use super::{Connection, Row, marks, reads, rows};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select_protections {
    ($condition:literal) => {
        concat!(
            "SELECT subject_kind, subject_id, project_id, name, set_by, reason, set_at, lifted_by, \
             lifted_reason, lifted_until FROM protections WHERE ",
            $condition
        )
    };
}

/// The protections that a deletion of this subject has to honour: its own and, if it is a
/// project or a generator, of everything in it that is not deleted.
pub(crate) async fn of(
    connection: &mut Connection,
    subject: Subject,
) -> Result<Vec<Protection>, Failure> {
    let found = match subject.kind {
        SubjectKind::Project => {
            sqlx::query(select_protections!(
                "project_id = $1 AND NOT EXISTS (SELECT 1 FROM resources r \
                 WHERE r.id = subject_id AND r.deleted_at IS NOT NULL) \
                 AND NOT EXISTS (SELECT 1 FROM generators g \
                 WHERE g.id = subject_id AND g.deleted_at IS NOT NULL) \
                 AND NOT EXISTS (SELECT 1 FROM stacks s \
                 WHERE s.id = subject_id AND s.deleted_at IS NOT NULL) \
                 AND NOT EXISTS (SELECT 1 FROM fleet_templates t \
                 WHERE t.id = subject_id AND t.deleted_at IS NOT NULL) \
                 AND NOT EXISTS (SELECT 1 FROM fleet_agents a \
                 WHERE a.id = subject_id AND a.deleted_at IS NOT NULL) ORDER BY subject_id"
            ))
            .bind(subject.id)
            .fetch_all(connection)
            .await?
        }
        SubjectKind::Generator => {
            sqlx::query(select_protections!(
                "subject_id = $1 OR subject_id IN (SELECT s.id FROM stacks s \
                 WHERE s.generator_id = $1 AND s.deleted_at IS NULL) \
                 OR subject_id IN (SELECT t.id FROM fleet_templates t \
                 WHERE t.generator_id = $1 AND t.deleted_at IS NULL) ORDER BY subject_id"
            ))
            .bind(subject.id)
            .fetch_all(connection)
            .await?
        }
        SubjectKind::Workspace => {
            sqlx::query(select_protections!(
                "subject_id = $1 OR subject_id IN (SELECT r.id FROM resources r \
                 WHERE r.workspace_id = $1 AND r.deleted_at IS NULL) ORDER BY subject_id"
            ))
            .bind(subject.id)
            .fetch_all(connection)
            .await?
        }
        kind => {
            sqlx::query(select_protections!("subject_kind = $2 AND subject_id = $1"))
                .bind(subject.id)
                .bind(kind.as_str())
                .fetch_all(connection)
                .await?
        }
    };
    found.iter().map(|row| hydrate(row, "subject_id", protection)).collect()
}

fn protection(row: &Row) -> Result<Protection, Fault> {
    let lifted_until = rows::time_or_null(row, "lifted_until")?;
    let lifted = match lifted_until {
        Some(until) => Some(Lifted {
            by: rows::get(row, "lifted_by")?,
            reason: rows::get(row, "lifted_reason")?,
            until,
        }),
        None => None,
    };
    Ok(Protection {
        subject: Subject {
            kind: rows::member(row, "subject_kind", SubjectKind::parse)?,
            id: rows::get(row, "subject_id")?,
        },
        project_id: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
        name: rows::get(row, "name")?,
        set_by: rows::get(row, "set_by")?,
        reason: rows::get(row, "reason")?,
        set_at: rows::time(row, "set_at")?,
        lifted,
    })
}

const INSERT: RowSet<Protection> = insert_rows!(plain, "protections", |row: &Protection| {
    subject_id: uuid = row.subject.id,
    subject_kind: text = row.subject.kind,
    project_id: uuid = row.project_id,
    name: text = row.name,
    set_by: text = row.set_by,
    reason: text = row.reason,
    set_at: time = row.set_at,
    lifted_by: text = row.lifted.as_ref().map(|lifted| &lifted.by),
    lifted_reason: text = row.lifted.as_ref().map(|lifted| &lifted.reason),
    lifted_until: time = row.lifted.as_ref().map(|lifted| lifted.until),
});

/// Its subject is locked, so nobody else inserts it meanwhile.
pub(crate) async fn put(connection: &mut Connection, row: &Protection) -> Result<(), Failure> {
    remove(connection, row.subject).await?;
    INSERT.write(connection, &[row]).await
}

pub(crate) async fn remove(connection: &mut Connection, subject: Subject) -> Result<(), Failure> {
    sqlx::query("DELETE FROM protections WHERE subject_kind = $1 AND subject_id = $2")
        .bind(subject.kind.as_str())
        .bind(subject.id)
        .execute(connection)
        .await?;
    Ok(())
}

/// Its subject got another name.
pub(crate) async fn rename(
    connection: &mut Connection,
    subject: Subject,
    name: &str,
) -> Result<(), Failure> {
    sqlx::query("UPDATE protections SET name = $3 WHERE subject_kind = $1 AND subject_id = $2")
        .bind(subject.kind.as_str())
        .bind(subject.id)
        .bind(name)
        .execute(connection)
        .await?;
    Ok(())
}

/// A live thing by its kind and id, its row locked, and before it the row of its project:
/// the start of a project's deletion reads the protections of all that is in it.
pub(crate) struct Protected(pub(crate) Subject);

impl Load for Protected {
    type Snapshot = ProtectionSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<ProtectionSnapshot, Failure> {
        let subject = self.0;
        let missing = Failure::NotFound { kind: subject.kind.as_str() };
        let Some(marks) = marks::of(subject.kind) else { return Err(missing) };
        let found = marks.find(connection, subject.id).await?;
        if let Some(project) = found.and_then(|found| found.project_id) {
            project::lock(connection, &project.to_string()).await?;
        }
        let row = marks.lock(connection, subject.id).await?;
        let Some(row) = row.filter(|row| !row.is_deleted) else { return Err(missing) };
        let protection = of_itself(connection, subject).await?;
        let deletion = match row.deletion_id {
            Some(id) => reads::fetch(connection, id).await?,
            None => None,
        };
        Ok(ProtectionSnapshot {
            now: now(connection).await?,
            subject,
            name: row.name,
            project_id: row.project_id,
            is_leaving: deletion.is_some_and(|found| found.state == DeletionState::Running),
            protection,
        })
    }
}

async fn of_itself(
    connection: &mut Connection,
    subject: Subject,
) -> Result<Option<Protection>, Failure> {
    let row = sqlx::query(select_protections!("subject_kind = $2 AND subject_id = $1"))
        .bind(subject.id)
        .bind(subject.kind.as_str())
        .fetch_optional(connection)
        .await?;
    row.map(|row| hydrate(&row, "subject_id", protection)).transpose()
}

pub(crate) async fn list(
    connection: &mut Connection,
    (project, page): (Option<ProjectId>, Page<Uuid>),
) -> Result<Vec<Protection>, Failure> {
    let found = sqlx::query(select_protections!(
        "subject_id > $1 AND ($2 IS NULL OR project_id = $2) ORDER BY subject_id LIMIT $3"
    ))
    .bind(page.after.unwrap_or_default())
    .bind(project.map(|project| project.as_uuid()))
    .bind(i64::from(page.limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "subject_id", protection)).collect()
}
