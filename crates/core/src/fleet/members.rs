//! What of Fleet goes with a container: the stacks and templates of a generator, and everything
//! of Fleet in a project. Each thing is told by an event and an entry in the audit of its own,
//! every stack gets a marker, and what an agent holds becomes leak records. The leaves are not
//! touched.

use serde_json::json;

use crate::access::audit::{About, AuditEntry};
use crate::commit::Commit;
use crate::deletion::door::entry;
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::request::Leaving;
use crate::deletion::write::enter;
use crate::error::{ErrorKind, Refusal};
use crate::fleet::FleetWrite;
use crate::fleet::agent::{HeldStack, leaks};
use crate::fleet::event::{Announced, Happened};
use crate::fleet::object::NewObject;
use crate::fleet::stack::next_sequence;
use crate::fleet::write::{MemberLeaves, MembersLeave};
use crate::ids::{AgentId, ProjectId, Revision, StackId};
use crate::rollouts::record::Rollout;
use crate::rollouts::rules;
use crate::subject::{Subject, SubjectKind};

/// The live members of a container, their rows locked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Members {
    pub agents: Vec<AgentMember>,
    pub stacks: Vec<StackMember>,
    /// Generators and templates.
    pub others: Vec<MemberRow>,
    /// Roll-outs of the stacks that have not ended.
    pub rollouts: Vec<Rollout>,
    /// Deletions of theirs whose grace lasts.
    pub scheduled: Vec<Deletion>,
    /// Agents that hold one of the stacks, or the deleted stack, and cannot let go; read for a
    /// deletion that keeps.
    pub unable: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    pub subject: Subject,
    pub revision: Revision,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackMember {
    pub row: MemberRow,
    pub last_sequence: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMember {
    pub row: MemberRow,
    pub cluster_name: String,
    pub held: Vec<HeldStack>,
}

impl Members {
    /// What else a deletion of their container writes when it begins.
    pub(crate) fn leave(
        &self,
        container: Subject,
        project_id: Option<ProjectId>,
        leaving: &Leaving<'_>,
    ) -> Commit {
        let Leaving { deletion_id, reason, actor, now, keep } = *leaving;
        let mut commit = Commit::default();
        let Some(project_id) = project_id else { return commit };
        let mut told = |row: &MemberRow, sequence: Option<i64>| {
            let MemberRow { subject, name, .. } = row;
            let revision = row.revision.next();
            let named = Announced { subject: *subject, name, project_id, revision, at: now };
            commit.events.extend(named.happened(Happened::Deleted, Some(deletion_id)));
            let about = About::new(*subject).of(project_id).at(revision);
            let details = json!({ "deletion_id": deletion_id, "with": container.kind });
            let entry = AuditEntry::new(deleting(subject.kind), actor, about, now);
            commit.audit.push(entry.because(reason).with(details));
            MemberLeaves { subject: *subject, revision: row.revision, sequence }
        };
        let mut rows: Vec<MemberLeaves> =
            self.agents.iter().map(|agent| told(&agent.row, None)).collect();
        rows.extend(self.others.iter().map(|row| told(row, None)));
        let mut markers = Vec::with_capacity(self.stacks.len());
        for stack in &self.stacks {
            let (id, sequence) =
                (StackId::new(stack.row.subject.id), next_sequence(stack.last_sequence, now));
            let marker = NewObject::marker_of_deletion(id, deletion_id, sequence, now);
            markers.push(marker.keeping(keep));
            rows.push(told(&stack.row, Some(sequence)));
        }
        if !rows.is_empty() {
            let members = MembersLeave { deletion_id, deleted_at: now, rows };
            commit.writes.push(FleetWrite::MembersLeave(members).into());
        }
        if !markers.is_empty() {
            commit.writes.push(FleetWrite::ObjectsMake(markers).into());
        }
        for agent in &self.agents {
            let id = AgentId::new(agent.row.subject.id);
            let names = (&*agent.row.name, &*agent.cluster_name);
            commit.writes.extend(leaks(id, names, &agent.held, deletion_id, now));
        }
        for rollout in &self.rollouts {
            commit.join(rules::superseded(rollout, "its stack was deleted", actor, now));
        }
        for scheduled in &self.scheduled {
            let why = format!("its {} is deleted", container.kind);
            let audit = entry("deletion.cancel", scheduled, actor, now).because(&*why);
            commit.audit.push(audit);
            let after = Deletion { state: DeletionState::Cancelled, ..scheduled.clone() };
            enter(&mut commit, scheduled, after, now);
        }
        commit
    }

    /// Refuses to let go while an agent that holds something would remove it instead.
    pub(crate) fn keepable(&self) -> Result<(), Refusal> {
        const NAMED: usize = 10;
        if self.unable.is_empty() {
            return Ok(());
        }
        let more = match self.unable.len().checked_sub(NAMED) {
            Some(more @ 1..) => format!(" and {more} more"),
            _ => String::new(),
        };
        let named: Vec<_> =
            self.unable.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
        let message = format!(
            "agent {}{more} has it deployed and cannot let go of it, as its last heartbeat says; upgrade the agent, or delete without `keep`",
            named.join(", ")
        );
        let details = json!({ "agents": self.unable });
        Err(Refusal::new(ErrorKind::KeepNotSupported, message).at("keep").with(details))
    }
}

/// Nothing new comes into a project that is being deleted.
pub fn project_leaving(name: &str) -> Refusal {
    let message = format!(
        "project `{name}` is being deleted, or will be; cancel that first (`slipway deletion list`)"
    );
    Refusal::new(ErrorKind::ProjectLeaving, message).at("project")
}

const fn deleting(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::Agent => "agent.delete",
        SubjectKind::Generator => "generator.delete",
        SubjectKind::Stack => "stack.delete",
        _ => "template.delete",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::commit::Write;
    use crate::deletion::DeletionWrite;
    use crate::deletion::door::{Ask, Door};
    use crate::deletion::request::request;
    use crate::fixtures::catalog::{mk_ask, mk_project};
    use crate::fixtures::fleet::mk_generator;
    use crate::fixtures::{at, mk_actor, uuid};
    use crate::fleet::generator::{Generator, GeneratorSnapshot};
    use crate::ids::TemplateId;

    fn row(subject: Subject) -> MemberRow {
        MemberRow { subject, revision: Revision(3), name: subject.id.to_string() }
    }

    fn stack(number: u128, last_sequence: i64) -> StackMember {
        StackMember { row: row(StackId::new(uuid(1_000 + number)).into()), last_sequence }
    }

    fn leaving(fleet: Members, ask: &Ask) -> Result<Commit, Refusal> {
        let snapshot =
            GeneratorSnapshot { now: at(1_000), project: None, generator: Some(mk_generator()) };
        let door = Door { fleet, ..Door::default() };
        request::<Generator>(&snapshot, &door, ask, &mk_actor()).map(|asked| asked.commit)
    }

    fn made(commit: &Commit) -> Vec<NewObject> {
        let made = commit.writes.iter().filter_map(|write| match write {
            Write::Fleet(write) => match &**write {
                FleetWrite::ObjectsMake(made) => Some(made.clone()),
                _ => None,
            },
            _ => None,
        });
        made.flatten().collect()
    }

    #[test]
    fn what_holds_a_stack_has_to_be_able_to_let_go() {
        let ask = Ask { keep: true, ..mk_ask() };
        let fleet = Members { stacks: vec![stack(0, 7)], ..Members::default() };
        let commit = leaving(fleet.clone(), &ask).unwrap();
        assert!(made(&commit)[0].keeps);
        let unable = Members { unable: vec!["berlin-1".to_owned()], ..fleet };
        let refusal = leaving(unable.clone(), &ask).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::KeepNotSupported);
        assert!(refusal.message.contains("`berlin-1`"), "{refusal}");
        assert!(!made(&leaving(unable, &mk_ask()).unwrap())[0].keeps, "nobody is to keep it");
    }

    proptest! {
        /// Whatever goes with a container is announced, audited and, if it is a stack, gets one
        /// marker that is newer than all of its objects; what agents hold becomes leaks.
        #[test]
        fn everything_that_goes_with_a_container_is_told(
            lasts in proptest::collection::vec(0..4_000_000_000_i64, 0..20),
            templates in 0..5_u128,
            holds in proptest::collection::vec(0..4_usize, 0..4),
        ) {
            let held = |count| (0..count as u128).map(|number| HeldStack {
                id: StackId::new(uuid(1_000 + number)),
                name: "web".to_owned(),
            }).collect();
            let agent = |(number, count): (usize, &usize)| AgentMember {
                row: row(AgentId::new(uuid(3_000 + number as u128)).into()),
                cluster_name: "berlin".to_owned(),
                held: held(*count),
            };
            let fleet = Members {
                agents: holds.iter().enumerate().map(agent).collect(),
                stacks: lasts.iter().zip(0..).map(|(last, number)| stack(number, *last)).collect(),
                others: (0..templates).map(|one| row(TemplateId::new(uuid(2_000 + one)).into())).collect(),
                ..Members::default()
            };
            let ask = mk_ask();
            let leaving = Leaving {
                deletion_id: ask.deletion_id,
                reason: "x",
                actor: &mk_actor(),
                now: at(1_000),
                keep: false,
            };
            let project = mk_project().id;
            let commit = fleet.leave(project.into(), Some(project), &leaving);
            let named = lasts.len() + templates as usize + holds.len();
            prop_assert_eq!((commit.audit.len(), commit.events.len()), (named, named));
            let ids: BTreeSet<_> = commit.events.iter().map(|event| event.id).collect();
            prop_assert_eq!(ids.len(), named);
            let markers = made(&commit);
            prop_assert_eq!(markers.len(), lasts.len());
            for (last, marker) in lasts.iter().zip(&markers) {
                prop_assert!(marker.sequence > *last && marker.copy_of.is_none());
            }
            let is_leak = |write: &&Write| {
                matches!(write, Write::Deletion(DeletionWrite::LeakInsert(_)))
            };
            let leaks = commit.writes.iter().filter(is_leak).count();
            prop_assert_eq!(leaks, holds.iter().sum::<usize>());
        }
    }
}
