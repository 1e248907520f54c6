//! The cost of one decision.

use std::hint::black_box;
use std::time::Instant;

use slipway_core::broker::phase::{Composite, NodeFact, Observed, Phase, next};

/// Nanoseconds per call of `next`, over every observation and phase in turn.
/// The best of several runs: disturbances only ever make a run slower.
pub(crate) fn measure() -> f64 {
    let flags = [false, true];
    let mut composites = vec![Composite::Unknown, Composite::Absent];
    for ready in flags {
        for failed in flags {
            for terminating in flags {
                for drifted in flags {
                    composites.push(Composite::Present { ready, failed, terminating, drifted });
                }
            }
        }
    }
    let mut pairs = Vec::new();
    for composite in composites {
        for node in [NodeFact::NotExpected, NodeFact::Absent, NodeFact::Registered] {
            pairs.extend(Phase::ALL.iter().map(|phase| (Observed { composite, node }, *phase)));
        }
    }
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        const ROUNDS: u32 = 10_000;
        let started = Instant::now();
        for _ in 0..ROUNDS {
            for (observed, phase) in &pairs {
                black_box(next(black_box(*observed), black_box(*phase)));
            }
        }
        let calls = f64::from(ROUNDS) * pairs.len() as f64;
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / calls);
    }
    best
}
