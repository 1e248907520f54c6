//! The table of brakes, and what callers deleted lately.

use slipway_app::ports::store::Page;
use slipway_core::Timestamp;
use slipway_core::deletion::brake::{Brake, BrakeSnapshot, Counted, HALF_LEAST, Release, Trip};
use slipway_core::deletion::door::Braked;
use slipway_core::ids::{ApiKeyId, ProjectId, Revision};
use slipway_core::subject::{Subject, SubjectKind};
use sqlx::Row as _;

use super::page::{after, fetch_one, hydrate, now};
use super::row_set::RowSet;
use super::transaction::Load;
use super::{Connection, Row, marks, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

macro_rules! select_brakes {
    ($condition:expr) => {
        concat!(
            "SELECT api_key_id, revision, name, tripped_at, tripped_why, released_by, \
             released_reason, released_until FROM deletion_brakes WHERE ",
            $condition
        )
    };
}

fn brake(row: &Row) -> Result<Brake, Fault> {
    let tripped = match rows::time_or_null(row, "tripped_at")? {
        Some(at) => Some(Trip { at, why: rows::get(row, "tripped_why")? }),
        None => None,
    };
    let released = match rows::time_or_null(row, "released_until")? {
        Some(until) => Some(Release {
            by: rows::get(row, "released_by")?,
            reason: rows::get(row, "released_reason")?,
            until,
        }),
        None => None,
    };
    Ok(Brake {
        api_key_id: ApiKeyId::new(rows::get(row, "api_key_id")?),
        name: rows::get(row, "name")?,
        revision: Revision(rows::get(row, "revision")?),
        tripped,
        released,
    })
}

/// The brake of this key, locked. Every other request of the key to delete waits: taken
/// before all other locks, it keeps no row from anybody who has one.
pub(crate) async fn lock(connection: &mut Connection, caller: &Braked) -> Result<Brake, Failure> {
    if let Some(found) = locked(connection, caller.key).await? {
        return Ok(found);
    }
    sqlx::query(
        "INSERT INTO deletion_brakes (api_key_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(caller.key.as_uuid())
    .bind(&*caller.name)
    .execute(&mut *connection)
    .await?;
    let found = locked(connection, caller.key).await?;
    found.ok_or(Failure::NotFound { kind: ApiKeyId::KIND })
}

async fn locked(connection: &mut Connection, key: ApiKeyId) -> Result<Option<Brake>, Failure> {
    let query = sqlx::query(select_brakes!(concat!("api_key_id = $1", sql!(for_update))));
    fetch_one(connection, query.bind(key.as_uuid()), "api_key_id", brake).await
}

/// What the caller deleted within the window, and how many resources and stacks the project of
/// the subject has.
pub(crate) async fn count(
    connection: &mut Connection,
    caller: &Braked,
    brake: Brake,
    subject: Subject,
) -> Result<Counted, Failure> {
    let project = match (subject.kind, marks::of(subject.kind)) {
        (
            SubjectKind::Project
            | SubjectKind::Resource
            | SubjectKind::Generator
            | SubjectKind::Workspace
            | SubjectKind::Stack,
            Some(marks),
        ) => marks.find(connection, subject.id).await?.and_then(|found| found.project_id),
        _ => None,
    };
    let window = now(connection).await?.minus(caller.limits.window);
    let released = brake.released.as_ref().map_or(Timestamp::ZERO, |released| released.until);
    let since = window.max(released);
    let row = sqlx::query(
        "SELECT CAST(coalesce(sum(resources + stacks), 0) AS BIGINT) AS lately, \
         CAST(coalesce(sum(CASE WHEN project_id = $3 THEN resources + stacks ELSE 0 END), 0) \
            AS BIGINT) AS here \
         FROM deletions WHERE requested_by = $1 AND requested_at > $2 AND state <> 'cancelled'",
    )
    .bind(format!("key:{}", caller.name))
    .bind(Micros::from(since))
    .bind(project.map(ProjectId::as_uuid))
    .fetch_one(&mut *connection)
    .await?;
    let (lately, lately_in_project): (i64, i64) = (row.try_get("lately")?, row.try_get("here")?);
    // A replacement that makes the new attempt first has no deletion before that is Ready.
    let surges = sqlx::query(
        "SELECT count(*) AS lately, \
         CAST(coalesce(sum(CASE WHEN project_id = $3 THEN 1 ELSE 0 END), 0) AS BIGINT) AS here \
         FROM resources WHERE surge_by = $1 AND surge_at > $2 AND surge_deletion_id IS NULL",
    )
    .bind(format!("key:{}", caller.name))
    .bind(Micros::from(since))
    .bind(project.map(ProjectId::as_uuid))
    .fetch_one(&mut *connection)
    .await?;
    let lately = lately + surges.try_get::<i64, _>("lately")?;
    let lately_in_project = lately_in_project + surges.try_get::<i64, _>("here")?;
    let limits = caller.limits;
    // Fewer than that are never half of a project, so a large one is not counted for them.
    let is_one = matches!(subject.kind, SubjectKind::Resource | SubjectKind::Stack);
    let few = is_one && lately_in_project + 1 < HALF_LEAST;
    let of_project = match project.filter(|_| limits.resources > 0 && !few) {
        Some(project) => had(connection, project, since).await?,
        None => 0,
    };
    Ok(Counted { brake, limits, lately, lately_in_project, of_project })
}

/// How many resources and stacks the project has, with those that were deleted since then.
async fn had(
    connection: &mut Connection,
    project: ProjectId,
    since: Timestamp,
) -> Result<i64, Failure> {
    let row = sqlx::query(
        "SELECT (SELECT count(*) FROM resources WHERE project_id = $1 \
            AND (deleted_at IS NULL OR deleted_at > $2)) + (SELECT count(*) FROM stacks \
            WHERE project_id = $1 AND (deleted_at IS NULL OR deleted_at > $2)) AS found",
    )
    .bind(project.as_uuid())
    .bind(Micros::from(since))
    .fetch_one(connection)
    .await?;
    Ok(row.try_get("found")?)
}

const UPDATE: RowSet<Brake> = update_rows!(undated, "deletion_brakes" by api_key_id, |brake: &Brake| {
    tripped_at: time = brake.tripped.as_ref().map(|trip| trip.at),
    tripped_why: text = brake.tripped.as_ref().map(|trip| &trip.why),
    released_by: text = brake.released.as_ref().map(|released| &released.by),
    released_reason: text = brake.released.as_ref().map(|released| &released.reason),
    released_until: time = brake.released.as_ref().map(|released| released.until),
});

pub(crate) async fn update(connection: &mut Connection, brake: &Brake) -> Result<(), Failure> {
    let stale = |brake: &Brake| writes::stale("brake", brake.api_key_id, brake.revision);
    UPDATE.write_guarded(connection, &[brake], stale).await
}

/// A brake by its key.
pub(crate) struct Of(pub(crate) ApiKeyId);

impl Load for Of {
    type Snapshot = BrakeSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<BrakeSnapshot, Failure> {
        let found = locked(connection, self.0).await?;
        let brake = found.ok_or(Failure::NotFound { kind: ApiKeyId::KIND })?;
        Ok(BrakeSnapshot { now: now(connection).await?, brake })
    }
}

/// Brakes that are on, in the order of their keys.
pub(crate) async fn on(
    connection: &mut Connection,
    page: Page<ApiKeyId>,
) -> Result<Vec<Brake>, Failure> {
    let found = sqlx::query(select_brakes!(
        "tripped_at IS NOT NULL AND api_key_id > $1 ORDER BY api_key_id LIMIT $2"
    ))
    .bind(after(page))
    .bind(i64::from(page.limit))
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| hydrate(row, "api_key_id", brake)).collect()
}
