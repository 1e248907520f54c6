//! The table of settings.

use slipway_core::deletion::door::Defaults;
use slipway_core::deletion::settings::{
    DeletionSetting, SettingScope, SettingSnapshot, Values, resolve,
};
use slipway_core::ids::{ProjectId, Revision};
use slipway_core::subject::{Subject, SubjectKind};
use slipway_durable::claim::micros;
use uuid::Uuid;

use super::catalog::project;
use super::fleet::generator::retention_of;
use super::page::{fetch_one, hydrate, now};
use super::row_set::RowSet;
use super::transaction::Load;
use super::{Connection, Row, marks, operations, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select_settings {
    ($condition:literal) => {
        concat!(
            "SELECT id, revision, project_id, kind, grace, retention, approve_above, \
             purge_protected, set_by, reason, set_at FROM deletion_settings WHERE ",
            $condition
        )
    };
}

fn setting(row: &Row) -> Result<DeletionSetting, Fault> {
    let duration =
        |column| Ok(rows::get::<Option<i64>>(row, column)?.map(super::hydrate::duration));
    let kind = match rows::get::<Option<String>>(row, "kind")? {
        Some(_) => Some(rows::member(row, "kind", SubjectKind::parse)?),
        None => None,
    };
    Ok(DeletionSetting {
        id: rows::get(row, "id")?,
        scope: SettingScope {
            project: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
            kind,
        },
        revision: Revision(rows::get(row, "revision")?),
        values: Values {
            grace: duration("grace")?,
            retention: duration("retention")?,
            approve_above: rows::get(row, "approve_above")?,
            purge_protected: rows::get::<Option<i32>>(row, "purge_protected")?.map(|on| on != 0),
        },
        set_by: rows::get(row, "set_by")?,
        reason: rows::get(row, "reason")?,
        set_at: rows::time(row, "set_at")?,
    })
}

/// What holds for a deletion of this thing.
pub(crate) async fn of(
    connection: &mut Connection,
    subject: Subject,
    process: Defaults,
) -> Result<Defaults, Failure> {
    let row = match marks::of(subject.kind) {
        Some(marks) => marks.find(connection, subject.id).await?,
        None => None,
    };
    let project = row.and_then(|row| row.project_id);
    let found = sqlx::query(select_settings!(
        "(project_id IS NULL OR project_id = $1) AND (kind IS NULL OR kind = $2)"
    ))
    .bind(project.map(|project| project.as_uuid()))
    .bind(subject.kind.as_str())
    .fetch_all(&mut *connection)
    .await?;
    let found: Vec<DeletionSetting> =
        found.iter().map(|row| hydrate(row, "id", setting)).collect::<Result<_, _>>()?;
    let mut defaults = resolve(&found, project, subject.kind, process);
    if let Some(own) = Box::pin(retention_of(connection, subject)).await? {
        defaults.retention = own;
    }
    Ok(defaults)
}

/// Those of a project and those of everything, or all of them. There are few.
pub(crate) async fn list(
    connection: &mut Connection,
    project: Option<ProjectId>,
) -> Result<Vec<DeletionSetting>, Failure> {
    let found = sqlx::query(select_settings!(
        "($1 IS NULL OR project_id IS NULL OR project_id = $1) ORDER BY id"
    ))
    .bind(project.map(|project| project.as_uuid()))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "id", setting)).collect()
}

/// A scope with its setting. A project is locked: it is live, and is not purged meanwhile.
pub(crate) struct Scoped(pub(crate) SettingScope);

impl Load for Scoped {
    type Snapshot = SettingSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<SettingSnapshot, Failure> {
        if let Some(id) = self.0.project {
            let found = project::lock(connection, &id.to_string()).await?;
            found.ok_or(Failure::NotFound { kind: ProjectId::KIND })?;
        }
        let query = sqlx::query(select_settings!("id = $1")).bind(self.0.id());
        let found = fetch_one(connection, query, "id", setting).await?;
        let control = operations::control::fetch(connection, ()).await?;
        Ok(SettingSnapshot {
            now: now(connection).await?,
            installation: control.installation,
            setting: found,
        })
    }
}

pub(crate) const INSERT: RowSet<DeletionSetting> = insert_rows!(guarded, "deletion_settings", |setting: &DeletionSetting| {
    id: uuid = setting.id,
    project_id: uuid = setting.scope.project,
    kind: text = setting.scope.kind,
    grace: bigint = setting.values.grace.map(micros),
    retention: bigint = setting.values.retention.map(micros),
    approve_above: bigint = setting.values.approve_above,
    purge_protected: integer = setting.values.purge_protected.map(i32::from),
    set_by: text = setting.set_by,
    reason: text = setting.reason,
    set_at: time = setting.set_at,
});

pub(crate) const UPDATE: RowSet<DeletionSetting> = update_rows!(undated, "deletion_settings" by id, |setting: &DeletionSetting| {
    grace: bigint = setting.values.grace.map(micros),
    retention: bigint = setting.values.retention.map(micros),
    approve_above: bigint = setting.values.approve_above,
    purge_protected: integer = setting.values.purge_protected.map(i32::from),
    set_by: text = setting.set_by,
    reason: text = setting.reason,
    set_at: time = setting.set_at,
});

/// Inserts or updates, unless somebody else did since it was read.
pub(crate) async fn put(
    connection: &mut Connection,
    rows: &RowSet<DeletionSetting>,
    setting: &DeletionSetting,
) -> Result<(), Failure> {
    let stale = |row: &DeletionSetting| writes::stale("deletion setting", row.id, row.revision);
    rows.write_guarded(connection, &[setting], stale).await
}

pub(crate) async fn remove(connection: &mut Connection, id: Uuid) -> Result<(), Failure> {
    sqlx::query("DELETE FROM deletion_settings WHERE id = $1").bind(id).execute(connection).await?;
    Ok(())
}

/// The settings of a project that is purged.
pub(crate) async fn remove_of(connection: &mut Connection, project: Uuid) -> Result<u64, Failure> {
    let removed = sqlx::query("DELETE FROM deletion_settings WHERE project_id = $1")
        .bind(project)
        .execute(connection)
        .await?;
    Ok(removed.rows_affected())
}
