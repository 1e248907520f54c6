//! Deleting a thing that is a row of ours: at once, or when its grace ends. Nothing
//! outside has to go first, except for a project, which is a container: its resources go
//! first, then its namespace. A resource, which is taken down, has rules of its own
//! ([`crate::broker::delete`]) behind the same [`Door`].

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::door::{Ask, Begins, Door, Passed, Requested, Taking, break_glass, entry};
use crate::deletion::plan::{Circumstances, Draft, Plan};
use crate::deletion::protection;
use crate::deletion::record::{Deletion, DeletionState, StackFacts};
use crate::deletion::write::{Mark, Members, begin, enter};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{DeletionId, ProjectId, Revision, StackId};
use crate::kind::{Kind, existing};
use crate::subject::{Subject, SubjectKind};
use crate::time::Timestamp;

/// A kind that is deleted softly: its row is marked and stays until it is purged.
pub trait Deletable: Kind {
    /// What a decision about it reads.
    type Snapshot;

    /// The audit verb of the request.
    const DELETE: &'static str;

    /// Whether agents can be told to let go of it.
    const KEEPS: bool = false;

    /// The live row, and the time it was locked.
    fn found(snapshot: &Self::Snapshot) -> (&Option<Self>, Timestamp);

    fn name(&self) -> &str;

    /// The project that it is or belongs to.
    fn project(&self) -> Option<ProjectId> {
        None
    }

    /// What goes with it if the deletion cascades.
    fn contents(_snapshot: &Self::Snapshot) -> Contents {
        Contents::default()
    }

    /// What else changes when it is deleted.
    fn leaving(&self, _snapshot: &Self::Snapshot, _leaving: &Leaving<'_>) -> Commit {
        Commit::default()
    }

    /// Refuses while something needs it.
    fn free(&self, snapshot: &Self::Snapshot, cascade: bool) -> Result<(), Refusal>;
}

/// The deletion of something that goes now.
#[derive(Debug, Clone, Copy)]
pub struct Leaving<'a> {
    pub deletion_id: DeletionId,
    pub reason: &'a str,
    pub actor: &'a Actor,
    pub now: Timestamp,
    /// Agents are told to let go of it.
    pub keep: bool,
}

/// What is in a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// Resources that are not deleted.
    pub resources: i64,
    /// Something outside is not proven gone, and goes after the row is marked.
    pub outside: bool,
}

impl Contents {
    /// The state of a deletion that begins or goes on, and whether the row is marked as
    /// deleted: not before what is in it is gone.
    fn state(self) -> (DeletionState, bool) {
        match self {
            Self { resources: 1.., .. } => (DeletionState::Running, false),
            Self { outside: true, .. } => (DeletionState::Running, true),
            Self { outside: false, .. } => (DeletionState::Done, true),
        }
    }
}

pub fn request<K: Deletable>(
    snapshot: &K::Snapshot,
    door: &Door,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let (found, now) = K::found(snapshot);
    let row = existing(found, ask.expected)?;
    door.check_plan(ask, row.id().into(), door.under_way.as_ref(), now)?;
    if let Some(under_way) = &door.under_way {
        if ask.keep && !under_way.fleet.keep {
            return Err(without_keep(under_way));
        }
        return door.again(under_way, ask, actor, now);
    }
    row.free(snapshot, ask.cascade)?;
    if ask.keep {
        keepable::<K>(door)?;
    }
    let (target, contents) = (row.id().into(), K::contents(snapshot));
    let begins = match door.pass(ask, taking::<K>(row, contents, (door, ask)), actor, now)? {
        Passed::Begins(begins) => begins,
        Passed::Stopped(requested) => return Ok(*requested),
    };
    let deletion = Deletion {
        id: ask.deletion_id,
        target,
        name: row.name().to_owned(),
        project_id: row.project(),
        state: DeletionState::Scheduled,
        requested_by: actor.name.clone(),
        reason: ask.reason.as_str().to_owned(),
        parent: None,
        cascade: ask.cascade,
        resources: contents.resources,
        fleet: StackFacts { keep: ask.keep, stacks: stacks::<K>(door), erases: false },
        revision: Revision::FIRST,
        requested_at: now,
        scheduled_for: begins.time(),
        done_at: None,
        retention: door.defaults.retention,
        restorable_until: None,
        purge_protected: door.defaults.purge_protected,
        ended_at: None,
    };
    let about = About::new(row.id());
    let about = row.project().map_or(about, |project| about.of(project));
    let mut details = json!({ "deletion_id": deletion.id });
    if let Begins::At(time) = begins {
        details["scheduled_for"] = json!(time);
    }
    if ask.cascade {
        details["resources"] = json!(contents.resources);
    }
    if ask.keep {
        details["keep"] = json!(true);
    }
    if let Some(plan) = ask.plan {
        details["plan_id"] = json!(plan);
    }
    let entry =
        AuditEntry::new(K::DELETE, actor, about, now).because(ask.reason.as_str()).with(details);
    let mut commit = Commit { audit: vec![entry], ..Commit::default() };
    let deletion = match begins {
        Begins::Now => {
            entered::<K>(&mut commit, (row, snapshot, door), deletion, contents, (actor, now))
        }
        Begins::At(_) => {
            mark(&mut commit, row, &deletion, None);
            deletion
        }
    };
    if let Some(project) = members_of(&deletion) {
        let members = Members { project, deletion_id: deletion.id };
        commit.writes.push(Write::Deletion(DeletionWrite::MarkMembers(members)));
    }
    begin(&mut commit, deletion);
    break_glass(&mut commit, ask, actor);
    door.use_plan(&mut commit, ask.deletion_id);
    Ok(Requested::new(ask.deletion_id, commit))
}

fn taking<'a, K: Deletable>(
    row: &'a K,
    contents: Contents,
    (door, ask): (&Door, &Ask),
) -> Taking<'a> {
    let target: Subject = row.id().into();
    let resources = if ask.cascade { contents.resources } else { 0 };
    Taking { kind: target.kind, name: row.name(), resources: resources + stacks::<K>(door) }
}

/// How many stacks go: those in it, or it itself.
fn stacks<K: Deletable>(door: &Door) -> i64 {
    let own = K::KIND == StackId::KIND;
    i64::try_from(door.fleet.stacks.len()).unwrap_or(i64::MAX) + i64::from(own)
}

fn keepable<K: Deletable>(door: &Door) -> Result<(), Refusal> {
    if K::KEEPS {
        return door.fleet.keepable();
    }
    Err(keeps_nothing(K::KIND))
}

/// Of things that no agent has.
pub(crate) fn keeps_nothing(kind: &str) -> Refusal {
    let message = format!(
        "`keep` tells agents to let go of stacks, and a {kind} is none; leave it out, or delete its stacks or generators with it"
    );
    Refusal::new(ErrorKind::KeepNotSupported, message).at("keep")
}

fn without_keep(under_way: &Deletion) -> Refusal {
    let Deletion { target, name, id, .. } = under_way;
    let message = format!(
        "a deletion of {} `{name}` without `keep` is under way; cancel it first: `slipway deletion cancel {id}`",
        target.kind
    );
    Refusal::new(ErrorKind::Leaving, message).at("keep")
}

/// Plans the deletion instead of requesting it.
pub fn plan<K: Deletable>(
    snapshot: &K::Snapshot,
    door: &Door,
    circumstances: &Circumstances,
    actor: &Actor,
) -> Result<Plan, Refusal> {
    let (found, now) = K::found(snapshot);
    let ask = &circumstances.ask;
    let row = existing(found, ask.expected)?;
    let taking = taking::<K>(row, K::contents(snapshot), (door, ask));
    let refused = door.would_refuse(ask, taking, actor, now);
    let refusals = [row.free(snapshot, ask.cascade).err(), refused];
    let draft = Draft {
        target: row.id().into(),
        name: row.name().to_owned(),
        project_id: row.project(),
        now,
        under_way: door.under_way.as_ref(),
        refusals: refusals.into_iter().flatten().collect(),
    };
    draft.planned(door, circumstances, actor)
}

/// The project whose resources the deletion takes down.
fn members_of(deletion: &Deletion) -> Option<ProjectId> {
    let takes_members = deletion.target.kind == SubjectKind::Project && deletion.cascade;
    deletion.project_id.filter(|_| takes_members && deletion.resources > 0)
}

/// The deletion as it begins to run or is done, and the mark of its row.
fn entered<K: Deletable>(
    commit: &mut Commit,
    (row, snapshot, door): (&K, &K::Snapshot, &Door),
    deletion: Deletion,
    contents: Contents,
    (actor, now): (&Actor, Timestamp),
) -> Deletion {
    let (state, gone) = contents.state();
    mark(commit, row, &deletion, gone.then_some(now));
    let leaving = Leaving {
        deletion_id: deletion.id,
        reason: &deletion.reason,
        actor,
        now,
        keep: deletion.fleet.keep,
    };
    if gone {
        commit.join(row.leaving(snapshot, &leaving));
    }
    commit.join(door.fleet.leave(deletion.target, deletion.project_id, &leaving));
    match state {
        DeletionState::Done => deletion.done(now),
        _ => Deletion { state, ..deletion },
    }
}

fn mark<K: Deletable>(
    commit: &mut Commit,
    row: &K,
    deletion: &Deletion,
    deleted_at: Option<Timestamp>,
) {
    commit.writes.push(Write::Deletion(DeletionWrite::Mark(Mark {
        subject: row.id().into(),
        revision: row.revision(),
        deletion_id: Some(deletion.id),
        deleted_at,
    })));
}

/// Begins a scheduled deletion whose time has come. Everything that the request checked is
/// checked again: the world went on meanwhile.
pub fn start<K: Deletable>(
    snapshot: &K::Snapshot,
    door: &Door,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let (found, now) = K::found(snapshot);
    let scheduled =
        door.under_way.as_ref().filter(|deletion| deletion.state == DeletionState::Scheduled);
    let (Some(row), Some(scheduled)) = (found, scheduled) else { return Ok(Commit::default()) };
    protection::check(&door.protections, now)?;
    row.free(snapshot, scheduled.cascade)?;
    if scheduled.fleet.keep {
        keepable::<K>(door)?;
    }
    let mut commit = Commit {
        audit: vec![entry("deletion.start", scheduled, actor, now).because(&*scheduled.reason)],
        ..Commit::default()
    };
    let contents = K::contents(snapshot);
    let fleet = StackFacts { stacks: stacks::<K>(door), ..scheduled.fleet };
    let deletion = Deletion { resources: contents.resources, fleet, ..scheduled.clone() };
    let deletion =
        entered::<K>(&mut commit, (row, snapshot, door), deletion, contents, (actor, now));
    if let Some(project) = members_of(&deletion) {
        let members = Members { project, deletion_id: deletion.id };
        commit.writes.push(Write::Deletion(DeletionWrite::MarkMembers(members)));
    }
    enter(&mut commit, scheduled, deletion, now);
    Ok(commit)
}

/// A deletion by its id, its target and its record locked.
#[derive(Debug, Clone)]
pub struct DeletionSnapshot {
    pub now: Timestamp,
    pub deletion: Deletion,
    /// The row of its target, deleted or not; `None` if it was purged.
    pub target: Option<TargetRow>,
    pub contents: Contents,
}

/// What all tables of deletable things have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRow {
    pub revision: Revision,
    pub is_deleted: bool,
    pub deletion_id: Option<DeletionId>,
    pub name: String,
    /// The project that contains it, or is it.
    pub project_id: Option<ProjectId>,
}

/// Takes the running deletion of a container one step further.
pub fn advance(snapshot: &DeletionSnapshot, actor: &Actor) -> Commit {
    let DeletionSnapshot { now, deletion, contents, .. } = snapshot;
    let (state, gone) = contents.state();
    let mut commit = Commit::default();
    let (DeletionState::Running, Some(row), true) = (deletion.state, &snapshot.target, gone) else {
        return commit;
    };
    if !row.is_deleted {
        commit.writes.push(Write::Deletion(DeletionWrite::Mark(Mark {
            subject: deletion.target,
            revision: row.revision,
            deletion_id: Some(deletion.id),
            deleted_at: Some(*now),
        })));
    }
    if state == DeletionState::Done {
        commit.audit.push(entry("deletion.done", deletion, actor, *now));
        enter(&mut commit, deletion, deletion.clone().done(*now), *now);
    }
    commit
}
