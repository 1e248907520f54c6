//! Counts of the whole installation: resources by phase, blockers, nodes,
//! overdue work per partition, readiness. A scrape reads them from the
//! database: every replica shows the same, and without scrapes they cost
//! nothing.
//!
//! Counting reads every attempt. One task at a time does it beside the answer,
//! and the numbers are cached for [`CACHED_FOR`] at least and for twenty times
//! as long as the count took. However often somebody scrapes, counting costs at
//! most a twentieth of one connection's time. Overdue work costs one index
//! lookup per cluster and is always current.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use slipway_app::operations::port::Counts;
use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::nodes::node::Reachability;
use tokio::time::timeout;

use super::loops::LoopMetrics;
use super::{By, add};
use crate::health;
use crate::state::ServerState;

/// A scrape waits this long for the database.
const LIMIT: Duration = Duration::from_secs(2);

/// The usual scrape interval. `docs/metrics.md` says what a count costs.
const CACHED_FOR: Duration = Duration::from_secs(15);

/// Counting takes at most one part in this many of the time.
const SHARE: u32 = 20;

/// When the shown numbers were counted, and how long they stay valid.
#[derive(Debug, Clone, Copy)]
struct Counted {
    at: Instant,
    kept: Duration,
}

impl Counted {
    fn after(took: Duration) -> Self {
        Self { at: Instant::now(), kept: CACHED_FOR.max(took * SHARE) }
    }

    fn is_old(self) -> bool {
        self.at.elapsed() >= self.kept
    }
}

#[derive(Debug)]
pub(super) struct CountMetrics {
    ready: Gauge,
    phases: By<1, Gauge>,
    blockers: By<1, Gauge>,
    nodes: By<1, Gauge>,
    rows: By<2, Gauge>,
    purge_overdue: Gauge<f64, AtomicU64>,
    overdue: By<1, Gauge<f64, AtomicU64>>,
    activations: By<1, Counter>,
    failures: By<1, Counter>,
    age: Gauge<f64, AtomicU64>,
    counted: Mutex<Option<Counted>>,
    /// Locked by the task that counts.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Knows which partitions this process serves.
    loops: Arc<LoopMetrics>,
}

impl CountMetrics {
    #[rustfmt::skip]
    pub(super) fn register(to: &mut Registry, loops: Arc<LoopMetrics>) -> Self {
        Self {
            ready:       add(to, "slipway_ready", "1 if /readyz answers that this process is ready, 0 otherwise"),
            phases:      add(to, "slipway_resources", "Attempts by phase, counted at most every 15 s; absent while the database is"),
            blockers:    add(to, "slipway_blockers", "Blockers by code, counted at most every 15 s; absent while the database is"),
            nodes:       add(to, "slipway_nodes", "Registered nodes by the age of their last heartbeat, counted at most every 15 s; absent while the database is"),
            rows:        add(to, "slipway_rows", "Rows that are live, and deleted ones that are not purged, by kind; counted at most every 15 s, absent while the database is"),
            purge_overdue: add(to, "slipway_purge_overdue_seconds", "How long the purge that is due for longest has been due; 0 if none is"),
            age:         add(to, "slipway_counted_age_seconds", "How long ago resources, blockers and nodes were counted; 0 if they are not"),
            overdue:     add(to, "slipway_partition_overdue_seconds", "How long the oldest due row of a partition has waited for a claim; absent while the database is"),
            activations: add(to, "slipway_loop_activations", "Passes of a loop of this process"),
            failures:    add(to, "slipway_loop_failures", "Passes of a loop, or pieces of its work, that ended in an error"),
            counted: Mutex::default(),
            turn: Arc::default(),
            loops,
        }
    }

    pub(super) async fn refresh(&self, state: &ServerState) {
        tokio::join!(self.count(state), self.lag(state), async {
            self.ready.set(i64::from(health::readiness(state).await.ready));
        });
        for status in state.loops.statuses() {
            let labels = [("name", status.name.into())];
            let set = |counters: &By<1, Counter>, value| {
                let counter = counters.get_or_create(&labels);
                counter.inner().store(value, std::sync::atomic::Ordering::Relaxed);
            };
            set(&self.activations, status.activations);
            set(&self.failures, status.failed);
        }
    }

    /// Starts a count if one is due. Waits for it only if there are no numbers
    /// yet.
    async fn count(&self, state: &ServerState) {
        let counted = self.counted();
        if counted.is_none_or(Counted::is_old)
            && let Ok(turn) = Arc::clone(&self.turn).try_lock_owned()
        {
            let state = state.clone();
            let counting = tokio::spawn(async move {
                state.metrics.counts.recount(&state).await;
                drop(turn);
            });
            if counted.is_none() && timeout(LIMIT, counting).await.is_err() {
                tracing::debug!(
                    "resources, blockers and nodes were not counted in time; their metrics are absent until they are"
                );
            }
        }
        let age = self.counted().map_or(Duration::ZERO, |counted| counted.at.elapsed());
        self.age.set(age.as_secs_f64());
    }

    async fn recount(&self, state: &ServerState) {
        let begun = Instant::now();
        // The store has its own timeout.
        let within = state.context.settings.claimed_within;
        let counted = match state.context.stores.operations.counts(within).await {
            Ok(counts) => {
                self.show(&counts);
                Some(Counted::after(begun.elapsed()))
            }
            Err(error) => {
                if !error.is_logged() {
                    tracing::warn!(%error, "resources, blockers and nodes could not be counted");
                }
                // Unknown counts are absent: stale ones would pass for current.
                self.phases.clear();
                self.blockers.clear();
                self.nodes.clear();
                self.rows.clear();
                None
            }
        };
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = counted;
    }

    fn counted(&self) -> Option<Counted> {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, counts: &Counts) {
        let value =
            |found: Option<&u64>| i64::try_from(found.copied().unwrap_or(0)).unwrap_or(i64::MAX);
        for &phase in Phase::ALL {
            let gauge = self.phases.get_or_create(&[("phase", phase.as_str().into())]);
            gauge.set(value(counts.phases.get(&phase)));
        }
        for code in BlockerCode::ALL {
            let gauge = self.blockers.get_or_create(&[("code", code.as_str().into())]);
            gauge.set(value(counts.blockers.get(code)));
        }
        for reachability in Reachability::ALL {
            let labels = [("reachability", reachability.as_str().into())];
            self.nodes.get_or_create(&labels).set(value(counts.nodes.get(reachability)));
        }
        for (kind, (live, deleted)) in &counts.rows {
            for (state, count) in [("live", live), ("deleted", deleted)] {
                let labels = [("kind", kind.as_str().into()), ("state", state.into())];
                self.rows.get_or_create(&labels).set(value(Some(count)));
            }
        }
        self.purge_overdue.set(counts.purge_overdue.as_secs_f64());
    }

    /// Includes partitions that nobody serves: those fall behind.
    async fn lag(&self, state: &ServerState) {
        let asked = timeout(LIMIT, state.context.stores.broker.partition_list_overdue()).await;
        self.overdue.clear();
        let overdue = match asked {
            Ok(Ok(overdue)) => overdue,
            Ok(Err(error)) if error.is_logged() => return,
            Ok(Err(error)) => {
                return tracing::warn!(%error, "the lag of the partitions could not be read");
            }
            Err(_) => {
                return tracing::debug!("the lag of the partitions could not be read in time");
            }
        };
        for partition in self.loops.partitions() {
            self.overdue.get_or_create(&[("partition", partition.into())]).set(0.0);
        }
        for found in overdue {
            self.overdue
                .get_or_create(&[("partition", found.cluster.into())])
                .set(found.overdue.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_count_is_kept_for_longer() {
        assert_eq!(Counted::after(Duration::from_millis(5)).kept, CACHED_FOR);
        assert_eq!(Counted::after(Duration::from_secs(2)).kept, Duration::from_secs(40));
        assert!(!Counted::after(Duration::ZERO).is_old());
    }
}
