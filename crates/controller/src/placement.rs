//! The placement loop: makes a pass over each management cluster at an
//! interval, and at once when a placement changes, one replica at a time per
//! cluster. What counts as work is a due periodic task of a cluster.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::placement::reconcile::{ManagementRegistry, PassSummary, PlacementReconciler};
use slipway_app::ports::Management;
use slipway_core::ids::ClusterId;
use slipway_core::placement::cluster::Cluster;
use slipway_durable::Lease;

use crate::driver::{Failure, Loop, Pacing, failure};
use crate::periodic::{ClaimedTask, Tasks};

/// The loop over management clusters.
#[derive(Debug)]
pub struct PlacementLoop {
    placement: PlacementReconciler,
    registry: ManagementRegistry,
    tasks: Tasks,
    /// The time between two passes when nothing waits.
    interval: Duration,
    /// The cluster of the last pass; the next claim starts with the one after it.
    last: Mutex<Option<ClusterId>>,
}

/// A cluster with a claimed task.
#[derive(Debug)]
pub struct ClusterPass {
    cluster: ClusterId,
    management: Arc<dyn Management>,
    task: ClaimedTask,
}

impl PlacementLoop {
    pub const NAME: &'static str = "placement";
    /// One cluster per batch, so that an unreachable one delays no other.
    pub const PACING: Pacing = Pacing { slots: 64, batch: 1, poll: Duration::from_millis(250) };
    /// How soon the next pass over a cluster comes on which something waits,
    /// for example for its secret.
    const WAITING: Duration = Duration::from_secs(1);
    /// A pass makes a few requests to a cluster and may have to advance many
    /// projects. Two replicas could do its actions at once without harm.
    const LEASE: Duration = Duration::from_secs(20);

    pub fn new(
        placement: PlacementReconciler,
        registry: ManagementRegistry,
        worker: String,
        interval: Duration,
    ) -> Self {
        let tasks = Tasks::new(placement.context().stores.clone(), worker, Self::LEASE);
        Self { placement, registry, tasks, interval, last: Mutex::default() }
    }

    fn task(cluster: ClusterId) -> String {
        format!("placement/{cluster}")
    }

    /// The clusters, beginning after the one that had the last pass.
    fn in_order(&self) -> Vec<(ClusterId, Arc<dyn Management>)> {
        let mut registry = self.registry.list();
        let last = *self.last();
        let after = registry.partition_point(|(cluster, _)| Some(*cluster) <= last);
        registry.rotate_left(after);
        registry
    }

    fn last(&self) -> MutexGuard<'_, Option<ClusterId>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If a wake is pending, wakes the task of every cluster; an error keeps
    /// the wake pending.
    async fn wake_all(&self) -> Result<(), Failure> {
        let context = self.placement.context();
        if !context.wakes.placement_waits() {
            return Ok(());
        }
        for (cluster, _) in self.registry.list() {
            if let Err(error) = context.stores.operations.task_wake(&Self::task(cluster)).await {
                context.wakes.wake_placement();
                return Err(failure(error));
            }
        }
        Ok(())
    }

    async fn pass(&self, pass: &ClusterPass) -> (Duration, Vec<String>) {
        let store = &self.placement.context().stores;
        let cluster: Cluster =
            match store.kind::<Cluster>().fetch(&pass.cluster.to_string(), false).await {
                Ok(Some(cluster)) => cluster,
                Ok(None) => return (self.interval, Vec::new()),
                Err(error) => return (self.interval, vec![error.to_string()]),
            };
        match self.placement.pass(&cluster, pass.management.as_ref()).await {
            Ok(PassSummary { projects, actions, waiting, errors }) => {
                tracing::debug!(cluster = %cluster.name, projects, actions, waiting, "finished a pass of the placement loop");
                let next =
                    if waiting || !errors.is_empty() { Self::WAITING } else { self.interval };
                let errors =
                    errors.iter().map(|error| format!("cluster {}: {error}", cluster.name));
                (next.min(self.interval), errors.collect())
            }
            Err(error) => (Self::WAITING.min(self.interval), vec![error.to_string()]),
        }
    }
}

#[async_trait]
impl Loop for PlacementLoop {
    type Item = ClusterPass;

    fn lease(&self) -> Duration {
        self.tasks.lease()
    }

    async fn claim(&self, limit: u32) -> Result<Vec<ClusterPass>, Failure> {
        for (cluster, _) in self.registry.list() {
            self.tasks.ensure(&Self::task(cluster), Duration::ZERO).await?;
        }
        self.wake_all().await?;
        let mut passes = Vec::new();
        for (cluster, management) in self.in_order() {
            if u32::try_from(passes.len()).is_ok_and(|count| count >= limit) {
                break;
            }
            if let Some(task) = self.tasks.claim(Self::task(cluster)).await? {
                *self.last() = Some(cluster);
                passes.push(ClusterPass { cluster, management, task });
            }
        }
        Ok(passes)
    }

    async fn work(&self, items: Vec<ClusterPass>, _lease: Lease) -> Vec<String> {
        let mut all = Vec::new();
        for pass in items {
            let (next, errors) = self.pass(&pass).await;
            all.extend(self.tasks.release(&pass.task, next, errors).await);
        }
        all
    }
}
