//! Chooses requests. Most are about what is there; some are about what is deleted or purged.

use std::collections::BTreeSet;

use slipway_core::deletion::record::DeletionState;

use super::model::{Model, Thing};
use super::request::{Delete, Grace, Key, Kind, Operation, Request, Who};

/// Numbers below the given one, a function of the seed.
pub type Dice = Box<dyn FnMut(u64) -> u64 + Send>;

/// Names of each kind: so few that they are taken, freed and taken again.
const NAMES: u64 = 3;

/// Steps of which the first is taken that shows something new.
const CHOICES: usize = 40;

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
            0 | 1 => {
                let purged: Vec<Key> = model.purged.keys().copied().collect();
                self.pick(&purged)
            }
            2..=4 => self.thing(model, |thing| thing.deleted),
            5..=9 => self.thing(model, |thing| thing.kind == Kind::Project && !thing.deleted),
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

    /// The next request: the loops go on, or something new is met, if there is something among
    /// some requests.
    pub(super) fn next(&mut self, model: &Model, key: Key) -> Request {
        let how = (self.dice)(100);
        if let (0..35, Some(operation)) = (how, self.progress(model)) {
            return Request { key, who: Who::Ada, operation };
        }
        let mut request = self.request(model, key);
        for _ in 1..CHOICES {
            let (ends, meets) = model.situation(request);
            // How it ends is worth more than what it meets, which is new more often.
            if !self.met.contains(&ends) || (how >= 75 && !self.met.contains(&meets)) {
                break;
            }
            request = self.request(model, key);
        }
        let (ends, meets) = model.situation(request);
        self.met.extend([ends, meets]);
        request
    }

    /// A scheduled deletion, rather one of something protected.
    fn waiting(&mut self, model: &Model) -> Option<Key> {
        let all = model.deletions.iter();
        let all = all.filter(|(_, one)| one.state() == DeletionState::Scheduled);
        let all: Vec<Key> = all.map(|(key, _)| *key).collect();
        let is_protected =
            |key: &&Key| model.things[&model.deletions[*key].target].protection.is_some();
        let protected: Vec<Key> = all.iter().filter(is_protected).copied().collect();
        self.pick(&protected).or_else(|| self.pick(&all))
    }

    /// What takes deletions further.
    fn progress(&mut self, model: &Model) -> Option<Operation> {
        match (self.dice)(10) {
            0..=3 => {
                let leaving = self.thing(model, |thing| thing.leaving && !thing.deleted);
                leaving.map(Operation::TakeDown)
            }
            // Until its time comes, something can still be protected.
            _ if model.is_held_back() => Some(Operation::Pass),
            4 => {
                let deletion = self.exactly(model, DeletionState::Scheduled)?;
                Some(Operation::Protect(model.deletions[&deletion].target))
            }
            5 => {
                let unproven = |thing: &Thing| thing.attempts.iter().any(|a| a.gone && !a.proven);
                self.thing(model, unproven).map(Operation::Prove)
            }
            6 => self.waiting(model).map(Operation::GraceEnds),
            7 | 8 => Some(Operation::Pass),
            _ if self.percent(50) => {
                self.exactly(model, DeletionState::Done).map(Operation::RetentionEnds)
            }
            _ => None,
        }
    }

    /// Any request.
    pub(super) fn request(&mut self, model: &Model, key: Key) -> Request {
        for _ in 0..100 {
            if let Some(operation) = self.operation(model) {
                return Request { key, who: self.who(), operation };
            }
        }
        Request { key, who: Who::Ada, operation: Operation::Pass }
    }

    /// One of those that a world begins with.
    pub(super) fn first(&mut self, model: &Model, key: Key) -> Request {
        let operation = match key {
            1 | 2 => Operation::CreateProject { name: u8::try_from(key).unwrap_or_default() },
            3 => Operation::CreateCloud { name: 0 },
            _ => Operation::Declare {
                project: 1 + key % 2,
                name: u8::try_from(key % 3).unwrap_or_default(),
                protected: self.percent(10) && !model.things.is_empty(),
            },
        };
        Request { key, who: Who::Ada, operation }
    }

    fn operation(&mut self, model: &Model) -> Option<Operation> {
        use DeletionState::{Done, Scheduled};
        Some(match (self.dice)(158) {
            0..=9 => Operation::Declare {
                project: self.thing(model, |thing| thing.kind == Kind::Project)?,
                name: self.name(),
                protected: self.percent(15),
            },
            10..=13 => Operation::CreateProject { name: self.name() },
            14..=17 => Operation::CreateCloud { name: self.name() },
            18..=23 => match self.percent(60) {
                true => {
                    let deletion = self.exactly(model, Scheduled)?;
                    Operation::Protect(model.deletions[&deletion].target)
                }
                false => Operation::Protect(self.subject(model)?),
            },
            24..=26 => Operation::Unprotect(self.subject(model)?),
            27..=31 => match self.percent(75) {
                true => Operation::Lift(self.thing(model, |thing| thing.protection.is_some())?),
                false => Operation::Lift(self.subject(model)?),
            },
            32..=35 => {
                let lifted = |thing: &Thing| thing.protection.is_some_and(|one| one.lifted);
                let gone = |thing: &Thing| lifted(thing) && thing.deleted;
                let gone = self.thing(model, gone);
                Operation::LiftEnds(gone.or_else(|| self.thing(model, lifted))?)
            }
            36..=42 => {
                let target = self.subject(model)?;
                let cascade = model.kind_of(target) == Kind::Project && self.percent(80);
                Operation::Plan { target, cascade }
            }
            43..=48 => {
                let plans: Vec<Key> = model.plans.keys().copied().collect();
                Operation::Approve(self.pick(&plans)?)
            }
            49..=72 => Operation::Delete(self.delete(model)?),
            73..=78 => Operation::Cancel(self.deletion(model, Scheduled)?),
            79..=92 => Operation::Restore {
                deletion: self.deletion(model, Done)?,
                redeclare: self.percent(60),
                rename: self.percent(25).then(|| self.name()),
            },
            93..=98 => Operation::Purge {
                deletion: self.deletion(model, Done)?,
                despite: self.percent(30),
            },
            99..=102 => {
                let tripped = model.brakes.iter().filter(|(_, brake)| brake.tripped);
                let tripped: Vec<Who> = tripped.map(|(who, _)| *who).collect();
                let of = if self.percent(80) { self.pick(&tripped)? } else { self.who() };
                Operation::Release(of)
            }
            103..=107 => Operation::Set {
                project: self.thing(model, |one| one.kind == Kind::Project && !one.deleted)?,
                approve: self.percent(70),
                purge_protected: self.percent(40),
            },
            108..=119 => Operation::Pass,
            120..=133 => {
                Operation::TakeDown(self.thing(model, |thing| thing.leaving && !thing.deleted)?)
            }
            134..=141 => {
                let unproven = |thing: &Thing| thing.attempts.iter().any(|a| a.gone && !a.proven);
                Operation::Prove(self.thing(model, unproven)?)
            }
            142..=144 => {
                let gone = |thing: &Thing| thing.deleted && thing.kind == Kind::Resource;
                Operation::Leak(self.thing(model, gone)?)
            }
            145..=148 => {
                Operation::Resolve(self.thing(model, |one| one.attempts.iter().any(|a| a.leak))?)
            }
            149..=155 => Operation::GraceEnds(self.waiting(model)?),
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
