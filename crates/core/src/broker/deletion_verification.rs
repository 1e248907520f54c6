//! Deletion verification: the second proof of absence.
//!
//! An attempt becomes Deleted when its composite is proven absent. A worker
//! that was paused between its decision and its apply may still resume after
//! that and create the composite again: fencing keeps its record out of the
//! database, but nothing keeps its apply out of the substrate. So absence is
//! proven a second time, one lease after Deleted, when no worker of that time
//! may act any more. Only then may the attempt be purged.
//!
//! *Expected flow.* Deleted → one lease later: absent → `absence_proven_at`.
//! *Guarantees.* A finding is recorded before it is removed, so that a crash in
//! between leaves a record; one object has one record, however often it is
//! observed. A failed read proves nothing. An object that is not ours is
//! recorded and never removed. The node goes before its substrate here too.
//! *Exception.* A person may give the proof up ([`crate::broker::abandon`]).
//! *Caveat.* If a worker sleeps for longer than a lease, whatever wakes the
//! attempt again finds its object; the rule is the same at any later time.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::observation::CompositeReport;
use crate::broker::phase::{Action, NodeFact};
use crate::broker::record::{SOONEST, Tick, describe, subject};
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, Recheck, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::leak::LeakRecord;
use crate::event::derive_id;
use crate::ids::LeakRecordId;
use crate::text::storable;
use crate::time::Timestamp;

/// The audit verbs of this rule.
pub const PROVEN: &str = "provisioned_resource.absence_proven";
pub const FOUND: &str = "provisioned_resource.leak_found";

/// At most this many sweeps between two observations of an attempt that cannot
/// be verified: an unreadable substrate must not get as many requests for
/// everything that ever existed as for what is in use.
const RARELY: u32 = 10;

/// What an observation of a Deleted attempt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Absent, but a late worker might still act; observe again then.
    TooEarly(Timestamp),
    /// Absent, one lease after Deleted.
    Proven,
    /// Something exists that must not.
    Found(Finding<'a>),
    /// Nothing is concluded.
    Unknown,
}

/// Something that exists although the attempt is Deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding<'a> {
    /// Our composite, with its uid.
    Composite(&'a str),
    /// A composite of another installation or attempt, and how it differs.
    Foreign(&'a str),
    /// The node is still registered.
    Node,
}

/// The kinds of the leaks that this rule records.
pub(crate) const KINDS: [&str; 3] = ["composite", "foreign_composite", "node"];

impl Finding<'_> {
    const fn kind(&self) -> &'static str {
        let [composite, foreign, node] = KINDS;
        match self {
            Self::Composite(_) => composite,
            Self::Foreign(_) => foreign,
            Self::Node => node,
        }
    }

    /// Distinguishes this finding from others of its kind.
    const fn mark(&self) -> &str {
        match self {
            Self::Composite(text) | Self::Foreign(text) => text,
            Self::Node => "",
        }
    }
}

/// Judges an observation of a Deleted attempt. `lease` is how long after
/// Deleted an earlier worker may still act.
pub fn judge<'a>(
    snapshot: &ResourceSnapshot,
    report: &'a CompositeReport,
    lease: Duration,
) -> Verdict<'a> {
    if snapshot.node_fact() == NodeFact::Registered {
        return Verdict::Found(Finding::Node);
    }
    match report {
        CompositeReport::Unknown { .. } => Verdict::Unknown,
        CompositeReport::Foreign { reason } => Verdict::Found(Finding::Foreign(reason)),
        CompositeReport::Present(live) => Verdict::Found(Finding::Composite(&live.uid)),
        CompositeReport::Absent => {
            let from = snapshot.attempt.phase_since().plus(lease);
            if snapshot.now < from { Verdict::TooEarly(from) } else { Verdict::Proven }
        }
    }
}

/// The outside action for a Deleted attempt: removes our own composite by its
/// uid, once it is recorded.
pub fn action(snapshot: &ResourceSnapshot, report: &CompositeReport) -> Action {
    match judge(snapshot, report, Duration::ZERO) {
        Verdict::Found(finding @ Finding::Composite(_)) if is_recorded(snapshot, finding) => {
            Action::DeleteSubstrate
        }
        _ => Action::Noop,
    }
}

/// Whether the leak record of a finding was written. The last observation shows it:
/// both are written in one commit, and at Deleted the observation was an absence.
fn is_recorded(snapshot: &ResourceSnapshot, finding: Finding<'_>) -> bool {
    let Some(observed) = &snapshot.observed else { return false };
    // If the node was registered, that was the finding, whatever else was observed.
    let node = observed["node"] == json!(NodeFact::Registered);
    match finding {
        Finding::Node => node,
        Finding::Composite(uid) => !node && observed["uid"] == *uid,
        Finding::Foreign(reason) => !node && observed["foreign"] == storable(reason),
    }
}

/// Records what this tick observed; returns when to observe again.
pub(crate) fn conclude(
    commit: &mut Commit,
    snapshot: &ResourceSnapshot,
    tick: &Tick<'_>,
    actor: &Actor,
) -> Recheck {
    let (attempt, now) = (&snapshot.attempt, snapshot.now);
    let subject = subject(attempt, attempt.revision().next());
    let rarely = proof_delay(snapshot, tick, tick.pace.sweep * RARELY);
    match judge(snapshot, tick.report, tick.pace.lease) {
        // Proven before, and nothing has changed since.
        Verdict::Proven if attempt.absence_proven_at().is_some() => Recheck::Never,
        Verdict::Proven => {
            commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(
                attempt.with_absence_proven(Some(now)),
            )));
            commit.writes.push(Write::Deletion(DeletionWrite::LeaksResolve(attempt.id().into())));
            let details = json!({ "deleted_at": attempt.phase_since() });
            commit.audit.push(AuditEntry::new(PROVEN, actor, subject, now).with(details));
            Recheck::Never
        }
        Verdict::TooEarly(from) => Recheck::After(from.since(now)),
        // A person gave this proof up; a scan wakes the attempt if its object is found.
        Verdict::Unknown if attempt.abandoned_at().is_some() => Recheck::Never,
        Verdict::Unknown => Recheck::After(rarely),
        Verdict::Found(finding) => {
            // The proof was wrong, or the object is younger than the proof.
            if attempt.absence_proven_at().is_some() {
                commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(
                    attempt.with_absence_proven(None),
                )));
            }
            if is_recorded(snapshot, finding) {
                let removed = matches!(finding, Finding::Composite(_));
                let soon = proof_delay(snapshot, tick, tick.pace.sweep);
                return Recheck::After(if removed { soon } else { rarely });
            }
            let leak = leak(snapshot, tick, finding);
            let details = json!({ "leak_record_id": leak.id, "kind": leak.kind });
            commit.audit.push(AuditEntry::new(FOUND, actor, subject, now).with(details));
            commit.writes.push(Write::Deletion(DeletionWrite::LeakInsert(leak)));
            match finding {
                Finding::Composite(_) => Recheck::Now,
                Finding::Foreign(_) | Finding::Node => Recheck::After(rarely),
            }
        }
    }
}

/// An eighth of the time since the proof was due, like every polled wait.
fn proof_delay(snapshot: &ResourceSnapshot, tick: &Tick<'_>, most: Duration) -> Duration {
    let due = snapshot.attempt.phase_since().plus(tick.pace.lease);
    let delay = (snapshot.now.since(due) / 8).clamp(SOONEST, most.max(SOONEST));
    tick.spread(delay)
}

/// The id is derived: the same object of the same attempt gives the same record.
fn leak(snapshot: &ResourceSnapshot, tick: &Tick<'_>, finding: Finding<'_>) -> LeakRecord {
    let attempt = &snapshot.attempt;
    let id = derive_id(
        attempt.phase_since(),
        &[finding.kind().as_bytes(), attempt.id().as_uuid().as_bytes(), finding.mark().as_bytes()],
    );
    LeakRecord {
        id: LeakRecordId::new(id),
        kind: finding.kind(),
        subject: attempt.id().into(),
        found_at: snapshot.now,
        last_known: None,
        evidence: describe(tick),
    }
}

#[cfg(test)]
mod tests;
