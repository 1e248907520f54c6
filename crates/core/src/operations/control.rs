//! The mode of the whole installation: acting, frozen by a person for a while,
//! or observing only because the database may be older than the world.
//!
//! One row stores it. Every change is decided here, under the lock of that row,
//! and audited. Loops read the mode without a lock, with each batch and again
//! before an outside action; `docs/control.md` says what that guarantees.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::blocker::BlockerCode;
use crate::broker::decide::Outcome;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ClaimToken, InstallationId, Revision};
use crate::text::Reason;
use crate::time::Timestamp;

/// A freeze that nobody lifts ends by itself: a freeze longer than this is not
/// for an emergency, somebody forgot it.
pub const FREEZE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
pub const FREEZE_DEFAULT: Duration = Duration::from_secs(3_600);
const FREEZE_MIN: Duration = Duration::from_secs(1);

/// How many claims of one row fit between two heartbeats when the claim tokens
/// are raised after a restore. A row is claimed at most about 20 times a
/// second, so 2^24 covers more than nine days in which no mark could be raised.
/// Objects outside carry only the claim tokens of actions, and every action
/// raises the marks. A heartbeat every 2 s for a thousand years is less than
/// 2^34, and 2^34 · 2^24 is far below 2^63.
const CLAIMS_PER_HEARTBEAT: i64 = 1 << 24;

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
    /// The counter that the heartbeats of all replicas raise, see [`heartbeat`].
    pub heartbeat: i64,
    /// How nodes reach this installation, if it was ever configured.
    pub public_url: Option<String>,
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
    /// The mode at `now`. Observing takes precedence over frozen: it has no end.
    pub fn mode(&self) -> Mode {
        match (&self.observing, &self.freeze) {
            (Some(observing), _) => Mode::Observing(observing.clone()),
            (None, Some(freeze)) if self.now < freeze.until => Mode::Frozen(freeze.clone()),
            (None, _) => Mode::Acting,
        }
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
    /// What a replica reports about itself.
    pub replica: Option<ReplicaReport>,
}

/// The heartbeat of a replica, with the newest mode that all of its actions obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaReport {
    pub worker: String,
    pub lease: Duration,
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
    let observing =
        Observing { since: control.now, by: actor.name.clone(), reason: reason.to_owned() };
    let audit = control.audit("control.observe", actor).because(reason);
    Some(ControlCommit::change(Control { observing: Some(observing), ..control.clone() }, audit))
}

/// The first commit of a database that was made from a backup: it observes, and
/// no claim is valid, because the workers that had them do not use this database.
/// The claim floor derives from the heartbeat of the backup; a high-water mark
/// that is ahead of it raises the floor further at the first heartbeat.
pub fn restored(control: &Control, reason: &str, actor: &Actor) -> ControlCommit {
    let observing =
        Observing { since: control.now, by: actor.name.clone(), reason: reason.to_owned() };
    let floor =
        ClaimToken(control.heartbeat.saturating_add(1).saturating_mul(CLAIMS_PER_HEARTBEAT));
    let audit = control
        .audit("control.restore", actor)
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

/// The high-water marks outside, read before the row of the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// The highest of those that could be read.
    pub highest: Option<i64>,
    /// Each was read at least once since this replica started.
    pub all_read: bool,
}

/// One heartbeat of a replica.
///
/// The replica commits the counter to the database first and then writes it to
/// the marks outside, and both only grow. So every value of a mark was once in
/// the database; a mark that was read *before* this row and is ahead of it
/// proves that the database went back in time. Its rows then describe an older
/// world, so the installation only observes until a person resumes.
///
/// The counter pauses while a mark has not been read since the replica started:
/// a restored counter would overtake that mark, which would then prove nothing.
///
/// Claim tokens went back too. Objects outside carry newer ones and would reject
/// every later claim as outdated, so the same commit raises all tokens above any
/// that can have been issued since. The floor derives from the heartbeat, so
/// that a second restore of the same backup gets a higher floor than the first.
///
/// Also ends a freeze whose time has come, so that the rows that waited for it
/// are woken and need not wait for the sweep.
pub fn heartbeat(
    control: &Control,
    marks: Marks,
    replica: ReplicaReport,
    actor: &Actor,
) -> ControlCommit {
    let step = i64::from(marks.all_read);
    let counted = Control { heartbeat: control.heartbeat.saturating_add(step), ..control.clone() };
    let mut commit = ControlCommit {
        control: counted.clone(),
        audit: Vec::new(),
        wake_all: false,
        claim_floor: None,
        replica: None,
    };
    if let Some(high_water_mark) = marks.highest.filter(|mark| *mark > control.heartbeat) {
        let heartbeat = high_water_mark.saturating_add(1);
        let reason = format!(
            "the database was restored to an earlier state: its counter is {}, the high-water mark outside is {high_water_mark}",
            control.heartbeat
        );
        // Replaces an older reason: this is the one to act upon.
        let observing =
            Observing { since: control.now, by: actor.name.clone(), reason: reason.clone() };
        let floor = ClaimToken(heartbeat.saturating_mul(CLAIMS_PER_HEARTBEAT));
        let audit = control
            .audit("control.restore_detected", actor)
            .because(reason)
            .with(json!({ "heartbeat": control.heartbeat, "high_water_mark": high_water_mark, "claim_floor": floor }));
        let restored = Control { heartbeat, observing: Some(observing), ..counted };
        commit = ControlCommit::change(restored, audit);
        commit.claim_floor = Some(floor);
    } else if control.freeze.as_ref().is_some_and(|freeze| control.now >= freeze.until) {
        let audit = control.audit("control.freeze_expired", actor);
        commit = ControlCommit::change(Control { freeze: None, ..counted }, audit);
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
