//! Runs sequences and compares each request with the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::generate::{Dice, Generator};
use super::model::{HELD_BACK, Model};
use super::request::{Key, Operation, Outcome, Request};
use super::run::{Run, View};
use crate::ports::Stores;
use crate::testing::races::at_once;
use crate::testing::world::World;

/// Steps that make the things of a sequence, and those that follow.
const FIRST: Key = 8;
const REQUESTS: Key = 50;
/// Those of a sequence that looks for everything that was not shown, at most.
const CALM_REQUESTS: Key = 100;

/// Refusals that every run of all seeds has to show.
const REFUSALS: [&str; 23] = [
    "approval_required",
    "cloud_not_found",
    "deletion_brake",
    "forbidden",
    "handle_taken",
    "leaving",
    "name_taken",
    "not_cancellable",
    "not_restorable",
    "nothing_to_lift",
    "plan_mismatch",
    "plan_stale",
    "plan_used",
    "project_leaving",
    "project_not_empty",
    "project_not_found",
    "protected",
    "purge_withheld",
    "resource_not_found",
    "restore_conflict",
    "same_person",
    "substrate_gone",
    HELD_BACK,
];

/// What the sequences came through.
#[derive(Debug, Default)]
pub struct Coverage {
    accepted: BTreeSet<String>,
    refused: BTreeSet<&'static str>,
    /// Steps of two operations at once whose order mattered.
    races: usize,
}

impl Coverage {
    /// Fails unless every operation was accepted and every refusal was seen.
    pub fn assert_complete(&self) {
        let missing = self.missing();
        assert!(missing.is_empty(), "no sequence shows {missing:?}");
        assert!(self.races > 0, "no race mattered");
    }

    fn missing(&self) -> Vec<&'static str> {
        let accepted = Operation::NAMES.into_iter().filter(|name| !self.accepted.contains(*name));
        let refused = REFUSALS.into_iter().filter(|code| !self.refused.contains(*code));
        accepted.chain(refused).collect()
    }

    fn note(&mut self, request: Request, outcome: Outcome, before: &Model) {
        if request.operation == Operation::Pass && before.is_held_back() {
            self.refused.insert(HELD_BACK);
        }
        match outcome {
            Ok(_) => drop(self.accepted.insert(request.operation.name())),
            Err(code) => drop(self.refused.insert(code)),
        }
    }
}

/// Runs one sequence for each seed.
pub async fn deletion_model(stores: Stores, seeds: &[u64], dice: fn(u64) -> Dice) -> Coverage {
    let world = Arc::new(World::new(stores).await);
    let mut coverage = Coverage::default();
    for (sequence, seed) in (1..).zip(seeds) {
        let run = Arc::new(Run::new(Arc::clone(&world), sequence).await);
        let generator = Generator::new(dice(*seed));
        let mut sequence =
            Sequence { run, generator, model: Model::default(), requests: Vec::new(), seed: *seed };
        for key in 1..=FIRST {
            let request = sequence.generator.first(&sequence.model, key);
            sequence.alone(request, &mut coverage).await;
        }
        let requests = if sequence.is_calm() { CALM_REQUESTS } else { REQUESTS };
        for request in 0..requests {
            if sequence.is_calm() && coverage.missing().is_empty() {
                break;
            }
            // Of two operations at once each has a key.
            sequence.next(FIRST + 1 + 2 * request, &mut coverage).await;
        }
        sequence.run.check_end(&sequence.model).await;
    }
    coverage
}
struct Sequence {
    run: Arc<Run>,
    generator: Generator,
    model: Model,
    /// For whoever reads a failure.
    requests: Vec<String>,
    seed: u64,
}

impl Sequence {
    async fn next(&mut self, key: Key, coverage: &mut Coverage) {
        if !self.is_calm()
            && self.generator.percent(35)
            && let Some((one, other)) = self.race(key)
        {
            coverage.races += 1;
            return self.at_once(one, other).await;
        }
        let request = self.generator.next(&self.model, key);
        self.alone(request, coverage).await;
    }

    /// Whether nothing happens at once. Who wins a race is not a function of the seed, so
    /// the coverage rests on these sequences, which end when it is complete.
    const fn is_calm(&self) -> bool {
        self.seed % 2 == 1
    }

    async fn alone(&mut self, request: Request, coverage: &mut Coverage) {
        self.requests.push(format!("{request:?}"));
        let (after, expected) = self.model.apply(request);
        let outcome = self.run.request(request).await;
        assert_eq!(outcome, expected, "{}", self.shown());
        if self.is_calm() {
            coverage.note(request, outcome, &self.model);
        }
        self.model = after;
        self.furnish(request, outcome).await;
        let plans = request.operation.is_about_plans();
        let seen = self.run.view(plans).await;
        let difference = difference(&seen, &self.run.expected(&self.model, plans));
        assert!(difference.is_empty(), "{difference}\n{}", self.shown());
    }

    async fn furnish(&self, request: Request, outcome: Outcome) {
        if matches!(request.operation, Operation::CreateProject { .. }) && outcome.is_ok() {
            self.run.furnish(request.key).await;
        }
    }

    /// Two operations whose order matters.
    fn race(&mut self, key: Key) -> Option<(Request, Request)> {
        for _ in 0..30 {
            let one = self.generator.request(&self.model, key);
            let other = self.generator.request(&self.model, key + 1);
            let may = one.operation.may_race() && other.operation.may_race();
            if may && !self.is_long(one) && !self.is_long(other) {
                let (first, second) = (self.orders(one, other), self.orders(other, one));
                let turned = (second.0, second.2, second.1);
                if first != turned {
                    return Some((one, other));
                }
            }
        }
        None
    }

    /// Whether it is a pass that takes several deletions further, between which something
    /// else may happen.
    fn is_long(&self, request: Request) -> bool {
        let (after, _) = self.model.apply(request);
        let moved = after.deletions.iter().filter(|(key, deletion)| {
            self.model.deletions.get(key) != Some(*deletion)
                || self.model.members(**key) != after.members(**key)
        });
        request.operation == Operation::Pass && moved.count() > 1
    }

    /// The model and both outcomes, if they run in this order. The loop passes once more.
    fn orders(&self, first: Request, second: Request) -> (Model, Outcome, Outcome) {
        let (model, one) = self.model.apply(first);
        let (model, other) = model.apply(second);
        if !is_pass(first) && !is_pass(second) {
            return (model, one, other);
        }
        let (model, _) = model.apply(Request { operation: Operation::Pass, ..first });
        (model, one, other)
    }

    async fn at_once(&mut self, one: Request, other: Request) {
        self.requests.push(format!("at once: {one:?} and {other:?}"));
        let (a, b) = (Arc::clone(&self.run), Arc::clone(&self.run));
        let outcomes =
            at_once(async move { a.request(one).await }, async move { b.request(other).await })
                .await;
        if is_pass(one) || is_pass(other) {
            self.run.pass().await;
        }
        self.furnish(one, outcomes.0).await;
        self.furnish(other, outcomes.1).await;
        let plans = one.operation.is_about_plans() || other.operation.is_about_plans();
        let view = self.run.view(plans).await;
        let (first, of_one, of_other) = self.orders(one, other);
        let (second, of_other_first, of_one_second) = self.orders(other, one);
        if (of_one, of_other) == outcomes && self.run.expected(&first, plans) == view {
            self.model = first;
            self.requests.push("  in this order".to_owned());
        } else if (of_one_second, of_other_first) == outcomes
            && self.run.expected(&second, plans) == view
        {
            self.model = second;
            self.requests.push("  in the other order".to_owned());
        } else {
            let (one, other) =
                (self.run.expected(&first, plans), self.run.expected(&second, plans));
            panic!(
                "neither order leads to {outcomes:?}\nthe first leads to {:?}\n{}the second leads \
                 to {:?}\n{}{}",
                (of_one, of_other),
                difference(&view, &one),
                (of_one_second, of_other_first),
                difference(&view, &other),
                self.shown()
            );
        }
    }

    /// How to see it again, and what led to it.
    fn shown(&self) -> String {
        let seed = self.seed;
        format!(
            "SLIPWAY_DELETION_SEED={seed} SLIPWAY_DELETION_SEQUENCES=1 shows this sequence:\n{}",
            self.requests.join("\n")
        )
    }
}

/// Only what differs.
fn difference(seen: &View, expected: &View) -> String {
    let lines = |title: &str, one: &View, other: &View| -> String {
        one.difference(other).map(|line| format!("{title} {line}\n")).collect()
    };
    lines("seen:    ", seen, expected) + &lines("expected:", expected, seen)
}

fn is_pass(request: Request) -> bool {
    request.operation == Operation::Pass
}
