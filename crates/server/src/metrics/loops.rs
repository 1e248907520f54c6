//! Metrics that loops and use-cases report while they work. They are counted in
//! memory, so reporting is cheap. Labels are phases, closed sets, and the names
//! of the clusters that this process serves.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use slipway_app::ports::Meter;
use slipway_app::ports::meter::TickOutcome;
use slipway_core::broker::transition::Transition;

use super::{By, Histograms, Labels, add, add_histograms, exponential};

/// The `from` of a new attempt.
const NOWHERE: &str = "none";

/// From a local process, ready at once, to the day that an enrolment may take.
const PHASE_BUCKETS: [f64; 15] = [
    0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 7_200.0,
    86_400.0,
];

/// From a millisecond, a write to a nearby database, to half a minute, the
/// usual lease: 1 ms · 2^0 … 2^15.
const SHORT_BUCKETS: (f64, f64, u16) = (0.001, 2.0, 16);

/// The meter that `/metrics` shows.
#[derive(Debug)]
pub struct LoopMetrics {
    /// By `from` and `to`.
    transitions: By<2, Counter>,
    phases: Histograms<1>,
    reactions: Histograms<2>,
    taken: By<1, Counter>,
    held: By<1, Gauge>,
    lost: By<1, Counter>,
    reclaimed: By<1, Counter>,
    /// By partition and outcome.
    ticks: Histograms<2>,
    /// By partition, kind and outcome.
    actions: Histograms<3>,
    partitions: Mutex<BTreeSet<String>>,
}

impl LoopMetrics {
    /// Registers the metrics.
    #[rustfmt::skip]
    pub fn register(to: &mut Registry) -> Self {
        Self {
            transitions: add(to, "slipway_transitions", "Changes of phase that this process committed; from is none for a new attempt"),
            phases:      add_histograms(to, "slipway_phase_seconds", "How long a phase had lasted when it was left, on the database's clock", phase_histogram),
            reactions:   add_histograms(to, "slipway_reaction_seconds", "Time from a request (declared, enrolled, drained) to the change of phase that it led to", short_histogram),
            taken:       add(to, "slipway_claims_taken", "Claims on due resources that this process took"),
            held:        add(to, "slipway_claims_held", "Claims that this process holds now"),
            lost:        add(to, "slipway_claims_lost", "Ticks that wrote nothing because another worker or writer changed the row first"),
            reclaimed:   add(to, "slipway_claims_reclaimed", "Claims of an earlier run of this process that it took back when it started"),
            ticks:       add_histograms(to, "slipway_tick_seconds", "Time from the start of a batch to the end of each of its ticks, by outcome", short_histogram),
            actions:     add_histograms(to, "slipway_action_seconds", "Time of each call to a substrate, by kind and outcome", short_histogram),
            partitions: Mutex::default(),
        }
    }

    /// The partitions that this process serves.
    pub(super) fn partitions(&self) -> Vec<String> {
        let partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        partitions.iter().cloned().collect()
    }
}

fn phase_histogram() -> Histogram {
    Histogram::new(PHASE_BUCKETS)
}

fn short_histogram() -> Histogram {
    exponential(SHORT_BUCKETS)
}

fn of(partition: &str) -> Labels<1> {
    [("partition", partition.to_owned().into())]
}

impl Meter for LoopMetrics {
    fn transitioned(&self, transitions: &[Transition]) {
        for transition in transitions {
            let from = transition.from.map_or(NOWHERE, |phase| phase.as_str());
            let labels = [("from", from.into()), ("to", transition.to.as_str().into())];
            self.transitions.get_or_create(&labels).inc();
            if let Some(reaction) = transition.reaction {
                self.reactions.get_or_create(&labels).observe(reaction.as_secs_f64());
            }
            if let Some(lasted) = transition.lasted {
                let labels = [("phase", from.into())];
                self.phases.get_or_create(&labels).observe(lasted.as_secs_f64());
            }
        }
    }

    /// Creates the counters at zero, so that their first increase is visible.
    fn serving(&self, partition: &str) {
        for counters in [&self.taken, &self.lost, &self.reclaimed] {
            counters.get_or_create(&of(partition)).inc_by(0);
        }
        self.held.get_or_create(&of(partition)).inc_by(0);
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        partitions.insert(partition.to_owned());
    }

    fn claimed(&self, partition: &str, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.taken.get_or_create(&of(partition)).inc_by(count);
    }

    fn reclaimed(&self, partition: &str, count: u64) {
        self.reclaimed.get_or_create(&of(partition)).inc_by(count);
    }

    fn claims_changed(&self, partition: &str, change: i64) {
        self.held.get_or_create(&of(partition)).inc_by(change);
    }

    fn ticked(&self, partition: &str, outcome: TickOutcome, took: Duration) {
        if outcome == TickOutcome::Overtaken {
            self.lost.get_or_create(&of(partition)).inc();
        }
        let [partition] = of(partition);
        let labels = [partition, ("outcome", outcome.as_str().into())];
        self.ticks.get_or_create(&labels).observe(took.as_secs_f64());
    }

    fn acted(&self, partition: &str, kind: &'static str, outcome: &'static str, took: Duration) {
        let [partition] = of(partition);
        let labels = [partition, ("kind", kind.into()), ("outcome", outcome.into())];
        self.actions.get_or_create(&labels).observe(took.as_secs_f64());
    }
}
