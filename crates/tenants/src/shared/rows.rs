//! Rows as they are read, and the JSON parameters that statements are given.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use slipway_durable::claim::micros;
use sqlx::types::Json;
use sqlx::{ColumnIndex, Decode, Row as _, Type};

use super::{Db, Row};
use crate::change::{Change, Due};
use crate::job::{HistoryEntry, Job, Metadata, NewJob};
use crate::{Error, State};

/// A job, unless the row breaks a rule: then nobody guesses what was meant.
pub(super) fn job(row: &Row) -> Result<Job, Error> {
    let id: String = column(row, "?", "id")?;
    let get = Get { row, id: &id };
    let state: String = get.column("state")?;
    let state: State = state.parse().map_err(|error| get.corrupt(&error))?;
    Ok(Job {
        tenant_id: get.column("tenant_id")?,
        state,
        attempts: get.column("attempts")?,
        last_error: get.column("last_error")?,
        metadata: get.column::<Json<Metadata>>("metadata")?.0,
        created_at: time(get.column("created")?),
        updated_at: time(get.column("updated")?),
        partition: get.column("partition")?,
        retry_of: get.column("retry_of")?,
        step_attempts: get.column("failures")?,
        not_before: get.column::<Option<i64>>("due")?.filter(|_| !state.is_terminal()).map(time),
        claimed_by: get.column("claimed_by")?,
        is_leased: get.column("leased")?,
        claim_token: get.column("claim_token")?,
        lost_claims: get.column::<i64>("lost_claims")?.max(0),
        made: get.column::<Option<Json<Vec<String>>>>("made")?.map(|made| made.0),
        leaked: get.column::<Json<Vec<String>>>("leaked")?.0,
        history: get.column::<Json<Vec<HistoryEntry>>>("history")?.0,
        paused: get.column("paused")?,
        cancelled: get.column("cancelled")?,
        decommissioned_at: get.column::<Option<i64>>("decommissioned")?.map(time),
        id,
    })
}

struct Get<'a> {
    row: &'a Row,
    id: &'a str,
}

impl Get<'_> {
    fn column<'r, T: Decode<'r, Db> + Type<Db>>(&'r self, name: &str) -> Result<T, Error> {
        column(self.row, self.id, name)
    }

    fn corrupt(&self, reason: &impl ToString) -> Error {
        Error::Corrupt { id: self.id.to_owned(), reason: reason.to_string() }
    }
}

fn column<'r, T: Decode<'r, Db> + Type<Db>>(row: &'r Row, id: &str, name: &str) -> Result<T, Error>
where
    for<'n> &'n str: ColumnIndex<Row>,
{
    row.try_get(name)
        .map_err(|error| Error::Corrupt { id: id.to_owned(), reason: error.to_string() })
}

fn time(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    let moved = if micros < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    moved.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Microseconds since the Unix epoch.
pub(super) fn stored(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => micros(after),
        Err(before) => -micros(before.duration()),
    }
}

/// A row of the parameter of the statement that writes.
#[derive(Debug, Serialize)]
pub(super) struct GivenChange<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<i64>,
    from_state: &'static str,
    to_state: &'static str,
    added: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_pause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_made: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_leaked: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_failures: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    entries: Vec<HistoryEntry>,
    released: bool,
    is_result: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    micros: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
}

impl<'a> GivenChange<'a> {
    pub(super) fn key(&self) -> &str {
        self.key
    }

    pub(super) fn new(change: &'a Change, at: Option<i64>) -> Self {
        Self {
            key: &change.id,
            token: change.claim_token,
            from_state: change.from.as_str(),
            to_state: change.to().as_str(),
            added: change.attempts(),
            new_metadata: change.metadata.as_ref(),
            new_error: change.last_error.as_deref(),
            new_pause: change.pause.as_deref(),
            new_made: change.made.as_deref(),
            new_leaked: change.leaked.as_deref(),
            new_failures: change.step_attempts,
            entries: change.history(),
            released: change.release.is_some(),
            is_result: change.is_result(),
            micros: match change.release {
                Some(Due::In(after)) => Some(micros(after)),
                Some(Due::WhenWoken) | None => None,
            },
            at,
        }
    }
}

/// A row of the parameter of an insertion.
#[derive(Debug, Serialize)]
pub(super) struct GivenJob<'a> {
    key: &'a str,
    tenant: &'a str,
    new_metadata: &'a Metadata,
    part: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retried: Option<&'a str>,
    new_made: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
}

impl<'a> GivenJob<'a> {
    /// `made` is what it takes over from the job that it retries.
    pub(super) fn new(new: &'a NewJob, made: &'a [String], at: Option<i64>) -> Self {
        Self {
            key: &new.id,
            tenant: &new.tenant_id,
            new_metadata: &new.metadata,
            part: &new.partition,
            retried: new.retry_of.as_deref(),
            new_made: made,
            at,
        }
    }
}

/// A row of a parameter of ids.
#[derive(Debug, Serialize)]
pub(super) struct GivenId<'a> {
    pub(super) key: &'a str,
}
