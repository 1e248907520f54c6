//! The high-water mark: the highest heartbeat of this installation, in a label of the object
//! that stands for the project. If it is ahead of the database's counter, the database was
//! restored to an earlier state.
//!
//! *Guarantees:* this engine acts in a project only after a heartbeat of this process compared
//! its mark. Content that is no number is an error and never overwritten.
//!
//! *Caveats:*
//! * Labels are replaced without a condition. A write compares with what was read in the same
//!   heartbeat, and replicas that write at the same instant may leave the lower of two values,
//!   until the next write half a minute later. A mark that is too low proves nothing; it hides
//!   only a restore to a backup from between the two.
//! * A busy installation would read and write the mark with every heartbeat, more often than
//!   the rate limit of a project allows. So a mark is read and raised every half minute at
//!   most, and a heartbeat in between gets the last answer. Each read is followed by a raise
//!   to what the last activity asked for, so a raise that was due meanwhile is only late.

use std::sync::{Mutex as SyncMutex, PoisonError};
use std::time::{Duration, Instant};

use slipway_app::ports::substrate::{Error as Problem, HighWaterMark as Answer};
use tokio::sync::Mutex;

use super::client::Session;
use super::error::not_written;
use super::identity::Marker;

const HEARTBEAT: &str = "slipway.dev/heartbeat";

/// Two requests each time: 240 of the 3600 of an hour for each replica.
const EVERY: Duration = Duration::from_secs(30);

/// Until a mark that could not be read is tried again.
const AGAIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct HighWaterMark {
    every: Duration,
    state: Mutex<State>,
    /// The identity of the project whose mark was compared with the database.
    compared: SyncMutex<Option<String>>,
}

#[derive(Debug, Default)]
struct State {
    read: Option<Read>,
    /// There was nothing to read, and why.
    unread: Option<(Instant, Result<(), Problem>)>,
}

#[derive(Debug)]
struct Read {
    at: Instant,
    marker: Marker,
    value: Option<i64>,
}

impl Default for HighWaterMark {
    fn default() -> Self {
        Self { every: EVERY, state: Mutex::default(), compared: SyncMutex::default() }
    }
}

impl HighWaterMark {
    /// More often; for tests.
    pub(super) fn every(every: Duration) -> Self {
        Self { every, ..Self::default() }
    }

    /// The last answer, if that is young enough.
    pub(super) async fn known(&self) -> Option<Result<Answer, Problem>> {
        let state = self.state.lock().await;
        if let Some(read) = state.read.as_ref().filter(|read| read.at.elapsed() < self.every) {
            return Some(Ok(Answer { value: read.value, fresh: false }));
        }
        let again = self.every.min(AGAIN);
        let (_, unread) = state.unread.as_ref().filter(|(at, _)| at.elapsed() < again)?;
        Some(unread.clone().map(|()| Answer { value: None, fresh: false }))
    }

    /// There is none to read: nothing of ours was ever in this project, or the provider did not
    /// say.
    pub(super) async fn unread(&self, why: Result<(), Problem>) {
        self.state.lock().await.unread = Some((Instant::now(), why));
    }

    /// The object that carries the mark was seen: the next heartbeat reads it.
    pub(super) async fn found(&self) {
        self.state.lock().await.unread = None;
    }

    /// Keeps what was read now.
    pub(super) async fn read(&self, marker: Marker) -> Result<Answer, Problem> {
        let value = heartbeat_in(&marker)?;
        let mut state = self.state.lock().await;
        *state = State { read: Some(Read { at: Instant::now(), marker, value }), unread: None };
        Ok(Answer { value, fresh: true })
    }

    /// A heartbeat compared the mark that was read last.
    pub(super) async fn compared(&self) {
        let project = self.state.lock().await.read.as_ref().map(|read| read.marker.uid.clone());
        *self.compared.lock().unwrap_or_else(PoisonError::into_inner) = project;
    }

    /// Refuses a change until the mark of this project was compared.
    pub(super) fn require_compared(&self, project: &str) -> Result<(), Problem> {
        let compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        if compared.as_deref() == Some(project) {
            return Ok(());
        }
        Err(Problem::Failed(
            "nothing is done in this project before its high-water mark was compared with the database, since that may have been restored to an earlier state; the loop `heartbeat` in `GET /api/v1/loops` and the log say why the mark cannot be read"
                .to_owned(),
        ))
    }

    /// Raises the mark that was read last to this counter, or keeps a higher one.
    pub(super) async fn raise(&self, session: &Session, counter: i64) -> Result<(), Problem> {
        let mut state = self.state.lock().await;
        let Some(read) = &mut state.read else {
            return Err(Problem::Failed("the high-water mark was not read yet".to_owned()));
        };
        if read.value.is_some_and(|value| value >= counter) {
            return Ok(());
        }
        let mut labels = read.marker.labels.clone();
        labels.insert(HEARTBEAT.to_owned(), counter.to_string());
        let written = session.placement_group_label(read.marker.id, labels).await;
        match written {
            Ok(group) => {
                read.marker.labels = group.labels;
                read.value = Some(counter);
                Ok(())
            }
            Err(error) => {
                // The next heartbeat reads again, and then tries to raise again.
                *state = State::default();
                Err(not_written(error))
            }
        }
    }

    pub(super) async fn forget(&self) {
        *self.state.lock().await = State::default();
        *self.compared.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// To treat another content as a first start would hide a restore.
fn heartbeat_in(marker: &Marker) -> Result<Option<i64>, Problem> {
    let Some(text) = marker.labels.get(HEARTBEAT) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        Problem::Failed(format!(
            "high-water mark: the label {HEARTBEAT} of the placement group {} is no number; remove it only if the database was never restored",
            super::identity::NAME
        ))
    })
}
