//! A generator: a program that submits stacks, and owns them.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::Commit;
use crate::deletion::request::{Deletable, Leaving};
use crate::error::{ErrorKind, Refusal};
use crate::fleet::event::{Announced, Happened};
use crate::fleet::object::NewObject;
use crate::fleet::stack::{Stack, next_sequence};
use crate::fleet::write::{MembersLeave, StackLeaves};
use crate::fleet::{FleetName, FleetWrite};
use crate::ids::{DeletionId, GeneratorId, ProjectId, Revision, TemplateId};
use crate::kind::{audited, existing, free, kind, unknown};
use crate::precondition::Expected;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    pub id: GeneratorId,
    pub project_id: ProjectId,
    /// Unique in its project among the not deleted.
    pub name: FleetName,
    pub description: Option<String>,
    /// Whether its objects may have Secrets with values.
    pub accepts_secrets: bool,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Generator, GeneratorId, GeneratorNotFound);

/// A generator, its row locked.
#[derive(Debug, Clone)]
pub struct GeneratorSnapshot {
    pub now: Timestamp,
    /// The project of a new one, if it is live; locked against deletion.
    pub project: Option<ProjectId>,
    /// The addressed generator, or the one that has the requested name.
    pub generator: Option<Generator>,
    /// What goes with it, locked; read for a deletion only.
    pub stacks: Vec<Stack>,
    pub templates: Vec<TemplateRow>,
}

/// A live template of a generator, as a deletion needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateRow {
    pub id: TemplateId,
    pub revision: Revision,
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct NewGenerator {
    pub id: GeneratorId,
    pub name: FleetName,
    pub description: Option<String>,
    pub accepts_secrets: bool,
}

/// The fields to change; `None` leaves one unchanged.
#[derive(Debug, Clone, Default)]
pub struct GeneratorChange {
    pub name: Option<FleetName>,
    pub description: Option<Option<String>>,
    pub accepts_secrets: Option<bool>,
}

pub fn create(
    snapshot: &GeneratorSnapshot,
    new: &NewGenerator,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Some(project_id) = snapshot.project else {
        return Err(unknown(ErrorKind::ProjectNotFound, "project").at("project"));
    };
    free(&snapshot.generator, "name", new.name.as_str())?;
    let generator = Generator {
        id: new.id,
        project_id,
        name: new.name.clone(),
        description: new.description.clone(),
        accepts_secrets: new.accepts_secrets,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": generator.name, "accepts_secrets": generator.accepts_secrets });
    let (about, event) = (about(&generator), announced(&generator, snapshot.now));
    let write = FleetWrite::GeneratorInsert(generator);
    let mut commit = audited(write, "generator.create", about, actor, snapshot.now, details);
    commit.events.extend(event);
    Ok(commit)
}

/// A new name must be free, as the store checks with the unique index.
pub fn update(
    snapshot: &GeneratorSnapshot,
    change: &GeneratorChange,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.generator, expected)?;
    let after = Generator {
        name: change.name.clone().unwrap_or_else(|| before.name.clone()),
        description: change.description.clone().unwrap_or_else(|| before.description.clone()),
        accepts_secrets: change.accepts_secrets.unwrap_or(before.accepts_secrets),
        ..before.clone()
    };
    if after == *before {
        return Ok(Commit::default());
    }
    let shown = |generator: &Generator| {
        json!({
            "name": generator.name, "description": generator.description,
            "accepts_secrets": generator.accepts_secrets,
        })
    };
    let details = json!({ "before": shown(before), "after": shown(&after) });
    let write = FleetWrite::GeneratorUpdate(after);
    let about = about(before).at(before.revision.next());
    Ok(audited(write, "generator.update", about, actor, snapshot.now, details))
}

fn about(generator: &Generator) -> About {
    About::new(generator.id).of(generator.project_id)
}

fn announced(generator: &Generator, at: Timestamp) -> Option<crate::event::Event> {
    let Generator { id, project_id, revision, .. } = *generator;
    let name = generator.name.as_str();
    Announced { subject: id.into(), name, project_id, revision, at }
        .happened(Happened::Created, None)
}

/// Its stacks and templates go with it, each with an entry in the audit and an event of its
/// own, and every stack with a marker.
impl Deletable for Generator {
    type Snapshot = GeneratorSnapshot;
    const DELETE: &'static str = "generator.delete";

    fn found(snapshot: &GeneratorSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.generator, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.project_id)
    }

    fn leaving(&self, snapshot: &GeneratorSnapshot, leaving: &Leaving<'_>) -> Commit {
        let Leaving { deletion_id, reason, actor, now } = *leaving;
        let mut commit = Commit::default();
        let project_id = self.project_id;
        let own = Announced {
            subject: self.id.into(),
            name: self.name.as_str(),
            project_id,
            revision: self.revision.next(),
            at: now,
        };
        commit.events.extend(own.happened(Happened::Deleted, Some(deletion_id)));
        let mut member = |subject, name: &str, revision: Revision, verb| {
            let revision = revision.next();
            let named = Announced { subject, name, project_id, revision, at: now };
            commit.events.extend(named.happened(Happened::Deleted, Some(deletion_id)));
            let about = About::new(subject).of(project_id).at(revision);
            let details = json!({ "deletion_id": deletion_id, "with": "generator" });
            let entry = AuditEntry::new(verb, actor, about, now);
            commit.audit.push(entry.because(reason).with(details));
        };
        let (mut stacks, mut markers) = (Vec::new(), Vec::new());
        for stack in &snapshot.stacks {
            member(stack.id.into(), stack.name.as_str(), stack.revision, "stack.delete");
            let sequence = next_sequence(stack.last_sequence, now);
            stacks.push(StackLeaves { id: stack.id, revision: stack.revision, sequence });
            markers.push(NewObject::marker_of_deletion(stack.id, deletion_id, sequence, now));
        }
        for row in &snapshot.templates {
            member(row.id.into(), &row.name, row.revision, "template.delete");
        }
        let templates = snapshot.templates.iter().map(|row| (row.id, row.revision)).collect();
        let members = MembersLeave { deletion_id, deleted_at: now, stacks, templates };
        commit.writes.push(FleetWrite::MembersLeave(members).into());
        commit.writes.push(FleetWrite::ObjectsMake(markers).into());
        commit
    }

    fn free(&self, _snapshot: &GeneratorSnapshot, _cascade: bool) -> Result<(), Refusal> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::commit::Write;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::fixtures::catalog::mk_ask;
    use crate::fixtures::fleet::{mk_generator, mk_stack};
    use crate::fixtures::{at, mk_actor, uuid};
    use crate::ids::StackId;

    fn snapshot(stacks: Vec<Stack>, templates: Vec<TemplateRow>) -> GeneratorSnapshot {
        let generator = Some(mk_generator());
        GeneratorSnapshot { now: at(1_000), project: None, generator, stacks, templates }
    }

    #[test]
    fn a_generator_needs_a_live_project_and_a_free_name() {
        let new = NewGenerator {
            id: mk_generator().id,
            name: mk_generator().name,
            description: None,
            accepts_secrets: false,
        };
        let taken = GeneratorSnapshot {
            project: Some(mk_generator().project_id),
            ..snapshot(vec![], vec![])
        };
        assert_eq!(create(&taken, &new, &mk_actor()).unwrap_err().kind, ErrorKind::NameTaken);
        let free = GeneratorSnapshot { generator: None, ..taken };
        let commit = create(&free, &new, &mk_actor()).unwrap();
        assert_eq!((commit.writes.len(), commit.events.len(), commit.audit.len()), (1, 1, 1));
        let nowhere = GeneratorSnapshot { project: None, ..free };
        let refusal = create(&nowhere, &new, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ProjectNotFound);
    }

    #[test]
    fn an_update_that_changes_nothing_writes_nothing() {
        let there = snapshot(vec![], vec![]);
        let same = GeneratorChange { name: Some(mk_generator().name), ..Default::default() };
        assert!(update(&there, &same, Expected::Any, &mk_actor()).unwrap().is_empty());
        let other = GeneratorChange { accepts_secrets: Some(true), ..Default::default() };
        let commit = update(&there, &other, Expected::Any, &mk_actor()).unwrap();
        assert_eq!(commit.audit[0].details["after"]["accepts_secrets"], true);
    }

    proptest! {
        /// Whatever goes with a generator is announced, audited and, if it is a stack, gets
        /// one marker that is newer than all of its objects.
        #[test]
        fn everything_that_goes_with_a_generator_is_told(
            lasts in proptest::collection::vec(0..4_000_000_000_i64, 0..20),
            templates in 0..5_u128,
        ) {
            let stack = |(index, last_sequence): (usize, &i64)| Stack {
                id: StackId::new(uuid(1_000 + index as u128)),
                name: FleetName::from_stored(format!("s{index}")),
                last_sequence: *last_sequence,
                ..mk_stack()
            };
            let stacks: Vec<_> = lasts.iter().enumerate().map(stack).collect();
            let template = |number| TemplateRow {
                id: TemplateId::new(uuid(2_000 + number)),
                revision: Revision(3),
                name: format!("t{number}"),
            };
            let there = snapshot(stacks.clone(), (0..templates).map(template).collect());
            let asked = request::<Generator>(&there, &Door::default(), &mk_ask(), &mk_actor());
            let commit = asked.unwrap().commit;
            let named = 1 + stacks.len() + templates as usize;
            prop_assert_eq!(commit.audit.len(), named);
            // One of the deletion itself.
            prop_assert_eq!(commit.events.len(), named + 1);
            let ids: BTreeSet<_> = commit.events.iter().map(|event| event.id).collect();
            prop_assert_eq!(ids.len(), commit.events.len());
            let markers: Vec<_> = commit.writes.iter().filter_map(|write| match write {
                Write::Fleet(write) => match &**write {
                    FleetWrite::ObjectsMake(made) => Some(made.clone()),
                    _ => None,
                },
                _ => None,
            }).flatten().collect();
            prop_assert_eq!(markers.len(), stacks.len());
            for (stack, marker) in stacks.iter().zip(&markers) {
                prop_assert_eq!(marker.stack_id, stack.id);
                prop_assert!(marker.sequence > stack.last_sequence && marker.copy_of.is_none());
            }
        }
    }
}
