//! The mode of the whole installation: acting, frozen by a person for a while,
//! or observing only because the database may be older than the world.
//!
//! One row stores it. Every change is decided here, under the lock of that row,
//! and audited. Loops read the mode without a lock, with each batch and again
//! before each action and each write to the registry; `docs/control.md` says what
//! that guarantees.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::blocker::BlockerCode;
use crate::broker::decide::Outcome;
use crate::catalog::blueprint_version::Engine;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ClaimToken, InstallationId, Partition, Revision};
use crate::text::Reason;
use crate::time::Timestamp;

/// A freeze that nobody lifts ends by itself: a freeze longer than this is not
/// for an emergency, somebody forgot it.
pub const FREEZE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
pub const FREEZE_DEFAULT: Duration = Duration::from_secs(3_600);
const FREEZE_MIN: Duration = Duration::from_secs(1);

/// How many claims of one row fit into one count of the heartbeat when the claim tokens
/// are raised after a restore. A count is a millisecond, and a row is claimed at most
/// about 20 times a second. Milliseconds for a thousand years are less than 2^46, and
/// 2^46 · 2^10 is far below 2^63.
pub(crate) const CLAIMS_PER_COUNT: i64 = 1 << 10;

/// The row of the mode, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    pub now: Timestamp,
    pub installation: InstallationId,
    /// Rises by one with every change of the mode; heartbeats do not move it.
    pub revision: Revision,
    /// Stays until it is lifted or a heartbeat notices its end, so use [`Control::mode`].
    pub freeze: Option<Freeze>,
    pub observing: Option<Observing>,
    /// Counts the heartbeats of all replicas, see [`heartbeat`].
    pub heartbeat: i64,
    /// How nodes reach this installation, if it was ever configured.
    pub public_url: Option<String>,
}

/// Where a high-water mark is kept: one engine on one cluster.
pub type MarkKey = (Partition, Engine);

/// The row of the mode under its lock, with the counter of each mark: the
/// heartbeat at which that mark was last read and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedControl {
    pub control: Control,
    pub counters: BTreeMap<MarkKey, i64>,
}

/// Nothing outside is changed before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    pub since: Timestamp,
    pub until: Timestamp,
    pub by: String,
    pub reason: String,
}

/// Nothing outside is changed until a person resumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observing {
    pub since: Timestamp,
    pub by: String,
    pub reason: String,
}

/// What the loops may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Acting,
    Frozen(Freeze),
    Observing(Observing),
}

impl Mode {
    pub const NAMES: [&str; 3] = ["acting", "frozen", "observing"];

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Acting => Self::NAMES[0],
            Self::Frozen(_) => Self::NAMES[1],
            Self::Observing(_) => Self::NAMES[2],
        }
    }

    /// The mode at `now`. Observing takes precedence over frozen: it has no end.
    pub fn at(now: Timestamp, freeze: Option<Freeze>, observing: Option<Observing>) -> Self {
        match (observing, freeze) {
            (Some(observing), _) => Self::Observing(observing),
            (None, Some(freeze)) if now < freeze.until => Self::Frozen(freeze),
            (None, _) => Self::Acting,
        }
    }

    /// The outcome of an action that this mode withholds; `None` if the mode
    /// permits it. Contains no time of the tick, so that a resource that waits
    /// for the same thing keeps the same blocker.
    pub fn withholds(&self, action: &'static str) -> Option<Outcome> {
        let (code, message, evidence) = match self {
            Self::Acting => return None,
            Self::Frozen(freeze) => (
                BlockerCode::Frozen,
                format!(
                    "frozen until {} by {}: {}; withheld action: {action}",
                    freeze.until, freeze.by, freeze.reason
                ),
                json!({
                    "action": action, "until": freeze.until, "by": freeze.by,
                    "reason": freeze.reason,
                }),
            ),
            Self::Observing(observing) => (
                BlockerCode::ObserveOnly,
                format!(
                    "only observing since {}: {}; withheld action: {action}",
                    observing.since, observing.reason
                ),
                json!({
                    "action": action, "since": observing.since, "by": observing.by,
                    "reason": observing.reason,
                }),
            ),
        };
        Some(Outcome::Withheld { code, message, evidence })
    }
}

impl Control {
    pub fn mode(&self) -> Mode {
        Mode::at(self.now, self.freeze.clone(), self.observing.clone())
    }

    fn audit(&self, verb: &'static str, actor: &Actor) -> AuditEntry {
        let about = About::new(self.installation).at(self.revision.next());
        AuditEntry::new(verb, actor, about, self.now)
    }
}

/// The writes of a decision about the mode.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlCommit {
    /// The new row, with the revision that it will have.
    pub control: Control,
    pub audit: Vec<AuditEntry>,
    /// Makes every row that is not settled for good due now.
    pub wake_all: bool,
    /// Ends every claim and raises every claim token to at least this one.
    pub claim_floor: Option<ClaimToken>,
    /// The new counters of these marks.
    pub counters: BTreeMap<MarkKey, i64>,
    /// What a replica reports about itself.
    pub replica: Option<ReplicaReport>,
}

/// The heartbeat of a replica, with the newest mode that all of its actions obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaReport {
    pub worker: String,
    /// For how long after this heartbeat something of it may follow, if it is the
    /// last one.
    pub outlives: Duration,
    /// No action that it started under an older mode is still running.
    pub acknowledged: Revision,
}

impl ControlCommit {
    fn change(control: Control, audit: AuditEntry) -> Self {
        let revision = control.revision.next();
        Self {
            control: Control { revision, ..control },
            audit: vec![audit],
            wake_all: true,
            claim_floor: None,
            counters: BTreeMap::new(),
            replica: None,
        }
    }
}

/// Freezes, or replaces end, reason and owner of a freeze.
pub fn freeze(
    control: &Control,
    length: Duration,
    reason: &Reason,
    actor: &Actor,
) -> Result<ControlCommit, Refusal> {
    if !(FREEZE_MIN..=FREEZE_MAX).contains(&length) {
        return Err(Refusal::invalid(
            "for_seconds",
            format!(
                "must be between {} and {} (7 days); a freeze ends by itself and can be renewed",
                FREEZE_MIN.as_secs(),
                FREEZE_MAX.as_secs()
            ),
        ));
    }
    let freeze = Freeze {
        since: control.now,
        until: control.now.plus(length),
        by: actor.name.clone(),
        reason: reason.as_str().to_owned(),
    };
    let audit = control
        .audit("control.freeze", actor)
        .because(reason.as_str())
        .with(json!({ "until": freeze.until }));
    Ok(ControlCommit::change(Control { freeze: Some(freeze), ..control.clone() }, audit))
}

/// Lifts a freeze before its end.
pub fn unfreeze(
    control: &Control,
    reason: &Reason,
    actor: &Actor,
) -> Result<ControlCommit, Refusal> {
    let in_force = control.freeze.as_ref().filter(|freeze| control.now < freeze.until);
    if in_force.is_none() {
        return Err(Refusal::new(
            ErrorKind::NothingToLift,
            "nothing is frozen; `slipway status` shows the mode",
        ));
    }
    let audit = control.audit("control.unfreeze", actor).because(reason.as_str());
    Ok(ControlCommit::change(Control { freeze: None, ..control.clone() }, audit))
}

/// Stops acting until a person resumes. `None` if it observes already.
pub fn observe(control: &Control, reason: &str, actor: &Actor) -> Option<ControlCommit> {
    if control.observing.is_some() {
        return None;
    }
    Some(observing(control, "control.observe", reason, actor))
}

/// The first commit of a database that was made from a backup: it observes, and
/// no claim is valid, because the workers that had them do not use this database.
/// The claim floor derives from the heartbeat of the backup; a high-water mark
/// that is ahead of it raises the floor further at the first heartbeat.
pub fn restored(control: &Control, reason: &str, actor: &Actor) -> ControlCommit {
    observing(control, "control.restore", reason, actor)
}

/// Whoever lets an installation observe only takes its database for one that may be restored: so
/// no claim and no number of before counts.
fn observing(control: &Control, verb: &'static str, reason: &str, actor: &Actor) -> ControlCommit {
    let observing =
        Observing { since: control.now, by: actor.name.clone(), reason: reason.to_owned() };
    let floor = ClaimToken(control.heartbeat.saturating_add(1).saturating_mul(CLAIMS_PER_COUNT));
    let audit = control
        .audit(verb, actor)
        .because(reason)
        .with(json!({ "heartbeat": control.heartbeat, "claim_floor": floor }));
    let observing = Control { observing: Some(observing), ..control.clone() };
    ControlCommit { claim_floor: Some(floor), ..ControlCommit::change(observing, audit) }
}

/// Acts again, on everything at once. A freeze stays in force.
pub fn resume(control: &Control, reason: &Reason, actor: &Actor) -> Result<ControlCommit, Refusal> {
    if control.observing.is_none() {
        return Err(Refusal::new(
            ErrorKind::NothingToLift,
            "nothing to resume: this installation is not observe-only; `slipway status` shows the mode",
        ));
    }
    let audit = control.audit("control.resume", actor).because(reason.as_str());
    Ok(ControlCommit::change(Control { observing: None, ..control.clone() }, audit))
}

/// A high-water mark of an engine that this replica serves, read before the row of
/// the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It could not be read, so nothing is known about it.
    Unread,
    /// By an answer that is older than this heartbeat: it had this value.
    Known(Option<i64>),
    /// Read for this heartbeat. `None` if there is no mark yet.
    Read(Option<i64>),
}

impl Mark {
    const fn value(self) -> Option<i64> {
        match self {
            Self::Unread => None,
            Self::Known(value) | Self::Read(value) => value,
        }
    }
}

/// The highest mark that is ahead of its counter, and that counter.
pub fn ahead(locked: &LockedControl, marks: &BTreeMap<MarkKey, Mark>) -> Option<(i64, i64)> {
    let ahead = |(key, mark): (&MarkKey, &Mark)| {
        let (value, counter) = (mark.value()?, locked.counter(*key));
        (value > counter).then_some((value, counter))
    };
    marks.iter().filter_map(ahead).max()
}

impl LockedControl {
    /// The counter of a mark. Of one that nobody has served yet: the present
    /// heartbeat, since every mark of this installation was raised to an
    /// earlier one.
    fn counter(&self, key: MarkKey) -> i64 {
        self.counters.get(&key).copied().unwrap_or(self.control.heartbeat)
    }
}

/// One heartbeat of a replica.
///
/// Every heartbeat counts, and at least up to the time of the database in milliseconds.
/// A mark has a counter of its own, the heartbeat at which it was last read: a replica
/// commits that counter first and then writes it to the mark, and both only grow. So a
/// mark that was read *before* this row and is ahead of its counter proves that the
/// database went back in time. Its rows then describe an older world, and the
/// installation only observes until a person resumes.
///
/// The time makes counters comparable that grew in different pasts: a backup of before
/// a restore may have counted more heartbeats than there were since that restore, but
/// not later ones. Only a clock that was put back can hide such a restore.
///
/// The counter of a mark that was not read for this heartbeat stays: a restored
/// counter would overtake that mark, which would then prove nothing. The counters
/// of other marks go on, so that one cluster that stays away does not end the
/// detection for all.
///
/// Claim tokens went back too. Objects outside carry newer ones and would reject
/// every later claim as outdated, so the same commit raises all tokens above any
/// that can have been issued since. The floor derives from the heartbeat, which
/// goes on whatever can be read, and which becomes higher than the mark. If a mark
/// was away, its cluster is not acted on; once the mark is read it proves the
/// restore again, with a higher floor. A second restore of the same backup gets a
/// higher floor than the first, because the mark is raised before the restore is
/// recorded, and the time went on.
///
/// Also ends a freeze whose time has come, so that the rows that waited for it
/// are woken and need not wait for the sweep.
pub fn heartbeat(
    locked: &LockedControl,
    marks: &BTreeMap<MarkKey, Mark>,
    replica: ReplicaReport,
    actor: &Actor,
) -> ControlCommit {
    let control = &locked.control;
    let ahead = ahead(locked, marks);
    let highest = ahead.map_or(control.heartbeat, |(mark, _)| mark.max(control.heartbeat));
    let next = highest.saturating_add(1).max(control.now.as_micros() / 1_000);
    let counted = Control { heartbeat: next, ..control.clone() };
    let mut commit = ControlCommit {
        control: counted.clone(),
        audit: Vec::new(),
        wake_all: false,
        claim_floor: None,
        counters: BTreeMap::new(),
        replica: None,
    };
    if let Some((high_water_mark, counter)) = ahead {
        let reason = format!(
            "the database was restored to an earlier state: its counter is {counter}, the high-water mark outside is {high_water_mark}",
        );
        // Replaces an older reason: this is the one to act upon.
        let observing =
            Observing { since: control.now, by: actor.name.clone(), reason: reason.clone() };
        let floor = ClaimToken(next.saturating_mul(CLAIMS_PER_COUNT));
        let audit = control.audit("control.restore_detected", actor).because(reason).with(
            json!({ "counter": counter, "high_water_mark": high_water_mark, "claim_floor": floor }),
        );
        commit = ControlCommit::change(Control { observing: Some(observing), ..counted }, audit);
        commit.claim_floor = Some(floor);
    } else if control.freeze.as_ref().is_some_and(|freeze| control.now >= freeze.until) {
        let audit = control.audit("control.freeze_expired", actor);
        commit = ControlCommit::change(Control { freeze: None, ..counted }, audit);
    }
    for (key, mark) in marks {
        let before = locked.counter(*key);
        let counter = match mark {
            Mark::Read(_) => next,
            // It has at least this value by now, so this does not overtake it.
            Mark::Known(value) => before.max(value.unwrap_or(before)),
            Mark::Unread => before,
        };
        if locked.counters.get(key) != Some(&counter) {
            commit.counters.insert(*key, counter);
        }
    }
    commit.replica = Some(replica);
    commit
}

/// Records how nodes reach this installation. `None` if nothing changed.
pub fn locate(control: &Control, public_url: &str, actor: &Actor) -> Option<ControlCommit> {
    if control.public_url.as_deref() == Some(public_url) {
        return None;
    }
    let audit = control
        .audit("control.public_url", actor)
        .with(json!({ "from": control.public_url, "to": public_url }));
    let located = Control { public_url: Some(public_url.to_owned()), ..control.clone() };
    Some(ControlCommit { wake_all: false, ..ControlCommit::change(located, audit) })
}

#[cfg(test)]
mod tests;
