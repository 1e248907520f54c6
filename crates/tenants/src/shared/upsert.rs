//! Inserting jobs, and the control that could contradict an insertion. The rules are
//! [`admission`] and [`change::recommission`]; the tenants are locked while they decide.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use slipway_durable::database::End;
use sqlx::types::Json;

use super::rows::{GivenJob, job};
use super::store::run_control;
use super::{Connection, Store, lock_tenants};
use crate::Error;
use crate::change::{self, Admission, admission};
use crate::failure::Failure;
use crate::job::{Job, NewJob, left_behind};
use crate::store::{Edge, edges};

type Answers = Vec<Result<Job, Error>>;

/// Inserts what is admitted, in one transaction.
///
/// Somebody who knows nothing of our lock may insert at the same moment; then the insertion
/// finds a conflict instead of a row. The caller runs it again, and the next run sees that
/// row.
pub(super) async fn upsert(
    connection: &mut Connection,
    (store, new): (&Store, &[&NewJob]),
) -> Result<End<Option<Answers>>, Failure> {
    let tenants = new.iter().map(|job| job.tenant_id.as_str());
    lock_tenants(connection, &store.table, tenants).await?;
    let at = store.now();
    let given: Vec<_> = new.iter().map(|new| GivenJob::new(new, &[], at)).collect();
    let mut known = known(connection, store, &given).await?;
    let mut inserted: Vec<(&NewJob, Vec<String>)> = Vec::new();
    let mut decided = Vec::new();
    for new in new {
        let admitted = admission(new, known.iter());
        if let Ok(Admission::Insert) = admitted {
            let of = new.retry_of.as_ref().and_then(|of| known.iter().find(|job| job.id == *of));
            let made = of.map_or_else(Vec::new, |job| left_behind(&job.leaked));
            // For the admission of those after it.
            known.push(new.as_job(SystemTime::UNIX_EPOCH));
            inserted.push((new, made));
        }
        decided.push(admitted.map(drop));
    }
    if inserted.is_empty() {
        let known = by_id(known);
        let answer = |(new, decided): (&&NewJob, Result<(), Error>)| {
            decided.map(|()| known[new.id.as_str()].clone())
        };
        return Ok(End::Rollback(Some(new.iter().zip(decided).map(answer).collect())));
    }
    let given: Vec<_> = inserted.iter().map(|(new, made)| GivenJob::new(new, made, at)).collect();
    let rows = sqlx::query(store.sql.insert).bind(Json(&given)).fetch_all(&mut *connection).await?;
    if rows.len() < inserted.len() {
        return Ok(End::Rollback(None));
    }
    if inserted.iter().any(|(new, _)| new.retry_of.is_some()) {
        sqlx::query(store.sql.take_leaks).bind(Json(&given)).execute(&mut *connection).await?;
    }
    let new_jobs = rows.iter().map(job).collect::<Result<Vec<_>, _>>()?;
    if let Some(sink) = &store.sink {
        let edges: Vec<Edge> =
            new_jobs.iter().flat_map(|job| edges(None, &Arc::new(job.clone()))).collect();
        sink.write(connection, &edges).await?;
    }
    // A new job stands after the placeholder that was known for it.
    known.extend(new_jobs);
    let known = by_id(known);
    let answer = |(new, decided): (&&NewJob, Result<(), Error>)| {
        decided.map(|()| known[new.id.as_str()].clone())
    };
    Ok(End::Commit(Some(new.iter().zip(decided).map(answer).collect())))
}

/// The jobs that decide about these.
async fn known(
    connection: &mut Connection,
    store: &Store,
    given: &[GivenJob<'_>],
) -> Result<Vec<Job>, Failure> {
    let rows = sqlx::query(store.sql.known).bind(Json(given)).fetch_all(connection).await?;
    Ok(rows.iter().map(job).collect::<Result<_, _>>()?)
}

/// Makes a decommissioned tenant ready again. The job is read twice: the first time for its
/// tenant, which never changes, and then under the lock of that tenant.
pub(super) async fn recommission(
    connection: &mut Connection,
    (store, id, name): (&Store, &str, &str),
) -> Result<End<Option<Job>>, Failure> {
    let new = |tenant: &str| NewJob::new(id, tenant);
    let first = known(connection, store, &[GivenJob::new(&new(""), &[], None)]).await?;
    let Some(tenant) = first.into_iter().find(|job| job.id == id).map(|job| job.tenant_id) else {
        return Ok(End::Rollback(None));
    };
    lock_tenants(connection, &store.table, std::iter::once(tenant.as_str())).await?;
    let jobs = known(connection, store, &[GivenJob::new(&new(&tenant), &[], None)]).await?;
    if let Some(job) = jobs.iter().find(|job| job.id == id) {
        change::recommission(job, jobs.iter())?;
    }
    Ok(End::Commit(run_control(connection, (store, id, name, None)).await?))
}

/// The last of each id.
fn by_id(jobs: Vec<Job>) -> HashMap<String, Job> {
    jobs.into_iter().map(|job| (job.id.clone(), job)).collect()
}
