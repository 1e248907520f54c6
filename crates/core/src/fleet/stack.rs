//! A stack: what a generator wants on clusters, as a series of deployment objects of which
//! the newest counts.

use serde_json::json;

use crate::access::audit::{About, Actor};
use crate::commit::{Commit, Write};
use crate::deletion::request::{Deletable, Leaving};
use crate::error::{ErrorKind, Refusal};
use crate::fleet::event::{Announced, Happened};
use crate::fleet::generator::Generator;
use crate::fleet::object::NewObject;
use crate::fleet::rollout::{self, Rolling};
use crate::fleet::{FleetName, FleetWrite};
use crate::ids::{DeletionId, GeneratorId, ProjectId, Revision, StackId};
use crate::kind::{audited, existing, free, kind, unknown};
use crate::precondition::Expected;
use crate::rollouts::record::{Rollout, Strategy};
use crate::rollouts::rules;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    pub id: StackId,
    /// That of its generator.
    pub project_id: ProjectId,
    pub generator_id: GeneratorId,
    /// Unique in its project among the not deleted.
    pub name: FleetName,
    pub description: Option<String>,
    /// The number of its newest object; 0 if it never had one, unless a restore of the database
    /// lifted it.
    pub last_sequence: i64,
    pub rolling: Rolling,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Stack, StackId, StackNotFound);

/// The number of the next object of a stack whose row is locked: the time in microseconds, or
/// one more than the last. It rises within a stack whatever the clock does, orders stacks
/// roughly among each other without a row that all of them write, and is above what a lost
/// future of the database handed out. Until the year 2255 it is below 2^53, so that JavaScript
/// reads it exactly.
pub fn next_sequence(last: i64, now: Timestamp) -> i64 {
    now.as_micros().max(last.saturating_add(1))
}

/// A stack, its row locked, and its generator, locked against deletion.
#[derive(Debug, Clone)]
pub struct StackSnapshot {
    pub now: Timestamp,
    /// Of a new stack.
    pub generator: Option<Generator>,
    /// The addressed stack, or the one that has the requested name.
    pub stack: Option<Stack>,
    /// Its roll-out that has not ended.
    pub rollout: Option<Rollout>,
}

#[derive(Debug, Clone)]
pub struct NewStack {
    pub id: StackId,
    pub name: FleetName,
    pub description: Option<String>,
}

/// The fields to change; `None` leaves one unchanged.
#[derive(Debug, Clone, Default)]
pub struct StackChange {
    pub name: Option<FleetName>,
    pub description: Option<Option<String>>,
    /// How its objects are rolled out from the next one on.
    pub strategy: Option<Option<Strategy>>,
}

pub fn create(snapshot: &StackSnapshot, new: &NewStack, actor: &Actor) -> Result<Commit, Refusal> {
    let Some(generator) = &snapshot.generator else {
        return Err(unknown(ErrorKind::GeneratorNotFound, "generator").at("generator_id"));
    };
    free(&snapshot.stack, "name", new.name.as_str())?;
    let stack = Stack {
        id: new.id,
        project_id: generator.project_id,
        generator_id: generator.id,
        name: new.name.clone(),
        description: new.description.clone(),
        last_sequence: 0,
        rolling: Rolling::default(),
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": stack.name, "generator_id": stack.generator_id });
    let about = about(&stack);
    let event = announced(&stack, snapshot.now).happened(Happened::Created, None);
    let write = FleetWrite::StackInsert(stack);
    let mut commit = audited(write, "stack.create", about, actor, snapshot.now, details);
    commit.events.extend(event);
    Ok(commit)
}

pub fn update(
    snapshot: &StackSnapshot,
    change: &StackChange,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.stack, expected)?;
    let mut rolling = before.rolling.clone();
    if let Some(strategy) = &change.strategy {
        strategy.as_ref().map_or(Ok(()), rollout::check)?;
        rolling.strategy.clone_from(strategy);
    }
    let after = Stack {
        rolling,
        name: change.name.clone().unwrap_or_else(|| before.name.clone()),
        description: change.description.clone().unwrap_or_else(|| before.description.clone()),
        ..before.clone()
    };
    if after == *before {
        return Ok(Commit::default());
    }
    let shown = |stack: &Stack| {
        json!({
            "name": stack.name, "description": stack.description,
            "strategy": stack.rolling.strategy,
        })
    };
    let details = json!({ "before": shown(before), "after": shown(&after) });
    let write = FleetWrite::StackUpdate(after);
    let about = about(before).at(before.revision.next());
    Ok(audited(write, "stack.update", about, actor, snapshot.now, details))
}

pub(crate) fn about(stack: &Stack) -> About {
    About::new(stack.id).of(stack.project_id)
}

/// The stack at the revision that it has.
pub(crate) fn announced(stack: &Stack, at: Timestamp) -> Announced<'_> {
    let Stack { id, project_id, revision, .. } = *stack;
    Announced { subject: id.into(), name: stack.name.as_str(), project_id, revision, at }
}

/// Its objects are deleted with it without being touched. One marker tells every agent that
/// holds the stack.
impl Deletable for Stack {
    type Snapshot = StackSnapshot;
    const DELETE: &'static str = "stack.delete";
    const KEEPS: bool = true;

    fn found(snapshot: &StackSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.stack, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.project_id)
    }

    fn leaving(&self, snapshot: &StackSnapshot, leaving: &Leaving<'_>) -> Commit {
        let Leaving { deletion_id, actor, now, keep, .. } = *leaving;
        let sequence = next_sequence(self.last_sequence, now);
        let marker = NewObject::marker_of_deletion(self.id, deletion_id, sequence, now);
        let marker = marker.keeping(keep);
        let announced = Announced { revision: self.revision.next(), ..announced(self, now) };
        let made = [
            FleetWrite::ObjectsMake(vec![marker]),
            FleetWrite::StacksNumber(vec![(self.id, sequence)]),
        ];
        let mut commit = Commit {
            writes: made.map(Write::from).into(),
            events: announced.happened(Happened::Deleted, Some(deletion_id)).into_iter().collect(),
            ..Commit::default()
        };
        if let Some(rollout) = &snapshot.rollout {
            commit.join(rules::superseded(rollout, "its stack was deleted", actor, now));
        }
        commit
    }

    fn free(&self, _snapshot: &StackSnapshot, _cascade: bool) -> Result<(), Refusal> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::fixtures::catalog::mk_ask;
    use crate::fixtures::fleet::{mk_generator, mk_stack};
    use crate::fixtures::{at, mk_actor};

    #[test]
    fn a_stack_needs_a_live_generator_and_a_free_name() {
        let new = NewStack { id: mk_stack().id, name: mk_stack().name, description: None };
        let taken = StackSnapshot {
            now: at(1_000),
            generator: Some(mk_generator()),
            stack: Some(mk_stack()),
            rollout: None,
        };
        assert_eq!(create(&taken, &new, &mk_actor()).unwrap_err().kind, ErrorKind::NameTaken);
        let free = StackSnapshot { stack: None, ..taken };
        assert_eq!(create(&free, &new, &mk_actor()).unwrap().events.len(), 1);
        let orphan = StackSnapshot { generator: None, ..free };
        let refusal = create(&orphan, &new, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::GeneratorNotFound);
        assert_eq!(refusal.field.as_deref(), Some("generator_id"));
    }

    #[test]
    fn a_deleted_stack_has_one_marker_and_its_objects_are_not_touched() {
        let there = StackSnapshot {
            now: at(1_000),
            generator: None,
            stack: Some(mk_stack()),
            rollout: None,
        };
        let asked = request::<Stack>(&there, &Door::default(), &mk_ask(), &mk_actor()).unwrap();
        let made = asked.commit.writes.iter().filter_map(|write| match write {
            Write::Fleet(write) => Some(&**write),
            _ => None,
        });
        let made: Vec<_> = made.collect();
        assert!(matches!(made[0], FleetWrite::ObjectsMake(one) if one.len() == 1), "{made:?}");
        assert_eq!(made.len(), 2);
        let types: Vec<_> = asked.commit.events.iter().map(|one| one.event_type.as_str()).collect();
        assert_eq!(types, ["fleet.StackDeleted", "deletion.Done"]);
    }

    proptest! {
        #[test]
        fn numbers_rise_whatever_the_clock_does(clock in proptest::collection::vec(0..1_i64 << 50, 1..50)) {
            let mut last = 0;
            for micros in clock {
                let next = next_sequence(last, Timestamp::from_micros(micros));
                prop_assert!(next > last && next >= micros);
                last = next;
            }
            prop_assert!(last < 1 << 53);
        }
    }
}
