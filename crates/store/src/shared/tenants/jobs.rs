//! Jobs: inserted by plain SQL, as the contract of the library allows, so that the tenant and
//! its job are one transaction; and read for people.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;
use slipway_app::ports::store::{Error, Page};
use slipway_app::tenants::jobs::KEEPS;
use slipway_app::tenants::port::JobFilter;
use slipway_core::Timestamp;
use slipway_core::ids::{ClaimToken, TenantId, TenantJobId};
use slipway_core::tenants::job::{JobLine, JobState, TenantJob};
use slipway_core::tenants::waiting::ResumedJob;
use slipway_core::tenants::write::NewJob;
use slipway_durable::database::Gateway;
use slipway_tenants::{Filter, Job, JobStore as _, Metadata, StateStore as _};
use sqlx::Row as _;
use sqlx::types::Json;

use super::sink::Sink;
use super::{Backend, Connection, Db, Jobs, writes};
use crate::config::OpenError;
use crate::failure::Failure;

/// The table that the library has here.
pub(crate) const TABLE: &str = "tenant_jobs";

/// What a job knows beside its tenant.
pub(crate) const WORK: &str = "work";

/// Why a job waits that was unfinished in a backup.
const RESTORED: &str = "the database was restored while this job was unfinished: its tenant may \
                        be further on the target, and in use";

/// The jobs behind this gateway. Whatever writes an edge writes to the sink too.
pub(crate) fn jobs(database: &Arc<Gateway<Db>>) -> Result<Jobs, OpenError> {
    let jobs = Jobs::new(Arc::clone(database), TABLE);
    let jobs = jobs.map_err(|error| OpenError::Jobs(error.to_string()))?;
    Ok(jobs.with_sink(Arc::new(Sink)))
}

/// Due at once. What the job that it repeats left behind belongs to it from now on.
pub(crate) async fn insert(connection: &mut Connection, job: &NewJob) -> Result<(), Failure> {
    const INSERT: &str = concat!(
        "INSERT INTO tenant_jobs (id, tenant_id, metadata, partition, retry_of, made, due_at, \
         created_at, updated_at) SELECT given.id, given.tenant, given.metadata, given.part, \
         given.retried, given.made, clock.moment, clock.moment, clock.moment FROM ",
        rows_from_json!(
            id: text, tenant: text, metadata: json, part: text, retried: text, made: json
        ),
        ", (SELECT ",
        sql!(now),
        " AS moment) AS clock"
    );
    let made = match job.retry_of {
        Some(failed) => take_leaks(connection, failed).await?,
        None => Vec::new(),
    };
    let row = json!({
        "id": job.id, "tenant": job.tenant_id, "part": partition(job),
        "metadata": { WORK: job.work.to_string(), "profile_id": job.profile_id },
        "retried": job.retry_of, "made": made,
    });
    writes::write(connection, INSERT, &[row]).await?;
    Ok(())
}

/// What a failed job left behind is its own no more.
async fn take_leaks(
    connection: &mut Connection,
    failed: TenantJobId,
) -> Result<Vec<String>, Failure> {
    let id = failed.to_string();
    let read = sqlx::query(sql!("SELECT leaked FROM tenant_jobs WHERE id = $1", for_update));
    let Some(row) = read.bind(&id).fetch_optional(&mut *connection).await? else {
        return Ok(Vec::new());
    };
    let Json(leaked) = row.try_get::<Json<Vec<String>>, _>("leaked")?;
    let taken = sqlx::query("UPDATE tenant_jobs SET leaked = '[]' WHERE id = $1");
    taken.bind(id).execute(connection).await?;
    Ok(slipway_tenants::left_behind(&leaked))
}

/// Why the job is paused, its row locked.
pub(crate) async fn paused(
    connection: &mut Connection,
    id: TenantJobId,
) -> Result<Option<String>, Failure> {
    let found = sqlx::query(sql!("SELECT paused FROM tenant_jobs WHERE id = $1", for_update));
    let found = found.bind(id.to_string()).fetch_optional(connection).await?;
    Ok(found.map(|row| row.try_get("paused")).transpose()?.flatten())
}

/// The job goes on, or is cleaned up, under a new number of work.
pub(crate) async fn resume(connection: &mut Connection, job: &ResumedJob) -> Result<(), Failure> {
    let id = job.id.to_string();
    let read = sqlx::query("SELECT metadata FROM tenant_jobs WHERE id = $1");
    let row = read.bind(&id).fetch_one(&mut *connection).await?;
    let Json(mut metadata) = row.try_get::<Json<Metadata>, _>("metadata")?;
    metadata.insert(WORK.to_owned(), job.work.to_string());
    metadata.insert(KEEPS.to_owned(), true.to_string());
    let resumed = sqlx::query(concat!(
        "UPDATE tenant_jobs SET paused = NULL, cancelled = coalesce($2, cancelled), metadata = $3, ",
        wake_assignments!(),
        " WHERE id = $1"
    ));
    resumed.bind(id).bind(&job.clean_up).bind(Json(metadata)).execute(connection).await?;
    Ok(())
}

/// Unfinished jobs wait for a person, and whoever has one has it no more. The claims that are
/// ended here are no lost ones.
pub(crate) async fn pause_unfinished(
    connection: &mut Connection,
    floor: ClaimToken,
) -> Result<(), sqlx::Error> {
    sqlx::query(sql!(
        "UPDATE tenant_jobs SET paused = $2, claim_token = ",
        greatest,
        "(claim_token + 1, $1), result_token = ",
        greatest,
        "(claim_token + 1, $1), claimed_by = NULL, lease_until = NULL, due_at = NULL WHERE id ",
        picked_from,
        "SELECT id FROM tenant_jobs WHERE state NOT IN ('ready', 'failed') ORDER BY id",
        for_update,
        picked_end
    ))
    .bind(floor.0)
    .bind(RESTORED)
    .execute(connection)
    .await?;
    Ok(())
}

/// Jobs of one project and one profile are claimed together, so that neither takes all slots.
fn partition(job: &NewJob) -> String {
    format!("{}/{}", job.project_id, job.profile_id)
}

impl Backend {
    pub(crate) async fn job_fetch(&self, id: TenantJobId) -> Result<Option<TenantJob>, Error> {
        match self.jobs.get(&id.to_string()).await {
            Ok(job) => shown(&job).map(Some),
            Err(slipway_tenants::Error::JobNotFound { .. }) => Ok(None),
            Err(error) => Err(of_library(error)),
        }
    }

    pub(crate) async fn job_list(
        &self,
        filter: JobFilter,
        page: Page<TenantJobId>,
    ) -> Result<Vec<TenantJob>, Error> {
        let filter = Filter {
            state: filter.state.and_then(|state| state.as_str().parse().ok()),
            tenant_id: Some(filter.tenant.to_string()),
            after: page.after.map(|id| id.to_string()),
            limit: page.limit,
            ..Filter::default()
        };
        let found = self.jobs.find(&filter).await.map_err(of_library)?;
        found.iter().map(shown).collect()
    }
}

pub(crate) fn of_library(error: slipway_tenants::Error) -> Error {
    match error {
        slipway_tenants::Error::Unavailable(text) => Error::Unavailable(text),
        error => Error::Internal(error.to_string()),
    }
}

/// A job as it is shown. One that somebody else inserted has other ids, and is not ours.
fn shown(job: &Job) -> Result<TenantJob, Error> {
    let foreign = || Error::Internal(format!("job `{}` is none of ours", job.id));
    let id = |text: &str| text.parse::<TenantJobId>().map_err(|_| foreign());
    let line = |entry: &slipway_tenants::HistoryEntry| JobLine {
        from: entry.from.clone(),
        to: entry.to.clone(),
        at: Timestamp::from_micros(entry.at),
        worker: entry.worker.clone(),
        error: entry.error.clone(),
    };
    Ok(TenantJob {
        id: id(&job.id)?,
        tenant_id: job.tenant_id.parse::<TenantId>().map_err(|_| foreign())?,
        state: JobState::parse(job.state.as_str()).ok_or_else(foreign)?,
        attempts: job.attempts,
        last_error: job.last_error.clone(),
        retry_of: job.retry_of.as_deref().map(id).transpose()?,
        step_attempts: job.step_attempts,
        not_before: job.not_before.map(stamp),
        worker: job.claimed_by.clone().filter(|_| job.is_leased),
        claim_token: job.claim_token,
        made: job.made.clone().unwrap_or_default(),
        leaked: job.leaked.clone(),
        history: job.history.iter().map(line).collect(),
        paused: job.paused.clone(),
        cancelled: job.cancelled.clone(),
        created_at: stamp(job.created_at),
        updated_at: stamp(job.updated_at),
    })
}

fn stamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
