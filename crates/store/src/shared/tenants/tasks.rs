//! Tasks: claimed by a number of work, which is the lease too.

use std::time::Duration;

use slipway_core::ids::TenantId;
use slipway_core::tenants::tenant::Tenant;
use slipway_core::tenants::write::Migrating;
use slipway_durable::claim::micros;

use super::Connection;
use super::page::readable;
use super::table::Table;
use super::tenant::select;
use crate::failure::Failure;
use crate::id_list::IdList;

const CLAIM: &str = concat!(
    "UPDATE tenants SET work = work + 1, due_at = ",
    sql!(now, (plus_micros "$2")),
    " WHERE id IN (SELECT id FROM tenants WHERE due_at <= (SELECT ",
    sql!(now),
    ") ORDER BY due_at LIMIT $1",
    sql!(skip_locked),
    ") RETURNING id, revision, project_id, profile_id, name, target_name, state, job_id, work, \
     version, present, closed, leaks, purging, migrating, repair, failures, last_error, deletion_id, \
     deleted_at, created_at, updated_at"
);

/// Whether a claim would find one: read first, since a claim writes.
pub(crate) async fn is_due(connection: &mut Connection, (): ()) -> Result<bool, Failure> {
    let due =
        sqlx::query(sql!("SELECT id FROM tenants WHERE due_at <= (SELECT ", now, ") LIMIT 1"));
    Ok(due.fetch_optional(connection).await?.is_some())
}

/// Work is no revision: a claim changes nothing that anybody decides on.
pub(crate) async fn claim(
    connection: &mut Connection,
    (limit, lease): (u32, Duration),
) -> Result<Vec<Tenant>, Failure> {
    let query = sqlx::query(CLAIM).bind(i64::from(limit)).bind(micros(lease));
    let found = query.fetch_all(connection).await?;
    Ok(readable("tenant", &found, Tenant::read))
}

pub(crate) async fn later(
    connection: &mut Connection,
    (id, work, after, error): (TenantId, i64, Option<Duration>, Option<&str>),
) -> Result<bool, Failure> {
    let written = sqlx::query(concat!(
        "UPDATE tenants SET due_at = CASE WHEN $3 IS NULL THEN NULL ELSE ",
        sql!(now, (plus_micros "$3")),
        " END, failures = CASE WHEN $4 IS NULL THEN failures ELSE failures + 1 END, \
         last_error = coalesce($4, last_error) WHERE id = $1 AND work = $2"
    ))
    .bind(id.as_uuid())
    .bind(work)
    .bind(after.map(micros))
    .bind(error)
    .execute(connection)
    .await?;
    Ok(written.rows_affected() > 0)
}

/// Tasks are due sooner by as much as the clock went back.
pub(crate) async fn pull_in(connection: &mut Connection, jump: Duration) -> Result<u64, Failure> {
    let moved = sqlx::query(sql!(
        "UPDATE tenants SET due_at = due_at",
        (minus_micros "$1"),
        " WHERE due_at > ",
        now
    ));
    Ok(moved.bind(micros(jump)).execute(connection).await?.rows_affected())
}

pub(crate) async fn load(
    connection: &mut Connection,
    ids: &[TenantId],
) -> Result<Vec<Tenant>, Failure> {
    let ids: IdList = ids.iter().map(|id| id.as_uuid()).collect();
    let found = sqlx::query(concat!(select!(), "WHERE t.id ", sql!((one_of "$1"))));
    let found = found.bind(ids).fetch_all(connection).await?;
    Ok(readable("tenant", &found, Tenant::read))
}

/// Tries the tenants that a roll-out migrates again at once, or no more.
pub(crate) async fn migrating(
    connection: &mut Connection,
    Migrating { profile, project, goes_on }: Migrating,
) -> Result<(), Failure> {
    let statement = match goes_on {
        true => sql!(
            "UPDATE tenants SET failures = 0, due_at = ",
            now,
            ", revision = revision + 1 WHERE profile_id = $1 AND migrating = 1 \
             AND ($2 IS NULL OR project_id = $2)"
        ),
        false => {
            "UPDATE tenants SET migrating = 0, failures = 0, due_at = NULL, revision = revision + 1 \
             WHERE profile_id = $1 AND migrating = 1 AND deletion_id IS NULL \
             AND ($2 IS NULL OR project_id = $2)"
        }
    };
    let query = sqlx::query(statement).bind(profile.as_uuid());
    query.bind(project.map(|id| id.as_uuid())).execute(connection).await?;
    Ok(())
}
