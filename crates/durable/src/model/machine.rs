//! The transitions: what each does to a state, and whether it may happen.
//! Written to be read beside the statements in `claim/statements.rs`.

use super::checker::{self, Model};
use super::config::{AfterNoAnswer, Config, Landing, LeaseCheck, LeaseStart};
use super::properties::{self, Property};
use super::state::{Action, Counter, Due, End, Leased, Level, Name, Stage, State, Then, Worker};
use super::transition::{Move, Transition};
use crate::{Actions, EarlierClaims};

pub(super) type Successor = checker::Successor<State, Property>;

/// The result of a write that names the claim or revision it was decided on.
enum Written {
    Yes {
        broken: Option<Property>,
    },
    /// No row changed: the claim or the revision had moved.
    No,
}

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
        Transition::all().collect()
    }

    fn successor(&self, state: &State, transition: Transition) -> Option<Successor> {
        let mut next = *state;
        let broken = match transition {
            Transition::Tick => self.tick(&mut next),
            Transition::Request => {
                next.row.wanted = next.row.wanted.other();
                next.row.revision += 1;
                wake(&mut next);
                Some(None)
            }
            Transition::Fact => {
                next.actual = next.actual.other();
                wake(&mut next);
                Some(None)
            }
            Transition::Finish => self.end_action(&mut next, true),
            Transition::Fail => self.end_action(&mut next, false),
            Transition::By(name, successor) => self.by(&mut next, name, successor),
        }?;
        self.forget_idle_renewals(&mut next);
        Some(Successor { state: next, broken })
    }

    fn broken_in(&self, state: &State) -> Option<Property> {
        properties::broken_in(state)
    }

    fn is_settled(&self, state: &State) -> bool {
        properties::is_settled(state)
    }

    fn is_disturbance(transition: Transition) -> bool {
        transition.is_disturbance()
    }

    /// A state has room for one action.
    fn ends_at(property: Property) -> bool {
        property == Property::NoActionsOverlap
    }

    fn describe(state: &State) -> Vec<String> {
        let State { row, workers: [a, b], actual, action, renewals: [c, d] } = state;
        vec![
            format!(
                "     row: wanted {:?}, recorded {:?}, revision {}, due {:?}, wake {} (claimed at \
                 {}), claim {} by {:?}, lease {:?}",
                row.wanted,
                row.recorded,
                row.revision,
                row.due,
                row.wake,
                row.claimed_wake,
                row.claim_token,
                row.claimed_by,
                row.lease,
            ),
            format!("     outside: {actual:?}, under way {action:?}"),
            format!("     A: {a:?}, renewal {c:?}"),
            format!("     B: {b:?}, renewal {d:?}"),
        ]
    }
}

impl Config {
    /// Time cannot pass while an action has to end by now.
    fn tick(&self, state: &mut State) -> Option<Option<Property>> {
        if let Some(action) = &mut state.action {
            if action.left == 0 && self.assumptions.landing != Landing::AtAnyTime {
                return None;
            }
            action.left = action.left.saturating_sub(1);
        }
        if let Due::In(left) = &mut state.row.due {
            *left = left.saturating_sub(1);
        }
        if let Some(left) = &mut state.row.lease {
            *left = left.saturating_sub(1);
        }
        state.workers.iter_mut().for_each(Worker::pass_time);
        for renewal in state.renewals.iter_mut().flatten() {
            renewal.lease = renewal.lease.saturating_sub(1);
        }
        Some(None)
    }

    fn end_action(&self, state: &mut State, effect: bool) -> Option<Option<Property>> {
        let action = state.action.take()?;
        if effect {
            state.actual = action.target;
        }
        if let Some(name) = action.worker
            && let Worker::Acting { held, seen, then } = *state.worker(name)
        {
            *state.worker_mut(name) = self.after_action(held, seen, then);
        }
        Some(None)
    }

    fn by(&self, state: &mut State, name: Name, successor: Move) -> Option<Option<Property>> {
        match (successor, *state.worker(name)) {
            (Move::Ask, Worker::Idle) => {
                *state.worker_mut(name) = Worker::Asked { lease: self.times.lease };
                Some(None)
            }
            (Move::Claim, Worker::Asked { lease }) => {
                self.claim(state, name, lease);
                Some(None)
            }
            (Move::Load, Worker::Claimed { held }) => {
                self.load(state, name, held);
                Some(None)
            }
            (Move::Observe, Worker::Loaded { held, wanted, recorded }) => {
                *state.worker_mut(name) = decide(state.actual, held, wanted, recorded);
                Some(None)
            }
            (Move::Fence, Worker::Intending { held }) if !self.protocol.intent_keeps_claims_out => {
                let passed =
                    self.is_current(state, held.claim) && state.row.revision == held.revision;
                *state.worker_mut(name) =
                    if passed { Worker::Fenced { held } } else { overtaken(held) };
                Some(None)
            }
            (Move::Intend, Worker::Intending { held }) if self.protocol.intent_keeps_claims_out => {
                let passed = self.is_current(state, held.claim);
                Some(self.intend(state, name, held, passed))
            }
            (Move::Intend, Worker::Fenced { held }) => Some(self.intend(state, name, held, true)),
            (Move::Start, Worker::Ready { held, seen, then }) => {
                Some(self.start(state, name, held, seen, then))
            }
            (Move::Abandon, Worker::Acting { held, seen, then }) => {
                // It is its own action: the checker follows no state with two,
                // see `ends_at`.
                let action = state.action.as_mut().filter(|action| {
                    match self.assumptions.landing {
                        Landing::ByTheDeadline => false,
                        // A cut connection is noticed before the deadline.
                        Landing::WithinTheLease => true,
                        Landing::AtAnyTime => action.left == 0,
                    }
                })?;
                action.worker = None;
                *state.worker_mut(name) = match (self.protocol.after_no_answer, then) {
                    (AfterNoAnswer::IsReleased, _) => self.after_action(held, seen, then),
                    (AfterNoAnswer::Lapses, Then::Record) => {
                        Worker::Recording { held, seen, end: End::Lapse }
                    }
                    (AfterNoAnswer::Lapses, Then::Release) => Worker::Idle,
                };
                Some(None)
            }
            (Move::Record | Move::RecordUnanswered, Worker::Recording { held, seen, end }) => {
                let answered = successor == Move::Record;
                self.record(state, name, held, seen, end, answered)
            }
            (Move::Release, Worker::Releasing { claim, due }) => {
                let broken = match self.release(state, claim, due) {
                    Written::Yes { broken } => broken,
                    Written::No => None,
                };
                *state.worker_mut(name) = Worker::Idle;
                Some(broken)
            }
            (Move::AskRenewal | Move::Renew | Move::HearRenewal, _) => {
                self.renewal(state, name, successor)
            }
            (Move::Crash, Worker::Down) => None,
            (Move::Crash, _) => {
                self.crash(state, name);
                Some(None)
            }
            (Move::Restart, Worker::Down) => {
                *state.worker_mut(name) = Worker::Idle;
                Some(None)
            }
            (Move::Reclaim, Worker::Down)
                if self.protocol.earlier_claims == EarlierClaims::TakenBack =>
            {
                reclaim(state, name);
                Some(None)
            }
            _ => None,
        }
    }

    /// `Table::claim`: due, and not under a live lease.
    fn claim(&self, state: &mut State, name: Name, lease: u8) {
        let row = &mut state.row;
        let free = row.lease.is_none_or(|left| left == 0);
        if row.due != Due::NOW || !free {
            *state.worker_mut(name) = Worker::Idle;
            return;
        }
        row.claim_token += 1;
        row.claimed_wake = row.wake;
        row.claimed_by = Some(name);
        row.lease = Some(self.times.lease);
        row.due = Due::In(self.times.lease);
        let held = Leased { claim: row.claim_token, lease, revision: 0 };
        *state.worker_mut(name) = Worker::Claimed { held };
    }

    fn load(&self, state: &mut State, name: Name, mut held: Leased) {
        let row = state.row;
        if self.protocol.lease_counts_from == LeaseStart::AfterTheAnswer {
            held.lease = self.times.lease;
        }
        held.revision = row.revision;
        *state.worker_mut(name) = if row.claim_token == held.claim {
            Worker::Loaded { held, wanted: row.wanted, recorded: row.recorded }
        } else {
            Worker::Idle
        };
    }

    /// The write of `broker::prepare`. It names the revision, and keeps the claim.
    fn intend(
        &self,
        state: &mut State,
        name: Name,
        mut held: Leased,
        claim_holds: bool,
    ) -> Option<Property> {
        if !claim_holds || state.row.revision != held.revision {
            *state.worker_mut(name) = overtaken(held);
            return None;
        }
        let broken = lost_claim(state, held.claim);
        state.row.revision += 1;
        held.revision = state.row.revision;
        *state.worker_mut(name) = Worker::Ready { held, seen: Level::Gone, then: Then::Record };
        broken
    }

    /// `Lease::allows`, and the action if it does.
    fn start(
        &self,
        state: &mut State,
        name: Name,
        mut held: Leased,
        seen: Level,
        then: Then,
    ) -> Option<Property> {
        let deadline = self.times.action_deadline;
        let allowed = match self.protocol.lease_check {
            LeaseCheck::MoreThanDeadline => held.lease > deadline,
            LeaseCheck::AtLeastDeadline => held.lease >= deadline,
            LeaseCheck::Absent => true,
        };
        held.lease = 0;
        if !allowed {
            *state.worker_mut(name) = self.after_action(held, seen, then);
            return None;
        }
        *state.worker_mut(name) = Worker::Acting { held, seen, then };
        let left = match self.assumptions.landing {
            // The next claim may come in the instant in which the lease ends.
            Landing::WithinTheLease => state.row.lease.unwrap_or_default().saturating_sub(1),
            Landing::ByTheDeadline | Landing::AtAnyTime => deadline,
        };
        let action = Action { worker: Some(name), claim: held.claim, target: seen.other(), left };
        if state.action.replace(action).is_some() {
            return Some(Property::NoActionsOverlap);
        }
        let row = &state.row;
        let enough = row.claim_token == held.claim && row.lease.is_some_and(|left| left > deadline);
        (!enough).then_some(Property::EnoughLeaseToAct)
    }

    /// Records what was observed before the action; the next tick observes its result.
    fn after_action(&self, held: Leased, seen: Level, then: Then) -> Worker {
        let due = Due::In(self.times.recheck);
        match then {
            Then::Record => Worker::Recording { held, seen, end: End::Release(due) },
            Then::Release => Worker::Releasing { claim: held.claim, due },
        }
    }

    /// `broker::record`: its fence compares the revision, its release the claim,
    /// and all of it is one transaction.
    fn record(
        &self,
        state: &mut State,
        name: Name,
        held: Leased,
        seen: Level,
        end: End,
        answered: bool,
    ) -> Option<Option<Property>> {
        let written = match end {
            _ if state.row.revision != held.revision => Written::No,
            End::Release(due) => self.release(state, held.claim, due),
            End::Lapse => self.keep(state, held.claim),
        };
        match (written, end) {
            (Written::Yes { broken }, _) => {
                state.row.recorded = seen;
                state.row.revision += 1;
                *state.worker_mut(name) = match end {
                    End::Release(_) if answered => Worker::Idle,
                    // It cannot know, and releases a claim that it no longer has.
                    End::Release(_) => {
                        Worker::Releasing { claim: held.claim, due: Due::In(self.times.recheck) }
                    }
                    End::Lapse => Worker::Idle,
                };
                Some(broken)
            }
            (Written::No, End::Release(_)) if answered => {
                *state.worker_mut(name) = overtaken(held);
                Some(None)
            }
            // A refusal without an answer equals the release that follows an
            // answered one.
            (Written::No, End::Release(_)) => None,
            (Written::No, End::Lapse) => {
                *state.worker_mut(name) = Worker::Idle;
                Some(None)
            }
        }
    }

    /// The fence of a record that releases nothing.
    fn keep(&self, state: &State, claim: Counter) -> Written {
        if !self.is_current(state, claim) || state.row.claimed_by.is_none() {
            return Written::No;
        }
        Written::Yes { broken: lost_claim(state, claim) }
    }

    /// `release_condition!`: the claim may be released already.
    fn release(&self, state: &mut State, claim: Counter, due: Due) -> Written {
        if !self.is_current(state, claim) || state.row.claimed_by.is_none() {
            return Written::No;
        }
        let broken = lost_claim(state, claim);
        let row = &mut state.row;
        row.claimed_by = None;
        row.lease = None;
        let woken = self.protocol.release_compares_wake && row.wake != row.claimed_wake;
        row.due = if woken { Due::NOW } else { due };
        Written::Yes { broken }
    }

    /// `AND claim_token = $2`, which the mutation leaves out.
    fn is_current(&self, state: &State, claim: Counter) -> bool {
        !self.protocol.writes_name_the_claim || state.row.claim_token == claim
    }

    fn crash(&self, state: &mut State, name: Name) {
        *state.worker_mut(name) = Worker::Down;
        // A statement that was sent may still arrive; nobody hears its answer.
        let renewal = &mut state.renewals[name.index()];
        *renewal = renewal.filter(|renewal| renewal.stage == Stage::Sent);
        if let Some(action) = state.action.filter(|action| action.worker == Some(name)) {
            state.action = match self.assumptions.actions {
                Actions::InProcess => None,
                Actions::Remote => Some(Action { worker: None, ..action }),
            };
        }
    }
}

/// `wake_assignments!`.
fn wake(state: &mut State) {
    let row = &mut state.row;
    row.wake += 1;
    if row.lease.is_none_or(|left| left == 0) {
        row.due = Due::NOW;
    }
}

/// The pure decision, on the outside as it is and the row as it was read.
fn decide(actual: Level, held: Leased, wanted: Level, recorded: Level) -> Worker {
    let forgotten = Leased { lease: 0, ..held };
    match (wanted, actual) {
        (Level::There, Level::Gone) => Worker::Intending { held },
        (Level::Gone, Level::There) => {
            // Deleting records no intent, so an unchanged row is only released.
            let then = if recorded == actual { Then::Release } else { Then::Record };
            Worker::Ready { held, seen: actual, then }
        }
        _ if recorded == actual => Worker::Releasing { claim: held.claim, due: Due::WhenWoken },
        _ => Worker::Recording { held: forgotten, seen: actual, end: End::Release(Due::WhenWoken) },
    }
}

/// Another writer was faster: release the claim, due at once.
fn overtaken(held: Leased) -> Worker {
    Worker::Releasing { claim: held.claim, due: Due::NOW }
}

/// `Table::reclaim`: `WHERE claimed_by` is the name of the earlier life.
fn reclaim(state: &mut State, name: Name) {
    let row = &mut state.row;
    if row.claimed_by == Some(name) {
        row.claim_token += 1;
        row.claimed_by = None;
        row.lease = None;
        row.due = Due::NOW;
    }
    *state.worker_mut(name) = Worker::Idle;
}

/// Checked at every write that succeeded.
fn lost_claim(state: &State, claim: Counter) -> Option<Property> {
    (state.row.claim_token != claim).then_some(Property::NoWriteUnderALostClaim)
}
