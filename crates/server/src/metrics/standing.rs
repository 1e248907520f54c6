//! How everything stands: resources by phase, blockers, nodes, what waits in
//! the lanes, readiness. Asked of the database when somebody asks for the
//! metrics, so that each replica says the same and nobody asking costs nothing.
//!
//! Counting reads every attempt, so it is done beside the answer, by one at a
//! time, and its numbers are shown for [`KEPT`] at least and for twenty times as
//! long as they took: whoever asks how often, counting costs the database no more
//! than a twentieth of one connection's time. What waits in the lanes costs one
//! look into an index for each cluster and is always fresh.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use slipway_app::ports::operations::Standing;
use slipway_app::ports::store;
use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::node::Reachability;
use tokio::time::timeout;

use super::loops::LoopMetrics;
use crate::health;
use crate::state::ServerState;

/// A scrape waits this long for the database.
const LIMIT: Duration = Duration::from_secs(2);

/// The usual distance of scrapes. See `docs/metrics.md` for what a count costs.
const KEPT: Duration = Duration::from_secs(15);

/// Counting takes one part of the time in so many.
const SHARE: u32 = 20;

/// When the numbers shown were counted, and how long they are good enough.
#[derive(Debug, Clone, Copy)]
struct Counted {
    at: Instant,
    kept: Duration,
}

impl Counted {
    fn after(took: Duration) -> Self {
        Self { at: Instant::now(), kept: KEPT.max(took * SHARE) }
    }

    fn is_old(self) -> bool {
        self.at.elapsed() >= self.kept
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReachabilityLabels {
    reachability: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LaneLabels {
    lane: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoopLabels {
    name: String,
}

#[derive(Debug, Default)]
pub(super) struct StandingMetrics {
    ready: Gauge,
    phases: Family<PhaseLabels, Gauge>,
    blockers: Family<CodeLabels, Gauge>,
    nodes: Family<ReachabilityLabels, Gauge>,
    overdue: Family<LaneLabels, Gauge<f64, AtomicU64>>,
    activations: Family<LoopLabels, Counter>,
    failures: Family<LoopLabels, Counter>,
    age: Gauge<f64, AtomicU64>,
    counted: Mutex<Option<Counted>>,
    /// Held by whoever counts.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Who knows which lanes are served here; none where nothing is.
    loops: Option<Arc<LoopMetrics>>,
}

impl StandingMetrics {
    pub(super) fn register(registry: &mut Registry, loops: Option<Arc<LoopMetrics>>) -> Self {
        let metrics = Self { loops, ..Self::default() };
        registry.register(
            "slipway_ready",
            "1 if /readyz answers that this process is ready, 0 otherwise",
            metrics.ready.clone(),
        );
        registry.register(
            "slipway_resources",
            "Attempts by phase, counted at most every 15 s; absent while the database is",
            metrics.phases.clone(),
        );
        registry.register(
            "slipway_blockers",
            "Blockers by code, counted at most every 15 s; absent while the database is",
            metrics.blockers.clone(),
        );
        registry.register(
            "slipway_nodes",
            "Registered nodes by the age of their last heartbeat, counted at most every 15 s; absent while the database is",
            metrics.nodes.clone(),
        );
        registry.register(
            "slipway_counted_age_seconds",
            "How long ago resources, blockers and nodes were counted; 0 if they are not",
            metrics.age.clone(),
        );
        registry.register(
            "slipway_lane_overdue_seconds",
            "How long what is due longest in a lane has been waiting for a claim; absent while the database is",
            metrics.overdue.clone(),
        );
        registry.register(
            "slipway_loop_activations",
            "Times that a loop of this process looked for work",
            metrics.activations.clone(),
        );
        registry.register(
            "slipway_loop_failures",
            "Pieces of work, or whole looks, of a loop that ended in an error",
            metrics.failures.clone(),
        );
        metrics
    }

    pub(super) async fn refresh(&self, state: &ServerState) {
        tokio::join!(self.count(state), self.lag(state), async {
            self.ready.set(i64::from(health::readiness(state).await.ready));
        });
        for status in state.loops.statuses() {
            let labels = LoopLabels { name: status.name };
            let set = |counters: &Family<LoopLabels, Counter>, value| {
                let counter = counters.get_or_create(&labels);
                counter.inner().store(value, std::sync::atomic::Ordering::Relaxed);
            };
            set(&self.activations, status.activations);
            set(&self.failures, status.failed);
        }
    }

    /// Has it counted if that is due. Waits for the numbers only if there are
    /// none to show.
    async fn count(&self, state: &ServerState) {
        let counted = self.counted();
        if counted.is_none_or(Counted::is_old)
            && let Ok(turn) = Arc::clone(&self.turn).try_lock_owned()
        {
            let state = state.clone();
            let counting = tokio::spawn(async move {
                state.metrics.standing.recount(&state).await;
                drop(turn);
            });
            if counted.is_none() && timeout(LIMIT, counting).await.is_err() {
                tracing::warn!("what there is was not counted in time; it is shown when it is");
            }
        }
        let age = self.counted().map_or(Duration::ZERO, |counted| counted.at.elapsed());
        self.age.set(age.as_secs_f64());
    }

    async fn recount(&self, state: &ServerState) {
        let begun = Instant::now();
        // The store gives up by itself if the database does not answer.
        let counted = match state.context.stores.operations.standing().await {
            Ok(standing) => {
                self.show(&standing);
                Some(Counted::after(begun.elapsed()))
            }
            Err(error) => {
                tracing::warn!(%error, "what there is could not be counted");
                // What is not known is not shown: an old number would look like a true one.
                self.phases.clear();
                self.blockers.clear();
                self.nodes.clear();
                None
            }
        };
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = counted;
    }

    fn counted(&self) -> Option<Counted> {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, standing: &Standing) {
        let value =
            |found: Option<&u64>| i64::try_from(found.copied().unwrap_or(0)).unwrap_or(i64::MAX);
        for phase in Phase::ALL {
            let gauge = self.phases.get_or_create(&PhaseLabels { phase: phase.as_str() });
            gauge.set(value(standing.phases.get(&phase)));
        }
        for code in BlockerCode::ALL {
            let gauge = self.blockers.get_or_create(&CodeLabels { code: code.as_str() });
            gauge.set(value(standing.blockers.get(code)));
        }
        for reachability in Reachability::ALL {
            let labels = ReachabilityLabels { reachability: reachability.as_str() };
            self.nodes.get_or_create(&labels).set(value(standing.nodes.get(reachability)));
        }
    }

    /// Also of lanes that nobody serves: that is when it grows.
    async fn lag(&self, state: &ServerState) {
        let overdue = answer(state.context.stores.broker.lane_list_overdue()).await;
        self.overdue.clear();
        let overdue = match overdue {
            Ok(overdue) => overdue,
            Err(error) => return tracing::warn!(error, "what is overdue could not be read"),
        };
        for lane in self.loops.iter().flat_map(|loops| loops.lanes()) {
            self.overdue.get_or_create(&LaneLabels { lane }).set(0.0);
        }
        for found in overdue {
            let lane = found.cluster.unwrap_or_else(|| "none".to_owned());
            self.overdue.get_or_create(&LaneLabels { lane }).set(found.overdue.as_secs_f64());
        }
    }
}

async fn answer<T>(asked: impl Future<Output = Result<T, store::Error>>) -> Result<T, String> {
    match timeout(LIMIT, asked).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("the database did not answer in time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_count_is_kept_for_longer() {
        assert_eq!(Counted::after(Duration::from_millis(5)).kept, KEPT);
        assert_eq!(Counted::after(Duration::from_secs(2)).kept, Duration::from_secs(40));
        assert!(!Counted::after(Duration::ZERO).is_old());
    }
}
