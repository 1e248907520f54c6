//! The ticks of a batch, stage by stage. Intents of a batch are recorded in one
//! transaction, outside actions are the caller's to run side by side, outcomes
//! are recorded as many at once as the caller brings.
//!
//! One resource's error, refusal or panic is its own: the others of the batch
//! do not notice.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use slipway_core::audit::Actor;
use slipway_core::blocker::BlockerCode;
use slipway_core::commit::{Commit, Recorded, Release};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DrainId, ProvisionedResourceId};
use slipway_core::observation::CompositeReport;
use slipway_core::phase::Action;
use slipway_core::rules::control::Mode;
use slipway_core::rules::crossing::{Crossing, crossings};
use slipway_core::rules::prepare;
use slipway_core::rules::record::{self, Outcome, Pace, Tick};
use slipway_core::snapshot::ResourceSnapshot;
use slipway_render::cloud_tags::Skipped;
use slipway_render::{composite_of, crossplane};

use super::Engines;
use super::plan::{Decision, Planned, Todo, not_rendered};
use crate::Context;
use crate::gate::Gate;
use crate::ports::store;

/// What all ticks of a batch have in common.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub context: &'a Context,
    pub engines: &'a Engines,
    pub pace: Pace,
    pub actor: &'a Actor,
    /// How long one outside action may take, see [`super::action_deadline`].
    pub action_deadline: Duration,
    /// Asked right before each outside action whether the mode lets it through.
    pub gate: &'a Gate,
    /// The mode as it was when the batch was claimed.
    pub mode: &'a Mode,
    /// Whether more lease is left on this row than a deadline. Asked before an
    /// intent is recorded, and again right before each outside action.
    pub lease_allows: &'a (dyn Fn(ProvisionedResourceId, Duration) -> bool + Send + Sync),
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("pace", &self.pace).finish_non_exhaustive()
    }
}

/// What became of a tick.
#[derive(Debug)]
pub enum Ticked {
    /// Recorded, with the claim given back in the same transaction.
    Recorded { action: Action, changed_phase: bool },
    /// Nothing to record; the claim is given back with others of its batch.
    Unchanged(Release),
    /// Another worker or writer was faster; nothing was written here.
    Overtaken,
    /// The claim is about to end; nothing was begun, and the next tick acts.
    Expiring,
    /// It failed inside us, for this reason.
    Failed(String),
}

impl Ticked {
    fn of(error: &store::Error) -> Self {
        if overtaken(error) { Self::Overtaken } else { Self::Failed(error.to_string()) }
    }
}

/// The outcome of recording the intents: what goes on, and what ended there.
pub type Prepared = (Vec<Planned>, Vec<(ResourceSnapshot, Ticked)>);

impl Batch<'_> {
    /// Decides about each. A panic on the way is that resource's error.
    pub fn plan(
        &self,
        seen: impl Iterator<Item = (ResourceSnapshot, CompositeReport)>,
    ) -> Prepared {
        let (mut planned, mut ended) = (Vec::new(), Vec::new());
        for (snapshot, report) in seen {
            match isolated(|| Decision::on(self.context, self.engines, &snapshot, &report)) {
                Ok(decision) => {
                    let mut plan = Planned::new(snapshot, report, decision);
                    plan.withhold(self.mode);
                    planned.push(plan);
                }
                Err(panicked) => ended.push((snapshot, Ticked::Failed(panicked))),
            }
        }
        (planned, ended)
    }

    /// Records the intents of a batch, and keeps what was read in step with the
    /// rows that were written.
    pub async fn prepare(&self, planned: Vec<Planned>) -> Prepared {
        let (mut ready, mut ended) = (Vec::with_capacity(planned.len()), Vec::new());
        let mut intents = HashMap::new();
        for plan in planned {
            // Before a token is minted for an apply that would not be begun.
            if plan.acts() && !self.may_act(&plan.snapshot) {
                ended.push((plan.snapshot, Ticked::Expiring));
                continue;
            }
            match plan.intent() {
                None => ready.push(plan),
                Some(intent) => {
                    intents.insert(plan.snapshot.attempt.id(), (plan, intent, None));
                }
            }
        }
        if intents.is_empty() {
            return (ready, ended);
        }
        let ids: Vec<_> = intents.keys().copied().collect();
        let decided = self
            .context
            .stores
            .broker
            .decide_many(&ids, &mut |current| {
                let id = current.attempt.id();
                let Some((plan, intent, after)) = intents.get_mut(&id) else {
                    return Err(unexpected(id));
                };
                let carried = plan.report.carried();
                let lifetimes = self.context.settings.token_lifetimes;
                let commit = pure(|| {
                    prepare::fence(current, plan.read)?;
                    let token = prepare::confirm(current, intent.plan, carried, lifetimes)?;
                    prepare::prepare(current, plan.read, token, carried, intent.fresh, self.actor)
                })?;
                *after = Some(current.after(&commit));
                Ok(commit)
            })
            .await;
        let decided = match decided {
            Ok(decided) => decided,
            Err(error) => {
                let failed = |(plan, ..): (Planned, _, _)| (plan.snapshot, Ticked::of(&error));
                ended.extend(intents.into_values().map(failed));
                return (ready, ended);
            }
        };
        for (id, outcome) in decided {
            let Some((mut plan, _, after)) = intents.remove(&id) else { continue };
            match (outcome, after) {
                (Ok(()), Some(after)) => {
                    plan.prepared(after);
                    ready.push(plan);
                }
                (Ok(()), None) => ended.push((plan.snapshot, Ticked::of(&unexpected(id).into()))),
                (Err(error), _) => ended.push((plan.snapshot, Ticked::of(&error))),
            }
        }
        (ready, ended)
    }

    fn may_act(&self, snapshot: &ResourceSnapshot) -> bool {
        (self.lease_allows)(snapshot.attempt.id(), self.action_deadline)
    }

    /// Does what one tick asks for outside, and looks at what came of it. `None`
    /// if the claim is about to end, so that nothing was begun.
    pub async fn act(&self, planned: &mut Planned) -> Option<Outcome> {
        let snapshot = &planned.snapshot;
        let (code, substrate) = match &planned.todo {
            Todo::Nothing(outcome) => return Some(outcome.clone()),
            Todo::Apply { .. } => (BlockerCode::ApplyFailed, self.engines.of(snapshot)),
            Todo::Delete { .. } => (BlockerCode::DeleteFailed, self.engines.of(snapshot)),
        };
        let held = |code, message: &str| Outcome::Held { code, message: message.to_owned() };
        let Some(substrate) = substrate else {
            return Some(held(BlockerCode::SubstrateUnknown, "this process has no such engine"));
        };
        let rendered = match &planned.todo {
            Todo::Apply { injection, .. } => {
                match composite_of(snapshot, &self.engines.node_settings, injection) {
                    Ok(rendered) => {
                        log_skipped(snapshot);
                        Some(rendered)
                    }
                    Err(error) => return Some(not_rendered(&error)),
                }
            }
            Todo::Nothing(_) | Todo::Delete { .. } => None,
        };
        // Held until the action is over. Before the lease is looked at: this may
        // ask the database.
        let _pass = match self.gate.enter(&self.context.stores).await {
            Ok(Ok(pass)) => pass,
            Ok(Err(mode)) => return Some(planned.withheld_by(&mode).unwrap_or(Outcome::Done)),
            Err(error) => {
                return Some(held(code, &format!("the mode could not be read: {error}")));
            }
        };
        if !self.may_act(snapshot) {
            return None;
        }
        let action = async {
            match (&planned.todo, &rendered) {
                (Todo::Apply { .. }, Some(rendered)) => substrate.apply(rendered).await.map(Some),
                (Todo::Delete { address, uid }, _) => {
                    substrate.delete(address, uid).await.map(|()| None)
                }
                _ => Ok(None),
            }
        };
        let deadline = self.action_deadline;
        Some(match tokio::time::timeout(deadline, action).await {
            Ok(Ok(seen)) => {
                if let Some(report) = seen {
                    planned.applied(report);
                }
                Outcome::Done
            }
            Ok(Err(error)) => Outcome::Failed { code, message: error.to_string() },
            Err(_) => {
                let limit = deadline.as_millis();
                let message = format!("the substrate did not answer within {limit} ms");
                Outcome::Failed { code, message }
            }
        })
    }

    /// Writes the outcomes down and gives the claims back. Where there is
    /// nothing to write, the claim is left for the caller to give back.
    pub async fn record(&self, acted: Vec<(Planned, Outcome)>) -> Vec<(ResourceSnapshot, Ticked)> {
        let entropy = &self.context.entropy;
        let (mut ended, mut open) = (Vec::with_capacity(acted.len()), HashMap::new());
        let mut records = Vec::with_capacity(acted.len());
        for (mut planned, outcome) in acted {
            planned.bring_to_now();
            let (drain_id, jitter) = (DrainId::new(entropy.uuid()), entropy.jitter());
            let crossed = Vec::new();
            let mut acted = Acted { planned, outcome, drain_id, jitter, crossed };
            // What was read is as fresh as the claim. What it leads to is written
            // if nothing moved since, and asked of the locked rows otherwise.
            let snapshot = &acted.planned.snapshot;
            match self.commit(&acted, snapshot) {
                Err(refusal) => {
                    let ticked = Ticked::of(&refusal.into());
                    ended.push((acted.planned.snapshot, ticked));
                }
                Ok(commit) => match commit.only_release() {
                    Some(release) => {
                        ended.push((acted.planned.snapshot, Ticked::Unchanged(release)));
                    }
                    None => {
                        let (id, revision) = (snapshot.attempt.id(), acted.planned.read.revision);
                        acted.crossed = crossings(&commit, Some(snapshot));
                        records.extend(Recorded::new(id, revision, commit));
                        open.insert(id, acted);
                    }
                },
            }
        }
        let recorded = match self.context.stores.broker.attempt_record(&records).await {
            Ok(recorded) => recorded,
            Err(error) => {
                let failed = |acted: Acted| (acted.planned.snapshot, Ticked::of(&error));
                ended.extend(open.into_values().map(failed));
                return ended;
            }
        };
        for id in recorded {
            let Some(acted) = open.remove(&id) else { continue };
            ended.push(self.recorded(acted));
        }
        if open.is_empty() {
            return ended;
        }
        let ids: Vec<_> = open.keys().copied().collect();
        let decided = self
            .context
            .stores
            .broker
            .decide_many(&ids, &mut |current| {
                let id = current.attempt.id();
                let acted = open.get_mut(&id).ok_or_else(|| unexpected(id))?;
                let commit = self.commit(acted, current)?;
                acted.crossed = crossings(&commit, Some(current));
                Ok(commit)
            })
            .await;
        match decided {
            Ok(decided) => ended.extend(decided.into_iter().filter_map(|(id, outcome)| {
                let acted = open.remove(&id)?;
                Some(match outcome {
                    Ok(()) => self.recorded(acted),
                    Err(error) => (acted.planned.snapshot, Ticked::of(&error)),
                })
            })),
            Err(error) => ended.extend(
                open.into_values().map(|acted| (acted.planned.snapshot, Ticked::of(&error))),
            ),
        }
        ended
    }

    /// It is committed: whoever measures is told now and not before.
    fn recorded(&self, acted: Acted) -> (ResourceSnapshot, Ticked) {
        self.context.meter.crossed(&acted.crossed);
        let Planned { snapshot, action, after, .. } = acted.planned;
        let changed_phase = after != snapshot.attempt.phase();
        (snapshot, Ticked::Recorded { action, changed_phase })
    }

    fn commit(&self, acted: &Acted, current: &ResourceSnapshot) -> Result<Commit, Refusal> {
        let planned = &acted.planned;
        let tick = Tick {
            read: planned.read,
            report: &planned.report,
            observed: planned.observed,
            action: planned.action,
            after: planned.after,
            outcome: acted.outcome.clone(),
            drain_id: acted.drain_id,
            pace: self.pace,
            jitter: acted.jitter,
        };
        pure(|| record::record(current, &tick, self.actor))
    }
}

/// A tick that only has to be recorded.
struct Acted {
    planned: Planned,
    outcome: Outcome,
    drain_id: DrainId,
    jitter: f64,
    /// The changes of phase in the commit that was decided last.
    crossed: Vec<Crossing>,
}

/// Names the labels that should have become tags of the cloud and cannot.
fn log_skipped(snapshot: &ResourceSnapshot) {
    let attempt_id = snapshot.attempt.id();
    for Skipped { key, reason } in crossplane::cloud_tags(snapshot).skipped {
        tracing::info!(%attempt_id, key, %reason, "a label does not become a tag of the cloud");
    }
}

/// Fenced off: somebody else holds the row or wrote it meanwhile.
pub(super) fn overtaken(error: &store::Error) -> bool {
    use ErrorKind::{ClaimLost, RevisionStale};
    matches!(error, store::Error::Refused(refusal) if matches!(refusal.kind, ClaimLost | RevisionStale))
}

/// A panic inside a transaction would take the whole batch with it.
pub(super) fn pure(rule: impl FnOnce() -> Result<Commit, Refusal>) -> Result<Commit, Refusal> {
    isolated(rule).unwrap_or_else(|panicked| Err(Refusal::new(ErrorKind::Internal, panicked)))
}

fn isolated<T>(step: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|_| "the tick panicked".to_owned())
}

/// The store asks only about what it was asked for.
pub(super) fn unexpected(id: ProvisionedResourceId) -> Refusal {
    Refusal::new(ErrorKind::Internal, format!("{id} is not of this batch"))
}
