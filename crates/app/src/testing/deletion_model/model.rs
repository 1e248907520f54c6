//! What the documents promise about deletions, as a plain value: each operation changes it,
//! or is refused with a code and changes nothing but a brake.

use std::collections::{BTreeMap, BTreeSet};

use slipway_core::deletion::record::DeletionState;

use super::request::{Delete, Grace, Key, Kind, Operation, Outcome, Request, Who};

/// Resources that one key deletes before its brake trips.
pub(super) const LIMIT: i64 = 3;
/// Above so many resources a deletion in a project with [`Rules::approve`] needs an approval.
pub(super) const APPROVE_ABOVE: i64 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) kind: Kind,
    pub(super) name: u8,
    /// The project that contains it.
    pub(super) project: Option<Key>,
    /// The deletion that its row names.
    pub(super) deletion: Option<Key>,
    /// It is being taken down.
    pub(super) leaving: bool,
    pub(super) deleted: bool,
    pub(super) protection: Option<Protection>,
    /// Of a resource, the current one last.
    pub(super) attempts: Vec<Attempt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Protection {
    /// Its declaration says so, and not somebody later.
    pub(super) declared: bool,
    pub(super) lifted: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) gone: bool,
    pub(super) proven: bool,
    pub(super) leak: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deletion {
    pub(super) target: Key,
    pub(super) project: Option<Key>,
    pub(super) by: Who,
    pub(super) parent: Option<Key>,
    pub(super) cascade: bool,
    pub(super) resources: i64,
    /// Its grace is over.
    due: bool,
    /// Its retention is over.
    over: bool,
    purge_protected: bool,
    pub(super) break_glass: bool,
    /// The states that it entered, the present one last.
    pub(super) entered: Vec<DeletionState>,
}

impl Deletion {
    pub(super) fn state(&self) -> DeletionState {
        self.entered[self.entered.len() - 1]
    }
}

/// What a plan read of one thing: its name, its attempt, and how it is protected.
type Read = BTreeMap<Key, (u8, usize, Option<bool>)>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) target: Key,
    pub(super) cascade: bool,
    by: Who,
    pub(super) read: Read,
    pub(super) used: Option<Key>,
    pub(super) approved: Option<Who>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Brake {
    pub(super) tripped: bool,
    released: bool,
    /// How often it tripped and was released.
    pub(super) changes: usize,
}

/// The settings of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rules {
    approve: bool,
    purge_protected: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Model {
    /// Those that are not purged.
    pub(super) things: BTreeMap<Key, Thing>,
    /// What every purged one was.
    pub(super) purged: BTreeMap<Key, Kind>,
    pub(super) deletions: BTreeMap<Key, Deletion>,
    pub(super) plans: BTreeMap<Key, Plan>,
    pub(super) brakes: BTreeMap<Who, Brake>,
    rules: BTreeMap<Key, Rules>,
}

/// How a pass ends that does not begin a deletion because of a protection.
pub(super) const HELD_BACK: &str = "protected at the end of grace";

const GONE: &str = "resource_not_found";

impl Model {
    /// The outcome of a request, and the model after it.
    pub(super) fn apply(&self, request: Request) -> (Self, Outcome) {
        let mut after = self.clone();
        let outcome = after.run(request);
        (after, outcome)
    }

    /// How a request ends, and what it meets: two requests with the same text test much the same.
    pub(super) fn situation(&self, request: Request) -> (String, String) {
        let (_, outcome) = self.apply(request);
        let outcome = match request.operation {
            Operation::Pass if self.is_held_back() => HELD_BACK,
            _ => outcome.map_or_else(|code| code, |_| "accepted"),
        };
        let thing = |key: Key| {
            let thing = self.things.get(&key);
            let inside = self.things.values().filter(|one| one.project == Some(key));
            let mut inside: Vec<_> =
                inside.map(|one| (one.deleted, one.protection.map(|one| one.lifted))).collect();
            inside.sort_unstable();
            inside.dedup();
            let own = thing.map(|thing| (thing.deleted, thing.protection.map(|one| one.lifted)));
            format!("{:?} {:?} {own:?} {inside:?}", self.kind_of(key), self.state_of(key))
        };
        let deletion = |key: Key| {
            let deletion = &self.deletions[&key];
            let parent = deletion.parent.map(|parent| self.deletions[&parent].state());
            format!("{} {parent:?} {}", deletion.state(), thing(deletion.target))
        };
        let met = match request.operation {
            Operation::Declare { project: key, .. }
            | Operation::Set { project: key, .. }
            | Operation::Plan { target: key, .. }
            | Operation::Protect(key)
            | Operation::Unprotect(key)
            | Operation::Lift(key)
            | Operation::TakeDown(key)
            | Operation::Prove(key)
            | Operation::LiftEnds(key) => thing(key),
            Operation::Delete(Delete { target, grace, plan, .. }) => {
                format!("{grace:?} {} {}", plan.is_some(), thing(target))
            }
            Operation::Cancel(key)
            | Operation::Restore { deletion: key, .. }
            | Operation::Purge { deletion: key, .. }
            | Operation::GraceEnds(key)
            | Operation::RetentionEnds(key) => deletion(key),
            _ => String::new(),
        };
        let ends = format!("{} {outcome}", request.operation.name());
        let meets = format!("{ends} {met}");
        (ends, meets)
    }

    fn run(&mut self, Request { key, who, operation }: Request) -> Outcome {
        match operation {
            Operation::CreateProject { name } => self.create(key, Kind::Project, name),
            Operation::CreateCloud { name } => self.create(key, Kind::Cloud, name),
            Operation::Declare { project, name, protected } => {
                self.declare(key, project, name, protected)
            }
            Operation::Protect(thing) => {
                let is_leaving = self.state_of(thing) == Some(DeletionState::Running);
                let thing = self.live(thing).ok_or(GONE)?;
                if is_leaving {
                    return Err("leaving");
                }
                let by_hand = Protection { declared: false, lifted: false };
                thing.protection.get_or_insert(by_hand);
                Ok(None)
            }
            Operation::Unprotect(thing) => {
                admin(who)?;
                self.live(thing).ok_or(GONE)?.protection = None;
                Ok(None)
            }
            Operation::Lift(thing) => {
                admin(who)?;
                let protection = &mut self.live(thing).ok_or(GONE)?.protection;
                protection.as_mut().ok_or("nothing_to_lift")?.lifted = true;
                Ok(None)
            }
            Operation::Plan { target, cascade } => self.plan(key, who, target, cascade),
            Operation::Approve(plan) => self.approve(plan, who),
            Operation::Delete(delete) => self.delete(key, who, delete),
            Operation::Cancel(deletion) => self.cancel(deletion),
            Operation::Restore { deletion, redeclare, rename } => {
                self.restore(who, deletion, redeclare, rename)
            }
            Operation::Purge { deletion, despite } => self.purge(who, deletion, despite),
            Operation::Release(of) => {
                admin(who)?;
                let brake = self.brakes.entry(of).or_default();
                if !brake.tripped {
                    return Err("nothing_to_lift");
                }
                *brake = Brake { tripped: false, released: true, changes: brake.changes + 1 };
                Ok(None)
            }
            Operation::Set { project, approve, purge_protected } => {
                admin(who)?;
                self.rules.insert(project, Rules { approve, purge_protected });
                Ok(None)
            }
            world => {
                self.happen(world);
                Ok(None)
            }
        }
    }

    /// What nobody asks for.
    fn happen(&mut self, operation: Operation) {
        match operation {
            Operation::Pass => while self.pass() {},
            Operation::TakeDown(thing) => {
                let own =
                    self.things[&thing].deletion.filter(|d| self.deletions[d].target == thing);
                self.thing(thing).deleted = true;
                if let Some(attempt) = self.thing(thing).attempts.last_mut() {
                    attempt.gone = true;
                }
                if let Some(own) = own {
                    self.enter(own, DeletionState::Done);
                }
            }
            Operation::Prove(thing) => {
                for attempt in self.thing(thing).attempts.iter_mut() {
                    if attempt.gone && !attempt.proven {
                        (attempt.proven, attempt.leak) = (true, false);
                    }
                }
            }
            Operation::Leak(thing) => {
                if let Some(attempt) = self.thing(thing).attempts.last_mut() {
                    attempt.leak = true;
                }
            }
            Operation::Resolve(thing) => {
                self.thing(thing).attempts.iter_mut().for_each(|attempt| attempt.leak = false);
            }
            Operation::LiftEnds(thing) => {
                if let Some(protection) = &mut self.thing(thing).protection {
                    protection.lifted = false;
                }
            }
            Operation::GraceEnds(deletion) => self.deletion(deletion).due = true,
            Operation::RetentionEnds(deletion) => self.deletion(deletion).over = true,
            _ => {}
        }
    }

    fn thing(&mut self, key: Key) -> &mut Thing {
        self.things.get_mut(&key).expect("a thing that is not purged")
    }

    fn live(&mut self, key: Key) -> Option<&mut Thing> {
        self.things.get_mut(&key).filter(|thing| !thing.deleted)
    }

    fn deletion(&mut self, key: Key) -> &mut Deletion {
        self.deletions.get_mut(&key).expect("a deletion")
    }

    fn enter(&mut self, key: Key, state: DeletionState) {
        self.deletion(key).entered.push(state);
    }

    /// The state of the deletion that the row names.
    pub(super) fn state_of(&self, thing: Key) -> Option<DeletionState> {
        let deletion = self.things.get(&thing)?.deletion?;
        Some(self.deletions[&deletion].state())
    }

    pub(super) fn kind_of(&self, thing: Key) -> Kind {
        self.things.get(&thing).map_or_else(|| self.purged[&thing], |thing| thing.kind)
    }

    /// The resources of a project that are not deleted.
    fn contents(&self, project: Key) -> Vec<Key> {
        let inside = |thing: &Thing| thing.project == Some(project) && !thing.deleted;
        self.things.iter().filter(|(_, thing)| inside(thing)).map(|(key, _)| *key).collect()
    }

    fn count(&self, project: Key) -> i64 {
        i64::try_from(self.contents(project).len()).unwrap_or(i64::MAX)
    }

    /// The rows that carry the id of a deletion.
    pub(super) fn members(&self, deletion: Key) -> Vec<Key> {
        let carries = |thing: &Thing| thing.deletion == Some(deletion);
        self.things.iter().filter(|(_, thing)| carries(thing)).map(|(key, _)| *key).collect()
    }

    fn is_taken(&self, kind: Kind, project: Option<Key>, name: u8, but: Option<Key>) -> bool {
        self.things.iter().any(|(key, thing)| {
            (thing.kind, thing.project, thing.name) == (kind, project, name)
                && !thing.deleted
                && Some(*key) != but
        })
    }

    fn create(&mut self, key: Key, kind: Kind, name: u8) -> Outcome {
        if self.is_taken(kind, None, name, None) {
            return Err("name_taken");
        }
        self.things.insert(key, mk_thing(kind, name));
        Ok(None)
    }

    fn declare(&mut self, key: Key, project: Key, name: u8, protected: bool) -> Outcome {
        let of = self.live(project).ok_or("project_not_found")?;
        if of.deletion.is_some() {
            return Err("project_leaving");
        }
        if self.is_taken(Kind::Resource, Some(project), name, None) {
            return Err("handle_taken");
        }
        let protection = protected.then_some(Protection { declared: true, lifted: false });
        let attempts = vec![Attempt::default()];
        let thing = mk_thing(Kind::Resource, name);
        self.things.insert(key, Thing { project: Some(project), protection, attempts, ..thing });
        Ok(None)
    }

    /// Everything that would go.
    fn read(&self, target: Key, cascade: bool) -> Read {
        let mut keys = vec![target];
        if cascade {
            keys.extend(self.contents(target));
        }
        let found = keys.iter().filter_map(|key| Some((*key, self.things.get(key)?)));
        let found = found.filter(|(_, thing)| !thing.deleted);
        let protected = |thing: &Thing| thing.protection.map(|one| one.declared);
        found
            .map(|(key, thing)| (key, (thing.name, thing.attempts.len(), protected(thing))))
            .collect()
    }

    fn plan(&mut self, key: Key, who: Who, target: Key, cascade: bool) -> Outcome {
        let kind = self.kind_of(target);
        if kind != Kind::Resource {
            admin(who)?;
        }
        if self.live(target).is_none() {
            let is_kept = self.things.contains_key(&target);
            return Err(if kind == Kind::Resource && is_kept { "leaving" } else { missing(kind) });
        }
        let read = self.read(target, cascade);
        let plan = Plan { target, cascade, by: who, read, used: None, approved: None };
        self.plans.insert(key, plan);
        Ok(None)
    }

    fn approve(&mut self, plan: Key, who: Who) -> Outcome {
        let plan = self.plans.get_mut(&plan).expect("a plan");
        if plan.used.is_some() {
            return Err("plan_used");
        }
        if plan.by.is_same_person(who) {
            return Err("same_person");
        }
        plan.approved.get_or_insert(who);
        Ok(None)
    }

    fn delete(&mut self, key: Key, who: Who, delete: Delete) -> Outcome {
        let Delete { target, grace, cascade, break_glass, plan } = delete;
        let kind = self.kind_of(target);
        if kind != Kind::Resource || break_glass {
            admin(who)?;
        }
        let thing = self.things.get(&target).ok_or(missing(kind))?;
        if thing.deleted && kind != Kind::Resource {
            return Err(missing(kind));
        }
        let (under_way, project) = (thing.deletion, thing.project);
        if let Some(plan) = plan {
            self.check_plan(plan, delete, under_way)?;
        }
        if let Some(under_way) = under_way {
            return self.again(under_way, delete);
        }
        let contents = self.count(target);
        if kind == Kind::Project && !cascade && contents > 0 {
            return Err("project_not_empty");
        }
        self.check_protection(target)?;
        let resources = match kind {
            Kind::Resource => 1,
            Kind::Project => contents,
            Kind::Cloud => 0,
        };
        let project = project.or((kind == Kind::Project).then_some(target));
        let approver = plan.and_then(|plan| self.plans[&plan].approved);
        let approved = approver.is_some_and(|approver| !approver.is_same_person(who));
        if !break_glass && !approved {
            self.check_brake(who, resources)?;
            let rules = project.and_then(|project| self.rules.get(&project));
            let lately = self.lately(who, project);
            let many = resources > 0 && resources + lately > APPROVE_ABOVE;
            if many && rules.is_some_and(|rules| rules.approve) {
                return Err(if approver.is_some() { "same_person" } else { "approval_required" });
            }
        }
        let rules = project.and_then(|project| self.rules.get(&project));
        let deletion = Deletion {
            target,
            project,
            by: who,
            parent: None,
            cascade,
            resources,
            due: false,
            over: false,
            purge_protected: rules.is_some_and(|rules| rules.purge_protected),
            break_glass,
            entered: Vec::new(),
        };
        self.deletions.insert(key, deletion);
        self.thing(target).deletion = Some(key);
        if let Some(plan) = plan.and_then(|plan| self.plans.get_mut(&plan)) {
            plan.used = Some(key);
        }
        match grace {
            Grace::Hour => {
                self.enter(key, DeletionState::Scheduled);
                self.take_over(key);
            }
            Grace::None | Grace::Unsaid => self.begin(key),
        }
        Ok(Some(key))
    }

    fn check_plan(&self, plan: Key, delete: Delete, under_way: Option<Key>) -> Outcome {
        let plan = &self.plans[&plan];
        if (plan.target, plan.cascade) != (delete.target, delete.cascade) {
            return Err("plan_mismatch");
        }
        match plan.used {
            Some(used) if under_way == Some(used) => Ok(None),
            Some(_) => Err("plan_used"),
            None if self.read(plan.target, plan.cascade) != plan.read => Err("plan_stale"),
            None => Ok(None),
        }
    }

    /// The deletion that is under way; one of the thing itself is brought forward.
    fn again(&mut self, under_way: Key, delete: Delete) -> Outcome {
        let deletion = &self.deletions[&under_way];
        let waits = deletion.state() == DeletionState::Scheduled && !deletion.due;
        if waits && delete.grace == Grace::None && deletion.target == delete.target {
            self.check_protection(delete.target)?;
            self.deletion(under_way).due = true;
        }
        Ok(Some(under_way))
    }

    /// Of a thing and of everything that is in it.
    fn check_protection(&self, target: Key) -> Outcome {
        let contents = self.contents(target);
        let mut all = contents.iter().chain([&target]).filter_map(|key| self.things.get(key));
        match all.any(|thing| thing.protection.is_some_and(|one| !one.lifted)) {
            true => Err("protected"),
            false => Ok(None),
        }
    }

    fn check_brake(&mut self, who: Who, resources: i64) -> Outcome {
        let lately = self.lately(who, None);
        let brake = self.brakes.entry(who).or_default();
        if brake.tripped {
            return Err("deletion_brake");
        }
        if resources > 0 && !brake.released && lately + resources > LIMIT {
            (brake.tripped, brake.changes) = (true, brake.changes + 1);
            return Err("deletion_brake");
        }
        Ok(None)
    }

    /// The resources that a caller deleted, of one project or of all. After a release
    /// nothing is counted.
    fn lately(&self, who: Who, project: Option<Key>) -> i64 {
        if self.brakes.get(&who).is_some_and(|brake| brake.released) {
            return 0;
        }
        let own = self.deletions.values().filter(|deletion| deletion.by == who);
        let own = own.filter(|deletion| deletion.state() != DeletionState::Cancelled);
        let own = own.filter(|deletion| project.is_none() || deletion.project == project);
        own.map(|deletion| deletion.resources).sum()
    }

    /// The first request outside: something is taken down, or nothing is outside and it is done.
    fn begin(&mut self, key: Key) {
        let target = self.deletions[&key].target;
        let kind = self.things[&target].kind;
        if kind == Kind::Project {
            self.deletion(key).resources = self.count(target);
        }
        match kind {
            Kind::Resource => {
                self.thing(target).leaving = true;
                self.enter(key, DeletionState::Running);
            }
            Kind::Project if self.deletions[&key].resources > 0 => {
                self.enter(key, DeletionState::Running);
                self.take_over(key);
            }
            Kind::Project | Kind::Cloud => {
                self.thing(target).deleted = true;
                self.enter(key, DeletionState::Done);
            }
        }
    }

    /// The resources of a project become members of its deletion; one that has a scheduled
    /// deletion keeps it as a child.
    fn take_over(&mut self, key: Key) {
        let target = self.deletions[&key].target;
        for resource in self.contents(target) {
            match self.things[&resource].deletion {
                None => self.thing(resource).deletion = Some(key),
                Some(own)
                    if self.deletions[&own].state() == DeletionState::Scheduled && own != key =>
                {
                    self.deletion(own).parent = Some(key);
                }
                Some(_) => {}
            }
        }
    }

    fn cancel(&mut self, key: Key) -> Outcome {
        match self.deletions[&key].state() {
            DeletionState::Cancelled => return Ok(None),
            DeletionState::Scheduled => {}
            _ => return Err("not_cancellable"),
        }
        self.enter(key, DeletionState::Cancelled);
        for member in self.members(key) {
            self.thing(member).deletion = None;
        }
        for deletion in self.deletions.values_mut().filter(|one| one.parent == Some(key)) {
            deletion.parent = None;
        }
        Ok(None)
    }

    fn restore(&mut self, who: Who, key: Key, redeclare: bool, rename: Option<u8>) -> Outcome {
        let (target, over) = (self.deletions[&key].target, self.deletions[&key].over);
        if self.kind_of(target) != Kind::Resource {
            admin(who)?;
        }
        match self.deletions[&key].state() {
            DeletionState::Restored => return Ok(None),
            DeletionState::Done if !over => {}
            _ => return Err("not_restorable"),
        }
        let thing = &self.things[&target];
        let name = rename.unwrap_or(thing.name);
        let is_closed = |project: &Thing| project.deleted || project.deletion.is_some();
        let conflict = self.is_taken(thing.kind, thing.project, name, Some(target))
            || thing.project.is_some_and(|project| is_closed(&self.things[&project]));
        let members = self.members(key);
        let is_resource = |key: &&Key| self.things[*key].kind == Kind::Resource;
        let is_gone = !redeclare && members.iter().any(|member| is_resource(&member));
        if conflict || is_gone {
            return Err(if conflict { "restore_conflict" } else { "substrate_gone" });
        }
        self.enter(key, DeletionState::Restored);
        for member in members {
            let thing = self.thing(member);
            (thing.deletion, thing.deleted, thing.leaving) = (None, false, false);
            if thing.kind == Kind::Resource {
                thing.attempts.push(Attempt::default());
            }
        }
        self.thing(target).name = name;
        Ok(None)
    }

    fn purge(&mut self, who: Who, key: Key, despite: bool) -> Outcome {
        admin(who)?;
        let deletion = &self.deletions[&key];
        match deletion.state() {
            DeletionState::Purging | DeletionState::Purged => return Ok(None),
            DeletionState::Done => {}
            _ => return Err("purge_withheld"),
        }
        let protected = deletion.purge_protected && !deletion.over && !despite;
        if protected || self.is_needed(key) {
            return Err("purge_withheld");
        }
        self.enter(key, DeletionState::Purging);
        Ok(None)
    }

    /// Whether anything may still need what a deletion took.
    fn is_needed(&self, key: Key) -> bool {
        let deletion = &self.deletions[&key];
        let members = self.members(key);
        let unproven = members.iter().flat_map(|member| &self.things[member].attempts);
        let unproven = unproven.into_iter().any(|attempt| !attempt.proven || attempt.leak);
        let mut inside = self.things.values().filter(|one| one.project == Some(deletion.target));
        let in_use = inside.any(|thing| thing.deletion != Some(key) || !thing.deleted);
        let parent = deletion.parent.map(|parent| &self.deletions[&parent]);
        let parent_kept = parent.is_some_and(|parent| match parent.state() {
            DeletionState::Scheduled | DeletionState::Running => true,
            DeletionState::Done => !parent.over,
            _ => false,
        });
        unproven || in_use || parent_kept
    }

    /// One pass of the loop over deletions; whether it changed something.
    fn pass(&mut self) -> bool {
        let before = self.clone();
        let keys: BTreeSet<Key> = self.deletions.keys().copied().collect();
        for key in &keys {
            self.start(*key);
        }
        for key in &keys {
            self.advance(*key);
        }
        for key in &keys {
            let deletion = &self.deletions[key];
            if deletion.state() == DeletionState::Done && deletion.over && !self.is_needed(*key) {
                self.enter(*key, DeletionState::Purging);
            }
            if self.deletions[key].state() == DeletionState::Purging {
                for member in self.members(*key) {
                    let thing = self.things.remove(&member).expect("a member");
                    self.purged.insert(member, thing.kind);
                    self.rules.remove(&member);
                }
                self.enter(*key, DeletionState::Purged);
            }
        }
        *self != before
    }

    /// Whether a protection holds a deletion back whose grace is over.
    pub(super) fn is_held_back(&self) -> bool {
        self.deletions.values().any(|deletion| {
            deletion.state() == DeletionState::Scheduled
                && deletion.due
                && self.check_protection(deletion.target).is_err()
        })
    }

    /// Begins a deletion whose grace is over, unless what the request checked refuses now.
    fn start(&mut self, key: Key) {
        let deletion = &self.deletions[&key];
        let of_parent = deletion.parent.map(|parent| self.deletions[&parent].state());
        let is_due = deletion.due || of_parent == Some(DeletionState::Running);
        let target = deletion.target;
        let is_full = !deletion.cascade && self.count(target) > 0;
        if deletion.state() == DeletionState::Scheduled
            && is_due
            && !is_full
            && self.check_protection(target).is_ok()
        {
            self.begin(key);
        }
    }

    /// Takes what is in a project down, and the project when that is gone.
    fn advance(&mut self, key: Key) {
        let target = self.deletions[&key].target;
        let runs = self.deletions[&key].state() == DeletionState::Running;
        if !runs || self.things[&target].kind != Kind::Project {
            return;
        }
        for resource in self.contents(target) {
            let thing = self.thing(resource);
            if *thing.deletion.get_or_insert(key) == key {
                thing.leaving = true;
            }
        }
        if self.contents(target).is_empty() {
            self.thing(target).deleted = true;
            self.enter(key, DeletionState::Done);
        }
    }
}

fn mk_thing(kind: Kind, name: u8) -> Thing {
    Thing {
        kind,
        name,
        project: None,
        deletion: None,
        leaving: false,
        deleted: false,
        protection: None,
        attempts: Vec::new(),
    }
}

fn admin(who: Who) -> Outcome {
    if who.is_admin() { Ok(None) } else { Err("forbidden") }
}

const fn missing(kind: Kind) -> &'static str {
    match kind {
        Kind::Project => "project_not_found",
        Kind::Resource => GONE,
        Kind::Cloud => "cloud_not_found",
    }
}
