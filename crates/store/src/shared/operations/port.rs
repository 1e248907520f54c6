//! Implements the port `OperationsStore`: the installation itself.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::operations::port::{ControlRule, Counts, Replica, Task, WithheldAction};
use slipway_app::ports::OperationsStore;
use slipway_app::ports::store::{Error, Page};
use slipway_app::seed::Seed;
use slipway_core::Timestamp;
use slipway_core::ids::{ClaimToken, ClusterId, InstallationId, ProvisionedResourceId};
use slipway_core::operations::control::Control;

use super::broker::withheld;
use super::{Backend, clock, control, counts, installation, seed, tasks};

/// A probe waits two seconds for an answer; ours comes before its timeout.
const PING_LIMIT: Duration = Duration::from_millis(1_800);

#[async_trait]
impl OperationsStore for Backend {
    async fn ping(&self) -> Result<(), Error> {
        Ok(self.database.within(PING_LIMIT, Box::pin(self.read_and_write())).await?)
    }

    async fn installation(&self) -> Result<InstallationId, Error> {
        self.read((), installation::read).await
    }

    async fn seed(&self, seed: &Seed) -> Result<ClusterId, Error> {
        self.write(seed, seed::seed).await
    }

    async fn control_fetch(&self) -> Result<Control, Error> {
        self.read((), control::fetch).await
    }

    async fn control_decide(&self, rule: &mut ControlRule<'_>) -> Result<(), Error> {
        self.decided(control::Installation, rule).await
    }

    async fn replica_list(&self) -> Result<Vec<Replica>, Error> {
        self.read((), control::replicas).await
    }

    async fn withheld_list(
        &self,
        page: Page<ProvisionedResourceId>,
    ) -> Result<Vec<WithheldAction>, Error> {
        self.read(page, withheld::list).await
    }

    async fn withheld_unchecked(&self) -> Result<u64, Error> {
        self.read((), withheld::unchecked).await
    }

    async fn task_ensure(&self, name: &str, worker: &str, within: Duration) -> Result<(), Error> {
        self.write((name, worker, within), tasks::ensure).await
    }

    async fn task_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimToken>, Error> {
        // Reads first, without a lock: most of the time nothing is due, and
        // that must not occupy the only writer of SQLite.
        if !self.read(name, tasks::is_due).await? {
            return Ok(None);
        }
        self.statement((name, worker, lease), tasks::claim).await
    }

    async fn task_release(
        &self,
        name: &str,
        claim: ClaimToken,
        next: Duration,
        error: Option<&str>,
    ) -> Result<bool, Error> {
        self.statement((name, claim, next, error), tasks::release).await
    }

    async fn task_wake(&self, name: &str) -> Result<(), Error> {
        self.statement(name, tasks::wake).await
    }

    async fn task_list(&self) -> Result<Vec<Task>, Error> {
        self.read((), tasks::list).await
    }

    async fn counts(&self) -> Result<Counts, Error> {
        self.read((), counts::count).await
    }

    async fn database_now(&self) -> Result<Timestamp, Error> {
        self.read((), clock::now).await
    }

    async fn schedule_pull_in(&self, jump: Duration, lease: Duration) -> Result<u64, Error> {
        self.write((jump, lease), clock::pull_in).await
    }
}
