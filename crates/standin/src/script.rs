//! The script of one composite, and the conditions that follow from it. Pure.
//!
//! A script is read from annotations `standin.slipway.dev/<word>` of the
//! composite, and from the text `spec.parameters.standin`, which has the same
//! words as `word=value; word=value`. An annotation wins, and may change while
//! the composite lives.
//!
//! | word | value | meaning |
//! |---|---|---|
//! | `ready-after` | time | how long it takes to become Ready |
//! | `fail` | message | then fails permanently: `ProvisioningFailed` is True |
//! | `never-ready` | | never becomes Ready |
//! | `flap` | time | Ready alternates between True and False, each for this long |
//! | `deletion-delay` | time | how long the deletion of the composed resource takes |
//! | `keep-finalizer` | | Crossplane's finalizer is never removed |
//! | `refuse-deletion` | message | the provider refuses to delete the external object of the composed resource, and says this; the composite waits for it |
//! | `deletion-policy` | | that composed resource has `deletionPolicy` instead of `managementPolicies` |
//! | `no-node` | | no agent boots |
//! | `leave` | | an agent that was not drained says good-bye when it is ended |
//! | `busy` | | an agent that is a task does not finish its work |
//!
//! A word without a value, or with `true`, applies; with `false` it does not.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::options::{Options, parse_duration};

/// The prefix of a word in an annotation.
pub const PREFIX: &str = "standin.slipway.dev/";

const FAILURE: &str = "the provider gave up (as the stand-in was told)";

/// The behaviour of one composite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub ready_after: Duration,
    pub fail: Option<String>,
    pub never_ready: bool,
    pub flap: Option<Duration>,
    pub deletion_delay: Duration,
    pub keep_finalizer: bool,
    pub refuse_deletion: Option<String>,
    pub deletion_policy: bool,
    pub no_node: bool,
    pub leave: bool,
    pub busy: bool,
}

impl Script {
    /// The script of a composite, given as JSON. An error names a word that is
    /// not understood.
    pub fn of(object: &Value, options: &Options) -> Result<Self, String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut script = Self {
            ready_after: options.ready_after,
            deletion_delay: options.deletion_delay,
            fail: is_among(name, options.fail_percent).then(|| FAILURE.to_owned()),
            ..Self::default()
        };
        for (word, value) in words(object) {
            script.take(&word, &value)?;
        }
        Ok(script)
    }

    fn take(&mut self, word: &str, value: &str) -> Result<(), String> {
        let time = || parse_duration(value).map_err(|error| format!("{word}: {error}"));
        let meant = || match value {
            "" | "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("{word}: {value:?} is neither true nor false")),
        };
        match word {
            "ready-after" => self.ready_after = time()?,
            "deletion-delay" => self.deletion_delay = time()?,
            "flap" => self.flap = Some(time()?).filter(|time| !time.is_zero()),
            "fail" => {
                let message = if value.is_empty() { FAILURE } else { value };
                self.fail = (value != "false").then(|| message.to_owned());
            }
            "never-ready" => self.never_ready = meant()?,
            "keep-finalizer" => self.keep_finalizer = meant()?,
            "refuse-deletion" => {
                self.refuse_deletion = (value != "false").then(|| value.to_owned());
            }
            "deletion-policy" => self.deletion_policy = meant()?,
            "no-node" => self.no_node = meant()?,
            "leave" => self.leave = meant()?,
            "busy" => self.busy = meant()?,
            _ => return Err(format!("the stand-in does not know the word {word:?}")),
        }
        Ok(())
    }

    /// The state of a composite this long after it was first seen.
    pub(crate) fn state(&self, age: Duration) -> State {
        let Some(since_ready) = age.checked_sub(self.ready_after) else {
            return State::making(Some(self.ready_after.saturating_sub(age)));
        };
        if let Some(message) = &self.fail {
            let mut state = State::making(None);
            state.conditions.push(Condition::new(
                "ProvisioningFailed",
                true,
                "ProviderGaveUp",
                message,
            ));
            return state;
        }
        if self.never_ready {
            return State::making(None);
        }
        let (ready, next) = match self.flap {
            None => (true, None),
            Some(each) => {
                let turns = since_ready.as_nanos() / each.as_nanos();
                let into_period = since_ready.as_nanos() % each.as_nanos();
                let left = each.as_nanos() - into_period;
                (turns % 2 == 0, Some(Duration::from_nanos(left.try_into().unwrap_or(u64::MAX))))
            }
        };
        let reason = if ready { "Available" } else { "Unavailable" };
        State {
            conditions: vec![Condition::synced(), Condition::new("Ready", ready, reason, "")],
            boots: !self.no_node,
            next,
        }
    }
}

/// The state of a composite at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) conditions: Vec<Condition>,
    /// Whether its machine runs.
    pub(crate) boots: bool,
    /// When to compute it again, if time alone changes it.
    pub(crate) next: Option<Duration>,
}

impl State {
    fn making(next: Option<Duration>) -> Self {
        let ready = Condition::new("Ready", false, "Creating", "");
        Self { conditions: vec![Condition::synced(), ready], boots: false, next }
    }

    pub(crate) fn leaving() -> Self {
        let ready = Condition::new("Ready", false, "Deleting", "");
        Self { conditions: vec![Condition::synced(), ready], boots: true, next: None }
    }

    /// Ready as before, and not reconciled for this reason.
    pub(crate) fn refused(reason: &str, ready: bool) -> Self {
        let synced = Condition::new("Synced", false, "ReconcileError", reason);
        let said = if ready { "Available" } else { "Creating" };
        let conditions = vec![synced, Condition::new("Ready", ready, said, "")];
        Self { conditions, boots: false, next: None }
    }
}

/// A condition in Crossplane's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) status: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    pub(crate) fn new(
        kind: &'static str,
        status: bool,
        reason: &'static str,
        message: &str,
    ) -> Self {
        Self { kind, status, reason, message: message.to_owned() }
    }

    fn synced() -> Self {
        Self::new("Synced", true, "ReconcileSuccess", "")
    }
}

/// Words and values; later ones win.
fn words(object: &Value) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    let text = object["spec"]["parameters"]["standin"].as_str().unwrap_or_default();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (word, value) = part.split_once('=').unwrap_or((part, ""));
        words.insert(word.trim().to_owned(), value.trim().to_owned());
    }
    let annotations = object["metadata"]["annotations"].as_object();
    for (name, value) in annotations.into_iter().flatten() {
        if let Some(word) = name.strip_prefix(PREFIX) {
            words.insert(word.to_owned(), value.as_str().unwrap_or_default().to_owned());
        }
    }
    words
}

/// Whether a name is among this percentage of names: the same in every run.
fn is_among(name: &str, percent: u8) -> bool {
    // FNV-1a, and its upper half: names that differ only at the end differ most
    // in the lower bits of the last multiplication.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) % 100 < u64::from(percent)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{Script, is_among};
    use crate::options::Options;

    const SECOND: Duration = Duration::from_secs(1);

    fn ready(script: &Script, age: Duration) -> (bool, Option<Duration>) {
        let state = script.state(age);
        let ready = state.conditions.iter().find(|condition| condition.kind == "Ready").unwrap();
        (ready.status, state.next)
    }

    #[test]
    fn an_annotation_wins_over_the_parameter_and_both_over_the_flags() {
        let object = json!({
            "metadata": { "annotations": { "standin.slipway.dev/ready-after": "2s", "other": "x" } },
            "spec": { "parameters": { "standin": "ready-after=1s; no-node; fail=no room" } },
        });
        let script = Script::of(&object, &Options::default()).unwrap();
        assert_eq!(script.ready_after, 2 * SECOND);
        assert!(script.no_node && !script.never_ready);
        assert_eq!(script.fail.as_deref(), Some("no room"));
        let options = Options { ready_after: SECOND, ..Options::default() };
        assert_eq!(Script::of(&json!({}), &options).unwrap().ready_after, SECOND);
    }

    #[test]
    fn a_word_that_is_not_understood_is_named() {
        for (text, named) in [
            ("raedy-after=1s", "raedy-after"),
            ("ready-after=soon", "soon"),
            ("no-node=perhaps", "perhaps"),
        ] {
            let object = json!({ "spec": { "parameters": { "standin": text } } });
            let error = Script::of(&object, &Options::default()).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn a_composite_is_ready_when_its_time_has_come() {
        let script = Script { ready_after: SECOND, ..Script::default() };
        assert_eq!(ready(&script, SECOND / 4), (false, Some(SECOND * 3 / 4)));
        assert_eq!(ready(&script, SECOND), (true, None));
        assert!(script.state(SECOND).boots && !script.state(Duration::ZERO).boots);
        let never = Script { never_ready: true, ..script };
        assert_eq!(ready(&never, 100 * SECOND), (false, None));
    }

    #[test]
    fn a_failure_is_final_and_says_why() {
        let script = Script { fail: Some("no room".to_owned()), ..Script::default() };
        let state = script.state(SECOND);
        let failed = state.conditions.last().unwrap();
        assert_eq!((failed.kind, failed.status), ("ProvisioningFailed", true));
        assert_eq!(failed.message, "no room");
        assert!(!state.boots && state.next.is_none());
    }

    #[test]
    fn a_flapping_one_turns_at_its_times() {
        let script = Script { flap: Some(SECOND), ..Script::default() };
        assert_eq!(ready(&script, Duration::ZERO), (true, Some(SECOND)));
        assert_eq!(ready(&script, SECOND * 5 / 4), (false, Some(SECOND * 3 / 4)));
        assert_eq!(ready(&script, 2 * SECOND), (true, Some(SECOND)));
        // Its machine runs all the time.
        assert!(script.state(SECOND * 5 / 4).boots);
    }

    #[test]
    fn about_as_many_fail_as_were_asked_for_and_always_the_same() {
        let names: Vec<String> = (0..1000).map(|number| format!("pr-{number:04}")).collect();
        let failing = |percent| names.iter().filter(|name| is_among(name, percent)).count();
        assert_eq!(failing(0), 0);
        assert_eq!(failing(100), 1000);
        assert!((60..140).contains(&failing(10)), "{}", failing(10));
        assert!(names.iter().all(|name| !is_among(name, 10) || is_among(name, 11)));
    }
}
