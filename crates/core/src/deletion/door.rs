//! What every request to delete passes, whatever it deletes: whether a deletion is under
//! way already, protection, the brake, and when it begins.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::approval::People;
use crate::deletion::brake::{self, Counted, Limits, Stop};
use crate::deletion::event::{self, BREAK_GLASS};
use crate::deletion::plan::{Plan, Reading};
use crate::deletion::protection::{self, Protection};
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::write::enter;
use crate::error::Refusal;
use crate::fleet::members::Members;
use crate::ids::{ApiKeyId, DeletionId, PlanId};
use crate::precondition::Expected;
use crate::subject::SubjectKind;
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
    /// Whether agents are told to let go of what is deleted, instead of removing it.
    pub keep: bool,
    /// An admin lets it pass the brake and the approval.
    pub break_glass: bool,
    /// What it has to take away, and nothing else.
    pub plan: Option<PlanId>,
}

impl Ask {
    /// What the store has to load for this request.
    pub fn input(&self, defaults: Defaults) -> DoorInput {
        let reads = match self.plan {
            Some(_) => Reads::Members { cascade: self.cascade },
            None => Reads::Nothing,
        };
        let Self { plan, cascade, keep, .. } = *self;
        DoorInput { defaults, caller: None, plan, reads, cascade, keep }
    }

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
    /// The answer, if the commit only records why there is no deletion.
    pub refused: Option<Refusal>,
}

impl Requested {
    pub(crate) const fn new(deletion_id: DeletionId, commit: Commit) -> Self {
        Self { deletion_id, commit, refused: None }
    }
}

/// A caller with a brake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Braked {
    pub key: ApiKeyId,
    /// The name of the key.
    pub name: String,
    pub limits: Limits,
}

/// What the store knows about a request beside its target, loaded under the same locks.
#[derive(Debug, Clone, Default)]
pub struct Door {
    /// The open deletion that the row of the target names.
    pub under_way: Option<Deletion>,
    /// Of the target and, if it is a container, of what is in it.
    pub protections: Vec<Protection>,
    pub defaults: Defaults,
    /// What the caller deleted lately.
    pub brake: Option<Counted>,
    /// Who asks and who approved, if the plan is approved.
    pub people: Option<People>,
    /// The plan that the request names.
    pub plan: Option<Plan>,
    /// What would go, if the request asks for it.
    pub reading: Option<Reading>,
    /// What of Fleet goes with the target.
    pub fleet: Members,
}

/// What the store has to know to load a [`Door`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorInput {
    pub defaults: Defaults,
    /// Who asks; `None` for whoever has no brake: a part of this process.
    pub caller: Option<Braked>,
    pub plan: Option<PlanId>,
    pub reads: Reads,
    /// What is in a project goes with it.
    pub cascade: bool,
    /// Agents have to be able to let go.
    pub keep: bool,
}

impl From<Defaults> for DoorInput {
    fn from(defaults: Defaults) -> Self {
        Self {
            defaults,
            caller: None,
            plan: None,
            reads: Reads::Nothing,
            cascade: false,
            keep: false,
        }
    }
}

/// How much of what would go is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    Nothing,
    /// What a plan compares.
    Members {
        cascade: bool,
    },
    /// The same, and what a plan shows.
    Everything {
        cascade: bool,
    },
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
    /// With more resources than this a deletion needs an approved plan.
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

/// What a request would take down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taking<'a> {
    pub(crate) kind: SubjectKind,
    pub(crate) name: &'a str,
    /// With the stacks, which count as much.
    pub(crate) resources: i64,
}

/// How a request came through.
#[derive(Debug)]
pub(crate) enum Passed {
    Begins(Begins),
    Stopped(Box<Requested>),
}

impl Door {
    /// Lets a new deletion pass, or refuses.
    pub(crate) fn pass(
        &self,
        ask: &Ask,
        taking: Taking<'_>,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Passed, Refusal> {
        protection::check(&self.protections, now)?;
        let Taking { kind, name, resources } = taking;
        // Who approved it cannot use it, but is told so only where an approval is needed.
        let (approved, same_person) = match self.is_approved(ask, now) {
            Ok(approved) => (approved, None),
            Err(refusal) => (false, Some(refusal)),
        };
        let let_through = ask.break_glass || approved;
        if let Some(counted) = self.brake.as_ref().filter(|_| !let_through) {
            let what = format!("{kind} `{name}`");
            match counted.check(&what, resources, now) {
                Ok(()) => {}
                Err(Stop::Tripped(refusal)) => return Err(refusal),
                Err(Stop::Trips(refusal, brake)) => {
                    let commit = brake::tripped(*brake, actor, now);
                    let stopped = Requested::new(ask.deletion_id, commit);
                    let stopped = Requested { refused: Some(refusal), ..stopped };
                    return Ok(Passed::Stopped(Box::new(stopped)));
                }
            }
        }
        if !let_through {
            self.check_approval(taking).map_err(|required| same_person.unwrap_or(required))?;
        }
        let grace = ask.grace.unwrap_or(self.defaults.grace);
        let begins = if grace.is_zero() { Begins::Now } else { Begins::At(now.plus(grace)) };
        Ok(Passed::Begins(begins))
    }

    /// Why this request would not pass, for a plan.
    pub(crate) fn would_refuse(
        &self,
        ask: &Ask,
        taking: Taking<'_>,
        actor: &Actor,
        now: Timestamp,
    ) -> Option<Refusal> {
        match self.pass(ask, taking, actor, now) {
            Ok(Passed::Begins(_)) => None,
            Ok(Passed::Stopped(requested)) => requested.refused,
            Err(refusal) => Some(refusal),
        }
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
        Ok(Requested::new(under_way.id, commit))
    }
}

/// Announces the deletion of a commit that passed because an admin said so.
pub(crate) fn break_glass(commit: &mut Commit, ask: &Ask, actor: &Actor) {
    let inserted = commit.writes.iter().find_map(|write| match write {
        Write::Deletion(DeletionWrite::DeletionInsert(deletion)) => Some(deletion.clone()),
        _ => None,
    });
    if let (true, Some(deletion)) = (ask.break_glass, inserted) {
        let now = deletion.requested_at;
        let entry = AuditEntry::new("deletion.break_glass", actor, about(&deletion), now);
        commit.audit.push(entry.because(ask.reason.as_str()));
        commit.events.push(event::of(BREAK_GLASS, &deletion, deletion.revision, now));
    }
}

/// An audit entry about a deletion that is about to be written.
pub(crate) fn entry(
    verb: &'static str,
    deletion: &Deletion,
    actor: &Actor,
    now: Timestamp,
) -> AuditEntry {
    AuditEntry::new(verb, actor, about(deletion).at(deletion.revision.next()), now)
}

fn about(deletion: &Deletion) -> About {
    let about = About::new(deletion.id).at(deletion.revision);
    deletion.project_id.map_or(about, |project| about.of(project))
}
