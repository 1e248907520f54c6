//! `broker`: the figures of the resource loop.

use slipway_controller::resources::Batching;

use crate::database::{Kind, durable_server};
use crate::ready::{self, Arrival};
use crate::report::Report;
use crate::transitions::Way;
use crate::{machine, memory, next, transitions};

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Resources that go to Ready.
    walking: u32,
    /// Resources that are idle while others are measured.
    idle: u32,
    /// Timed enrolments.
    samples: u32,
    /// Idle resources for the figures of memory and sweep.
    remembered: u32,
}

impl Size {
    pub(crate) const FULL: Self =
        Self { walking: 10_000, idle: 10_000, samples: 400, remembered: 100_000 };
    pub(crate) const QUICK: Self =
        Self { walking: 2_000, idle: 2_000, samples: 100, remembered: 10_000 };
}

/// One record per transaction, with as many concurrent transactions as there
/// are connections.
const SINGLE: Batching = Batching { records_per_commit: 1, commits_at_once: 32 };

/// Runs one comparison alone, for tuning.
pub(crate) async fn one_comparison(
    database: &str,
    batching: &str,
    way: &str,
    resources: u32,
) -> anyhow::Result<()> {
    let way = if way == "node" { Way::WithNode } else { Way::Standalone };
    let kind = if database == "postgres" { Kind::Postgres } else { Kind::Sqlite };
    let batching = if batching == "single" { SINGLE } else { Batching::default() };
    let server = durable_server()?;
    let compared = transitions::compare(kind, &server, resources, batching, way).await?;
    println!("{:.3} {compared:?}", compared.ratio());
    Ok(())
}

pub(crate) async fn run(size: Size) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let mut report = Report::default();
    report.note("next_ns", next::measure(), "every observation and phase");

    let idle = tokio::task::spawn_blocking(move || memory::run(size.remembered)).await??;
    let how = format!("{} resources, SQLite in the process", size.remembered);
    report.note("sweep_us_per_object", idle.sweep_us_per_object, &how);
    report.note("bytes_per_idle_resource", idle.bytes_per_idle_resource, &how);

    let server = durable_server()?;
    for kind in [Kind::Sqlite, Kind::Postgres] {
        for (suffix, batching, way) in [
            ("", Batching::default(), Way::Standalone),
            ("_single", SINGLE, Way::Standalone),
            ("_with_node", Batching::default(), Way::WithNode),
            ("_with_node_single", SINGLE, Way::WithNode),
        ] {
            let compared = transitions::compare(kind, &server, size.walking, batching, way).await?;
            let enrolled = compared.enrolments_per_second;
            let how = format!(
                "{:.0} transitions/s against {:.0} and {:.0} commits/s, \
                 {:.0} against {:.0} µs of processor time each{}",
                compared.transitions_per_second,
                compared.commits_before,
                compared.commits_after,
                compared.cpu_us_per_transition,
                compared.cpu_us_per_commit,
                enrolled.map_or(String::new(), |rate| format!("; {rate:.0} enrolments/s")),
            );
            let key = format!("transitions_vs_commits_{}{suffix}", kind.name());
            report.note(&key, compared.ratio(), &how);
        }
    }

    for (key, arrival) in
        [("ready_p99_ms", Arrival::Here), ("ready_p99_other_replica_ms", Arrival::Elsewhere)]
    {
        let latencies =
            ready::measure(Kind::Postgres, &server, arrival, size.idle, size.samples).await?;
        let how = format!(
            "{} samples, {} idle: median {:.1} ms, most {:.1} ms",
            size.samples,
            size.idle,
            latencies.quantile(0.5),
            latencies.quantile(1.0)
        );
        report.note(key, latencies.quantile(0.99), &how);
    }
    report.finish();
    Ok(())
}
