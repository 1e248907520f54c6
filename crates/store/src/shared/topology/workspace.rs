//! The table of workspaces.

use slipway_app::ports::store::Page;
use slipway_app::topology::port::{WorkspaceFilter, WorkspaceKey};
use slipway_core::catalog::Name;
use slipway_core::ids::{DeletionId, ProjectId, Revision, WorkspaceId};
use slipway_core::topology::workspace::{Workspace, WorkspaceSnapshot};
use uuid::Uuid;

use super::catalog::for_declaration;
use super::page::{Query, after, as_id, count, fetch_one, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, group, rollouts, rows, servers};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! columns {
    () => {
        "w.id, w.revision, w.project_id, w.name, w.paused_at, w.deletion_id, w.deleted_at, \
         w.created_at, w.updated_at"
    };
}
pub(crate) use columns;

macro_rules! select {
    () => {
        concat!("SELECT ", columns!(), " FROM workspaces w ")
    };
}

impl Table for Workspace {
    queries_by_id!(select!(), "w");

    fn page_query(filter: &WorkspaceFilter, page: Page<WorkspaceId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "WHERE w.id > $1 AND ($2 OR w.deleted_at IS NULL) \
             AND ($3 IS NULL OR w.project_id = $3) ORDER BY w.id LIMIT $4"
        ))
        .bind(after(page))
        .bind(filter.show_deleted)
        .bind(filter.project.map(|id| id.as_uuid()))
        .bind(i64::from(page.limit))
    }

    /// A new workspace locks its project: deleting that updates its row. Locks are taken in
    /// the order project, workspace, groups.
    async fn load(
        connection: &mut Connection,
        key: &WorkspaceKey,
    ) -> Result<WorkspaceSnapshot, Failure> {
        let (mut project, mut project_leaving) = (None, false);
        let workspace = match key {
            WorkspaceKey::Named { project: reference, name } => {
                let found = for_declaration::lock_project(connection, reference).await?;
                project = found.map(|(id, _)| ProjectId::new(id));
                project_leaving = found.is_some_and(|(_, leaving)| leaving);
                match project {
                    Some(project) => lock_named(connection, project, name).await?,
                    None => None,
                }
            }
            WorkspaceKey::Existing(id) => table::lock::<Self>(connection, &id.to_string()).await?,
        };
        let project = project.or(workspace.as_ref().map(|workspace| workspace.project_id));
        let (groups, servers, rollouts) = match &workspace {
            Some(workspace) => {
                let of = workspace.id.as_uuid();
                (
                    group::lock_all(connection, workspace.id).await?,
                    servers::of_workspace(connection, workspace.id).await?,
                    rollouts::reads::under_way(connection, rollouts::reads::OF_SUBJECT, of).await?,
                )
            }
            None => (Vec::new(), Vec::new(), Vec::new()),
        };
        let taken_patterns = match (project, key) {
            (Some(project), WorkspaceKey::Named { .. }) => {
                let own = workspace.as_ref().map(|workspace| workspace.id);
                group::taken_patterns(connection, project, own).await?
            }
            _ => Vec::new(),
        };
        let now = now(connection).await?;
        Ok(WorkspaceSnapshot {
            now,
            project,
            project_leaving,
            workspace,
            groups,
            servers,
            taken_patterns,
            rollouts,
        })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: WorkspaceId::new(rows::get(row, "id")?),
            project_id: ProjectId::new(rows::get(row, "project_id")?),
            name: Name::from_stored(rows::get(row, "name")?),
            paused_at: rows::time_or_null(row, "paused_at")?,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

async fn lock_named(
    connection: &mut Connection,
    project: ProjectId,
    name: &str,
) -> Result<Option<Workspace>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE w.project_id = $1 AND (w.name = $2 OR w.id = $3) AND w.deleted_at IS NULL",
        sql!(for_update)
    ));
    let query = query.bind(project.as_uuid()).bind(name).bind(as_id(name));
    fetch_one(connection, query, "id", Workspace::read).await
}

/// The row of this id, deleted or not, locked.
pub(crate) async fn lock(
    connection: &mut Connection,
    id: WorkspaceId,
) -> Result<Option<Workspace>, Failure> {
    let query = sqlx::query(concat!(select!(), "WHERE w.id = $1", sql!(for_update)));
    fetch_one(connection, query.bind(id.as_uuid()), "id", Workspace::read).await
}

/// The live row of this id.
pub(crate) async fn fetch(
    connection: &mut Connection,
    id: WorkspaceId,
) -> Result<Option<Workspace>, Failure> {
    let query = sqlx::query(concat!(select!(), "WHERE w.id = $1 AND w.deleted_at IS NULL"));
    fetch_one(connection, query.bind(id.as_uuid()), "id", Workspace::read).await
}

/// Live workspaces of a project, which keep it from being deleted.
pub(crate) async fn live_in(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<i64, sqlx::Error> {
    let statement =
        "SELECT count(*) AS found FROM workspaces WHERE project_id = $1 AND deleted_at IS NULL";
    count(connection, statement, project.as_uuid()).await
}

pub(crate) const MARKS: Marks = marks!(
    "workspaces",
    "name",
    "project_id",
    "project_id = (SELECT own.project_id FROM workspaces own WHERE own.id = $2)"
);

pub(crate) const INSERT: RowSet<Workspace> = insert_rows!(guarded, "workspaces", |row: &Workspace| {
    id: uuid = row.id,
    project_id: uuid = row.project_id,
    name: text = row.name,
    paused_at: time = row.paused_at,
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

pub(crate) const UPDATE: RowSet<Workspace> = update_rows!(dated, "workspaces" by id, |row: &Workspace| {
    paused_at: time = row.paused_at,
});

/// Pauses a workspace at whatever revision it is: the same commit unmarked it.
pub(crate) async fn suspend(connection: &mut Connection, id: WorkspaceId) -> Result<(), Failure> {
    sqlx::query(sql!(
        "UPDATE workspaces SET paused_at = ",
        now,
        ", revision = revision + 1 WHERE id = $1"
    ))
    .bind(id.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}
