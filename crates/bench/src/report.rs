//! The table, and the machine-readable last line.

use serde_json::{Map, Value, json};

/// The limit of a figure.
#[derive(Debug, Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

/// The limit of each figure.
const LIMITS: [(&str, Limit); 44] = [
    ("next_ns", Limit::AtMost(20.0)),
    ("transitions_vs_commits_postgres", Limit::AtLeast(1.0)),
    ("transitions_vs_commits_sqlite", Limit::AtLeast(1.0)),
    ("transitions_vs_commits_postgres_single", Limit::AtLeast(0.5)),
    ("transitions_vs_commits_sqlite_single", Limit::AtLeast(0.5)),
    ("ready_p99_ms", Limit::AtMost(250.0)),
    ("ready_p99_other_replica_ms", Limit::AtMost(250.0)),
    ("sweep_us_per_object", Limit::AtMost(100.0)),
    ("bytes_per_idle_resource", Limit::AtMost(4_096.0)),
    ("frozen_core_percent", Limit::AtMost(3.0)),
    ("apply_vs_raw", Limit::AtLeast(0.5)),
    ("requests_per_composite", Limit::AtMost(8.0)),
    ("react_p99_ms", Limit::AtMost(250.0)),
    ("bytes_per_watched", Limit::AtMost(8_192.0)),
    ("purge_reader_p99_postgres", Limit::AtMost(1.2)),
    ("purge_reader_p99_sqlite", Limit::AtMost(1.2)),
    (LIST, Limit::AtMost(2.0)),
    ("apply_speedup_postgres", Limit::AtLeast(3.0)),
    ("apply_speedup_sqlite", Limit::AtLeast(3.0)),
    ("noop_requests_per_object_postgres", Limit::AtMost(0.05)),
    ("noop_requests_per_object_sqlite", Limit::AtMost(0.05)),
    ("rollout_vs_declare_postgres", Limit::AtMost(1.5)),
    ("rollout_vs_declare_sqlite", Limit::AtMost(1.5)),
    ("plan_vs_list_postgres", Limit::AtMost(3.0)),
    ("plan_vs_list_sqlite", Limit::AtMost(3.0)),
    ("cascade_vs_rows_postgres", Limit::AtLeast(5.0)),
    ("cascade_vs_rows_sqlite", Limit::AtLeast(5.0)),
    ("delete_speedup", Limit::AtLeast(10.0)),
    ("delete_speedup_sqlite", Limit::AtLeast(5.0)),
    ("delete_wal_ratio", Limit::AtMost(0.1)),
    ("restore_speedup", Limit::AtLeast(10.0)),
    ("idle_poll_statements", Limit::AtMost(3.0)),
    ("idle_poll_speedup", Limit::AtLeast(100.0)),
    ("poll_p99_ms", Limit::AtMost(100.0)),
    ("poll_core_percent", Limit::AtMost(30.0)),
    ("jobs_speedup", Limit::AtLeast(5.0)),
    ("single_latency_ratio", Limit::AtMost(1.2)),
    ("claims_speedup", Limit::AtLeast(8.0)),
    ("fanout_speedup", Limit::AtLeast(4.0)),
    ("gate_vs_delete_postgres", Limit::AtMost(1.5)),
    ("gate_vs_delete_sqlite", Limit::AtMost(1.5)),
    ("gate_p99_ms_postgres", Limit::AtMost(20.0)),
    ("teardown_speedup_postgres", Limit::AtLeast(5.0)),
    ("teardown_speedup_sqlite", Limit::AtLeast(5.0)),
];

/// The beginning of the figures of lists, which share one limit.
pub(crate) const LIST: &str = "list_";

/// The figures so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    figures: Map<String, Value>,
}

impl Report {
    /// Records a figure and prints its row; `how` shows the absolute values behind it.
    pub(crate) fn note(&mut self, key: &str, value: f64, how: &str) {
        let name = if key.starts_with(LIST) { LIST } else { key };
        let limit = LIMITS.iter().find(|(limited, _)| *limited == name).map(|(_, limit)| *limit);
        let (held_to, verdict) = match limit {
            None => (String::new(), ""),
            Some(limit) => {
                let text = match limit {
                    Limit::AtMost(limit) => format!("≤ {limit}"),
                    Limit::AtLeast(limit) => format!("≥ {limit}"),
                };
                (text, if limit.holds(value) { "holds" } else { "MISSED" })
            }
        };
        println!("{key:40} {value:10.3}  {held_to:8} {verdict:7} {how}");
        self.figures.insert(key.to_owned(), json!((value * 1e3).round() / 1e3));
    }

    /// Prints the last line.
    pub(crate) fn finish(self) {
        println!();
        println!("{}", Value::Object(self.figures));
    }
}
