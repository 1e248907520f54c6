//! Chooses steps. Most are about what is there; some are about what is deleted or purged.

use std::collections::BTreeSet;

use slipway_core::deletion::record::DeletionState;

use super::model::{Model, Thing};
use super::step::{Delete, Grace, Key, Kind, Operation, Step, Who};

/// Numbers below the given one, a function of the seed.
pub type Dice = Box<dyn FnMut(u64) -> u64 + Send>;

/// Names of each kind: so few that they are taken, freed and taken again.
const NAMES: u64 = 3;

/// Steps of which the first is taken that meets something new.
const CHOICES: usize = 6;

pub(super) struct Generator {
    dice: Dice,
    /// What the sequence has met.
    met: BTreeSet<String>,
}

impl Generator {
    pub(super) fn new(dice: Dice) -> Self {
        Self { dice, met: BTreeSet::new() }
    }

    /// Whether something happens that happens so many times in a hundred.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        (self.dice)(100) < chance
    }

    fn name(&mut self) -> u8 {
        u8::try_from((self.dice)(NAMES)).unwrap_or_default()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let index = (self.dice)(u64::try_from(from.len()).ok().filter(|count| *count > 0)?);
        from.get(usize::try_from(index).ok()?).copied()
    }

    fn who(&mut self) -> Who {
        let all = [Who::Ada, Who::Ada, Who::Bob, Who::Bob, Who::Eve];
        self.pick(&all).unwrap_or(Who::Ada)
    }

    fn thing(&mut self, model: &Model, fits: impl Fn(&Thing) -> bool) -> Option<Key> {
        let all = model.things.iter().filter(|(_, thing)| fits(thing));
        let all: Vec<Key> = all.map(|(key, _)| *key).collect();
        self.pick(&all)
    }

    /// Something live, or rarely anything that ever was.
    fn subject(&mut self, model: &Model) -> Option<Key> {
        match (self.dice)(20) {
            0 => {
                let purged: Vec<Key> = model.purged.keys().copied().collect();
                self.pick(&purged)
            }
            1 | 2 => self.thing(model, |thing| thing.deleted),
            3..=6 => self.thing(model, |thing| thing.kind == Kind::Project && !thing.deleted),
            _ => self.thing(model, |thing| !thing.deleted),
        }
    }

    /// A deletion in this state, or rarely in another one.
    fn deletion(&mut self, model: &Model, state: DeletionState) -> Option<Key> {
        let any = self.percent(15);
        let all = model.deletions.iter().filter(|(_, one)| any || one.state() == state);
        let all: Vec<Key> = all.map(|(key, _)| *key).collect();
        self.pick(&all)
    }

    fn exactly(&mut self, model: &Model, state: DeletionState) -> Option<Key> {
        let all = model.deletions.iter().filter(|(_, one)| one.state() == state);
        let all: Vec<Key> = all.map(|(key, _)| *key).collect();
        self.pick(&all)
    }

    /// The next step: one that meets something new, if there is one among a few.
    pub(super) fn next(&mut self, model: &Model, key: Key) -> Step {
        let mut step = self.step(model, key);
        for _ in 1..CHOICES {
            if !self.met.contains(&model.situation(step)) {
                break;
            }
            step = self.step(model, key);
        }
        self.met.insert(model.situation(step));
        step
    }

    /// Any step.
    pub(super) fn step(&mut self, model: &Model, key: Key) -> Step {
        for _ in 0..100 {
            if let Some(operation) = self.operation(model) {
                return Step { key, who: self.who(), operation };
            }
        }
        Step { key, who: Who::Ada, operation: Operation::Pass }
    }

    /// One of those that a world begins with.
    pub(super) fn first(&mut self, model: &Model, key: Key) -> Step {
        let operation = match key {
            1 | 2 => Operation::CreateProject { name: u8::try_from(key).unwrap_or_default() },
            3 => Operation::CreateCloud { name: 0 },
            _ => Operation::Declare {
                project: 1 + key % 2,
                name: u8::try_from(key % 3).unwrap_or_default(),
                protected: self.percent(10) && !model.things.is_empty(),
            },
        };
        Step { key, who: Who::Ada, operation }
    }

    fn operation(&mut self, model: &Model) -> Option<Operation> {
        use DeletionState::{Done, Scheduled};
        Some(match (self.dice)(150) {
            0..=13 => Operation::Declare {
                project: self.thing(model, |thing| thing.kind == Kind::Project)?,
                name: self.name(),
                protected: self.percent(15),
            },
            14..=17 => Operation::CreateProject { name: self.name() },
            18..=20 => Operation::CreateCloud { name: self.name() },
            21..=26 => Operation::Protect(self.subject(model)?),
            27..=29 => Operation::Unprotect(self.subject(model)?),
            30..=33 => match self.percent(75) {
                true => Operation::Lift(self.thing(model, |thing| thing.protection.is_some())?),
                false => Operation::Lift(self.subject(model)?),
            },
            34..=36 => {
                let lifted = |thing: &Thing| thing.protection.is_some_and(|one| one.lifted);
                let gone = |thing: &Thing| lifted(thing) && thing.deleted;
                let gone = self.thing(model, gone);
                Operation::LiftEnds(gone.or_else(|| self.thing(model, lifted))?)
            }
            37..=43 => {
                let target = self.subject(model)?;
                let cascade = model.kind_of(target) == Kind::Project && self.percent(80);
                Operation::Plan { target, cascade }
            }
            44..=49 => {
                let plans: Vec<Key> = model.plans.keys().copied().collect();
                Operation::Approve(self.pick(&plans)?)
            }
            50..=71 => Operation::Delete(self.delete(model)?),
            72..=78 => Operation::Cancel(self.deletion(model, Scheduled)?),
            79..=86 => Operation::Restore {
                deletion: self.deletion(model, Done)?,
                redeclare: self.percent(75),
                rename: self.percent(25).then(|| self.name()),
            },
            87..=91 => Operation::Purge {
                deletion: self.deletion(model, Done)?,
                despite: self.percent(30),
            },
            92..=95 => {
                let tripped = model.brakes.iter().filter(|(_, brake)| brake.tripped);
                let tripped: Vec<Who> = tripped.map(|(who, _)| *who).collect();
                let of = if self.percent(80) { self.pick(&tripped)? } else { self.who() };
                Operation::Release(of)
            }
            96..=98 => Operation::Set {
                project: self.thing(model, |one| one.kind == Kind::Project && !one.deleted)?,
                approve: self.percent(50),
                purge_protected: self.percent(40),
            },
            99..=107 => Operation::Pass,
            108..=115 => {
                Operation::TakeDown(self.thing(model, |thing| thing.leaving && !thing.deleted)?)
            }
            116..=125 => {
                let unproven = |thing: &Thing| thing.attempts.iter().any(|a| a.gone && !a.proven);
                Operation::Prove(self.thing(model, unproven)?)
            }
            126 | 127 => {
                let gone = |thing: &Thing| thing.deleted && thing.kind == Kind::Resource;
                Operation::Leak(self.thing(model, gone)?)
            }
            128..=130 => {
                Operation::Resolve(self.thing(model, |one| one.attempts.iter().any(|a| a.leak))?)
            }
            131..=140 => Operation::GraceEnds(self.exactly(model, Scheduled)?),
            _ => Operation::RetentionEnds(self.exactly(model, Done)?),
        })
    }

    fn delete(&mut self, model: &Model) -> Option<Delete> {
        let plans: Vec<Key> = model.plans.keys().copied().collect();
        let plan = if self.percent(45) { self.pick(&plans) } else { None };
        let planned = plan.map(|plan| &model.plans[&plan]).filter(|_| self.percent(90));
        let target = match planned {
            Some(planned) => planned.target,
            None => self.subject(model)?,
        };
        let is_project = model.kind_of(target) == Kind::Project;
        let cascade = match planned {
            Some(planned) => planned.cascade,
            None => is_project && self.percent(75),
        };
        let grace = [Grace::Unsaid, Grace::None, Grace::Hour, Grace::Hour];
        let grace = self.pick(&grace)?;
        Some(Delete { target, grace, cascade, break_glass: self.percent(8), plan })
    }
}
