//! Tasks: claimed by a number of work, which is the lease too.

use std::time::Duration;

use slipway_core::ids::{ClaimToken, TenantId};
use slipway_core::tenants::tenant::Tenant;
use slipway_core::tenants::write::Migrating;
use slipway_durable::claim::micros;

use super::page::readable;
use super::table::Table;
use super::tenant::select;
use super::{Connection, jobs};
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
     version, present, closed, leaks, purging, migrating, repair, failures, last_error, waiting_reason, \
     lost_after, lost_before, deletion_id, deleted_at, created_at, updated_at"
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

/// One that became due meanwhile is left to the next claim, which has a higher number.
pub(crate) async fn renew(
    connection: &mut Connection,
    (id, work, lease): (TenantId, i64, Duration),
) -> Result<bool, Failure> {
    let written = sqlx::query(concat!(
        "UPDATE tenants SET due_at = ",
        sql!(now, (plus_micros "$3")),
        " WHERE id = $1 AND work = $2 AND due_at > ",
        sql!(now)
    ));
    let written = written.bind(id.as_uuid()).bind(work).bind(micros(lease));
    Ok(written.execute(connection).await?.rows_affected() > 0)
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

/// The task with this number of work waits for a person.
pub(crate) async fn wait_for_person(
    connection: &mut Connection,
    (id, work, reason): (TenantId, i64, &str),
) -> Result<bool, Failure> {
    let written = sqlx::query(
        "UPDATE tenants SET due_at = NULL, waiting_reason = $3, last_error = $3, failures = failures + 1 \
         WHERE id = $1 AND work = $2",
    );
    let written = written.bind(id.as_uuid()).bind(work).bind(reason).execute(connection).await?;
    Ok(written.rows_affected() > 0)
}

/// The database was restored. Numbers that were given out since the backup are lost, and all
/// further ones begin above them. An unfinished job may have gone on under its own number, so
/// that one is lost, too, and the job waits for a person. A second restore keeps what is known
/// for certain. In the order of the ids, like every statement that locks many of these rows.
pub(crate) async fn lose_work(
    connection: &mut Connection,
    floor: ClaimToken,
) -> Result<(), sqlx::Error> {
    sqlx::query(sql!(
        "UPDATE tenants SET lost_after = coalesce(lost_after, \
             CASE WHEN state IN ('ready', 'failed') THEN work ELSE work - 1 END), lost_before = ",
        greatest,
        "(work + 1, $1), work = ",
        greatest,
        "(work + 1, $1) WHERE id ",
        picked_from,
        "SELECT id FROM tenants ORDER BY id",
        for_update,
        picked_end
    ))
    .bind(floor.0)
    .execute(&mut *connection)
    .await?;
    jobs::pause_unfinished(connection, floor).await
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
