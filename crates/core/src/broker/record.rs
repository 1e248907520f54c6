//! The end of a tick: turns observation, decision and outcome into a phase, an
//! event, history, blockers and the time of the next observation, in one commit
//! that also releases the claim, unless its action may still take effect. [`crate::broker::decide`] is the start of the tick.

use std::time::Duration;

use serde_json::{Value, json};

use crate::access::audit::{About, Actor, AuditEntry};
use crate::blocker::{self, Blocker, BlockerCode, Deadlines, DeregistrationSeam};
use crate::broker::BrokerWrite;
use crate::broker::attempt::{Failure, ProvisionedResource};
use crate::broker::decide::{self, Decision, Outcome};
use crate::broker::observation::CompositeReport;
use crate::broker::phase::{Action, Composite, NodeFact, Observed, Phase, next};
use crate::broker::prepare::{Read, check_claim, fence};
use crate::broker::resource::Resource;
use crate::broker::snapshot::{ResourceSnapshot, UPDATE_PENDING};
use crate::broker::teardown::Scope;
use crate::broker::waiting::{heartbeat_deadline, phase_deadline};
use crate::broker::{deletion_verification, event, flapping, retry, surge};
use crate::catalog::blueprint_version::Engine;
use crate::commit::{Commit, Recheck, Release, StateChange, Write};
use crate::deletion::door::entry;
use crate::deletion::record::Deletion;
use crate::deletion::write::enter;
use crate::error::Refusal;
use crate::event::Event;
use crate::ids::{ClaimToken, DrainId, Revision};
use crate::nodes::NodesWrite;
use crate::nodes::drain;
use crate::subject::SubjectKind;
use crate::text::{storable, storable_value};
use crate::time::Timestamp;

/// Deadlines and intervals of the loop.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub deadlines: Deadlines,
    /// Interval between two observations of a settled resource.
    pub sweep: Duration,
    /// How long a worker may act on a claim: absence is proven a second time
    /// this long after Deleted.
    pub lease: Duration,
}

/// One tick, ready to be recorded.
#[derive(Debug, Clone)]
pub struct Tick<'a> {
    pub read: Read,
    pub report: &'a CompositeReport,
    pub decision: &'a Decision,
    pub outcome: Outcome,
    /// Used if this tick requests the drain.
    pub drain_id: DrainId,
    pub pace: Pace,
    /// In 0..1; spreads the next observation.
    pub jitter: f64,
}

impl Tick<'_> {
    /// Spreads over ±25 %, so that resources declared together are not swept
    /// together.
    pub(crate) fn spread(&self, duration: Duration) -> Duration {
        spread(duration, self.jitter)
    }
}

/// The shortest polling interval.
pub(crate) const SOONEST: Duration = Duration::from_millis(50);

/// Sweeps between two observations of a resource whose action the mode
/// withholds, once an observation has shown nothing new. The loop may not act on
/// it anyway; an engine that watches wakes the resource at once, and so does the
/// end of the mode. Ten thousand waiting resources cost 83 observations a second
/// at a sweep of 30 s; polled by their age they cost more than a thousand.
const WITHHELD_SWEEPS: u32 = 4;

/// Records the tick.
pub fn record(
    snapshot: &ResourceSnapshot,
    tick: &Tick<'_>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    fence(snapshot, tick.read)?;
    let mut commit = Commit::default();

    let withheld = matches!(tick.outcome, Outcome::Withheld { .. });
    let node_moved = if tick.decision.action == Action::DeregisterNode && !withheld {
        let absent = tick.decision.observed.composite == Composite::Absent;
        drain::request_or_deregister(snapshot, absent, tick.drain_id, actor)
    } else {
        None
    };
    let deregistered = node_moved.as_ref().is_some_and(|(node, _)| !node.is_registered());
    if let Some((node, audit)) = node_moved {
        commit.writes.push(Write::Nodes(NodesWrite::NodeUpdate(node)));
        commit.audit.push(audit);
    }

    let attempt = advance(snapshot, tick);
    let takes_over = surge::takes_over(snapshot, attempt.phase(), &tick.outcome);
    let attempt = if takes_over { attempt.brought_in_use() } else { attempt };
    if attempt.phase() != snapshot.attempt.phase() {
        transition_to(&mut commit, snapshot, &attempt, tick, actor);
    } else if takes_over {
        commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(attempt.clone())));
    }
    if takes_over {
        surge::take_over(&mut commit, snapshot, actor);
    }

    let unanswered = matches!(tick.outcome, Outcome::Unanswered(_));
    let failures = match tick.outcome {
        Outcome::Failed(_) | Outcome::Unanswered(_) => snapshot.failures.saturating_add(1),
        Outcome::Done | Outcome::Blocked(_) | Outcome::Withheld { .. } => 0,
    };
    let gone = snapshot.attempt.phase() == Phase::Deleted;
    let again = gone.then(|| deletion_verification::conclude(&mut commit, snapshot, tick, actor));
    let recheck = match again {
        // When the claim has lapsed, at the latest.
        _ if unanswered => Recheck::After(tick.pace.lease),
        _ if deregistered => Recheck::Now,
        Some(again) if failures == 0 => again,
        _ => recheck(snapshot, &attempt, failures, tick),
    };
    let blockers = assess(snapshot, &attempt, tick, recheck);
    if !same_blockers(&blockers, &snapshot.blockers) {
        commit.writes.push(Write::BlockersReplace(attempt.id().into(), blockers));
    }
    let seen = observed(snapshot, tick);
    if snapshot.observed.as_ref() != Some(&seen) {
        commit.writes.push(Write::Broker(BrokerWrite::ObservedReplace(attempt.id(), seen)));
    }
    if !unanswered {
        commit.writes.push(Write::Release(Release {
            subject: attempt.id().into(),
            claim_token: tick.read.claim_token,
            recheck,
            failures,
        }));
    }
    Ok(commit)
}

fn advance(snapshot: &ResourceSnapshot, tick: &Tick<'_>) -> ProvisionedResource {
    let (before, now) = (&snapshot.attempt, snapshot.now);
    let attempt = before.advanced(tick.decision.phase, now);
    if attempt.phase() == before.phase() {
        return attempt;
    }
    let unsettled = flapping::transition(before, tick.decision.phase, &tick.pace.deadlines, now);
    let attempt = attempt.unsettled(unsettled);
    if tick.decision.phase == Phase::Failed {
        let reason = tick.report.live().and_then(|live| live.failure.as_deref()).map(storable);
        attempt.failed_because(reason)
    } else {
        attempt
    }
}

/// Writes a transition: the row, its event and audit entry if it is announced, a line
/// of history if not, and the end of the deletion if the attempt is Deleted now.
fn transition_to(
    commit: &mut Commit,
    snapshot: &ResourceSnapshot,
    attempt: &ProvisionedResource,
    tick: &Tick<'_>,
    actor: &Actor,
) {
    let now = snapshot.now;
    let revision = attempt.revision().next();
    commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(attempt.clone())));
    let change = StateChange {
        subject: attempt.id().into(),
        revision,
        at: now,
        from: Some(snapshot.attempt.phase().as_str()),
        to: attempt.phase().as_str(),
        why: why(tick),
    };
    match event::of_transition(attempt.phase()) {
        None => commit.writes.push(Write::HistoryAppend(change)),
        Some(event_type) => {
            commit.events.push(event::announce(event_type, attempt, revision, now));
            let subject = subject(attempt, revision);
            let entry = AuditEntry::new("provisioned_resource.phase", actor, subject, now);
            let reason = attempt.failure_reason().filter(|_| attempt.phase() == Phase::Failed);
            let reason = reason.map(str::to_owned);
            commit.audit.push(AuditEntry { reason, ..entry.changing(change) });
        }
    }
    if attempt.phase() == Phase::Failed {
        let failure = Failure { at: now, observed: describe(tick) };
        commit.writes.push(Write::Broker(BrokerWrite::FailureRecord(attempt.id(), failure)));
    }
    if attempt.phase() == Phase::Deleted {
        release(commit, snapshot, actor);
    }
}

pub(crate) fn subject(attempt: &ProvisionedResource, revision: Revision) -> About {
    About::new(attempt.id()).of(attempt.project_id()).at(revision)
}

/// The attempt is gone: completes its deletion, and frees the slot or fills it
/// with the next attempt, depending on the scope of the deletion. Of two attempts the other
/// one stays.
pub(crate) fn release(commit: &mut Commit, snapshot: &ResourceSnapshot, actor: &Actor) {
    let now = snapshot.now;
    if let (Some(surge), Some(other)) = (&snapshot.resource.surge, snapshot.other.as_deref())
        && surge::released(commit, snapshot, surge, other, actor)
    {
        return;
    }
    let retried = snapshot.deletion.as_ref().is_some_and(|d| Scope::of(d) == Scope::Attempt);
    // The successor of a valid attempt is valid. If it ever were not, the
    // resource would become deleted rather than stay without an attempt.
    let successor = if retried { retry::successor(snapshot).ok() } else { None };
    let resource = match &successor {
        Some(_) => Resource { deletion_id: None, ..snapshot.resource.clone() },
        None => Resource { deleted_at: Some(now), surge: None, ..snapshot.resource.clone() },
    };
    commit.writes.push(Write::Broker(BrokerWrite::ResourceUpdate(resource)));
    // The deletion of a project ends when everything in it is gone, not with a member.
    let own = |deletion: &&Deletion| deletion.target.kind != SubjectKind::Project;
    if let Some(deletion) = snapshot.deletion.as_ref().filter(own) {
        commit.audit.push(entry("deletion.done", deletion, actor, now));
        enter(commit, deletion, deletion.clone().done(now), now);
    }
    if let Some(next) = successor {
        follow(commit, &snapshot.attempt, &next, actor, now);
    }
}

/// Writes the attempt that follows one that is gone, and announces it.
pub(crate) fn follow(
    commit: &mut Commit,
    gone: &ProvisionedResource,
    next: &ProvisionedResource,
    actor: &Actor,
    now: Timestamp,
) {
    let changed = retry::changed(gone);
    let requested = event::announce(event::REQUESTED, next, Revision::FIRST, now);
    commit.events.push(Event { changed: changed.clone(), ..requested });
    commit.wakes.push(next.id().into());
    let subject = subject(next, Revision::FIRST);
    let mut follows = json!({ "attempt": next.attempt(), "follows": gone.id() });
    if !changed.is_empty() {
        follows["changed"] = json!(changed);
    }
    let change = StateChange {
        subject: next.id().into(),
        revision: Revision::FIRST,
        at: now,
        from: None,
        to: next.phase().as_str(),
        why: format!("attempt {} follows attempt {}", next.attempt(), gone.attempt()),
    };
    let entry = AuditEntry::new("provisioned_resource.follow", actor, subject, now);
    commit.audit.push(entry.with(follows).changing(change));
    commit.writes.push(Write::Broker(BrokerWrite::AttemptInsert(next.clone())));
}

/// The evidence for a transition, in words.
fn why(tick: &Tick<'_>) -> String {
    let composite = match tick.decision.observed.composite {
        Composite::Unknown => "substrate unknown",
        Composite::Absent => "substrate absent",
        Composite::Present { failed: true, .. } => "substrate failed for good",
        Composite::Present { terminating: true, .. } => "substrate terminating",
        Composite::Present { ready: true, .. } => "substrate ready",
        Composite::Present { ready: false, .. } => "substrate present, not ready",
    };
    let node = match tick.decision.observed.node {
        NodeFact::NotExpected => "no node expected",
        NodeFact::Absent => "node not registered",
        NodeFact::Registered => "node registered",
    };
    format!("{composite}, {node}")
}

/// When to observe again. The loop polls a wait at an eighth of its age: soon at
/// first, rarely later, without a counter to keep.
fn recheck(
    snapshot: &ResourceSnapshot,
    attempt: &ProvisionedResource,
    failures: i32,
    tick: &Tick<'_>,
) -> Recheck {
    let before = snapshot.attempt.phase();
    let (observed, sweep) = (tick.decision.observed, tick.pace.sweep.max(SOONEST));
    let after = |duration| Recheck::After(tick.spread(duration));
    match (attempt.phase(), &tick.outcome) {
        (Phase::Failed, _) if !decide::is_open(observed) => return Recheck::Never,
        // A worker with an older claim may act until then.
        (Phase::Deleted, _) if before != Phase::Deleted => {
            return Recheck::After(tick.pace.lease);
        }
        // Only the end of the mode helps, and that wakes every resource that is
        // not in a terminal phase.
        (phase, Outcome::Withheld { code, evidence, .. }) if !phase.is_terminal() => {
            let known = |found: &Blocker| found.code == *code && found.evidence == *evidence;
            let unchanged = phase == before && snapshot.blockers.iter().any(known);
            return after(sweep * if unchanged { WITHHELD_SWEEPS } else { 1 });
        }
        // Only if this observation calls for more in the new phase; if it does
        // not, observing again at once would show nothing new.
        (phase, _) if phase != before && next(observed, phase) != (Action::Noop, phase) => {
            return Recheck::Now;
        }
        _ => {}
    }
    if failures > 0 {
        return Recheck::After(retry_after(failures, tick.pace.sweep, tick.jitter));
    }
    if attempt.phase() == Phase::Ready && observed.composite != Composite::Unknown {
        return after(tick.pace.sweep);
    }
    let waited = snapshot.now.since(attempt.phase_since());
    after((waited / 8).clamp(SOONEST, sweep))
}

/// Everything that keeps this resource from advancing, as of this tick.
fn assess(
    snapshot: &ResourceSnapshot,
    attempt: &ProvisionedResource,
    tick: &Tick<'_>,
    recheck: Recheck,
) -> Vec<Blocker> {
    let now = snapshot.now;
    let next_retry_at = match recheck {
        Recheck::Now => Some(now),
        Recheck::After(delay) => Some(now.plus(delay)),
        Recheck::Never => None,
    };
    let raise = |code, message: String, evidence: Value| Blocker {
        code,
        message: storable(&message),
        since: now,
        evidence,
        next_retry_at,
    };
    let mut blockers = Vec::new();
    let failed = attempt.phase() == Phase::Failed;
    if failed && decide::release_terminating(tick.decision.observed) == Action::Noop {
        return blockers;
    }
    if let CompositeReport::Unknown { reason } | CompositeReport::Foreign { reason } = tick.report
        && attempt.abandoned_at().is_none()
    {
        blockers.push(raise(
            BlockerCode::SubstrateUnknown,
            format!("the substrate could not be read, so nothing is concluded from it: {reason}"),
            json!({ "reason": storable(reason) }),
        ));
    }
    if let Composite::Present { terminating: true, .. } = tick.decision.observed.composite
        && !attempt.phase().is_deletion()
    {
        let then = if failed {
            "and leaves the resource Failed"
        } else {
            "and creates it again once it is gone"
        };
        blockers.push(raise(
            BlockerCode::SubstrateTerminating,
            format!(
                "somebody else is deleting the substrate; Slipway drains its node, then releases the substrate, {then}"
            ),
            evidence(tick),
        ));
    }
    if let Outcome::Blocked(obstacle) | Outcome::Failed(obstacle) | Outcome::Unanswered(obstacle) =
        &tick.outcome
    {
        blockers.push(raise(obstacle.code, obstacle.message.clone(), evidence(tick)));
    }
    if let Outcome::Withheld { code, message, evidence } = &tick.outcome {
        blockers.push(raise(*code, message.clone(), evidence.clone()));
    }
    let unconfirmed = snapshot.blueprint.engine == Engine::Manual
        && attempt.phase() == Phase::Deprovisioning
        && matches!(tick.decision.observed.composite, Composite::Present { terminating: true, .. });
    if unconfirmed {
        blockers.push(raise(
            BlockerCode::MachineNotConfirmedGone,
            "no node is registered any more; nobody but a person can say that its machine is gone"
                .to_owned(),
            evidence(tick),
        ));
    }
    let withheld = matches!(tick.outcome, Outcome::Withheld { .. });
    let node = snapshot.node.as_ref().filter(|node| node.is_registered());
    let code = match (BlockerCode::of_overdue(attempt.phase()), node) {
        // No node is left to drain: the attempt waits for the substrate.
        (Some(BlockerCode::NodeNotDraining), None) => Some(BlockerCode::DeprovisioningOverdue),
        // Nobody asked the node to drain; the blocker of the mode says what is withheld.
        (Some(BlockerCode::NodeNotDraining), Some(node)) if withheld && node.drain.is_none() => {
            None
        }
        (Some(BlockerCode::DeprovisioningOverdue), _) if unconfirmed => None,
        // What it waits for has deadlines of its own.
        (Some(BlockerCode::PendingOverdue), _) if waits_for_dependency(tick) => None,
        (code, _) => code,
    };
    if let (Some(deadline), Some(code)) = (
        phase_deadline(snapshot, attempt, &tick.pace.deadlines).filter(|deadline| now >= *deadline),
        code,
    ) {
        blockers.push(overdue(snapshot, attempt, tick, code, deadline, next_retry_at));
    }
    if let Some((node, deadline)) = heartbeat_deadline(snapshot, attempt, &tick.pace.deadlines)
        && now >= deadline
    {
        blockers.push(raise(
            BlockerCode::NodeSilent,
            format!(
                "node `{}` ({}) enrolled and sent no heartbeat until {deadline}; it may not have stored its identity",
                node.hostname, node.id
            ),
            json!({
                "node_id": node.id,
                "hostname": node.hostname,
                "registered_at": node.registered_at,
                "deadline": deadline,
            }),
        ));
    }
    blockers.extend(flapping::blocker(snapshot, attempt, &tick.pace.deadlines, next_retry_at));
    blocker::merge(&snapshot.blockers, blockers)
}

fn waits_for_dependency(tick: &Tick<'_>) -> bool {
    matches!(&tick.outcome, Outcome::Blocked(obstacle) if obstacle.code == BlockerCode::WaitingForDependency)
}

fn overdue(
    snapshot: &ResourceSnapshot,
    attempt: &ProvisionedResource,
    tick: &Tick<'_>,
    code: BlockerCode,
    deadline: Timestamp,
    next_retry_at: Option<Timestamp>,
) -> Blocker {
    let node = snapshot.node.as_ref().filter(|node| node.is_registered());
    let (message, evidence) = match (code, node) {
        (BlockerCode::NodeNotDraining, Some(node)) => (
            format!(
                "node `{}` ({}) has not acknowledged its drain; the deadline was {deadline}",
                node.hostname, node.id
            ),
            json!({
                "node_id": node.id,
                "hostname": node.hostname,
                "deadline": deadline,
                "drain_requested_at": node.drain.map(|drain| drain.requested_at),
                "reachability": node.reachability(snapshot.now),
            }),
        ),
        _ => (
            format!("the resource is still {} after its deadline {deadline}", attempt.phase()),
            json!({ "deadline": deadline, "since": attempt.phase_since(), "substrate": evidence(tick) }),
        ),
    };
    Blocker { code, message, since: snapshot.now, evidence, next_retry_at }
}

fn evidence(tick: &Tick<'_>) -> Value {
    tick.report.live().map_or(Value::Null, |live| storable_value(&live.evidence))
}

/// The observation for people and for the row. It contains no time, so that an
/// unchanged world gives an unchanged text.
pub(crate) fn describe(tick: &Tick<'_>) -> Value {
    let Observed { composite, node } = tick.decision.observed;
    let mut seen = json!({ "composite": composite, "node": node });
    match tick.report {
        CompositeReport::Unknown { reason } => seen["reason"] = json!(storable(reason)),
        CompositeReport::Foreign { reason } => seen["foreign"] = json!(storable(reason)),
        CompositeReport::Absent => {}
        CompositeReport::Present(live) => {
            seen["uid"] = json!(live.uid);
            seen["evidence"] = storable_value(&live.evidence);
            if let Some(failure) = &live.failure {
                seen["failure"] = json!(storable(failure));
            }
        }
    }
    seen
}

/// The same for the row, with the time since when it has been so. It keeps the uid of an
/// object that cannot be read any more: if the object is abandoned, a person looks for it
/// by that.
fn observed(snapshot: &ResourceSnapshot, tick: &Tick<'_>) -> Value {
    let mut seen = describe(tick);
    if let CompositeReport::Unknown { .. } | CompositeReport::Foreign { .. } = tick.report
        && let Some(uid) = last_uid(snapshot)
    {
        seen["last_uid"] = json!(uid);
    }
    let before = snapshot.observed.as_ref();
    let reached = matches!(
        tick.decision.observed.composite,
        Composite::Present { drifted: false, terminating: false, .. }
    );
    if let Some(pending) = before.and_then(|seen| seen.get(UPDATE_PENDING)).filter(|_| !reached) {
        seen[UPDATE_PENDING] = pending.clone();
    }
    let mut timeless = before.cloned().unwrap_or_default();
    if let Some(fields) = timeless.as_object_mut() {
        fields.remove("since");
    }
    match before.filter(|_| timeless == seen) {
        Some(unchanged) => unchanged.clone(),
        None => {
            seen["since"] = json!(snapshot.now);
            seen
        }
    }
}

/// The uid that the object had when it was last read.
pub(crate) fn last_uid(snapshot: &ResourceSnapshot) -> Option<&str> {
    let observed = snapshot.observed.as_ref()?;
    observed["uid"].as_str().or(observed["last_uid"].as_str())
}

/// Compares without the order, which a database may change, and without the
/// time of the next retry, which moves with every tick.
fn same_blockers(left: &[Blocker], right: &[Blocker]) -> bool {
    let timeless = |blockers: &[Blocker]| {
        let mut blockers = blockers.to_vec();
        blockers.sort_by_key(|blocker| blocker.code);
        blockers.iter_mut().for_each(|blocker| blocker.next_retry_at = None);
        blockers
    };
    timeless(left) == timeless(right)
}

/// The backoff after this many failures in a row: a quarter of a second,
/// doubled each time, up to a sweep, spread over ±25 % so that resources that
/// failed together do not retry together.
pub fn retry_after(failures: i32, sweep: Duration, jitter: f64) -> Duration {
    const FIRST: Duration = Duration::from_millis(250);
    // 2^16 quarters of a second are four hours, beyond any sweep.
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(0).min(16);
    spread((FIRST * 2_u32.pow(doublings)).min(sweep), jitter)
}

/// Between three and five quarters of it, by `jitter` in 0..1.
fn spread(duration: Duration, jitter: f64) -> Duration {
    duration.mul_f64(0.75 + jitter.clamp(0.0, 1.0) / 2.0)
}

/// Records a tick that failed inside the control plane. It learnt nothing about
/// the resource, so it changes nothing but a blocker that reports the error and
/// the time of the next try. The write names the claim and not the revision: it
/// is about the worker, whatever happened to the row. The next tick that
/// reaches [`record`] drops the blocker.
pub fn fault(
    snapshot: &ResourceSnapshot,
    claim_token: ClaimToken,
    message: &str,
    sweep: Duration,
    jitter: f64,
) -> Result<Commit, Refusal> {
    let attempt = snapshot.attempt.id();
    check_claim(snapshot, claim_token)?;
    let failures = snapshot.failures.saturating_add(1);
    let delay = retry_after(failures, sweep, jitter);
    let message = storable(message);
    let mut evidence = json!({ "error": message, "failures": failures });
    // While the node is registered, all that a tick of Deregistering does is its drain.
    let drained = snapshot
        .node
        .as_ref()
        .filter(|node| node.is_registered() && snapshot.attempt.phase() == Phase::Deregistering);
    let (code, message) = match drained {
        None => (
            BlockerCode::InternalError,
            format!("the control plane failed while it worked on this: {message}"),
        ),
        Some(node) => {
            evidence["seam"] = json!(DeregistrationSeam::Drain);
            evidence["node_id"] = json!(node.id);
            let what = format!("node `{}` ({}) could not be drained", node.hostname, node.id);
            (BlockerCode::NodeDeregistrationFailed, format!("{what}: {message}"))
        }
    };
    let mut blockers = vec![Blocker {
        code,
        message,
        since: snapshot.now,
        evidence,
        next_retry_at: Some(snapshot.now.plus(delay)),
    }];
    // The new blocker first: `merge` keeps the first of each code.
    blockers.extend(snapshot.blockers.iter().cloned());
    let blockers = blocker::merge(&snapshot.blockers, blockers);
    let release =
        Release { subject: attempt.into(), claim_token, recheck: Recheck::After(delay), failures };
    Ok(Commit {
        writes: vec![Write::BlockersReplace(attempt.into(), blockers), Write::Release(release)],
        ..Commit::default()
    })
}

#[cfg(test)]
mod tests;
