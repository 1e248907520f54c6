//! Purging: the rows of what was deleted are removed for good, when their retention ends or
//! when an admin asks for it. First the deletion becomes purging, which has no way back;
//! then the store removes its members in batches; then it is purged. Nothing begins to be
//! purged that may still be needed: each reason is named.

use serde_json::json;

use crate::access::audit::Actor;
use crate::commit::Commit;
use crate::deletion::door::entry;
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::write::enter;
use crate::error::{ErrorKind, Refusal};
use crate::ids::Revision;
use crate::operations::control::Mode;
use crate::subject::SubjectKind;
use crate::text::Reason;
use crate::time::Timestamp;

/// A deletion with everything that may withhold its purge, its target and its record locked.
#[derive(Debug, Clone)]
pub struct PurgeSnapshot {
    pub now: Timestamp,
    pub mode: Mode,
    /// The revision of the mode.
    pub mode_revision: Revision,
    pub deletion: Deletion,
    /// The deletion that took this one over.
    pub parent: Option<Deletion>,
    pub needs: Needs,
    /// Rows that it would remove, or has still to remove.
    pub left: u64,
}

/// What still needs the members of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Attempts whose absence outside is not proven, or a namespace.
    pub unproven: Found,
    /// Stacks that agents have not reported as removed.
    pub owed: Found,
    /// Members with an open leak record.
    pub leaks: Found,
    /// Whether a subscription has not delivered an event of a member.
    pub owed_delivery: bool,
    /// What refers to its target and is not purged with it.
    pub users: Found,
}

/// How many there are, and the names of some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub count: i64,
    pub names: Vec<String>,
}

impl Found {
    /// How many names are read.
    pub const NAMED: i64 = 3;

    /// `5 of them: a, b, c and 2 more`.
    fn shown(&self) -> String {
        let named = i64::try_from(self.names.len()).unwrap_or(i64::MAX);
        let names = self.names.join(", ");
        match self.count - named {
            1.. => format!("{names} and {} more", self.count - named),
            _ => names,
        }
    }
}

/// The code of every reason.
pub const REASONS: &[&str] = &[
    "not_done",
    "purge_protected",
    "frozen",
    "observe_only",
    "not_proven_gone",
    "open_leak",
    "owed_delivery",
    "in_use",
    "parent_kept",
];

/// One reason not to purge: a stable code, and a text that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub code: &'static str,
    pub message: String,
}

/// Who purges, and why.
#[derive(Debug, Clone, Copy)]
pub enum Trigger<'a> {
    /// The loop, when the retention is over.
    Retention,
    ByHand {
        reason: &'a Reason,
        /// Although purge protection covers it.
        despite_protection: bool,
        /// Content goes at once, whatever needs the rows; those go when nothing does.
        now: bool,
    },
}

impl PurgeSnapshot {
    /// Every reason for which it must not be purged, apart from its retention.
    pub fn withheld(&self, despite_protection: bool) -> Vec<Withheld> {
        let (deletion, now) = (&self.deletion, self.now);
        let mut found = Vec::new();
        let mut add = |code, message: String| {
            debug_assert!(REASONS.contains(&code), "`{code}` is missing in REASONS");
            found.push(Withheld { code, message });
        };
        if deletion.state != DeletionState::Done {
            let message = match deletion.state {
                DeletionState::Purging | DeletionState::Purged => "it is purged already",
                DeletionState::Cancelled | DeletionState::Restored => {
                    "nothing is deleted: it was cancelled or restored"
                }
                _ => "it is not done; only what is deleted can be purged",
            };
            add("not_done", message.to_owned());
        }
        let kept = deletion.restorable_until.filter(|until| now < *until);
        if let Some(until) = kept.filter(|_| deletion.purge_protected && !despite_protection) {
            add(
                "purge_protected",
                format!(
                    "purge protection was on when it was deleted and holds until {until}; wait, or purge it with `--despite-protection` and a reason"
                ),
            );
        }
        match &self.mode {
            Mode::Acting => {}
            Mode::Frozen(freeze) => {
                add("frozen", format!("a freeze is in force until {}", freeze.until));
            }
            Mode::Observing(_) => add(
                "observe_only",
                "the installation only observes; end that with `slipway resume`".to_owned(),
            ),
        }
        let Needs { unproven, owed, leaks, owed_delivery, users } = &self.needs;
        if owed.count > 0 {
            add(
                "not_proven_gone",
                format!(
                    "nobody has reported that {} is removed; `slipway deletion get` names each agent",
                    owed.shown()
                ),
            );
        }
        if unproven.count > 0 {
            add(
                "not_proven_gone",
                format!(
                    "nobody has proven that {} is gone outside; `slipway explain` says what each waits for",
                    unproven.shown()
                ),
            );
        }
        if leaks.count > 0 {
            add(
                "open_leak",
                format!(
                    "an open leak record is about {}; resolve it first (`slipway leaks`)",
                    leaks.shown()
                ),
            );
        }
        if *owed_delivery {
            add(
                "owed_delivery",
                "a subscription has not delivered all of its events; `slipway event subscriptions` shows which is behind".to_owned(),
            );
        }
        if users.count > 0 {
            add("in_use", format!("{} still refers to it; that goes first", users.shown()));
        }
        let parent = self.parent.as_ref().filter(|parent| match parent.state {
            DeletionState::Scheduled | DeletionState::Running => true,
            DeletionState::Done => parent.restorable_until.is_some_and(|until| now < until),
            _ => false,
        });
        if let Some(parent) = parent {
            add(
                "parent_kept",
                format!(
                    "it was deleted with {} `{}`, which can still come back; it is purged when that can be",
                    parent.target.kind, parent.name
                ),
            );
        }
        found
    }
}

/// Makes a deletion purging, or refuses and names every reason. Repeated, it changes
/// nothing.
pub fn begin(
    snapshot: &PurgeSnapshot,
    trigger: Trigger<'_>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let PurgeSnapshot { now, deletion, .. } = snapshot;
    if matches!(deletion.state, DeletionState::Purging | DeletionState::Purged) {
        return Ok(Commit::default());
    }
    let (reason, despite, erases) = match trigger {
        Trigger::Retention => {
            // It was restored, or its time was read before it changed.
            let over = deletion.restorable_until.is_some_and(|until| until <= *now);
            if deletion.state != DeletionState::Done || !over {
                return Ok(Commit::default());
            }
            ("its retention is over", false, false)
        }
        Trigger::ByHand { reason, despite_protection, now } => {
            (reason.as_str(), despite_protection, now)
        }
    };
    if erases && !ERASED.contains(&deletion.target.kind) {
        let kind = deletion.target.kind;
        let problem = format!(
            "erases the content of stacks and templates, and a {kind} has none; leave it out, and the purge begins as soon as nothing needs the rows"
        );
        return Err(Refusal::invalid("now", problem));
    }
    let mut withheld = snapshot.withheld(despite);
    if erases {
        // The rows wait for these, the content does not.
        withheld.retain(|one| !ROWS_WAIT_FOR.contains(&one.code));
    }
    if !withheld.is_empty() {
        return Err(refusal(deletion, &withheld));
    }
    let audit = entry("deletion.purge", deletion, actor, *now).because(reason).with(json!({
        "rows": snapshot.left,
        "despite_protection": despite && deletion.purge_protected,
        "now": erases,
    }));
    let mut commit =
        Commit { audit: vec![audit], mode: Some(snapshot.mode_revision), ..Commit::default() };
    let mut after = Deletion { state: DeletionState::Purging, ..deletion.clone() };
    if erases {
        // What waits is looked at less and less often, counted from now on.
        after.fleet.erases = true;
        after.restorable_until = Some(*now);
    }
    enter(&mut commit, deletion, after, *now);
    Ok(commit)
}

/// What has content that can be erased, or may contain it.
const ERASED: [SubjectKind; 4] =
    [SubjectKind::Project, SubjectKind::Generator, SubjectKind::Stack, SubjectKind::Template];

/// Reasons that a purge which erases waits for with its rows only.
const ROWS_WAIT_FOR: [&str; 4] = ["not_proven_gone", "open_leak", "owed_delivery", "in_use"];

impl Needs {
    /// Whether nothing needs the rows.
    pub fn is_empty(&self) -> bool {
        let Self { unproven, owed, leaks, owed_delivery, users } = self;
        [unproven, owed, leaks, users].iter().all(|found| found.count == 0) && !owed_delivery
    }
}

/// Ends the purge of a deletion of which nothing is left.
pub fn end(snapshot: &PurgeSnapshot, actor: &Actor) -> Commit {
    let PurgeSnapshot { now, deletion, left, .. } = snapshot;
    if deletion.state != DeletionState::Purging || *left > 0 {
        return Commit::default();
    }
    let mut commit = Commit {
        audit: vec![entry("deletion.purged", deletion, actor, *now)],
        ..Commit::default()
    };
    let after = Deletion { state: DeletionState::Purged, ..deletion.clone() };
    enter(&mut commit, deletion, after, *now);
    commit
}

fn refusal(deletion: &Deletion, withheld: &[Withheld]) -> Refusal {
    let reasons: Vec<&str> = withheld.iter().map(|one| &*one.message).collect();
    let message = format!(
        "the deletion of {} `{}` is not purged: {}",
        deletion.target.kind,
        deletion.name,
        reasons.join("; ")
    );
    let codes: Vec<&str> = withheld.iter().map(|one| one.code).collect();
    Refusal::new(ErrorKind::PurgeWithheld, message).with(json!({ "reasons": codes }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::{at, mk_deletion, mk_frozen, mk_snapshot};
    use crate::ids::DeletionId;

    fn snapshot() -> PurgeSnapshot {
        let deletion = mk_deletion(&mk_snapshot(crate::Phase::Deleted));
        let deletion = Deletion { retention: Duration::from_secs(50), ..deletion }.done(at(1_000));
        PurgeSnapshot {
            now: at(1_100),
            mode: Mode::Acting,
            mode_revision: Revision(3),
            deletion,
            parent: None,
            needs: Needs::default(),
            left: 4,
        }
    }

    fn one(name: &str) -> Found {
        Found { count: 1, names: vec![name.to_owned()] }
    }

    fn codes(snapshot: &PurgeSnapshot) -> Vec<&'static str> {
        snapshot.withheld(false).iter().map(|one| one.code).collect()
    }

    fn why() -> Reason {
        Reason::parse("test").expect("a reason")
    }

    #[test]
    fn what_is_past_its_retention_becomes_purging_and_then_purged() {
        let before = snapshot();
        let commit = begin(&before, Trigger::Retention, &Actor::new("loop:deletions")).expect("it");
        assert_eq!(commit.events.len(), 1);
        assert_eq!(commit.audit.len(), 1);
        assert_eq!(commit.mode, Some(Revision(3)), "not after the mode changed");
        let purging = Deletion { state: DeletionState::Purging, ..before.deletion.clone() };
        let purging = PurgeSnapshot { deletion: purging, ..before };
        let again = begin(&purging, Trigger::Retention, &Actor::new("x")).expect("nothing");
        assert!(again.is_empty());
        assert!(end(&purging, &Actor::new("x")).is_empty(), "four rows are left");
        let empty = PurgeSnapshot { left: 0, ..purging };
        assert_eq!(end(&empty, &Actor::new("x")).events.len(), 1);
    }

    #[test]
    fn every_reason_withholds_it_and_is_named() {
        let good = snapshot();
        assert_eq!(codes(&good), [""; 0]);
        let parent =
            Deletion { id: DeletionId::new(uuid::Uuid::from_u128(41)), ..good.deletion.clone() };
        let kept = Deletion { restorable_until: Some(at(2_000)), ..parent.clone() };
        let running = Deletion { state: DeletionState::Running, ..parent.clone() };
        let cases = [
            ("not_done", PurgeSnapshot { deletion: running.clone(), ..good.clone() }),
            ("frozen", PurgeSnapshot { mode: mk_frozen(), ..good.clone() }),
            (
                "not_proven_gone",
                PurgeSnapshot {
                    needs: Needs { unproven: one("web-1"), ..Needs::default() },
                    ..good.clone()
                },
            ),
            (
                "open_leak",
                PurgeSnapshot {
                    needs: Needs { leaks: one("web-1"), ..Needs::default() },
                    ..good.clone()
                },
            ),
            (
                "owed_delivery",
                PurgeSnapshot {
                    needs: Needs { owed_delivery: true, ..Needs::default() },
                    ..good.clone()
                },
            ),
            (
                "in_use",
                PurgeSnapshot {
                    needs: Needs { users: one("shop/web-1"), ..Needs::default() },
                    ..good.clone()
                },
            ),
            ("parent_kept", PurgeSnapshot { parent: Some(kept), ..good.clone() }),
            ("parent_kept", PurgeSnapshot { parent: Some(running), ..good.clone() }),
        ];
        for (code, snapshot) in cases {
            assert_eq!(codes(&snapshot), [code]);
            let reason = why();
            let by_hand = Trigger::ByHand { reason: &reason, despite_protection: true, now: false };
            let refused = begin(&snapshot, by_hand, &Actor::new("x")).expect_err("withheld");
            assert_eq!(refused.kind, ErrorKind::PurgeWithheld);
        }
        let over = PurgeSnapshot { parent: Some(parent), ..good };
        assert_eq!(codes(&over), [""; 0], "it can be purged with its parent");
    }

    /// Purge protection holds against people until the retention ends, not against the loop
    /// afterwards.
    #[test]
    fn purge_protection_holds_until_the_retention_ends() {
        let good = snapshot();
        let deletion = Deletion {
            purge_protected: true,
            restorable_until: Some(at(2_000)),
            ..good.deletion.clone()
        };
        let protected = PurgeSnapshot { deletion, ..good };
        let reason = why();
        let ask = |despite_protection| Trigger::ByHand {
            reason: &reason,
            despite_protection,
            now: false,
        };
        assert!(begin(&protected, ask(false), &Actor::new("x")).is_err());
        let forced = begin(&protected, ask(true), &Actor::new("x")).expect("with a reason");
        assert_eq!(forced.audit[0].details["despite_protection"], true);
        let loops = begin(&protected, Trigger::Retention, &Actor::new("x")).expect("not yet");
        assert!(loops.is_empty());
        let later = PurgeSnapshot { now: at(2_000), ..protected };
        assert_eq!(begin(&later, ask(false), &Actor::new("x")).expect("over").events.len(), 1);
    }

    proptest! {
        /// The loop purges nothing before its time and nothing that anything needs.
        #[test]
        fn the_loop_purges_nothing_that_is_needed_or_kept(
            state in prop::sample::select(DeletionState::ALL.to_vec()),
            late in -100..100_i64,
            counts in prop::array::uniform3(0..3_i64),
            owed in any::<bool>(),
            frozen in any::<bool>(),
            protected in any::<bool>(),
        ) {
            let good = snapshot();
            let until = good.now.as_micros() - late * 1_000_000;
            let found = |count| Found { count, names: Vec::new() };
            let given = PurgeSnapshot {
                mode: if frozen { mk_frozen() } else { Mode::Acting },
                deletion: Deletion {
                    state,
                    purge_protected: protected,
                    restorable_until: Some(Timestamp::from_micros(until)),
                    ..good.deletion.clone()
                },
                needs: Needs {
                    unproven: found(counts[0]),
                    owed: Found::default(),
                    leaks: found(counts[1]),
                    owed_delivery: owed,
                    users: found(counts[2]),
                },
                ..good
            };
            let begun = begin(&given, Trigger::Retention, &Actor::new("x"))
                .is_ok_and(|commit| !commit.is_empty());
            let may = state == DeletionState::Done
                && late >= 0
                && counts == [0; 3]
                && !owed
                && !frozen;
            prop_assert_eq!(begun, may);
        }
    }
}
