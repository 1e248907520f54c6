//! The counters of a soak, and its last line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::options::Options;
use super::schedule::{Hurt, Line, Operation, Spoil};

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: usize,
    pub(super) skipped: usize,
    pub(super) refused: usize,
    pub(super) resources: usize,
    pub(super) events: usize,
    pub(super) longest_takeover: Duration,
    pub(super) longest_converging: Duration,
    pub(super) longest_freezing: Duration,
    /// What the proxy did and the ledger read, in a scenario with a cluster.
    pub(super) cluster: Option<Value>,
    counts: BTreeMap<&'static str, usize>,
}

impl Tally {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Counts an operation that was carried out.
    pub(super) fn done(&mut self, operation: Operation) {
        self.operations += 1;
        if let Some(fault) = fault(operation) {
            self.count(fault);
        }
    }

    pub(super) fn last_line(
        &self,
        options: &Options,
        fingerprint: &str,
        duration: Duration,
        violations: usize,
    ) -> Value {
        let faults: BTreeMap<_, _> =
            self.counts.iter().filter(|(name, _)| FAULTS.contains(name)).collect();
        let count = |name| self.counts.get(name).copied().unwrap_or(0);
        let mut line = json!({
            "scenario": options.scenario.to_string(),
            "seed": options.seed,
            "minutes": (options.seconds as f64) / 60.0,
            "database": options.database.to_string(),
            "replicas": options.replicas,
            "handles": options.resources,
            "schedule": fingerprint,
            "operations": self.operations,
            "skipped": self.skipped,
            "refused": self.refused,
            "faults": faults,
            "resources": self.resources,
            "events": self.events,
            "checks": count("checks"),
            "forced_at_rest": count("forced_at_rest"),
            "retried": count("retried"),
            "longest_takeover_ms": millis(self.longest_takeover),
            "longest_settling_ms": millis(self.longest_converging),
            "duration_s": duration.as_secs(),
            "violations": violations,
        });
        if let Some(cluster) = &self.cluster {
            line["cluster"] = cluster.clone();
            line["freezes"] = json!(count("freezes"));
            line["longest_freezing_ms"] = json!(millis(self.longest_freezing));
        }
        line
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const FAULTS: [&str; 14] = [
    "agent_frozen",
    "agent_killed",
    "agents_cut_off",
    "database_crashed",
    "database_cut_off",
    "database_silent",
    "database_slow",
    "database_swallowed",
    "directory_removed",
    "node_failed",
    "plane_killed",
    "plane_killed_unanswered",
    "plane_paused",
    "drain_forced",
];

const fn fault(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::FreezeAgent { .. } => Some("agent_frozen"),
        Operation::KillAgent { .. } => Some("agent_killed"),
        Operation::RemoveDirectory { .. } => Some("directory_removed"),
        Operation::HurtPlane { hurt, .. } | Operation::TakeOver { hurt, .. } => Some(match hurt {
            Hurt::Kill { .. } => "plane_killed",
            Hurt::Pause { .. } => "plane_paused",
        }),
        Operation::DeclareUnanswered { .. } | Operation::DeleteUnanswered { .. } => {
            Some("plane_killed_unanswered")
        }
        Operation::ForceDrain { .. } => Some("drain_forced"),
        Operation::FailNode { .. } => Some("node_failed"),
        Operation::CrashDatabase { .. } => Some("database_crashed"),
        Operation::SpoilLine { line: Line::Agents(_), .. } => Some("agents_cut_off"),
        Operation::SpoilLine { line: Line::Database(_), how, .. } => Some(match how {
            Spoil::Cut => "database_cut_off",
            Spoil::Silence => "database_silent",
            Spoil::Swallow => "database_swallowed",
            Spoil::Slow => "database_slow",
        }),
        Operation::Declare { .. }
        | Operation::DeclareAgain { .. }
        | Operation::Delete { .. }
        | Operation::DeleteTwice { .. }
        | Operation::Retry { .. }
        | Operation::Relabel { .. }
        | Operation::Freeze
        | Operation::Unfreeze
        | Operation::Withdraw { .. }
        | Operation::Place { .. }
        | Operation::Wait
        | Operation::Converge => None,
    }
}
