//! The transitions: what each does to a state, and whether it may happen.

use super::config::{Config, Count, CreateNames, DeleteNames, Kind, UpdateNames};
use super::state::{Claim, Content, Object, Phase, REQUESTS, Read, Request, State, Worker, Write};
use crate::EarlierClaims;
use crate::model::checker::{Model, Successor};
use crate::model::state::{Level, Name};

/// What can happen next. The table in the module docs describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    Change,
    ChangeBack,
    Delete,
    Declare,
    Undeclare,
    Vanish,
    Verify,
    Lapse,
    Land(usize),
    LandAgain(usize),
    Lose(usize),
    By(Name, Move),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Claim,
    Act,
    Reread,
    Record,
    GiveUp,
    Crash,
    Restart,
}

impl Move {
    const ALL: [Self; 7] = [
        Self::Claim,
        Self::Act,
        Self::Reread,
        Self::Record,
        Self::GiveUp,
        Self::Crash,
        Self::Restart,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Property {
    /// No write replaces what a newer claim wrote. Checked when a write on a composite
    /// takes effect; every write of a shared object has the same content but for its
    /// counter.
    NoOlderClaimOnTop,
    /// No delete takes effect on a composite that is wanted, or on a shared object to
    /// which resources are admitted.
    NothingInUseIsDeleted,
    /// A row that waits for nothing agrees with its object. A composite is there if it is
    /// wanted, with the token that the registry has; the only exception is `drifted`.
    /// A shared object to which resources are admitted is there.
    ASettledRowAgrees,
    /// From every state there is a path to a settled one that agrees, without
    /// requests of people, faults or lost answers.
    Converges,
}

type Broken = Option<Property>;

impl Model for Config {
    type State = State;
    type Transition = Transition;
    type Property = Property;

    const CONVERGES: Property = Property::Converges;

    fn initial() -> State {
        State::initial()
    }

    fn canonical(state: State) -> State {
        state.canonical()
    }

    fn transitions() -> Vec<Transition> {
        use Transition::{
            By, Change, ChangeBack, Declare, Delete, Land, LandAgain, Lapse, Lose, Undeclare,
            Vanish, Verify,
        };
        let mut all = vec![Change, ChangeBack, Delete, Declare, Undeclare, Vanish, Verify, Lapse];
        all.extend((0..REQUESTS).flat_map(|slot| [Land(slot), LandAgain(slot), Lose(slot)]));
        for name in Name::BOTH {
            all.extend(Move::ALL.map(|made| By(name, made)));
        }
        all
    }

    fn successor(
        &self,
        state: &State,
        transition: Transition,
    ) -> Option<Successor<State, Property>> {
        let mut next = *state;
        let broken = self.advance(&mut next, transition)?;
        self.forget_what_cannot_matter(&mut next);
        Some(Successor { state: next, broken })
    }

    fn broken_in(&self, state: &State) -> Broken {
        let settled = !state.row.due && state.row.holder.is_none();
        let agrees = match self.kind {
            Kind::Composite => state.drifted || self.agrees(state),
            Kind::Shared => state.object.is_some() || !self.is_in_use(state),
        };
        (settled && !agrees).then_some(Property::ASettledRowAgrees)
    }

    fn is_settled(&self, state: &State) -> bool {
        !state.row.due
            && state.row.holder.is_none()
            && self.agrees(state)
            && state.requests.iter().all(Option::is_none)
            && state.workers.iter().all(|worker| *worker == Worker::Idle)
    }

    fn is_disturbance(transition: Transition) -> bool {
        use Transition::{
            By, Change, ChangeBack, Declare, Delete, Land, LandAgain, Lapse, Lose, Undeclare,
            Vanish, Verify,
        };
        match transition {
            Change | ChangeBack | Delete | Declare | Undeclare | Vanish | LandAgain(_)
            | Lose(_) => true,
            Verify | Lapse | Land(_) => false,
            By(_, made) => matches!(made, Move::Crash | Move::GiveUp),
        }
    }

    /// A path is told in the renamed states that it was found in: the transitions name
    /// requests and workers by their place there.
    fn replayed(state: State) -> State {
        state.canonical()
    }

    fn describe(state: &State) -> Vec<String> {
        let [a, b] = state.workers;
        vec![
            format!("     {:?}", state.row),
            format!("     object {:?}, drifted {}", state.object, state.drifted),
            format!("     requests {:?}", state.requests.iter().flatten().collect::<Vec<_>>()),
            format!("     A: {a:?}"),
            format!("     B: {b:?}"),
        ]
    }
}

impl Config {
    fn agrees(&self, state: &State) -> bool {
        match (self.kind, state.row.wanted, state.object) {
            (_, Level::Gone, object) => object.is_none(),
            (_, Level::There, None) => false,
            (Kind::Composite, Level::There, Some(object)) => object.content == Content::Present,
            (Kind::Shared, Level::There, Some(_)) => state.row.phase == Phase::Ready,
        }
    }

    /// Whether somebody relies on the object.
    fn is_in_use(&self, state: &State) -> bool {
        let admitted = match self.kind {
            Kind::Composite => true,
            Kind::Shared => state.row.phase == Phase::Ready,
        };
        state.row.wanted == Level::There && admitted
    }

    fn advance(&self, state: &mut State, transition: Transition) -> Option<Broken> {
        let (shared, wanted) = (self.kind == Kind::Shared, state.row.wanted);
        match transition {
            Transition::Change if !shared && wanted == Level::There => {
                state.outdate_contents();
                wake(state);
            }
            Transition::ChangeBack if !shared && wanted == Level::There => {
                state.object.filter(|object| object.content == Content::Outdated)?;
                state.revert_content();
                wake(state);
            }
            Transition::Delete if !shared && wanted == Level::There => want(state, Level::Gone),
            Transition::Declare if self.rules.deletion_is_taken_back && wanted == Level::Gone => {
                want(state, Level::There);
            }
            Transition::Undeclare if shared && wanted == Level::There => want(state, Level::Gone),
            Transition::Vanish if state.object.is_some() => {
                remove(state);
                wake(state);
            }
            // The placement loop passes over every cluster at an interval.
            Transition::Verify if (state.drifted || shared) && !state.row.due => wake(state),
            Transition::Lapse if state.row.holder.is_some() => {
                state.row.holder = None;
                state.row.due = true;
                state.row.woken = false;
            }
            Transition::Land(slot) => {
                let request = state.requests[slot].take()?;
                return Some(self.land(state, request));
            }
            Transition::LandAgain(slot) => {
                let request = state.requests[slot]?;
                state.requests[slot] = Some(Request { waiter: None, ..request });
                return Some(self.land(state, request));
            }
            Transition::Lose(slot) if state.requests[slot]?.waiter.is_none() => {
                state.requests[slot] = None;
            }
            Transition::By(name, made) => return self.by(state, name, made),
            _ => return None,
        }
        Some(None)
    }

    fn by(&self, state: &mut State, name: Name, made: Move) -> Option<Broken> {
        match (made, state.worker(name)) {
            (Move::Claim, Worker::Idle) if state.row.due && state.row.holder.is_none() => {
                state.row.claim += 1;
                state.row.holder = Some(name);
                state.row.due = false;
                let seen = state.object.map(|object| (Read::Unchanged, object.content));
                state.set(name, Worker::Observed { claim: state.row.claim, seen });
            }
            (Move::Act, Worker::Observed { claim, seen }) => {
                let act = match self.kind {
                    Kind::Composite => act_on_composite(state, claim, seen),
                    Kind::Shared => self.act_on_shared(state, claim, seen),
                };
                match act {
                    Act::Send(write) => send(state, name, claim, write, Content::Present)?,
                    Act::End { due } => end(state, name, claim, due),
                }
            }
            (Move::Reread, Worker::Refused { claim, content }) => match state.object {
                Some(object) if object.writer > claim && self.rules.retry_compares_claims => {
                    end(state, name, claim, true);
                }
                Some(_) => send(state, name, claim, Write::Update(Read::Unchanged), content)?,
                None => send(state, name, claim, Write::Create, content)?,
            },
            (Move::Record, Worker::Answered { claim }) => self.record(state, name, claim),
            (Move::GiveUp, Worker::Waiting { .. }) => stop(state, name),
            (
                Move::Crash,
                Worker::Observed { .. } | Worker::Refused { .. } | Worker::Answered { .. },
            ) => {
                stop(state, name);
            }
            (Move::Restart, worker)
                if worker != Worker::Idle
                    && self.rules.earlier_claims == EarlierClaims::TakenBack
                    && state.row.holder == Some(name) =>
            {
                stop(state, name);
                state.row.claim += 1;
                state.row.holder = None;
                state.row.due = true;
                state.row.woken = false;
            }
            _ => return None,
        }
        Some(None)
    }

    /// Decides under the project's lock, on the row as it is now and on an observation of
    /// any age: the commit does not name the claim. Only the request needs a lease.
    fn act_on_shared(&self, state: &mut State, claim: Claim, seen: Option<(Read, Content)>) -> Act {
        let count = self.rules.count;
        let act = match (state.row.wanted, seen) {
            (Level::There, None) => {
                state.row.phase = Phase::Waiting;
                Act::Send(Write::Create)
            }
            (Level::There, Some((read, content))) => {
                let in_place = match count {
                    Count::RaisedByEveryRemoval | Count::RaisedAboveTheObject => {
                        content == Content::Present
                    }
                    Count::RaisedByTakingBack | Count::Absent => {
                        state.row.phase != Phase::Releasing
                    }
                };
                if count == Count::RaisedByTakingBack && !in_place {
                    state.outdate_contents();
                }
                if in_place || !self.rules.admits_after_the_answer {
                    state.row.phase = Phase::Ready;
                } else if self.decides_on_answers() {
                    state.row.phase = Phase::Waiting;
                }
                if in_place { Act::End { due: false } } else { Act::Send(Write::Update(read)) }
            }
            (Level::Gone, Some((read, content))) if state.row.phase == Phase::Releasing => {
                let raised = match count {
                    Count::RaisedByEveryRemoval => true,
                    Count::RaisedAboveTheObject => content == Content::Present,
                    Count::RaisedByTakingBack | Count::Absent => false,
                };
                if raised {
                    state.outdate_contents();
                }
                Act::Send(Write::Delete(read))
            }
            (Level::Gone, Some(_)) => {
                state.row.phase = Phase::Releasing;
                Act::End { due: true }
            }
            (Level::Gone, None) => {
                state.row.phase = Phase::Waiting;
                Act::End { due: false }
            }
        };
        match act {
            Act::Send(_) if !holds(state, claim) => Act::End { due: true },
            act => act,
        }
    }

    /// The record after an answer. The next tick observes the composite. A shared object
    /// admits on the answer, unless the decision is made once more on what it said.
    fn record(&self, state: &mut State, name: Name, claim: Claim) {
        if self.kind == Kind::Shared && state.row.wanted == Level::There {
            state.row.phase = Phase::Ready;
        }
        end(state, name, claim, true);
    }

    /// The API server carries out a request, if its conditions hold.
    fn land(&self, state: &mut State, request: Request) -> Broken {
        let Request { write, claim, content, waiter } = request;
        let mut broken = None;
        let accepted = self.allows(state.object, write);
        match write {
            Write::Delete(_) if accepted && state.object.is_some() => {
                broken = self.is_in_use(state).then_some(Property::NothingInUseIsDeleted);
                remove(state);
            }
            Write::Create | Write::Update(_) if accepted => {
                broken = self.put(state, write, Object { writer: claim, content });
            }
            _ => {}
        }
        if let Some(name) = waiter
            && let Worker::Waiting { claim } = state.worker(name)
        {
            match (write, accepted) {
                // The next tick observes what came of it.
                (Write::Delete(_), _) => end(state, name, claim, true),
                (_, true) if self.decides_on_answers() => {
                    let seen = Some((Read::Unchanged, content));
                    state.set(name, Worker::Observed { claim, seen });
                }
                (_, true) => state.set(name, Worker::Answered { claim }),
                (_, false) => state.set(name, Worker::Refused { claim, content }),
            }
        }
        broken
    }

    fn decides_on_answers(&self) -> bool {
        let counted =
            matches!(self.rules.count, Count::RaisedByEveryRemoval | Count::RaisedAboveTheObject);
        self.kind == Kind::Shared && counted
    }

    /// Whether the conditions of a write hold. To delete what is gone is a success.
    fn allows(&self, object: Option<Object>, write: Write) -> bool {
        let conditions = &self.conditions;
        match (write, object) {
            (Write::Create, None) | (Write::Delete(_), None) => true,
            (Write::Create, Some(_)) => conditions.create == CreateNames::Nothing,
            (Write::Update(_), None) => conditions.update == UpdateNames::Version,
            (Write::Update(read), Some(_)) => match conditions.update {
                UpdateNames::UidAndVersion | UpdateNames::Version => read == Read::Unchanged,
                UpdateNames::Uid => read != Read::Gone,
            },
            (Write::Delete(read), Some(_)) => match conditions.delete {
                DeleteNames::UidAndVersion => read == Read::Unchanged,
                DeleteNames::Uid => read != Read::Gone,
            },
        }
    }

    fn put(&self, state: &mut State, write: Write, after: Object) -> Broken {
        let Some(before) = state.object.replace(after) else {
            state.outdate_uids();
            // A newer claim deleted the object, or found it absent.
            state.drifted = write == Write::Create && state.row.wanted == Level::Gone;
            return None;
        };
        // An object carries the claim that wrote it, or the count of its removals. What
        // changes neither keeps the version. Two outdated counts may be equal.
        let changed = match (self.kind, self.rules.count) {
            (Kind::Composite, _) => before.writer != after.writer,
            (Kind::Shared, Count::RaisedByEveryRemoval | Count::RaisedAboveTheObject) => {
                before.content != after.content
            }
            (Kind::Shared, Count::RaisedByTakingBack) => true,
            (Kind::Shared, Count::Absent) => false,
        };
        if changed {
            state.outdate_versions();
        }
        let older = self.kind == Kind::Composite && before.writer > after.writer;
        if self.kind == Kind::Composite && state.row.wanted == Level::There {
            // A newer claim found nothing to write.
            let named = write == Write::Update(Read::Unchanged) && !older;
            state.drifted = named && after.content == Content::Outdated;
        }
        older.then_some(Property::NoOlderClaimOnTop)
    }

    /// Drops what can have no effect any more, so that states that behave alike are
    /// equal.
    fn forget_what_cannot_matter(&self, state: &mut State) {
        // The tick of a lost claim ends without a write.
        let row = state.row;
        for worker in &mut state.workers {
            if let Worker::Observed { claim, .. } | Worker::Answered { claim } = worker
                && (row.claim != *claim || row.holder.is_none())
                && self.kind == Kind::Composite
            {
                *worker = Worker::Idle;
            }
        }
        // A request that will be refused whenever it lands, and that nobody waits for.
        for slot in &mut state.requests {
            let refused = slot.is_some_and(|request| {
                request.waiter.is_none()
                    && match request.write {
                        Write::Create => false,
                        Write::Update(read) => match self.conditions.update {
                            UpdateNames::UidAndVersion => read != Read::Unchanged,
                            UpdateNames::Uid => read == Read::Gone,
                            UpdateNames::Version => false,
                        },
                        Write::Delete(read) => match self.conditions.delete {
                            DeleteNames::UidAndVersion => read != Read::Unchanged,
                            DeleteNames::Uid => read == Read::Gone,
                        },
                    }
            });
            if refused {
                *slot = None;
            }
        }
        // A shared object carries no claim; of a worker it matters whether its claim
        // is the present one.
        if self.kind == Kind::Shared {
            let present = state.row.claim;
            state.object.iter_mut().for_each(|object| object.writer = 0);
            state.requests.iter_mut().flatten().for_each(|request| request.claim = 0);
            state.each_claim(|claim| *claim = Claim::from(*claim == present) * present);
        }
    }
}

enum Act {
    Send(Write),
    /// Releases the claim.
    End {
        due: bool,
    },
}

/// Decides on what was observed. An intent names claim and revision, and a delete starts
/// only under a lease. Whatever changed since woke the row.
fn act_on_composite(state: &mut State, claim: Claim, seen: Option<(Read, Content)>) -> Act {
    if !holds(state, claim) || state.row.woken {
        return Act::End { due: true };
    }
    match (state.row.wanted, seen) {
        (Level::Gone, Some((read, _))) => Act::Send(Write::Delete(read)),
        (Level::Gone, None) | (Level::There, Some((_, Content::Present))) => {
            Act::End { due: false }
        }
        (Level::There, seen) => {
            // Mints: what the object carries, or a request under way, is revoked.
            state.outdate_contents();
            Act::Send(seen.map_or(Write::Create, |(read, _)| Write::Update(read)))
        }
    }
}

fn remove(state: &mut State) {
    state.object = None;
    state.drifted = false;
    state.outdate_uids();
}

fn want(state: &mut State, wanted: Level) {
    state.row.wanted = wanted;
    wake(state);
}

fn wake(state: &mut State) {
    match state.row.holder {
        Some(_) => state.row.woken = true,
        None => state.row.due = true,
    }
}

fn holds(state: &State, claim: Claim) -> bool {
    state.row.claim == claim && state.row.holder.is_some()
}

/// The release of a claim, which changes nothing if the claim was lost.
fn end(state: &mut State, name: Name, claim: Claim, due: bool) {
    if holds(state, claim) {
        state.row.holder = None;
        state.row.due = due || state.row.woken;
        state.row.woken = false;
    }
    state.set(name, Worker::Idle);
}

/// The worker forgets what it did. Its request goes on, and its claim stays.
fn stop(state: &mut State, name: Name) {
    for request in state.requests.iter_mut().flatten() {
        if request.waiter == Some(name) {
            request.waiter = None;
        }
    }
    state.set(name, Worker::Idle);
}

/// None if as many requests are under way as the model has room for.
fn send(state: &mut State, name: Name, claim: Claim, write: Write, content: Content) -> Option<()> {
    let slot = state.requests.iter_mut().find(|slot| slot.is_none())?;
    *slot = Some(Request { write, claim, content, waiter: Some(name) });
    state.set(name, Worker::Waiting { claim });
    Some(())
}
