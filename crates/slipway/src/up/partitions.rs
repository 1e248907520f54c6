//! The partitions of this process: for each cluster that it serves a loop over
//! resources, with slots, batches and a status of its own, and a task per engine
//! that waits for changes on the cluster. Some partitions exist from the start,
//! [`super::clusters`] adds others later; none goes before shutdown.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use slipway_app::Context;
use slipway_app::broker::converge::Engines;
use slipway_app::permits::Permits;
use slipway_controller::resources::ResourceLoop;
use slipway_controller::{Shutdown, Status, watch_engine};
use slipway_core::ids::Partition;
use tokio::task::JoinSet;

use super::loops::driven;
use crate::config::Config;

/// The open partitions, and what a new one needs. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Partitions {
    pub(super) context: Context,
    pub(super) engines: Engines,
    pub(super) permits: Arc<Permits>,
    pub(super) worker: String,
    pub(super) lease: Duration,
    sweep: Duration,
    shown: Arc<RwLock<Vec<PartitionView>>>,
}

/// The loop over the resources of one cluster.
#[derive(Debug, Clone)]
pub(super) struct PartitionView {
    pub(super) cluster: String,
    pub(super) resources: Arc<ResourceLoop>,
    pub(super) status: Arc<Status>,
}

impl Partitions {
    pub(super) fn new(
        context: &Context,
        engines: &Engines,
        permits: &Arc<Permits>,
        config: &Config,
        worker: &str,
    ) -> Self {
        Self {
            context: context.clone(),
            engines: engines.clone(),
            permits: Arc::clone(permits),
            worker: worker.to_owned(),
            lease: config.lease,
            sweep: config.reconcile_interval,
            shown: Arc::default(),
        }
    }

    /// The partitions that are open now.
    pub(super) fn all(&self) -> Vec<PartitionView> {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn serve(&self, partition: Partition) -> bool {
        self.all().iter().any(|served| served.resources.partition() == partition)
    }

    /// Shows and judges the loop of this cluster no longer.
    pub(super) fn hide(&self, partition: Partition) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|served| served.resources.partition() != partition);
    }

    /// Creates the loop of a cluster that the engines serve, and shows it from
    /// now on. The caller has to sweep and drive it.
    pub(super) fn open(&self, partition: Partition, cluster: &str) -> PartitionView {
        let resources = ResourceLoop::new(
            self.context.clone(),
            self.engines.clone(),
            self.worker.clone(),
            partition,
            self.lease,
            self.sweep,
        );
        let view = PartitionView {
            cluster: cluster.to_owned(),
            resources: Arc::new(resources.with_permits(Arc::clone(&self.permits))),
            status: Arc::new(Status::new(format!("{}/{cluster}", ResourceLoop::NAME))),
        };
        self.shown.write().unwrap_or_else(PoisonError::into_inner).push(view.clone());
        view
    }

    /// Drives the loop of a partition and watches its engines until shutdown.
    pub(super) fn drive(&self, view: &PartitionView, tasks: &mut JoinSet<()>, shutdown: &Shutdown) {
        let partition = view.resources.partition();
        for (_, engine) in self.engines.iter().into_iter().filter(|(of, _)| *of == partition) {
            tasks.spawn(watch_engine(self.context.clone(), engine, shutdown.clone()));
        }
        tasks.spawn(driven(
            &self.context,
            Arc::clone(&view.resources),
            ResourceLoop::PACING,
            view.resources.wake(),
            Arc::clone(&view.status),
            shutdown.clone(),
        ));
    }
}
