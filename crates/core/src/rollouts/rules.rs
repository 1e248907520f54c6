//! The decisions about a roll-out: start, pause, resume, abort, roll back, and what the loop
//! records of it.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::fleet::rollout as stacks;
use crate::fleet::stack::Stack;
use crate::ids::{ProjectId, RolloutId, TenantProfileId};
use crate::rollouts::RolloutsWrite;
use crate::rollouts::event;
use crate::rollouts::next::Next;
use crate::rollouts::record::{Member, MemberState, Purpose, Rollout, RolloutState};
use crate::subject::Subject;
use crate::tenants::TenantsWrite;
use crate::tenants::write::Migrating;
use crate::text::Reason;
use crate::time::Timestamp;

/// The roll-outs of this subject that have not ended, the subject locked.
#[derive(Debug, Clone, PartialEq)]
pub struct StartSnapshot {
    pub now: Timestamp,
    /// Each with the project that it is for; none means all projects.
    pub under_way: Vec<(RolloutId, Option<ProjectId>)>,
}

/// One roll-out, its row locked.
#[derive(Debug, Clone, PartialEq)]
pub struct RolloutSnapshot {
    pub now: Timestamp,
    pub rollout: Rollout,
    /// Its stack, locked, if it is of one that is not deleted.
    pub stack: Option<Stack>,
}

fn entry(rollout: &Rollout, verb: &'static str, actor: &Actor, now: Timestamp) -> AuditEntry {
    let about = About::new(Subject::from(rollout.id));
    let about = rollout.project_id.map_or(about, |project| about.of(project));
    let details = json!({ "purpose": rollout.purpose, "name": rollout.name });
    AuditEntry::new(verb, actor, about, now).with(details)
}

pub fn start(
    snapshot: &StartSnapshot,
    rollout: &Rollout,
    members: &[Member],
    actor: &Actor,
) -> Result<Commit, Refusal> {
    rollout.strategy.check()?;
    let meets = |(_, other): &&(RolloutId, Option<ProjectId>)| {
        other.is_none() || rollout.project_id.is_none() || *other == rollout.project_id
    };
    if let Some((id, other)) = snapshot.under_way.iter().find(meets) {
        let refusal = under_way(rollout);
        // Whoever rolls out in one project learns nothing of those for all.
        let is_hidden = rollout.project_id.is_some() && other.is_none();
        return Err(if is_hidden { of_all(rollout) } else { refusal.with(json!({ "id": id })) });
    }
    if members.is_empty() {
        let message = format!(
            "the {} would change nothing: no resource within reach fits, or all have it already",
            rollout.title()
        );
        return Err(Refusal::new(ErrorKind::RolloutEmpty, message));
    }
    let rollout = Rollout { requested_at: snapshot.now, ..rollout.clone() };
    Ok(started(&rollout, members, actor))
}

/// The commit of a roll-out that begins.
pub(crate) fn started(rollout: &Rollout, members: &[Member], actor: &Actor) -> Commit {
    let now = rollout.requested_at;
    let event = event::announce(rollout, rollout.revision, now);
    let mut audit = entry(rollout, "rollout.start", actor, now).because(&*rollout.reason);
    audit.details["members"] = json!(members.len());
    audit.details["change"] = rollout.change.clone();
    let write = RolloutsWrite::RolloutInsert(rollout.clone(), members.to_vec());
    Commit {
        writes: vec![Write::Rollouts(write)],
        events: vec![event],
        audit: vec![audit],
        ..Commit::default()
    }
}

/// Ends a roll-out because its subject went on; members stay as they are.
pub(crate) fn superseded(rollout: &Rollout, why: &str, actor: &Actor, now: Timestamp) -> Commit {
    let snapshot = RolloutSnapshot { now, rollout: rollout.clone(), stack: None };
    let audit = entry(rollout, "rollout.abort", actor, now).because(why);
    enter(&snapshot, RolloutState::Aborted, Some(why.to_owned()), audit)
}

/// Another one of the same subject has not ended.
pub fn under_way(rollout: &Rollout) -> Refusal {
    let Rollout { subject, name, .. } = rollout;
    let message = format!(
        "there is a roll-out of {} `{name}` already; wait for its end, or end it with \
         `slipway rollout abort {name}`",
        subject.kind
    );
    Refusal::new(ErrorKind::RolloutUnderWay, message)
}

fn of_all(rollout: &Rollout) -> Refusal {
    let Rollout { subject, name, .. } = rollout;
    let message = format!(
        "a roll-out of {} `{name}` to the resources of all projects is under way; wait for its end",
        subject.kind
    );
    Refusal::new(ErrorKind::RolloutUnderWay, message)
}

fn enter(
    snapshot: &RolloutSnapshot,
    state: RolloutState,
    message: Option<String>,
    mut audit: AuditEntry,
) -> Commit {
    let RolloutSnapshot { now, rollout, stack } = snapshot;
    let ended_at = state.is_end().then_some(*now);
    if let Some(message) = &message {
        audit.details["message"] = json!(message);
    }
    let after = Rollout { state, message, ended_at, ..rollout.clone() };
    let events = vec![event::announce(&after, rollout.revision.next(), *now)];
    let mut writes = vec![Write::Rollouts(RolloutsWrite::RolloutUpdate(after))];
    // What the members belong to may change with the state.
    match rollout.purpose {
        Purpose::BlueprintUpgrade | Purpose::WorkspaceChange => {}
        Purpose::StackObject => {
            writes.extend(stacks::entered(stack.as_ref(), rollout, state, *now));
        }
        Purpose::TenantMigration => {
            let profile = TenantProfileId::new(rollout.subject.id);
            let project = rollout.project_id;
            let goes_on = state == RolloutState::Running;
            let members = Migrating { profile, project, goes_on };
            if state.is_end() || goes_on {
                writes.push(TenantsWrite::Migrating(members).into());
            }
        }
    }
    Commit { events, writes, audit: vec![audit], ..Commit::default() }
}

/// No member is changed any more. Repeated, it changes nothing.
pub fn pause(
    snapshot: &RolloutSnapshot,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let RolloutSnapshot { now, rollout, .. } = snapshot;
    match rollout.state {
        RolloutState::Paused => Ok(Commit::default()),
        RolloutState::Running => {
            let audit = entry(rollout, "rollout.pause", actor, *now).because(reason.as_str());
            let message = format!("{} paused it: {}", actor.name, reason.as_str());
            Ok(enter(snapshot, RolloutState::Paused, Some(message), audit))
        }
        RolloutState::RollingBack => {
            let message = "it is being rolled back, which cannot be paused; wait for its end";
            Err(Refusal::new(ErrorKind::RolloutEnded, message))
        }
        _ => Err(rollout.ended()),
    }
}

/// Goes on: members that failed are observed again, or left as they are.
pub fn resume(
    snapshot: &RolloutSnapshot,
    skip_failed: bool,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let RolloutSnapshot { now, rollout, .. } = snapshot;
    match rollout.state {
        RolloutState::Running | RolloutState::RollingBack => Ok(Commit::default()),
        RolloutState::Paused => {
            let mut audit = entry(rollout, "rollout.resume", actor, *now);
            audit.details["skip_failed"] = json!(skip_failed);
            let failed = if skip_failed { MemberState::Skipped } else { MemberState::Changing };
            let mut commit = enter(snapshot, RolloutState::Running, None, audit);
            let become_ = RolloutsWrite::FailedBecome(rollout.id, failed);
            commit.writes.push(Write::Rollouts(become_));
            Ok(commit)
        }
        _ => Err(rollout.ended()),
    }
}

/// Ends it: members stay as they are, or get back what they had.
pub fn abort(
    snapshot: &RolloutSnapshot,
    roll_back: bool,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let RolloutSnapshot { now, rollout, .. } = snapshot;
    if let Some(instead) = roll_back.then(|| no_way_back(rollout)).flatten() {
        return Err(Refusal::new(ErrorKind::NotOffered, instead));
    }
    let (state, verb) = match roll_back {
        true => (RolloutState::RollingBack, "rollout.roll_back"),
        false => (RolloutState::Aborted, "rollout.abort"),
    };
    match rollout.state {
        same if same == state => Ok(Commit::default()),
        RolloutState::Running | RolloutState::Paused | RolloutState::RollingBack => {
            let audit = entry(rollout, verb, actor, *now).because(reason.as_str());
            Ok(enter(snapshot, state, None, audit))
        }
        _ => Err(rollout.ended()),
    }
}

/// What to do instead of rolling it back, if it cannot be.
fn no_way_back(rollout: &Rollout) -> Option<String> {
    let name = &rollout.name;
    match rollout.purpose {
        Purpose::BlueprintUpgrade | Purpose::StackObject => None,
        Purpose::TenantMigration => Some(format!(
            "a migration has no way back: write another one that undoes it, and end this with `slipway rollout abort {name}`"
        )),
        Purpose::WorkspaceChange => Some(format!(
            "servers are what their workspace declares: apply the workspace as it was before, which ends this and rolls that out, or end it with `slipway rollout abort {name}`"
        )),
    }
}

/// Records what the loop observed, and the state that follows from it.
pub fn record(snapshot: &RolloutSnapshot, next: &Next, actor: &Actor) -> Commit {
    let RolloutSnapshot { now, rollout, .. } = snapshot;
    let mut commit = Commit::default();
    if let Some((state, message)) = &next.enter {
        let verb = match state {
            RolloutState::Paused => "rollout.pause",
            _ => "rollout.end",
        };
        let audit = entry(rollout, verb, actor, *now);
        commit = enter(snapshot, *state, message.clone(), audit);
    }
    if !next.ended.is_empty() {
        let ended = RolloutsWrite::MembersEnd(rollout.id, next.ended.clone());
        commit.writes.push(Write::Rollouts(ended));
    }
    commit
}

#[cfg(test)]
pub(crate) mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::{at, mk_actor};
    use crate::ids::Revision;
    use crate::rollouts::record::Strategy;
    use crate::subject::SubjectKind;

    pub(crate) fn mk_rollout() -> Rollout {
        Rollout {
            id: RolloutId::new(Uuid::from_u128(900)),
            revision: Revision::FIRST,
            purpose: Purpose::BlueprintUpgrade,
            subject: Subject::new(SubjectKind::Blueprint, Uuid::from_u128(901)),
            name: "web".to_owned(),
            project_id: None,
            change: json!({ "version": "1.2.0" }),
            strategy: Strategy::default(),
            state: RolloutState::Running,
            message: None,
            requested_by: "key:test".to_owned(),
            reason: "none given".to_owned(),
            requested_at: at(900),
            ended_at: None,
        }
    }

    fn snapshot(state: RolloutState) -> RolloutSnapshot {
        RolloutSnapshot { now: at(1_000), rollout: Rollout { state, ..mk_rollout() }, stack: None }
    }

    fn becomes(commit: &Commit) -> Option<RolloutState> {
        commit.writes.iter().find_map(|write| match write {
            Write::Rollouts(RolloutsWrite::RolloutUpdate(after)) => Some(after.state),
            _ => None,
        })
    }

    /// Every request in every state: what it becomes, or that it is refused.
    #[test]
    fn what_a_request_makes_of_each_state() {
        use RolloutState::{Aborted, Done, Paused, RolledBack, RollingBack, Running};
        let reason = Reason::parse("enough").unwrap();
        let outcome = |commit: Result<Commit, Refusal>| commit.map(|c| becomes(&c)).ok();
        for state in [Running, Paused, RollingBack, Done, Aborted, RolledBack] {
            let seen = snapshot(state);
            let same = Some(None);
            let paused = match state {
                Running => Some(Some(Paused)),
                Paused => same,
                _ => None,
            };
            assert_eq!(outcome(pause(&seen, &reason, &mk_actor())), paused, "pause {state}");
            let resumed = match state {
                Paused => Some(Some(Running)),
                Running | RollingBack => same,
                _ => None,
            };
            assert_eq!(outcome(resume(&seen, false, &mk_actor())), resumed, "resume {state}");
            for (roll_back, to) in [(false, Aborted), (true, RollingBack)] {
                let ended = match state {
                    same_state if same_state == to => same,
                    Running | Paused | RollingBack => Some(Some(to)),
                    _ => None,
                };
                let asked = abort(&seen, roll_back, &reason, &mk_actor());
                assert_eq!(outcome(asked), ended, "abort {state} {roll_back}");
            }
        }
    }

    #[test]
    fn every_change_of_state_is_announced_and_audited_once() {
        let seen = snapshot(RolloutState::Running);
        let reason = Reason::parse("enough").unwrap();
        let commit = abort(&seen, true, &reason, &mk_actor()).unwrap();
        assert_eq!((commit.events.len(), commit.audit.len()), (1, 1));
        assert_eq!(commit.events[0].event_type, event::ROLLING_BACK);
        let done = Next { enter: Some((RolloutState::Done, None)), ..Next::default() };
        let commit = record(&seen, &done, &mk_actor());
        assert_eq!((commit.events.len(), commit.audit.len()), (1, 1));
        assert!(record(&seen, &Next::default(), &mk_actor()).is_empty());
    }

    #[test]
    fn one_at_a_time_and_never_for_nothing() {
        let free = StartSnapshot { now: at(1_000), under_way: Vec::new() };
        let refusal = start(&free, &mk_rollout(), &[], &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RolloutEmpty);
        let [one, other] = [1, 2].map(|id| Some(ProjectId::new(Uuid::from_u128(id))));
        // What is under way, what begins, and whether its id is told; none: they do not meet.
        let table = [
            (None, None, Some(true)),
            (None, one, Some(false)),
            (one, None, Some(true)),
            (one, one, Some(true)),
            (one, other, None),
        ];
        for (under_way, project_id, told) in table {
            let taken =
                StartSnapshot { under_way: vec![(mk_rollout().id, under_way)], ..free.clone() };
            let begins = Rollout { project_id, ..mk_rollout() };
            let refusal = start(&taken, &begins, &[], &mk_actor()).unwrap_err();
            let meets = refusal.kind == ErrorKind::RolloutUnderWay;
            let found = meets.then(|| refusal.details.is_some());
            assert_eq!(found, told, "{under_way:?} {project_id:?}: {refusal}");
        }
        let strategy = Strategy { parallel: 0, ..Strategy::default() };
        let wrong = Rollout { strategy, ..mk_rollout() };
        let refusal = start(&free, &wrong, &[], &mk_actor()).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("parallel"));
    }
}
