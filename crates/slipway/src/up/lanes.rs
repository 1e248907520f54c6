//! The lanes of this process: for each cluster that it serves a loop over
//! resources, with slots, batches and a status of its own, and beside it a wait
//! for what the cluster's engines see change. Some are there from the start,
//! others come while it runs ([`super::clusters`]); none goes before the end.

use std::sync::{Arc, PoisonError, RwLock};

use slipway_app::Context;
use slipway_app::gate::Gate;
use slipway_app::usecases::converge::Engines;
use slipway_controller::driver::Surroundings;
use slipway_controller::resources::ResourceLoop;
use slipway_controller::{Shutdown, Status, watch_engine};
use slipway_core::ids::Lane;
use tokio::task::JoinSet;

use super::loops::driven;
use crate::config::Config;

/// What a lane is made of, and the lanes that there are. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    context: Context,
    engines: Engines,
    gate: Arc<Gate>,
    worker: String,
    lease: std::time::Duration,
    sweep: std::time::Duration,
    shown: Arc<RwLock<Vec<LaneView>>>,
}

/// The loop over the resources of one cluster.
#[derive(Debug, Clone)]
pub(super) struct LaneView {
    pub(super) cluster: String,
    pub(super) resources: Arc<ResourceLoop>,
    pub(super) status: Arc<Status>,
}

impl Lanes {
    pub(super) fn new(context: &Context, engines: &Engines, config: &Config, worker: &str) -> Self {
        Self {
            context: context.clone(),
            engines: engines.clone(),
            // One for the process: a mode is acknowledged when all of it obeys.
            gate: Arc::default(),
            worker: worker.to_owned(),
            lease: config.lease,
            sweep: config.reconcile_interval,
            shown: Arc::default(),
        }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn engines(&self) -> &Engines {
        &self.engines
    }

    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    pub(super) fn worker(&self) -> &str {
        &self.worker
    }

    pub(super) const fn lease(&self) -> std::time::Duration {
        self.lease
    }

    /// Those that there are now.
    pub(super) fn all(&self) -> Vec<LaneView> {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn serve(&self, lane: Lane) -> bool {
        self.all().iter().any(|served| served.resources.lane() == lane)
    }

    /// Makes the loop of a cluster that the engines serve, and shows it from
    /// now on. Whoever makes it sweeps and drives it.
    pub(super) fn open(&self, lane: Lane, cluster: &str) -> LaneView {
        let resources = ResourceLoop::new(
            self.context.clone(),
            self.engines.clone(),
            self.worker.clone(),
            lane,
            self.lease,
            self.sweep,
        );
        let view = LaneView {
            cluster: cluster.to_owned(),
            resources: Arc::new(resources.with_gate(Arc::clone(&self.gate))),
            status: Arc::new(Status::new(format!("{}/{cluster}", ResourceLoop::NAME))),
        };
        self.shown.write().unwrap_or_else(PoisonError::into_inner).push(view.clone());
        view
    }

    /// Drives the loop of a lane and hears its engines until shutdown.
    pub(super) fn drive(&self, view: &LaneView, tasks: &mut JoinSet<()>, shutdown: &Shutdown) {
        let lane = view.resources.lane();
        for (_, engine) in self.engines.iter().into_iter().filter(|(of, _)| *of == lane) {
            tasks.spawn(watch_engine(self.context.clone(), engine, shutdown.clone()));
        }
        let surroundings = Surroundings {
            clock: Arc::clone(&self.context.clock),
            entropy: Arc::clone(&self.context.entropy),
            wake: view.resources.wake(),
        };
        tasks.spawn(driven(
            Arc::clone(&view.resources),
            ResourceLoop::PACING,
            surroundings,
            Arc::clone(&view.status),
            shutdown.clone(),
        ));
    }
}
