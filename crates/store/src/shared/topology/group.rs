//! The table of groups.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_core::catalog::Name;
use slipway_core::ids::{GroupId, ProjectId, ResourceId, Revision, WorkspaceId};
use slipway_core::topology::group::{Group, GroupSpec};
use slipway_core::topology::owner::Owner;
use slipway_core::topology::role::NodeRole;
use slipway_core::topology::workspace::{TakenPattern, Workspace};
use sqlx::Row as _;
use uuid::Uuid;

use super::page::{fetch_one, hydrate, readable};
use super::row_set::RowSet;
use super::table::Table as _;
use super::{Connection, Row, rows, workspace};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;

macro_rules! columns {
    () => {
        "g.id AS g_id, g.revision AS g_revision, g.workspace_id AS g_workspace_id, \
         g.project_id AS g_project_id, g.name AS g_name, g.single AS g_single, \
         g.role AS g_role, g.wanted AS g_wanted, g.min_count AS g_min_count, \
         g.max_count AS g_max_count, g.hostname_pattern AS g_hostname_pattern, \
         g.made_of AS g_made_of, g.depends_on AS g_depends_on, \
         g.delete_lock AS g_delete_lock, g.dropped AS g_dropped, g.marked AS g_marked, \
         g.created_at AS g_created_at, g.updated_at AS g_updated_at"
    };
}

macro_rules! select_groups {
    () => {
        concat!("SELECT ", columns!(), " FROM workspace_groups g ")
    };
}

/// A group with its workspace, which is locked before it.
macro_rules! lock_owner {
    ($group:literal) => {
        concat!(
            "SELECT ",
            workspace::columns!(),
            ", ",
            columns!(),
            " FROM workspace_groups g JOIN workspaces w ON w.id = g.workspace_id WHERE g.id = ",
            $group,
            sql!((for_update_of "w, g"))
        )
    };
}

/// What a server of the group is declared with, as the column has it.
#[derive(Serialize, Deserialize)]
struct MadeOf {
    blueprint: String,
    version: Option<String>,
    credential: Option<String>,
    parameters: BTreeMap<String, Value>,
    hardware: BTreeMap<String, Value>,
}

/// The groups of a workspace, locked in the order of their ids.
pub(crate) async fn lock_all(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<Vec<Group>, Failure> {
    let found = sqlx::query(concat!(
        select_groups!(),
        "WHERE g.workspace_id = $1 ORDER BY g.id",
        sql!(for_update)
    ))
    .bind(workspace.as_uuid())
    .fetch_all(connection)
    .await?;
    found.iter().map(corrupt_or).collect()
}

/// Locks the workspace of a group, and then the group.
pub(crate) async fn lock(
    connection: &mut Connection,
    id: GroupId,
) -> Result<Option<(Workspace, Group)>, Failure> {
    let query = sqlx::query(lock_owner!("$1")).bind(id.as_uuid());
    fetch_one(connection, query, "id", with_workspace).await
}

/// The same of the group of a server, which never changes; `None` for a resource that no
/// workspace owns, or that is not there.
pub(crate) async fn lock_of_server(
    connection: &mut Connection,
    id: ResourceId,
) -> Result<Option<(Workspace, Group)>, Failure> {
    let query = sqlx::query(lock_owner!("(SELECT r.group_id FROM resources r WHERE r.id = $1)"));
    fetch_one(connection, query.bind(id.as_uuid()), "id", with_workspace).await
}

fn with_workspace(row: &Row) -> Result<(Workspace, Group), Fault> {
    Ok((Workspace::read(row)?, read(row)?))
}

/// The readable groups of these workspaces, in the order of their names.
pub(crate) async fn of(
    connection: &mut Connection,
    workspaces: &[WorkspaceId],
) -> Result<Vec<Group>, sqlx::Error> {
    let list: IdList = workspaces.iter().map(|id| id.as_uuid()).collect();
    let found = sqlx::query(concat!(
        select_groups!(),
        sql!("WHERE g.workspace_id ", (one_of "$1"), " ORDER BY g.workspace_id, g.name")
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    Ok(readable(GroupId::KIND, &found, read))
}

/// How the other live workspaces of the project name their servers.
pub(crate) async fn taken_patterns(
    connection: &mut Connection,
    project: ProjectId,
    but: Option<WorkspaceId>,
) -> Result<Vec<TakenPattern>, Failure> {
    let found = sqlx::query(
        "SELECT w.name AS workspace, g.name, g.hostname_pattern FROM workspace_groups g \
         JOIN workspaces w ON w.id = g.workspace_id AND w.deleted_at IS NULL \
         WHERE g.project_id = $1 AND ($2 IS NULL OR g.workspace_id <> $2) AND g.dropped = 0 \
         ORDER BY g.id",
    )
    .bind(project.as_uuid())
    .bind(but.map(|id| id.as_uuid()))
    .fetch_all(connection)
    .await?;
    let taken = |row: &Row| {
        Ok(TakenPattern {
            workspace: rows::get(row, "workspace")?,
            group: rows::get(row, "name")?,
            pattern: rows::get(row, "hostname_pattern")?,
        })
    };
    found
        .iter()
        .map(|row| taken(row).map_err(|fault| Failure::Corrupt { id: project.as_uuid(), fault }))
        .collect()
}

/// What says to whom the servers of a live group belong.
pub(crate) async fn owner(
    connection: &mut Connection,
    id: GroupId,
) -> Result<Option<Owner>, Failure> {
    let query = sqlx::query(
        "SELECT g.id, g.workspace_id, g.name, g.role, w.name AS workspace \
         FROM workspace_groups g \
         JOIN workspaces w ON w.id = g.workspace_id AND w.deleted_at IS NULL WHERE g.id = $1",
    );
    let owner = |row: &Row| {
        Ok(Owner {
            workspace_id: WorkspaceId::new(rows::get(row, "workspace_id")?),
            workspace: rows::get(row, "workspace")?,
            group_id: id,
            group: rows::get(row, "name")?,
            role: rows::member(row, "role", NodeRole::parse)?,
        })
    };
    fetch_one(connection, query.bind(id.as_uuid()), "id", owner).await
}

/// How many control planes the workspace is to have.
pub(crate) async fn control_planes(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<u32, Failure> {
    let row = sqlx::query(sql!(
        "SELECT CAST(coalesce(sum(",
        greatest,
        "(wanted, min_count)), 0) AS bigint) AS declared FROM workspace_groups \
         WHERE workspace_id = $1 AND role = $2 AND dropped = 0"
    ))
    .bind(workspace.as_uuid())
    .bind(NodeRole::ControlPlane.as_str())
    .fetch_one(connection)
    .await?;
    let declared: i64 = row.try_get("declared")?;
    Ok(u32::try_from(declared).unwrap_or(u32::MAX))
}

fn corrupt_or(row: &Row) -> Result<Group, Failure> {
    hydrate(row, "g_id", read)
}

fn read(row: &Row) -> Result<Group, Fault> {
    let flag = |column| Ok::<_, Fault>(rows::get::<i32>(row, column)? != 0);
    let count = |column| {
        let found: i64 = rows::get(row, column)?;
        u32::try_from(found)
            .map_err(|_| Fault::new(column, format!("is {found}, which is no count")))
    };
    let made_of: MadeOf = rows::json(row, "g_made_of")?;
    let marked: Vec<Uuid> = rows::json(row, "g_marked")?;
    Ok(Group {
        id: GroupId::new(rows::get(row, "g_id")?),
        workspace_id: WorkspaceId::new(rows::get(row, "g_workspace_id")?),
        project_id: ProjectId::new(rows::get(row, "g_project_id")?),
        spec: GroupSpec {
            name: Name::from_stored(rows::get(row, "g_name")?),
            single: flag("g_single")?,
            role: rows::member(row, "g_role", NodeRole::parse)?,
            wanted: count("g_wanted")?,
            min: count("g_min_count")?,
            max: count("g_max_count")?,
            hostname_pattern: rows::get(row, "g_hostname_pattern")?,
            blueprint: made_of.blueprint,
            version: made_of.version,
            credential: made_of.credential,
            parameters: made_of.parameters,
            hardware: made_of.hardware,
            depends_on: rows::json(row, "g_depends_on")?,
            delete_lock: flag("g_delete_lock")?,
        },
        dropped: flag("g_dropped")?,
        marked: marked.into_iter().map(ResourceId::new).collect(),
        revision: Revision(rows::get(row, "g_revision")?),
        created_at: rows::time(row, "g_created_at")?,
        updated_at: rows::time(row, "g_updated_at")?,
    })
}

fn made_of(group: &Group) -> MadeOf {
    let spec = &group.spec;
    MadeOf {
        blueprint: spec.blueprint.clone(),
        version: spec.version.clone(),
        credential: spec.credential.clone(),
        parameters: spec.parameters.clone(),
        hardware: spec.hardware.clone(),
    }
}

pub(crate) const INSERT: RowSet<Group> = insert_rows!(guarded, "workspace_groups", |row: &Group| {
    id: uuid = row.id,
    workspace_id: uuid = row.workspace_id,
    project_id: uuid = row.project_id,
    name: text = row.spec.name,
    single: integer = i32::from(row.spec.single),
    role: text = row.spec.role,
    wanted: bigint = row.spec.wanted,
    min_count: bigint = row.spec.min,
    max_count: bigint = row.spec.max,
    hostname_pattern: text = row.spec.hostname_pattern,
    made_of: json = made_of(row),
    depends_on: json = row.spec.depends_on,
    delete_lock: integer = i32::from(row.spec.delete_lock),
    dropped: integer = i32::from(row.dropped),
    marked: json = row.marked,
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

pub(crate) const UPDATE: RowSet<Group> = update_rows!(dated, "workspace_groups" by id, |row: &Group| {
    single: integer = i32::from(row.spec.single),
    role: text = row.spec.role,
    wanted: bigint = row.spec.wanted,
    min_count: bigint = row.spec.min,
    max_count: bigint = row.spec.max,
    hostname_pattern: text = row.spec.hostname_pattern,
    made_of: json = made_of(row),
    depends_on: json = row.spec.depends_on,
    delete_lock: integer = i32::from(row.spec.delete_lock),
    dropped: integer = i32::from(row.dropped),
    marked: json = row.marked,
});

pub(crate) const SCALE: RowSet<Group> = update_rows!(dated, "workspace_groups" by id, |row: &Group| {
    wanted: bigint = row.spec.wanted,
    marked: json = row.marked,
});
