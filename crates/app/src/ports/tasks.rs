//! Periodic tasks: what is done every so often by one replica, whichever comes
//! first. A task is a row with the columns of a claim, so that it survives its
//! holder and cannot be done by two at once for longer than a lease.

use std::time::Duration;

use async_trait::async_trait;
use slipway_core::ids::ClaimToken;
use slipway_core::time::Timestamp;

use super::store::Error;

/// A task as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub name: String,
    pub due_at: Timestamp,
    pub claimed_by: Option<String>,
    /// When it last ended, well or not.
    pub last_ended_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

#[async_trait]
pub trait TaskStore {
    /// Makes sure that there is such a task and that it is due in no more than
    /// `within`.
    async fn task_ensure(&self, name: &str, within: Duration) -> Result<(), Error>;

    /// Ends the claims of an earlier life of this worker, which is known to be
    /// over: those tasks are due now, under a new claim token.
    async fn task_reclaim(&self, worker: &str) -> Result<(), Error>;

    /// Claims the task if it is due and nobody holds it.
    async fn task_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimToken>, Error>;

    /// Gives the task back, due again after `next`, or at once if it was woken
    /// meanwhile. `false` if the claim is no longer held; nothing is changed
    /// then.
    async fn task_release(
        &self,
        name: &str,
        claim: ClaimToken,
        next: Duration,
        error: Option<&str>,
    ) -> Result<bool, Error>;

    /// Makes the task due now.
    async fn task_wake(&self, name: &str) -> Result<(), Error>;

    /// In the order of their names.
    async fn task_list(&self) -> Result<Vec<Task>, Error>;
}
