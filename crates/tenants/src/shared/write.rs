//! Writing changes, many by one statement.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use slipway_durable::database::End;
use sqlx::types::Json;

use super::rows::{GivenChange, GivenId, job};
use super::{Connection, Store};
use crate::Error;
use crate::change::{Admitted, Change, admit};
use crate::failure::Failure;
use crate::job::Job;
use crate::store::{Edge, edges};

type Answers = Vec<Result<Job, Error>>;

/// Writes the changes that are admitted, and says of the others why they are not. Different
/// jobs only. Without a sink the one statement that writes is its own transaction.
pub(super) async fn write(
    connection: &mut Connection,
    (store, changes): (&Store, &[&Change]),
) -> Result<End<Answers>, Failure> {
    let at = store.now();
    let mut given: Vec<_> = changes.iter().map(|change| GivenChange::new(change, at)).collect();
    // In one order, so that two sets with common jobs do not wait for each other.
    given.sort_by(|left, right| left.key().cmp(right.key()));
    let rows = sqlx::query(store.sql.write).bind(Json(&given)).fetch_all(&mut *connection).await?;
    let mut written = HashMap::new();
    for row in &rows {
        let job = job(row)?;
        written.insert(job.id.clone(), job);
    }
    let refused: Vec<_> =
        changes.iter().filter(|change| !written.contains_key(&change.id)).copied().collect();
    let reasons = reasons(connection, store, &refused).await?;
    if let Some(sink) = &store.sink {
        let of_change = |change: &&Change| {
            let job = Arc::new(written.get(&change.id)?.clone());
            Some(edges(Some(*change), &job))
        };
        let edges: Vec<Edge> = changes.iter().filter_map(of_change).flatten().collect();
        if !edges.is_empty() {
            sink.write(connection, &edges).await?;
        }
    }
    let mut answers = reasons;
    answers.extend(written.into_iter().map(|(id, job)| (id, Ok(job))));
    let answer = |change: &&Change| {
        let missing = || Err(Error::JobNotFound { id: change.id.clone() });
        answers.remove(&change.id).unwrap_or_else(missing)
    };
    Ok(End::Commit(changes.iter().map(answer).collect()))
}

/// The same as a statement of its own.
pub(super) async fn write_alone(
    connection: &mut Connection,
    arguments: (&Store, &[&Change]),
) -> Result<Answers, Failure> {
    match write(connection, arguments).await? {
        End::Commit(answers) | End::Rollback(answers) => Ok(answers),
    }
}

async fn reasons(
    connection: &mut Connection,
    store: &Store,
    refused: &[&Change],
) -> Result<HashMap<String, Result<Job, Error>>, Failure> {
    if refused.is_empty() {
        return Ok(HashMap::new());
    }
    let given: Vec<_> = refused.iter().map(|change| GivenId { key: &change.id }).collect();
    let rows = sqlx::query(store.sql.by_ids).bind(Json(&given)).fetch_all(connection).await?;
    let jobs = rows.iter().map(job).collect::<Result<Vec<_>, _>>()?;
    let reason = |change: &&Change| {
        let current = jobs.iter().find(|job| job.id == change.id);
        let answer = match (admit(change, current), current) {
            (Err(error), _) => Err(error),
            (Ok(Admitted::AlreadyWritten), Some(job)) => Ok(job.clone()),
            // It was refused a moment ago and would be written now.
            (Ok(_), _) => {
                Err(Error::Unavailable(format!("job `{}` changed at this moment", change.id)))
            }
        };
        (change.id.clone(), answer)
    };
    Ok(refused.iter().map(reason).collect())
}

/// Splits changes into sets without two changes of one job, in their order.
pub(super) fn sets(changes: &[Change]) -> Vec<Vec<usize>> {
    let mut rest: Vec<usize> = (0..changes.len()).collect();
    let mut sets = Vec::new();
    while !rest.is_empty() {
        let mut ids = HashSet::new();
        let (set, later) = rest.into_iter().partition(|n| ids.insert(&changes[*n].id));
        sets.push(set);
        rest = later;
    }
    sets
}
