//! The loops of this process: started together, shown together, ended together.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::usecases::converge::Engines;
use slipway_controller::driver::Surroundings;
use slipway_controller::relay::Relay;
use slipway_controller::resources::ResourceLoop;
use slipway_controller::{Pacing, Shutdown, Status, drive};
use slipway_core::ids::Lane;
use slipway_server::LoopsView;
use slipway_wire::api::{LoopStatus, Probe};
use tokio::task::JoinSet;

use crate::config::Config;

/// The running loops.
#[derive(Debug)]
pub(super) struct Loops {
    view: Arc<View>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct View {
    resources: Arc<ResourceLoop>,
    resources_status: Arc<Status>,
    relay_status: Arc<Status>,
}

/// Sweeps once and starts every loop.
pub(super) async fn start(
    context: &Context,
    engines: &Engines,
    config: &Config,
    worker: &str,
    lane: Lane,
    shutdown: Shutdown,
) -> Loops {
    let resources = Arc::new(ResourceLoop::new(
        context.clone(),
        engines.clone(),
        worker.to_owned(),
        lane,
        config.lease,
        config.reconcile_interval,
    ));
    match resources.boot_sweep().await {
        Ok(due) => tracing::info!(due, "boot sweep: everything not settled for good is due"),
        // The database was there a moment ago; the sweep by due time finds all of it.
        Err(error) => {
            tracing::warn!(%error, "the boot sweep failed; resources come up as they fall due");
        }
    }
    let view = Arc::new(View {
        resources: Arc::clone(&resources),
        resources_status: Arc::new(Status::new(ResourceLoop::NAME)),
        relay_status: Arc::new(Status::new(Relay::NAME)),
    });
    let surroundings = |wake| Surroundings {
        clock: Arc::clone(&context.clock),
        entropy: Arc::clone(&context.entropy),
        wake,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(drive(
        resources,
        Pacing { lease: config.lease, ..ResourceLoop::PACING },
        surroundings(Arc::clone(&context.wakes.attempts)),
        Arc::clone(&view.resources_status),
        shutdown.clone(),
    ));
    tasks.spawn(drive(
        Arc::new(Relay::new(Arc::clone(&context.store))),
        Pacing { slots: 1, batch: 1, poll: Duration::from_millis(250), lease: config.lease },
        surroundings(Arc::clone(&context.wakes.outbox)),
        Arc::clone(&view.relay_status),
        shutdown,
    ));
    Loops { view, tasks }
}

impl Loops {
    pub(super) fn view(&self) -> Arc<dyn LoopsView> {
        Arc::clone(&self.view) as Arc<dyn LoopsView>
    }

    /// Waits until every loop finished what it held.
    pub(super) async fn join(mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a loop did not end cleanly");
            }
        }
    }
}

#[async_trait]
impl LoopsView for View {
    fn statuses(&self) -> Vec<LoopStatus> {
        [&self.resources_status, &self.relay_status]
            .into_iter()
            .map(|status| {
                let snapshot = status.snapshot();
                LoopStatus {
                    name: snapshot.name.to_owned(),
                    activations: snapshot.activations,
                    last_activation_at: snapshot.last_activation_at.map(|at| at.to_string()),
                    last_error: snapshot.last_error,
                    claimed: snapshot.claimed,
                    failed: snapshot.failed,
                }
            })
            .collect()
    }

    async fn probes(&self) -> Vec<Probe> {
        let reconcile = self.resources.probe(&self.resources_status).await;
        let reconcile = Probe {
            name: ResourceLoop::PROBE.to_owned(),
            ok: reconcile.ok,
            detail: reconcile.detail,
        };
        vec![reconcile]
    }
}
