//! Whether a cluster answers, for the log: one line when it stops answering and
//! one when it answers again, whatever the number of loops and watches that ask it.
//! Decides nothing; every caller handles its own error.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests in a row without an answer after which a cluster counts as away. One
/// lost answer is no outage; in an outage the loops reach three within a few seconds.
const AWAY_AFTER: u32 = 3;

/// The state of one cluster.
#[derive(Debug)]
pub(crate) struct Reachability {
    cluster: String,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Answering { unanswered: u32 },
    Away { since: Instant },
}

/// A change that is worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Away,
    Back { after: Duration },
}

impl State {
    fn next(self, answered: bool, now: Instant) -> (Self, Option<Change>) {
        match (self, answered) {
            (Self::Answering { .. }, true) => (Self::Answering { unanswered: 0 }, None),
            (Self::Answering { unanswered }, false) if unanswered + 1 < AWAY_AFTER => {
                (Self::Answering { unanswered: unanswered + 1 }, None)
            }
            (Self::Answering { .. }, false) => (Self::Away { since: now }, Some(Change::Away)),
            (Self::Away { since }, true) => {
                let after = now.saturating_duration_since(since);
                (Self::Answering { unanswered: 0 }, Some(Change::Back { after }))
            }
            (away @ Self::Away { .. }, false) => (away, None),
        }
    }
}

impl Reachability {
    pub(crate) fn new(cluster: String) -> Self {
        Self { cluster, state: Mutex::new(State::Answering { unanswered: 0 }) }
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    pub(crate) fn answered(&self) {
        if let Some(Change::Back { after }) = self.learn(true) {
            let seconds = after.as_secs();
            tracing::info!(cluster = self.cluster, seconds, "a cluster answers again");
        }
    }

    pub(crate) fn did_not_answer(&self, problem: &str) {
        if self.learn(false) == Some(Change::Away) {
            tracing::warn!(
                cluster = self.cluster,
                problem,
                "a cluster does not answer; its work waits until it does"
            );
        }
    }

    fn learn(&self, answered: bool) -> Option<Change> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, change) = state.next(answered, Instant::now());
        *state = next;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_has_one_beginning_and_one_end() {
        let now = Instant::now();
        let mut state = State::Answering { unanswered: 0 };
        let mut changes = Vec::new();
        // Two lost answers, then an outage of five, then two more lost answers.
        let answers = [true, false, false, true, false, false, false, false, false, true, true];
        for (second, answered) in (0..).zip(answers.into_iter().chain([false, false, true])) {
            let (next, change) = state.next(answered, now + Duration::from_secs(second));
            state = next;
            changes.extend(change.map(|change| (second, change)));
        }
        // Away with the third of the five, back with the next answer.
        let back = Change::Back { after: Duration::from_secs(3) };
        assert_eq!(changes, [(6, Change::Away), (9, back)]);
    }
}
