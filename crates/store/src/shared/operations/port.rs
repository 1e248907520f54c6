//! Implements the port `OperationsStore`: the installation itself.

use std::time::Duration;

use slipway_app::operations::port::{ControlRule, Counts, Replica, Task, WithheldAction};
use slipway_app::ports::OperationsStore;
use slipway_app::ports::store::{Error, Page};
use slipway_app::seed::Seed;
use slipway_core::Timestamp;
use slipway_core::ids::{ClaimToken, ClusterId, InstallationId, ProvisionedResourceId};
use slipway_core::operations::control::Control;

use super::broker::withheld;
use super::tenants::jobs::of_library;
use super::{Backend, clock, control, counts, installation, seed, tasks};
use crate::failure::of_class;

/// A probe waits two seconds for an answer; ours comes before its timeout.
const PING_LIMIT: Duration = Duration::from_millis(1_800);

port! {
    OperationsStore {
        read installation() -> InstallationId = installation::read;
        write seed(seed: &Seed) -> ClusterId = seed::seed;
        read control_fetch() -> Control = control::fetch;
        read replica_list() -> Vec<Replica> = control::replicas;
        read withheld_list(page: Page<ProvisionedResourceId>)
            -> Vec<WithheldAction> = withheld::list;
        read withheld_unchecked() -> u64 = withheld::unchecked;
        statement task_ensure(name: &str, within: Duration) -> () = tasks::ensure;
        statement task_reclaim(name: &str, worker: &str) -> () = tasks::reclaim;
        statement task_renew(name: &str, worker: &str, claim: ClaimToken, lease: Duration)
            -> bool = tasks::renew;
        statement task_release(name: &str, claim: ClaimToken, next: Duration, error: Option<&str>)
            -> bool = tasks::release;
        statement task_wake(name: &str) -> () = tasks::wake;
        read task_list() -> Vec<Task> = tasks::list;
        read counts(unserved_after: Duration) -> Counts = counts::count;
        read database_now() -> Timestamp = clock::now;
    }
    by_hand {
        async fn schedule_pull_in(&self, jump: Duration, lease: Duration) -> Result<u64, Error> {
            let pulled = self.write((jump, lease), clock::pull_in).await?;
            let jobs = self.jobs.clock_went_back(jump, lease).await;
            Ok(pulled + jobs.map_err(of_library)?)
        }

        async fn ping(&self) -> Result<(), Error> {
            self.database.within(PING_LIMIT, Box::pin(self.read_and_write())).await?;
            match self.database.refuses_writes() {
                Some(class) => Err(of_class(class, "the last writes failed".to_owned())),
                None => Ok(()),
            }
        }

        async fn control_decide(&self, rule: &mut ControlRule<'_>) -> Result<(), Error> {
            self.decided(control::Installation, rule).await
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
    }
}
