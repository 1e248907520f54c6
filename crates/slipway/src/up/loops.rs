//! Starts, shows and ends the loops of this process together.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::deletion::leaks::Finder;
use slipway_app::deletion::run::Runner;
use slipway_app::placement::reconcile::{ManagementRegistry, PlacementReconciler};
use slipway_app::ports::EventSink;
use slipway_app::rollouts;
use slipway_app::tenants::tasks::Tasks;
use slipway_app::topology;
use slipway_app::{Context, Error as AppError};
use slipway_controller::deletions::{DeletionLoop, DeletionPass};
use slipway_controller::driver::{Dependencies, Loop};
use slipway_controller::heartbeat::ReplicaHeartbeat;
use slipway_controller::orphans::OrphanLoop;
use slipway_controller::placement::PlacementLoop;
use slipway_controller::readiness::Verdict;
use slipway_controller::relay::Relay;
use slipway_controller::resources::ResourceLoop;
use slipway_controller::retention::RetentionLoop;
use slipway_controller::rollouts::{RolloutLoop, RolloutPass};
use slipway_controller::subscribers::Subscribers;
use slipway_controller::tenants::{Freeze, JobLoop, TaskLoop};
use slipway_controller::workspaces::{WorkspaceLoop, WorkspacePass};
use slipway_controller::{Pacing, Shutdown, Status, drive, readiness, watch_clock};
use slipway_server::LoopsView;
use slipway_tenants::{JobStore, Steps};
use slipway_wire::operations::{LoopStatus, Probe};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::clusters::Clusters;
use super::database_wait::DatabaseWait;
use super::partitions::{PartitionView, Partitions};
use crate::config::Config;
use crate::error::Error;
use crate::event_log::EventLog;

#[derive(Debug)]
pub(super) struct Loops {
    view: Arc<View>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct View {
    partitions: Partitions,
    /// The statuses of the loops that have no partitions.
    statuses: Vec<Arc<Status>>,
}

/// The jobs of tenants, and how they are done.
#[derive(Debug)]
pub(super) struct Jobs {
    pub(super) jobs: Arc<dyn JobStore>,
    pub(super) steps: Steps,
}

/// Sweeps once and starts every loop: one over resources for each cluster that
/// this process serves, the one that finds further clusters, and the others.
pub(super) async fn start(
    partitions: &Partitions,
    finder: &Finder,
    tenants: Jobs,
    config: &Config,
    shutdown: Shutdown,
) -> Result<Loops, Error> {
    let Partitions { context, engines, worker, .. } = partitions;
    let first: Vec<_> = engines
        .partitions()
        .iter()
        .map(|(partition, cluster)| partitions.open(*partition, cluster))
        .collect();
    // A sweep runs before its loop is driven: it may take back the claims of the
    // previous process of this worker in the partition.
    for PartitionView { cluster, resources, .. } in &first {
        let sweep = async || Ok(resources.boot_sweep().await.map_err(AppError::from)?);
        match DatabaseWait::of(config).run(sweep).await {
            Ok(due) => {
                tracing::info!(
                    cluster,
                    due,
                    "boot sweep: every resource that has not settled for good is due"
                );
            }
            // No reason to refuse the start: the loop claims resources by due time.
            Err(error) => tracing::warn!(
                cluster,
                %error,
                "the boot sweep failed; resources come up as they fall due"
            ),
        }
    }
    let mut tasks = JoinSet::new();
    for view in &first {
        partitions.drive(view, &mut tasks, &shutdown);
    }
    let registry = ManagementRegistry::default();
    let clusters = Clusters::new(partitions.clone(), registry.clone(), config);
    tasks.spawn(clusters.keep(shutdown.clone()));
    tasks.spawn(watch_clock(context.stores.clone(), config.lease, shutdown.clone()));

    let (worker, wakes) = (worker.clone(), &context.wakes);
    let mut others = Others { context, shutdown, tasks, statuses: Vec::new() };
    others.start(
        Relay::NAME,
        Relay::new(context.stores.clone()).waking(wakes.clone()),
        Pacing { slots: 1, batch: 1, poll: Duration::from_millis(250) },
        Arc::clone(&wakes.outbox),
    );
    others.start(
        Subscribers::NAME,
        Subscribers::new(context.clone(), sinks(config), worker.clone(), config.lease),
        Subscribers::PACING,
        Arc::clone(&wakes.subscribers),
    );
    // Nothing wakes retention and the scan for orphans: there is no hurry.
    others.start(
        RetentionLoop::NAME,
        RetentionLoop::new(context.clone(), config.retention, worker.clone()),
        RetentionLoop::PACING,
        Arc::default(),
    );
    others.start(
        OrphanLoop::NAME,
        OrphanLoop::new(finder.clone(), worker.clone(), config.orphan_interval),
        OrphanLoop::PACING,
        Arc::default(),
    );
    let permits = || Arc::clone(&partitions.permits);
    let deletions = Runner::new(context.clone(), permits());
    others.start(
        DeletionLoop::NAME,
        DeletionLoop::new(DeletionPass::new(deletions), worker.clone()),
        DeletionLoop::PACING,
        Arc::clone(&wakes.deletions),
    );
    let rollouts = rollouts::run::Runner::new(context.clone(), permits());
    others.start(
        RolloutLoop::NAME,
        RolloutLoop::new(RolloutPass::new(rollouts), worker.clone()),
        RolloutLoop::PACING,
        Arc::clone(&wakes.rollouts),
    );
    let workspaces = topology::run::Runner::new(context.clone(), permits());
    others.start(
        WorkspaceLoop::NAME,
        WorkspaceLoop::new(WorkspacePass::new(workspaces), worker.clone()),
        WorkspaceLoop::PACING,
        Arc::clone(&wakes.workspaces),
    );
    let freeze = Freeze { permits: permits(), stores: context.stores.clone() };
    let jobs = JobLoop::new(tenants.jobs, tenants.steps, freeze, &worker, config.lease);
    others.start(
        JobLoop::NAME,
        jobs.map_err(|error| Error::Tenants(error.to_string()))?,
        JobLoop::PACING,
        Arc::clone(&wakes.tenant_jobs),
    );
    others.start(
        TaskLoop::NAME,
        TaskLoop::new(Tasks::new(context.clone(), permits())),
        TaskLoop::PACING,
        Arc::clone(&wakes.tenant_tasks),
    );
    let engines = engines.clone();
    let placement_settings = config.placement.settings(engines.node_settings.installation);
    // Nothing wakes the heartbeat: its poll interval is the heartbeat interval.
    others.start(
        ReplicaHeartbeat::NAME,
        ReplicaHeartbeat::new(context.clone(), engines, permits(), worker.clone(), config.lease),
        Pacing { slots: 1, batch: 1, poll: ReplicaHeartbeat::INTERVAL },
        Arc::default(),
    );
    let placement =
        PlacementReconciler::new(context.clone(), placement_settings, permits(), &worker);
    others.start(
        PlacementLoop::NAME,
        PlacementLoop::new(placement, registry, worker, config.reconcile_interval),
        PlacementLoop::PACING,
        Arc::clone(&wakes.placement),
    );
    let Others { mut tasks, statuses, shutdown, .. } = others;
    let view = Arc::new(View { partitions: partitions.clone(), statuses });
    tasks.spawn(Arc::clone(&view).watch(config.reconcile_interval, shutdown));
    Ok(Loops { view, tasks })
}

/// Starts the loops that have no partitions, and collects their statuses.
struct Others<'a> {
    context: &'a Context,
    shutdown: Shutdown,
    tasks: JoinSet<()>,
    statuses: Vec<Arc<Status>>,
}

impl Others<'_> {
    fn start<L: Loop>(&mut self, name: &str, work: L, pacing: Pacing, wake: Arc<Notify>) {
        let status = Arc::new(Status::new(name));
        self.statuses.push(Arc::clone(&status));
        let shutdown = self.shutdown.clone();
        self.tasks.spawn(driven(self.context, Arc::new(work), pacing, wake, status, shutdown));
    }
}

/// The loop in a span with its name, which every log line of its own carries.
pub(super) fn driven<L: Loop>(
    context: &Context,
    work: Arc<L>,
    pacing: Pacing,
    wake: Arc<Notify>,
    status: Arc<Status>,
    shutdown: Shutdown,
) -> impl Future<Output = ()> + use<L> {
    let dependencies = Dependencies {
        clock: Arc::clone(&context.clock),
        entropy: Arc::clone(&context.entropy),
        wake,
    };
    let span = tracing::error_span!("loop", name = status.name());
    drive(work, pacing, dependencies, status, shutdown).instrument(span)
}

/// The sinks to which this process publishes events.
fn sinks(config: &Config) -> Vec<Arc<dyn EventSink>> {
    let event_log = config.event_log.clone().map(EventLog::new);
    event_log.into_iter().map(|sink| Arc::new(sink) as Arc<dyn EventSink>).collect()
}

impl Loops {
    pub(super) fn view(&self) -> Arc<dyn LoopsView> {
        Arc::clone(&self.view) as Arc<dyn LoopsView>
    }

    /// Waits until every loop has finished its claimed rows.
    pub(super) async fn join(mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a loop did not end cleanly");
            }
        }
    }
}

impl View {
    /// Judges the loops at every interval and logs an outage once, whoever asks for
    /// `/readyz` meanwhile.
    async fn watch(self: Arc<Self>, interval: Duration, mut shutdown: Shutdown) {
        let mut failing = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = shutdown.requested() => return,
            }
            let (probe, failures) = self.judge().await;
            if failures.is_empty() {
                if failing {
                    tracing::info!("provisioning broker reconcile ticks succeed again");
                }
            } else if !failing {
                tracing::warn!(
                    probe = ResourceLoop::PROBE,
                    detail = probe.detail,
                    internal = failures.join("; "),
                    "provisioning broker reconcile tick failed"
                );
            }
            failing = !failures.is_empty();
        }
    }

    /// Whether every cluster that this process serves advances, and for the log why
    /// it does not.
    async fn judge(&self) -> (readiness::Probe, Vec<String>) {
        let partitions = self.partitions.all();
        let (mut verdicts, mut failures) = (Vec::with_capacity(partitions.len()), Vec::new());
        for PartitionView { cluster, resources, status } in &partitions {
            let (verdict, internal) = resources.verdict(status).await;
            verdicts.push((cluster.as_str(), verdict));
            if verdict.is_failure() {
                failures.push(format!("{cluster}: {internal}"));
            }
        }
        (readiness::probe(&verdicts), failures)
    }

    /// The probe if the database does not answer in time.
    fn unanswered(&self) -> readiness::Probe {
        let partitions = self.partitions.all();
        let clusters = partitions.iter().map(|view| view.cluster.as_str());
        readiness::probe(&clusters.map(|name| (name, Verdict::CannotList)).collect::<Vec<_>>())
    }

    /// Clusters that wait for a control plane other than this one. They are shown
    /// and fail no probe: no replica would be left to ask why, and what helps is a
    /// file. Their resources have the blocker `cluster_not_served`.
    async fn not_served(&self) -> Vec<String> {
        let context = &self.partitions.context;
        let overdue = match context.stores.broker.partition_list_overdue().await {
            Ok(overdue) => overdue,
            // Callers without a key see this text, so it omits the error.
            Err(error) => {
                if !error.is_logged() {
                    tracing::warn!(%error, "cannot list clusters that no control plane serves");
                }
                return vec!["clusters of other control planes cannot be read".to_owned()];
            }
        };
        let limit = context.settings.claimed_within;
        overdue
            .into_iter()
            .filter(|found| found.overdue > limit && !self.partitions.serve(found.partition))
            .map(|found| format!("no control plane serves cluster {}", found.cluster))
            .collect()
    }
}

#[async_trait]
impl LoopsView for View {
    fn statuses(&self) -> Vec<LoopStatus> {
        let partitions = self.partitions.all().into_iter().map(|partition| partition.status);
        partitions
            .chain(self.statuses.iter().cloned())
            .map(|status| {
                let snapshot = status.snapshot();
                LoopStatus {
                    name: snapshot.name,
                    activations: snapshot.activations,
                    last_activation_at: snapshot.last_activation_at.map(|at| at.to_string()),
                    last_error: snapshot.last_error,
                    claimed: snapshot.claimed,
                    failed: snapshot.failed,
                }
            })
            .collect()
    }

    async fn probes(&self, within: Duration) -> Vec<Probe> {
        let asked = async { tokio::join!(self.judge(), self.not_served()) };
        let ((readiness::Probe { ok, detail }, _), not_served) =
            match tokio::time::timeout(within, asked).await {
                Ok(answered) => answered,
                Err(_) => ((self.unanswered(), Vec::new()), Vec::new()),
            };
        let details = std::iter::once(detail).chain(not_served).filter(|d| !d.is_empty());
        let detail = details.collect::<Vec<_>>().join("; ");
        vec![Probe { name: ResourceLoop::PROBE.to_owned(), ok, detail }]
    }
}
