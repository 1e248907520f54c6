//! The orphans loop: scans each cluster and compares everything there with the
//! rows, at an interval and soon after a start, one replica at a time per
//! cluster. What counts as work is a due periodic task of a cluster. The loop
//! also continues the removals that people requested. The resource loop removes
//! objects that a row knows; this loop only wakes it.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::deletion::leaks::{Finder, ScanReport};
use slipway_app::placement::port::ClusterIdentity;
use slipway_durable::{EarlierClaims, Lease};

use crate::driver::{Failure, Loop, Pacing};
use crate::periodic::{ClaimedTask, Tasks};

/// The loop over clusters.
#[derive(Debug)]
pub struct OrphanLoop {
    finder: Finder,
    tasks: Tasks,
    /// The time between two scans.
    interval: Duration,
}

/// A cluster with a claimed task.
#[derive(Debug)]
pub struct ClusterPass {
    cluster: ClusterIdentity,
    task: ClaimedTask,
}

impl OrphanLoop {
    pub const NAME: &'static str = "orphans";
    pub const PACING: Pacing = Pacing { slots: 4, batch: 4, poll: Duration::from_secs(1) };
    /// A scan may take minutes and two at once do no harm, so its claim is long
    /// and not renewed; it only keeps replicas from doing the same work twice.
    pub(crate) const LEASE: Duration = Duration::from_secs(300);
    /// How soon the next pass comes while an object is still being removed.
    const REMOVING: Duration = Duration::from_secs(1);

    pub fn new(finder: Finder, worker: String, interval: Duration) -> Self {
        // A request of an earlier process may still take effect. It deletes by its
        // uid what somebody asked to remove; nobody takes that back, so it does no
        // harm, and there is no reason to wait for a claim this long.
        let earlier_claims = EarlierClaims::TakenBack;
        let stores = finder.context().stores.clone();
        let tasks = Tasks::new(stores, worker, Self::LEASE, earlier_claims);
        Self { finder, tasks, interval }
    }

    /// One lease, so that claims expire that were held when the previous process
    /// ended, and that a finding is seen again one lease later.
    fn soon(&self) -> Duration {
        self.finder.lease().min(self.interval)
    }

    /// Continues removals, scans, and returns the time until the next pass.
    async fn pass(&self, cluster: &ClusterIdentity, errors: &mut Vec<String>) -> Duration {
        let left = match self.finder.continue_removals(cluster).await {
            Ok((left, problems)) => {
                errors.extend(problems);
                left
            }
            Err(error) => {
                errors.push(error.to_string());
                return self.soon();
            }
        };
        let report = match self.finder.scan(cluster).await {
            Ok(report) => report,
            Err(error) => {
                errors.push(error.to_string());
                return self.soon();
            }
        };
        self.tell(&report, errors);
        if left > 0 {
            Self::REMOVING
        } else if report.suspected.is_empty() && report.error.is_none() {
            self.interval
        } else {
            self.soon()
        }
    }

    fn tell(&self, report: &ScanReport, errors: &mut Vec<String>) {
        let cluster = &report.cluster;
        errors.extend(
            report
                .error
                .as_ref()
                .map(|error| format!("cluster {cluster} could not be scanned completely: {error}")),
        );
        if let Some(first) = report.unreadable.first() {
            let count = report.unreadable.len();
            errors.push(format!("cluster {cluster}: {count} objects cannot be read: {first}"));
        }
        if !report.leaks.is_empty() {
            let open = report.leaks.len();
            tracing::warn!(cluster, open, "objects do not agree with the rows; `slipway leaks`");
        }
        tracing::debug!(
            cluster,
            objects = report.objects,
            foreign = report.foreign,
            suspected = report.suspected.len(),
            woken = report.woken,
            resolved = report.resolved,
            "finished a scan"
        );
    }
}

#[async_trait]
impl Loop for OrphanLoop {
    type Item = ClusterPass;

    fn lease(&self) -> Duration {
        self.tasks.lease()
    }

    async fn claim(&self, limit: u32) -> Result<Vec<ClusterPass>, Failure> {
        let served = self.finder.served().await.map_err(|error| Failure {
            is_logged: error.is_logged(),
            message: error.to_string(),
        })?;
        let mut passes = Vec::new();
        for cluster in served {
            if u32::try_from(passes.len()).is_ok_and(|count| count >= limit) {
                break;
            }
            let task = Finder::task(cluster.id);
            self.tasks.ensure(&task, self.soon()).await?;
            if let Some(task) = self.tasks.claim(task).await? {
                passes.push(ClusterPass { cluster, task });
            }
        }
        Ok(passes)
    }

    async fn work(&self, items: Vec<ClusterPass>, _lease: Lease) -> Vec<String> {
        let mut all = Vec::new();
        for ClusterPass { cluster, task } in items {
            let mut errors = Vec::new();
            let next = self.pass(&cluster, &mut errors).await;
            all.extend(self.tasks.release(&task, next, errors).await);
        }
        all
    }
}
