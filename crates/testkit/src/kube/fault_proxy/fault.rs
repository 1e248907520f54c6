//! The faults, and how one is chosen for a request. Pure.

use std::time::Duration;

use serde_json::json;

use crate::random::Random;

/// What happens to a request.
///
/// "Cut" means that the client's connection is closed without an answer, as if
/// the network had failed: the client cannot know whether the server carried the
/// request out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The proxy answers by itself, with these bytes (see [`refusal`]); the
    /// server never sees the request. The connection ends.
    Answer(Vec<u8>),
    /// The client is cut, and the server never sees the request.
    Lose,
    /// The request is forwarded after this time, also if the client gave up
    /// meanwhile.
    Delay(Duration),
    /// The request is forwarded at [`super::FaultProxy::release`], also if the
    /// client gave up meanwhile.
    Hold,
    /// The server carries the request out, then the client is cut.
    DropAnswer,
    /// The client is cut at once; the request lands after this time.
    CutThenForward(Duration),
    /// The client is cut at once; the request lands at
    /// [`super::FaultProxy::release`].
    CutThenHold,
    /// The request is forwarded and answered, and once more after this time.
    Duplicate(Duration),
}

impl Fault {
    /// A word for counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answered",
            Self::Lose => "lost",
            Self::Delay(_) => "delayed",
            Self::Hold => "held",
            Self::DropAnswer => "answer_dropped",
            Self::CutThenForward(_) => "landed_late",
            Self::CutThenHold => "cut_and_held",
            Self::Duplicate(_) => "duplicated",
        }
    }
}

/// Which requests get a fault, and how many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    fault: Fault,
    method: Option<String>,
    path: Vec<String>,
    times: usize,
}

impl Rule {
    /// Every request gets this fault, until the rule is restricted.
    pub const fn new(fault: Fault) -> Self {
        Self { fault, method: None, path: Vec::new(), times: usize::MAX }
    }

    /// Only requests of this method: `GET`, `PATCH`, `DELETE`, …
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Only requests whose path and query contain this; all parts that were named.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        self.path.push(part.to_owned());
        self
    }

    /// Only the first so many of them.
    #[must_use]
    pub const fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        self.times > 0
            && self.method.as_ref().is_none_or(|wanted| wanted == method)
            && self.path.iter().all(|part| path.contains(part))
    }
}

/// How many of a thousand requests get which fault. They add up to at most 1000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odds {
    /// Answered 503.
    pub refuse: u64,
    pub lose: u64,
    pub delay: u64,
    pub drop_answer: u64,
    pub cut_then_forward: u64,
    pub duplicate: u64,
    /// The longest time of a fault that has one.
    pub longest: Duration,
}

/// Chooses the fault of each request.
#[derive(Debug, Default)]
pub(super) struct Choice {
    rules: Vec<Rule>,
    random: Option<Randomness>,
}

#[derive(Debug)]
struct Randomness {
    random: Random,
    writes: Odds,
    reads: Odds,
}

impl Choice {
    pub(super) fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub(super) fn randomize(&mut self, seed: u64, writes: Odds, reads: Odds) {
        self.random = Some(Randomness { random: Random::new(seed), writes, reads });
    }

    /// The oldest rule that applies, otherwise what is drawn.
    pub(super) fn of(&mut self, method: &str, path: &str) -> Option<Fault> {
        if let Some(rule) = self.rules.iter_mut().find(|rule| rule.matches(method, path)) {
            if rule.times != usize::MAX {
                rule.times -= 1;
            }
            return Some(rule.fault.clone());
        }
        let Randomness { random, writes, reads } = self.random.as_mut()?;
        let odds = if method == "GET" { reads } else { writes };
        odds.draw(random)
    }
}

impl Odds {
    fn draw(&self, random: &mut Random) -> Option<Fault> {
        // Both are drawn for every request: each fault then uses up as much of
        // the stream as any other.
        let mut dice = random.between(0, 1_000);
        let longest = u64::try_from(self.longest.as_millis()).unwrap_or(u64::MAX);
        let time = Duration::from_millis(random.between(0, longest.saturating_add(1)));
        let faults = [
            (self.refuse, Fault::Answer(refusal(503, "ServiceUnavailable"))),
            (self.lose, Fault::Lose),
            (self.delay, Fault::Delay(time)),
            (self.drop_answer, Fault::DropAnswer),
            (self.cut_then_forward, Fault::CutThenForward(time)),
            (self.duplicate, Fault::Duplicate(time)),
        ];
        for (odds, fault) in faults {
            if dice < odds {
                return Some(fault);
            }
            dice -= odds;
        }
        None
    }
}

/// A refusal as the API server sends it, for [`Fault::Answer`].
pub fn refusal(code: u16, reason: &str) -> Vec<u8> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("played: {reason}"), "reason": reason, "code": code,
    });
    answer(code, &status.to_string())
}

/// A watch that begins and ends with the error that its version is too old, for
/// [`Fault::Answer`].
pub fn watch_expired() -> Vec<u8> {
    let event = json!({ "type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version: 1 (2)", "reason": "Expired", "code": 410,
    } });
    answer(200, &format!("{event}\n"))
}

fn answer(code: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {code} Played\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::{Choice, Fault, Odds, Rule};

    #[test]
    fn the_oldest_rule_that_applies_is_used_up_first() {
        let mut choice = Choice::default();
        choice.add(Rule::new(Fault::Lose).method("PATCH").path("/a").path("force").times(1));
        choice.add(Rule::new(Fault::Hold).path("/a"));
        assert_eq!(choice.of("PATCH", "/a?force=true"), Some(Fault::Lose));
        assert_eq!(choice.of("PATCH", "/a?force=true"), Some(Fault::Hold));
        assert_eq!(choice.of("GET", "/a"), Some(Fault::Hold));
        assert_eq!(choice.of("GET", "/b"), None);
    }

    fn drawn(seed: u64) -> Vec<Option<Fault>> {
        let mut choice = Choice::default();
        let writes = Odds {
            refuse: 100,
            lose: 100,
            delay: 100,
            drop_answer: 100,
            cut_then_forward: 100,
            duplicate: 100,
            longest: Duration::from_millis(50),
        };
        choice.randomize(seed, writes, Odds::default());
        assert_eq!(choice.of("GET", "/a"), None);
        (0..1_000).map(|_| choice.of("DELETE", "/a")).collect()
    }

    #[test]
    fn a_seed_draws_every_fault_about_as_often_as_the_odds_say() {
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let mut counts = BTreeMap::new();
        for fault in drawn(7).into_iter().flatten() {
            *counts.entry(fault.name()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (70..130).contains(count)), "{counts:?}");
    }
}
