//! What a tick writes: its intent before the action, its outcome after it, or a
//! fault of ours, and the release of claims that no record released.

use std::collections::HashMap;

use slipway_core::broker::decide::{Decision, Effect, Outcome};
use slipway_core::broker::prepare::{self, Read};
use slipway_core::broker::record::{self, Tick};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::{Transition, transitions};
use slipway_core::commit::{Commit, Recheck, Recorded, Release};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DrainId, ProvisionedResourceId, Revision};
use slipway_core::nodes::token::TokenDecision;

use super::blockers::BlockerChanges;
use super::{Acted, Batch, Ended, Item, Ticked, isolated, tick_span};
use crate::broker::port::Claimed;
use crate::permits::Permit;
use crate::ports::store;

/// A tick that still has to be recorded.
struct Done {
    item: Item,
    outcome: Outcome,
    drain_id: DrainId,
    jitter: f64,
    changes: Changes,
}

/// What the last computed commit changes; reported once it is written.
#[derive(Default)]
struct Changes {
    transitions: Vec<Transition>,
    blockers: BlockerChanges,
}

impl Changes {
    fn of(commit: &Commit, current: &ResourceSnapshot) -> Self {
        let transitions = transitions(commit, Some(current));
        Self { transitions, blockers: BlockerChanges::of(commit, current) }
    }
}

/// The end of a tick whose outcome could not be recorded. The claim of an action
/// without an answer lapses all the same.
fn missed(outcome: &Outcome, ticked: Ticked) -> Ticked {
    match (outcome, ticked) {
        (Outcome::Unanswered(_), Ticked::Failed { message, .. }) => {
            Ticked::Unanswered(Some(message))
        }
        (Outcome::Unanswered(_), _) => Ticked::Unanswered(None),
        (_, ticked) => ticked,
    }
}

impl Done {
    fn missed(self, ticked: Ticked) -> Ended {
        (self.item.snapshot, missed(&self.outcome, ticked))
    }
}

/// A tick that failed by an error of our own: the claim, the number of failures
/// in a row before it as far as known, and the message.
type Fault = (Claimed, i32, String);

impl Batch<'_> {
    /// Records the intents, and replaces each snapshot by the state that was written.
    pub(super) async fn record_intents(&self, decided: Vec<Item>) -> (Vec<Item>, Vec<Ended>) {
        let (mut ready, mut ended) = (Vec::with_capacity(decided.len()), Vec::new());
        let mut intents = Vec::new();
        for item in decided {
            match item.decision.effect {
                // Checked before minting a token for an apply that would not start.
                _ if item.acts() && !self.may_act(&item.snapshot) => {
                    ended.push((item.snapshot, Ticked::Expiring));
                }
                Effect::Apply(
                    token @ (TokenDecision::Slide { .. } | TokenDecision::Mint { .. }),
                ) => intents.push((item.snapshot.attempt.id(), (item, token, None))),
                _ => ready.push(item),
            }
        }
        if intents.is_empty() {
            return (ready, ended);
        }
        // Tokens and registrations are in the registry. Kept until they are written.
        let permit = match self.permits.enter(&self.context.stores).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(mode)) => {
                ready.extend(intents.into_iter().map(|(_, (item, ..))| item.withheld(&mode)));
                return (ready, ended);
            }
            Err(error) => {
                let failed = |(_, (item, ..)): (_, (Item, _, Option<ResourceSnapshot>))| {
                    (item.snapshot, Ticked::of(&error))
                };
                ended.extend(intents.into_iter().map(failed));
                return (ready, ended);
            }
        };
        let permitted = Some(permit.revision());
        let rule = |current: &ResourceSnapshot, (item, intended, after): &mut (Item, _, _)| {
            let (read, carried) = (Read::of(&item.snapshot), item.report.carried());
            let fresh = item.minted.as_ref().map(|minted| minted.fresh);
            let lifetimes = item.facts.token_lifetimes;
            let token = prepare::confirm(current, *intended, carried, lifetimes)?;
            let commit = prepare::prepare(current, read, token, carried, fresh, self.actor)?
                .permitted(permitted)?;
            *after = Some(current.after(&commit));
            Ok(commit)
        };
        for ((mut item, _, after), written) in self.decide_each(intents, rule).await {
            match (written, after) {
                (Ok(()), Some(after)) => {
                    item.prepared(after);
                    ready.push(item);
                }
                (Ok(()), None) => {
                    ended.push((item.snapshot, Ticked::failed("the store asked no rule")));
                }
                (Err(ticked), _) => ended.push((item.snapshot, ticked)),
            }
        }
        (ready, ended)
    }

    /// Writes the outcomes and releases the claims. Where there is nothing to
    /// write, [`Self::give_back`] releases the claim.
    pub(super) async fn record_outcomes(&self, acted: Vec<Acted>) -> Vec<Ended> {
        let (mut ended, mut open) = (Vec::with_capacity(acted.len()), HashMap::new());
        let mut records = Vec::with_capacity(acted.len());
        let mut done = Vec::with_capacity(acted.len());
        for acted in acted {
            match acted {
                Ok(acted) => done.push(acted),
                Err(before) => ended.push(before),
            }
        }
        // Kept until the records are written.
        let permit = match self.permit_registry(&mut done).await {
            Ok(permit) => permit,
            Err(error) => {
                let failed = |(item, outcome): (Item, Outcome)| {
                    (item.snapshot, missed(&outcome, Ticked::of(&error)))
                };
                ended.extend(done.into_iter().map(failed));
                return ended;
            }
        };
        let permitted = permit.as_ref().map(Permit::revision);
        for (mut item, outcome) in done {
            item.bring_to_now();
            let entropy = &self.context.entropy;
            let (drain_id, jitter) = (DrainId::new(entropy.uuid()), entropy.jitter());
            let mut done = Done { item, outcome, drain_id, jitter, changes: Changes::default() };
            // Compute the commit from the snapshot. It is written if the row
            // did not change since; otherwise the rule runs again on the locked
            // rows.
            let snapshot = &done.item.snapshot;
            let (id, revision) = (snapshot.attempt.id(), snapshot.attempt.revision());
            match pure(|| self.record(&done, snapshot, permitted)) {
                Err(refusal) => ended.push(done.missed(Ticked::of(&refusal.into()))),
                Ok(commit) => match commit.only_release() {
                    Some(release) => {
                        ended.push((done.item.snapshot, Ticked::Unchanged(release)));
                    }
                    None => {
                        done.changes = Changes::of(&commit, snapshot);
                        records.extend(Recorded::new(id, revision, commit));
                        open.insert(id, done);
                    }
                },
            }
        }
        match self.context.stores.broker.attempt_record(&records).await {
            Ok(recorded) => {
                let recorded = recorded.iter().filter_map(|id| open.remove(id));
                ended.extend(recorded.map(|done| self.recorded(done)));
            }
            Err(error) => {
                ended.extend(open.into_values().map(|done| done.missed(Ticked::of(&error))));
                return ended;
            }
        }
        let rule = |current: &ResourceSnapshot, done: &mut Done| {
            let commit = self.record(done, current, permitted)?;
            done.changes = Changes::of(&commit, current);
            Ok(commit)
        };
        let decided = self.decide_each(open, rule).await.into_iter();
        ended.extend(decided.map(|(done, written)| match written {
            Ok(()) => self.recorded(done),
            Err(ticked) => done.missed(ticked),
        }));
        ended
    }

    /// A permit for the registry writes of these ticks and for teardowns that they begin, if
    /// there are any. What the
    /// mode withholds becomes the outcome of its tick; the rest of the tick is
    /// recorded all the same. A tick whose action was not answered keeps that
    /// outcome: without a permit its record is refused, and its claim lapses.
    async fn permit_registry(
        &self,
        done: &mut [(Item, Outcome)],
    ) -> Result<Option<Permit>, store::Error> {
        let writes = |(item, outcome): &&mut (Item, Outcome)| match outcome {
            Outcome::Withheld { .. } => false,
            Outcome::Done if item.decision.takes_over(&item.snapshot) => true,
            _ => item.decision.drains(&item.snapshot),
        };
        let mut writes: Vec<_> = done.iter_mut().filter(writes).collect();
        if writes.is_empty() {
            return Ok(None);
        }
        match self.permits.enter(&self.context.stores).await? {
            Ok(permit) => Ok(Some(permit)),
            Err(mode) => {
                for (item, outcome) in &mut writes {
                    let action = match item.decision.drains(&item.snapshot) {
                        true => Decision::DRAIN,
                        false => Decision::TAKE_OVER,
                    };
                    if !matches!(outcome, Outcome::Unanswered(_)) {
                        *outcome = mode.withholds(action).unwrap_or(Outcome::Done);
                    }
                }
                Ok(None)
            }
        }
    }

    fn record(
        &self,
        done: &Done,
        current: &ResourceSnapshot,
        permit: Option<Revision>,
    ) -> Result<Commit, Refusal> {
        let tick = Tick {
            read: Read::of(&done.item.snapshot),
            report: &done.item.report,
            decision: &done.item.decision,
            outcome: done.outcome.clone(),
            drain_id: done.drain_id,
            pace: self.pace,
            jitter: done.jitter,
        };
        record::record(current, &tick, self.actor)?.permitted(permit)
    }

    /// Called after the commit: only then does the meter count the transitions.
    fn recorded(&self, done: Done) -> Ended {
        self.context.meter.transitioned(&done.changes.transitions);
        let Item { snapshot, decision, .. } = done.item;
        tick_span(&snapshot).in_scope(|| done.changes.blockers.log(&snapshot));
        let changed_phase = decision.phase != snapshot.attempt.phase();
        (snapshot, Ticked::Recorded { action: decision.action, changed_phase })
    }

    /// Ends the ticks: releases the claims that no record released, and writes
    /// the faults. Returns the errors.
    pub(super) async fn give_back(&self, ended: Vec<Ended>) -> Vec<String> {
        let (mut releases, mut faults, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut moved = false;
        let ids: Vec<_> = ended.iter().map(|(snapshot, _)| snapshot.attempt.id()).collect();
        self.claims.ended(&ids);
        for (snapshot, ticked) in ended {
            let (attempt, claim_token) = (snapshot.attempt.id(), snapshot.claim_token);
            let failures = snapshot.failures;
            let again =
                Release { subject: attempt.into(), claim_token, recheck: Recheck::Now, failures };
            let _span = tick_span(&snapshot).entered();
            self.context.meter.ticked(self.cluster, ticked.outcome(), self.claims.age());
            match ticked {
                Ticked::Recorded { action, changed_phase } => {
                    tracing::debug!(?action, changed_phase, "ticked");
                    moved |= changed_phase;
                }
                Ticked::Unchanged(release) => releases.push(release),
                Ticked::Overtaken => {
                    tracing::debug!(
                        "another worker or writer changed the row first; nothing is written"
                    );
                    releases.push(again);
                }
                Ticked::Expiring => {
                    tracing::debug!("the claim is about to end; the next tick acts");
                    releases.push(again);
                }
                Ticked::Unanswered(error) => {
                    tracing::debug!(error, "an action was not answered; the claim lapses");
                    errors.extend(error.map(|error| format!("{attempt}: {error}")));
                }
                Ticked::Failed { message, is_logged } => {
                    if !is_logged {
                        tracing::warn!(
                            error = message,
                            "a tick failed; the resource is tried again"
                        );
                    }
                    errors.push(format!("{attempt}: {message}"));
                    faults.push((Claimed { id: attempt, claim_token }, failures, message));
                }
            }
        }
        if moved {
            self.wake.notify_one();
            self.context.wakes.outbox.notify_one();
        }
        errors.extend(self.release(&releases).await);
        errors.extend(self.record_faults(faults).await);
        errors
    }

    /// Writes the faults to their resources, which are retried with a growing
    /// delay. If that fails, at least releases the claim; if that fails too,
    /// the lease expires.
    pub(super) async fn record_faults(&self, faults: Vec<Fault>) -> Vec<String> {
        let (sweep, entropy) = (self.pace.sweep, &self.context.entropy);
        let faults: Vec<_> =
            faults.into_iter().map(|fault| (fault.0.id, (fault, entropy.jitter()))).collect();
        let rule = |current: &ResourceSnapshot, (fault, jitter): &mut (Fault, f64)| {
            record::fault(current, fault.0.claim_token, &fault.2, sweep, *jitter)
        };
        let (mut releases, mut errors) = (Vec::new(), Vec::new());
        for (((claimed, failures, _), jitter), written) in self.decide_each(faults, rule).await {
            // If it was overtaken, another worker has it by now.
            let Err(Ticked::Failed { message: error, .. }) = written else { continue };
            let failures = failures.saturating_add(1);
            let recheck = Recheck::After(record::retry_after(failures, sweep, jitter));
            let Claimed { id, claim_token } = claimed;
            releases.push(Release { subject: id.into(), claim_token, recheck, failures });
            errors.push(error);
        }
        errors.dedup();
        errors.extend(self.release(&releases).await);
        errors
    }

    async fn release(&self, releases: &[Release]) -> Option<String> {
        if releases.is_empty() {
            return None;
        }
        self.context
            .stores
            .broker
            .attempt_release(releases)
            .await
            .err()
            .map(|error| error.to_string())
    }

    /// Decides about each under lock, all in one transaction. The rule receives
    /// the locked row and its item.
    async fn decide_each<T: Send>(
        &self,
        items: impl IntoIterator<Item = (ProvisionedResourceId, T)>,
        rule: impl Fn(&ResourceSnapshot, &mut T) -> Result<Commit, Refusal> + Send + Sync,
    ) -> Vec<(T, Result<(), Ticked>)> {
        let mut open: HashMap<_, T> = items.into_iter().collect();
        if open.is_empty() {
            return Vec::new();
        }
        let ids: Vec<_> = open.keys().copied().collect();
        let decided = self
            .context
            .stores
            .broker
            .decide_many(&ids, &mut |current| {
                let id = current.attempt.id();
                let unexpected =
                    || Refusal::new(ErrorKind::Internal, format!("{id} is not of this batch"));
                let item = open.get_mut(&id).ok_or_else(unexpected)?;
                pure(|| rule(current, item))
            })
            .await;
        let end = |error| Ticked::of(&error);
        match decided {
            Ok(decided) => decided
                .into_iter()
                .filter_map(|(id, written)| Some((open.remove(&id)?, written.map_err(end))))
                .collect(),
            Err(error) => open.into_values().map(|item| (item, Err(Ticked::of(&error)))).collect(),
        }
    }
}

/// A panic inside a transaction would fail the whole batch.
fn pure(rule: impl FnOnce() -> Result<Commit, Refusal>) -> Result<Commit, Refusal> {
    isolated(rule).unwrap_or_else(|panicked| Err(Refusal::new(ErrorKind::Internal, panicked)))
}
