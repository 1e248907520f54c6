//! The placement loop: makes a pass over each management cluster at an
//! interval, and at once when a placement changes, one replica at a time per
//! cluster. What counts as work is a due periodic task of a cluster.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::broker::converge::action_deadline;
use slipway_app::placement::reconcile::{
    ManagementRegistry, PassLease, PassSummary, PlacementReconciler,
};
use slipway_app::ports::Management;
use slipway_core::ids::ClusterId;
use slipway_core::placement::cluster::Cluster;
use slipway_durable::{Actions, Lease};

use crate::driver::{Failure, Loop, Pacing, failure};
use crate::periodic::{ClaimedTask, TaskRenewer, Tasks};

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

/// The renewed lease of a pass.
#[derive(Debug)]
struct RenewedLease<'a, 'b> {
    renewer: &'a TaskRenewer<'b>,
    deadline: Duration,
}

impl PassLease for RenewedLease<'_, '_> {
    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn allows_action(&self) -> bool {
        self.renewer.allows(&(), self.deadline)
    }
}

impl PlacementLoop {
    pub const NAME: &'static str = "placement";
    /// One cluster per batch, so that an unreachable one delays no other.
    pub const PACING: Pacing = Pacing { slots: 64, batch: 1, poll: Duration::from_millis(250) };
    /// How soon the next pass over a cluster comes on which something waits,
    /// for example for its secret.
    const WAITING: Duration = Duration::from_secs(1);
    /// How long the clusters of a dead process wait. A pass may have to advance
    /// many projects; its lease is renewed for as long as it takes, and each
    /// action has a third of it: more than one request may take.
    const LEASE: Duration = Duration::from_secs(20);

    pub fn new(
        placement: PlacementReconciler,
        registry: ManagementRegistry,
        worker: String,
        interval: Duration,
    ) -> Self {
        let earlier_claims = Actions::Remote.earlier_claims();
        let stores = placement.context().stores.clone();
        let tasks = Tasks::new(stores, worker, Self::LEASE, earlier_claims);
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

    async fn pass(&self, pass: &ClusterPass, lease: &dyn PassLease) -> (Duration, Vec<String>) {
        let store = &self.placement.context().stores;
        let cluster: Cluster =
            match store.kind::<Cluster>().fetch(&pass.cluster.to_string(), false).await {
                Ok(Some(cluster)) => cluster,
                Ok(None) => return (self.interval, Vec::new()),
                Err(error) => return (self.interval, vec![error.to_string()]),
            };
        match self.placement.pass(&cluster, pass.management.as_ref(), lease).await {
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

    async fn work(&self, items: Vec<ClusterPass>, lease: Lease) -> Vec<String> {
        let mut all = Vec::new();
        for pass in items {
            let renewer = self.tasks.renewer(&pass.task, lease);
            let renewed =
                RenewedLease { renewer: &renewer, deadline: action_deadline(Self::LEASE) };
            let (next, errors) = renewer.during(self.pass(&pass, &renewed)).await;
            all.extend(self.tasks.release(&pass.task, next, errors).await);
        }
        all
    }
}
