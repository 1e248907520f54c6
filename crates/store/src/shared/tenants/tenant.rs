//! The table of tenants.

use slipway_app::ports::store::Page;
use slipway_app::tenants::port::{TenantFilter, TenantKey};
use slipway_core::catalog::Name;
use slipway_core::ids::{DeletionId, ProjectId, Revision, TenantId, TenantJobId, TenantProfileId};
use slipway_core::tenants::job::JobState;
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::task::{Repair, needed};
use slipway_core::tenants::tenant::{Tenant, TenantSnapshot};
use slipway_core::tenants::waiting::LostWork;
use slipway_core::tenants::write::Advance;
use sqlx::Row as _;
use uuid::Uuid;

use super::fleet::generator::open_project;
use super::page::{Query, after, as_id, count, fetch_one, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, jobs, rows};
use crate::failure::Failure;
use crate::fault::Fault;

macro_rules! select {
    () => {
        "SELECT t.id, t.revision, t.project_id, t.profile_id, t.name, t.target_name, t.state, \
         t.job_id, t.work, t.version, t.present, t.closed, t.leaks, t.purging, t.migrating, \
         t.repair, t.failures, t.last_error, t.waiting_reason, t.lost_after, t.lost_before, t.deletion_id, t.deleted_at, t.created_at, t.updated_at \
         FROM tenants t "
    };
}
pub(crate) use select;

impl Table for Tenant {
    queries_by_id!(select!(), "t");

    fn page_query(filter: &TenantFilter, page: Page<TenantId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "WHERE t.id > $1 AND ($2 OR t.deleted_at IS NULL) \
             AND ($3 IS NULL OR t.project_id = $3) AND ($4 IS NULL OR t.profile_id = $4) \
             AND ($5 IS NULL OR t.state = $5) ORDER BY t.id LIMIT $6"
        ))
        .bind(after(page))
        .bind(filter.show_deleted)
        .bind(filter.project.map(|id| id.as_uuid()))
        .bind(filter.profile.map(|id| id.as_uuid()))
        .bind(filter.state.map(JobState::as_str))
        .bind(i64::from(page.limit))
    }

    /// A new tenant locks its project and its profile: deleting one updates its row.
    async fn load(connection: &mut Connection, key: &TenantKey) -> Result<TenantSnapshot, Failure> {
        let (mut project, mut profile, mut tenant, mut is_taken) = (None, None, None, false);
        let mut paused = None;
        match key {
            TenantKey::New { project: reference, profile: of, name } => {
                project = open_project(connection, reference).await?;
                profile = table::share::<TenantProfile>(connection, of).await?;
                if let Some(project) = project {
                    tenant = by_name(connection, project, name).await?;
                }
                if let Some(profile) = &profile {
                    is_taken = has_target_name(connection, profile.id, name).await?;
                }
            }
            TenantKey::Existing(id) => {
                tenant = table::lock::<Self>(connection, &id.to_string()).await?;
            }
            TenantKey::Kept(id) => tenant = lock_any(connection, *id).await?,
            TenantKey::Waiting(id) => {
                tenant = lock_any(connection, *id).await?;
                if let Some(tenant) = &tenant {
                    paused = jobs::paused(connection, tenant.job_id).await?;
                }
            }
        }
        let profile = profile.map(|profile| profile.id);
        let now = now(connection).await?;
        Ok(TenantSnapshot { now, project, profile, tenant, paused, is_taken })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        let flag = |column| Ok(rows::get::<i32>(row, column)? != 0);
        Ok(Self {
            id: TenantId::new(rows::get(row, "id")?),
            project_id: ProjectId::new(rows::get(row, "project_id")?),
            profile_id: TenantProfileId::new(rows::get(row, "profile_id")?),
            name: Name::from_stored(rows::get(row, "name")?),
            target_name: rows::get(row, "target_name")?,
            state: rows::member(row, "state", JobState::parse)?,
            job_id: TenantJobId::new(rows::get(row, "job_id")?),
            work: rows::get(row, "work")?,
            version: rows::get(row, "version")?,
            present: flag("present")?,
            closed: flag("closed")?,
            leaks: rows::get(row, "leaks")?,
            purging: flag("purging")?,
            migrating: flag("migrating")?,
            repair: repair(rows::get(row, "repair")?)?,
            failures: rows::get(row, "failures")?,
            last_error: rows::get(row, "last_error")?,
            waiting_reason: rows::get(row, "waiting_reason")?,
            lost: lost(rows::get(row, "lost_after")?, rows::get(row, "lost_before")?)?,
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

fn repair(text: Option<String>) -> Result<Option<Repair>, Fault> {
    let invalid = |text: &str| Fault::new("repair", format!("has `{text}`, which is no repair"));
    text.map(|text| Repair::from_stored(&text).ok_or_else(|| invalid(&text))).transpose()
}

fn lost(after: Option<i64>, before: Option<i64>) -> Result<Option<LostWork>, Fault> {
    match (after, before) {
        (Some(after), Some(before)) => Ok(Some(LostWork { after, before })),
        (None, None) => Ok(None),
        _ => Err(Fault::new("lost_after", "is there without its end, or the end without it")),
    }
}

/// Locked, deleted or not.
async fn lock_any(connection: &mut Connection, id: TenantId) -> Result<Option<Tenant>, Failure> {
    let query = sqlx::query(concat!(select!(), "WHERE t.id = $1", sql!(for_update)));
    fetch_one(connection, query.bind(id.as_uuid()), "id", Tenant::read).await
}

async fn by_name(
    connection: &mut Connection,
    project: ProjectId,
    name: &str,
) -> Result<Option<Tenant>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE t.project_id = $1 AND t.name = $2 AND t.deleted_at IS NULL"
    ));
    let query = query.bind(project.as_uuid()).bind(name);
    fetch_one(connection, query, "id", Tenant::read).await
}

/// Whether a tenant of the profile, deleted or not, has this name on the target.
async fn has_target_name(
    connection: &mut Connection,
    profile: TenantProfileId,
    name: &str,
) -> Result<bool, Failure> {
    let row = sqlx::query(
        "SELECT count(*) AS found FROM tenants WHERE profile_id = $1 AND target_name = $2",
    );
    let row = row.bind(profile.as_uuid()).bind(name).fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>("found")? > 0)
}

/// Live tenants of a project, which keep it from being deleted.
pub(crate) async fn live_in(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<i64, sqlx::Error> {
    let statement =
        "SELECT count(*) AS found FROM tenants WHERE project_id = $1 AND deleted_at IS NULL";
    count(connection, statement, project.as_uuid()).await
}

/// Whether the running deletion of a tenant waits for it to be closed.
pub(crate) async fn is_open(connection: &mut Connection, id: Uuid) -> Result<bool, sqlx::Error> {
    let statement =
        "SELECT count(*) AS found FROM tenants WHERE id = $1 AND present = 1 AND closed = 0";
    Ok(count(connection, statement, id).await? > 0)
}

/// As `marks!`, and a mark that comes or goes makes a task due.
pub(crate) const MARKS: Marks = Marks::new(
    concat!(marked_sql!("tenants", "name", "project_id"), "WHERE id = $1"),
    concat!(marked_sql!("tenants", "name", "project_id"), "WHERE id = $1", sql!(for_update)),
    concat!(
        "UPDATE tenants SET deletion_id = $3, deleted_at = $4, revision = revision + 1, due_at = ",
        sql!(now),
        ", failures = 0, last_error = NULL, updated_at = ",
        sql!(greatest, "(", now, ", updated_at)"),
        " WHERE id = $1 AND revision = $2"
    ),
    concat!(
        "UPDATE tenants SET deletion_id = NULL, deleted_at = NULL, revision = revision + 1, \
         due_at = ",
        sql!(now),
        ", failures = 0, last_error = NULL, updated_at = ",
        sql!(greatest, "(", now, ", updated_at)"),
        " WHERE id IN (SELECT id FROM tenants WHERE deletion_id = $1 ORDER BY id",
        sql!(for_update),
        ")"
    ),
    "SELECT id, name FROM tenants WHERE deletion_id = $1 ORDER BY id LIMIT $2",
    "SELECT count(*) AS found FROM tenants WHERE deletion_id = $1",
)
.named(
    "SELECT id FROM tenants WHERE name = $1 AND deleted_at IS NULL AND id <> $2 AND project_id = \
     (SELECT x.project_id FROM tenants x WHERE x.id = $2)",
    "UPDATE tenants SET name = $2 WHERE id = $1",
);

pub(crate) const INSERT: RowSet<Tenant> = insert_rows!(guarded, "tenants", |row: &Tenant| {
    id: uuid = row.id,
    project_id: uuid = row.project_id,
    profile_id: uuid = row.profile_id,
    name: text = row.name,
    target_name: text = row.target_name,
    state: text = row.state,
    job_id: uuid = row.job_id,
    work: bigint = row.work,
    created_at: time = row.created_at,
    updated_at: time = row.updated_at,
});

/// What follows from the row as it is written is due at once.
pub(crate) const UPDATE: RowSet<Tenant> = RowSet {
    statement: concat!(
        "UPDATE tenants SET state = given.state, job_id = given.job_id, work = given.work, \
         version = given.version, present = given.present, closed = given.closed, \
         leaks = given.leaks, migrating = given.migrating, repair = given.repair, \
         failures = given.failures, \
         last_error = given.last_error, waiting_reason = given.waiting_reason, lost_after = given.lost_after, \
         lost_before = given.lost_before, due_at = CASE WHEN given.due = 1 THEN ",
        sql!(now),
        " ELSE NULL END, revision = tenants.revision + 1, updated_at = ",
        sql!(greatest, "(", now, ", updated_at)"),
        " FROM ",
        rows_from_json!(
            id: uuid, revision: bigint, state: text, job_id: uuid, work: bigint, version: text,
            present: integer, closed: integer, leaks: integer, migrating: integer,
            repair: text, failures: integer, last_error: text, waiting_reason: text, lost_after: bigint,
            lost_before: bigint, due: integer
        ),
        " WHERE tenants.id = given.id AND tenants.revision = given.revision \
         RETURNING tenants.id AS id"
    ),
    id: |row| row.id.into(),
    row: |row| {
        json_row!(
            id: uuid = row.id,
            revision: bigint = row.revision,
            state: text = row.state,
            job_id: uuid = row.job_id,
            work: bigint = row.work,
            version: text = row.version,
            present: integer = i32::from(row.present),
            closed: integer = i32::from(row.closed),
            leaks: integer = row.leaks,
            migrating: integer = i32::from(row.migrating),
            repair: text = row.repair.as_ref().map(Repair::text),
            failures: integer = row.failures,
            last_error: text = row.last_error,
            waiting_reason: text = row.waiting_reason,
            lost_after: bigint = row.lost.map(|lost| lost.after),
            lost_before: bigint = row.lost.map(|lost| lost.before),
            due: integer = i32::from(needed(row).is_some()),
        )
    },
};

/// One revision for each edge.
pub(crate) const ADVANCE: RowSet<Advance> = RowSet {
    statement: concat!(
        "UPDATE tenants SET state = given.state, version = given.version, \
         present = given.present, leaks = given.leaks, revision = given.revision, \
         lost_after = CASE WHEN given.state = 'ready' THEN NULL ELSE lost_after END, \
         lost_before = CASE WHEN given.state = 'ready' THEN NULL ELSE lost_before END, \
         updated_at = ",
        sql!(greatest, "(", now, ", updated_at)"),
        " FROM ",
        rows_from_json!(
            id: uuid, read: bigint, revision: bigint, state: text, version: text,
            present: integer, leaks: integer
        ),
        " WHERE tenants.id = given.id AND tenants.revision = given.read \
         RETURNING tenants.id AS id"
    ),
    id: |row| row.id.into(),
    row: |row| {
        json_row!(
            id: uuid = row.id,
            read: bigint = row.read,
            revision: bigint = row.revision,
            state: text = row.state,
            version: text = row.version,
            present: integer = i32::from(row.present),
            leaks: integer = row.leaks,
        )
    },
};
