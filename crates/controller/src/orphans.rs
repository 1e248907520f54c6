//! The orphans loop: scans each cluster and compares everything there with the
//! rows, at an interval and soon after a start, one replica at a time per
//! cluster. What counts as work is a due periodic task of a cluster. The loop
//! also continues the removals that people requested. The resource loop removes
//! objects that a row knows; this loop only wakes it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::deletion::leaks::{Finder, ScanReport};
use slipway_app::placement::port::ClusterIdentity;
use slipway_core::ids::ClaimToken;
use slipway_durable::Lease;

use crate::driver::{Loop, Pacing};

/// The loop over clusters.
#[derive(Debug)]
pub struct OrphanLoop {
    finder: Finder,
    worker: String,
    /// The time between two scans.
    interval: Duration,
    /// Tasks that this process has already created.
    ensured: Mutex<HashSet<String>>,
}

/// A cluster with a claimed task.
#[derive(Debug)]
pub struct ClusterPass {
    cluster: ClusterIdentity,
    task: String,
    claim: ClaimToken,
}

impl OrphanLoop {
    pub const NAME: &'static str = "orphans";
    pub const PACING: Pacing = Pacing { slots: 4, batch: 4, poll: Duration::from_secs(1) };
    /// A scan may take minutes and two at once do no harm, so its claim is long
    /// and not renewed; it only keeps replicas from doing the same work twice.
    const LEASE: Duration = Duration::from_secs(300);
    /// How soon the next pass comes while an object is still being removed.
    const REMOVING: Duration = Duration::from_secs(1);

    pub fn new(finder: Finder, worker: String, interval: Duration) -> Self {
        Self { finder, worker, interval, ensured: Mutex::default() }
    }

    /// Schedules a first scan soon after a start, but not before claims have
    /// expired that were held when the previous process ended.
    async fn ensure(&self, task: &str) -> Result<(), String> {
        if self.ensured().contains(task) {
            return Ok(());
        }
        let store = &self.finder.context().stores;
        if self.ensured().is_empty() {
            store.operations.task_reclaim(&self.worker).await.map_err(|error| error.to_string())?;
        }
        let within = self.finder.lease().min(self.interval);
        store.operations.task_ensure(task, within).await.map_err(|error| error.to_string())?;
        self.ensured().insert(task.to_owned());
        Ok(())
    }

    fn ensured(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.ensured.lock().unwrap_or_else(PoisonError::into_inner)
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
                return self.finder.lease().min(self.interval);
            }
        };
        let report = match self.finder.scan(cluster).await {
            Ok(report) => report,
            Err(error) => {
                errors.push(error.to_string());
                return self.finder.lease().min(self.interval);
            }
        };
        self.tell(&report, errors);
        if left > 0 {
            Self::REMOVING
        } else if report.suspected.is_empty() && report.error.is_none() {
            self.interval
        } else {
            // A finding counts if it is seen again one lease later.
            self.finder.lease().min(self.interval)
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
        Self::LEASE
    }

    async fn claim(&self, limit: u32) -> Result<Vec<ClusterPass>, String> {
        let served = self.finder.served().await.map_err(|error| error.to_string())?;
        let store = &self.finder.context().stores;
        let mut passes = Vec::new();
        for cluster in served {
            if u32::try_from(passes.len()).is_ok_and(|count| count >= limit) {
                break;
            }
            let task = Finder::task(cluster.id);
            self.ensure(&task).await?;
            let claimed = store.operations.task_claim(&task, &self.worker, Self::LEASE).await;
            if let Some(claim) = claimed.map_err(|error| error.to_string())? {
                passes.push(ClusterPass { cluster, task, claim });
            }
        }
        Ok(passes)
    }

    async fn work(&self, items: Vec<ClusterPass>, _lease: Lease) -> Vec<String> {
        let store = &self.finder.context().stores;
        let mut all = Vec::new();
        for ClusterPass { cluster, task, claim } in items {
            let mut errors = Vec::new();
            let next = self.pass(&cluster, &mut errors).await;
            let error = (!errors.is_empty()).then(|| errors.join("; "));
            if let Err(error) =
                store.operations.task_release(&task, claim, next, error.as_deref()).await
            {
                // The claim expires by itself.
                errors.push(error.to_string());
            }
            all.extend(errors);
        }
        all
    }
}
