//! What every request to delete passes, whatever it deletes: whether a deletion is under
//! way already, protection, and when it begins.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::Commit;
use crate::deletion::protection::{self, Protection};
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::write::enter;
use crate::error::Refusal;
use crate::ids::DeletionId;
use crate::precondition::Expected;
use crate::text::Reason;
use crate::time::Timestamp;

/// The longest grace that may be asked for.
pub const GRACE_MAX: Duration = Duration::from_secs(365 * 86_400);

/// What a request to delete asks for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Of the deletion that this becomes, if none is under way.
    pub deletion_id: DeletionId,
    pub reason: Reason,
    pub expected: Expected,
    /// How long to wait before anything is touched; `None` means the project's default.
    pub grace: Option<Duration>,
    /// Whether it takes down what is in its target, too.
    pub cascade: bool,
}

impl Ask {
    pub fn check(&self) -> Result<(), Refusal> {
        if self.grace.is_some_and(|grace| grace > GRACE_MAX) {
            return Err(Refusal::invalid("grace", "must be at most 365d"));
        }
        Ok(())
    }
}

/// The deletion that a request led to; a second request gets the first one.
#[derive(Debug, Clone, PartialEq)]
pub struct Requested {
    pub deletion_id: DeletionId,
    pub commit: Commit,
}

/// What the store knows about a request beside its target, loaded under the same locks.
#[derive(Debug, Clone, Default)]
pub struct Door {
    /// The open deletion that the row of the target names.
    pub under_way: Option<Deletion>,
    /// Of the target and, if it is a container, of what is in it.
    pub protections: Vec<Protection>,
    pub defaults: Defaults,
}

/// What a request to delete reads: what its kind needs, and the door.
#[derive(Debug, Clone)]
pub struct Doored<S> {
    pub of: S,
    pub door: Door,
}

/// What holds where a request says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    pub grace: Duration,
    /// How long something deleted is kept.
    pub retention: Duration,
    /// Deletions of more resources than this need an approval.
    pub approve_above: Option<i64>,
    /// Whether nobody may purge before the retention ends.
    pub purge_protected: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            grace: Duration::ZERO,
            retention: Duration::from_secs(30 * 86_400),
            approve_above: None,
            purge_protected: false,
        }
    }
}

/// When a deletion that passed begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    Now,
    At(Timestamp),
}

impl Begins {
    pub(crate) const fn time(self) -> Option<Timestamp> {
        match self {
            Self::Now => None,
            Self::At(time) => Some(time),
        }
    }
}

impl Door {
    /// Lets a new deletion pass, or refuses.
    pub(crate) fn pass(&self, ask: &Ask, now: Timestamp) -> Result<Begins, Refusal> {
        protection::check(&self.protections, now)?;
        let grace = ask.grace.unwrap_or(self.defaults.grace);
        Ok(if grace.is_zero() { Begins::Now } else { Begins::At(now.plus(grace)) })
    }

    /// Answers a request with the deletion that is under way. One that asks for an earlier
    /// time brings it forward.
    pub(crate) fn again(
        &self,
        under_way: &Deletion,
        ask: &Ask,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Requested, Refusal> {
        let mut commit = Commit::default();
        let sooner = ask.grace.map(|grace| now.plus(grace));
        if let (DeletionState::Scheduled, Some(at), Some(sooner)) =
            (under_way.state, under_way.scheduled_for, sooner)
            && sooner < at
        {
            protection::check(&self.protections, now)?;
            let after = Deletion { scheduled_for: Some(sooner), ..under_way.clone() };
            commit.audit.push(
                entry("deletion.reschedule", under_way, actor, now)
                    .because(ask.reason.as_str())
                    .with(json!({ "before": at, "after": sooner })),
            );
            enter(&mut commit, under_way, after, now);
        }
        Ok(Requested { deletion_id: under_way.id, commit })
    }
}

/// An audit entry about a deletion that is about to be written.
pub(crate) fn entry(
    verb: &'static str,
    deletion: &Deletion,
    actor: &Actor,
    now: Timestamp,
) -> AuditEntry {
    let about = About::new(deletion.id).at(deletion.revision.next());
    let about = deletion.project_id.map_or(about, |project| about.of(project));
    AuditEntry::new(verb, actor, about, now)
}
