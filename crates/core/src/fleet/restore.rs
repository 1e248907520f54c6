//! What of Fleet comes back with a deletion. A stack that comes back has a marker as its
//! newest object, which agents may have carried out; the content of before becomes a new object
//! that supersedes it. Reports, labels, targets and holdings were never touched.

use uuid::Uuid;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::fleet::FleetWrite;
use crate::fleet::event::{Announced, Happened};
use crate::fleet::object::{NewObject, derived};
use crate::fleet::stack::next_sequence;
use crate::ids::{DeletionId, DeploymentObjectId, ProjectId, Revision, StackId};
use crate::subject::{Subject, SubjectKind};
use crate::time::Timestamp;

/// A named thing of Fleet that carries the id of a deletion, its row locked: what was
/// deleted, and what went with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedThing {
    pub subject: Subject,
    pub name: String,
    pub project_id: ProjectId,
    pub revision: Revision,
    /// The live thing that has its name.
    pub holder: Option<Uuid>,
    /// Of a stack: the number of its newest object, and the content that it had before its
    /// deletion, or what all had if that had not reached everybody.
    pub last_sequence: i64,
    pub newest: Option<DeploymentObjectId>,
}

/// What the return of these things writes beside their marks.
pub(crate) fn returned(
    things: &[DeletedThing],
    deletion: DeletionId,
    target: Subject,
    actor: &Actor,
    now: Timestamp,
) -> Commit {
    let mut commit = Commit::default();
    let (mut objects, mut numbers) = (Vec::new(), Vec::new());
    for thing in things {
        let DeletedThing { subject, project_id, .. } = *thing;
        let revision = thing.revision.next();
        let back = Announced { subject, name: &thing.name, project_id, revision, at: now };
        commit.events.extend(back.happened(Happened::Restored, Some(deletion)));
        if subject != target {
            let about = About::new(subject).of(project_id).at(revision);
            let verb = match subject.kind {
                SubjectKind::Stack => "stack.restore",
                SubjectKind::Generator => "generator.restore",
                SubjectKind::Agent => "agent.restore",
                _ => "template.restore",
            };
            let details = serde_json::json!({ "deletion_id": deletion });
            commit.audit.push(AuditEntry::new(verb, actor, about, now).with(details));
        }
        match (subject.kind, thing.newest) {
            (SubjectKind::Stack, Some(newest)) => {
                let stack = StackId::new(subject.id);
                let sequence = next_sequence(thing.last_sequence, now);
                let id = derived(now, "restored", &[subject.id, deletion.as_uuid()]);
                let id = DeploymentObjectId::new(id);
                objects.push(NewObject::copy(id, stack, newest, sequence, now));
                numbers.push((stack, sequence));
            }
            (SubjectKind::Agent, _) => {
                commit.writes.push(Write::Deletion(DeletionWrite::LeaksResolve(subject)));
            }
            _ => {}
        }
    }
    if !objects.is_empty() {
        commit.writes.push(FleetWrite::ObjectsMake(objects).into());
        commit.writes.push(FleetWrite::StacksReturn(numbers).into());
    }
    commit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::fleet::{mk_agent, mk_generator, mk_stack};
    use crate::fixtures::{at, mk_actor, uuid};

    #[test]
    fn the_newest_content_supersedes_the_marker() {
        let generator = mk_generator();
        let thing = |subject: Subject| DeletedThing {
            subject,
            name: "x".to_owned(),
            project_id: generator.project_id,
            revision: Revision(4),
            holder: None,
            last_sequence: 9_000_000_000,
            newest: None,
        };
        let newest = Some(DeploymentObjectId::new(uuid(5)));
        let full = DeletedThing { newest, ..thing(mk_stack().id.into()) };
        let empty = thing(StackId::new(uuid(77)).into());
        let things = [thing(generator.id.into()), full, empty];
        let id = DeletionId::new(uuid(1));
        let commit = returned(&things, id, generator.id.into(), &mk_actor(), at(1_000));
        assert_eq!((commit.events.len(), commit.audit.len()), (3, 2));
        let Write::Fleet(write) = &commit.writes[0] else { panic!("{commit:?}") };
        let FleetWrite::ObjectsMake(made) = &**write else { panic!("{write:?}") };
        assert_eq!(made.len(), 1, "a stack without content has nothing to deploy");
        assert_eq!(made[0].copy_of, newest);
        assert!(made[0].sequence > 9_000_000_000);
        let agent = thing(mk_agent().id.into());
        let commit = returned(&[agent], id, mk_agent().id.into(), &mk_actor(), at(1_000));
        assert!(matches!(commit.writes[0], Write::Deletion(DeletionWrite::LeaksResolve(_))));
    }
}
