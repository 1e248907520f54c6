//! The decision of a tick, before any action.
//!
//! [`decide`] alone decides what a tick does about a resource. It takes action
//! and phase from [`next`] and adds what `next` does not consider: the object
//! that must not exist at Deleted, the finalizer that blocks somebody's delete
//! at Failed, the placement, the token and the mode. The application executes
//! the [`Decision`] and passes the outcome to [`crate::broker::record`].

use serde_json::Value;

use crate::blocker::BlockerCode;
use crate::broker::deletion_verification;
use crate::broker::observation::CompositeReport;
use crate::broker::phase::{Action, Composite, NodeFact, Observed, Phase, next};
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::surge;
use crate::nodes::drain;
use crate::nodes::node::Node;
use crate::nodes::token::{
    Carried, TokenDecision, TokenLifetimes, decide_token, decide_token_by_hand,
};
use crate::operations::control::Mode;
use crate::placement::namespace::Placement;
use crate::time::Timestamp;

/// What the application knows besides the rows and the observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The hash over the fields that we own, or why they cannot be rendered.
    pub owned_hash: Result<String, Obstacle>,
    /// Whether the object can carry a token that is not minted yet.
    pub injectable: Result<(), Obstacle>,
    /// Whether this process serves the engine on the resource's cluster.
    pub served: bool,
    pub token_lifetimes: TokenLifetimes,
}

/// Why an action cannot be attempted or failed, as the blocker that shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    pub code: BlockerCode,
    pub message: String,
}

impl Obstacle {
    pub fn new(code: BlockerCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The outcome of the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Not attempted, because a precondition is missing; not an error.
    Blocked(Obstacle),
    /// Not attempted, because the mode of the installation does not permit it.
    Withheld {
        code: BlockerCode,
        message: String,
        evidence: Value,
    },
    /// Attempted and failed; the loop backs off.
    Failed(Obstacle),
    /// Attempted, and nobody answered: it may still take effect. The claim is
    /// not released. It lapses, so that the next tick observes the effect of
    /// whatever arrived within the lease.
    Unanswered(Obstacle),
}

/// The outside action that the application executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// No action; the outcome is known already.
    None(Outcome),
    /// Applies the composite. The application records a token decision that
    /// writes (slide, mint) before the apply.
    Apply(TokenDecision),
    /// Deletes the composite with this uid.
    Delete { uid: String },
}

/// What one tick does about one resource, or why it does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub observed: Observed,
    pub action: Action,
    /// The phase after the action.
    pub phase: Phase,
    pub effect: Effect,
    /// The resource begins to wait for its placement: wake the placement loop.
    pub wakes_placement: bool,
}

/// Decides what a tick does about a resource.
///
/// *Guarantees.* Total and deterministic. The substrate is never deleted while
/// the node is registered, and only by the uid that was observed. An unknown
/// composite changes no phase, except that a teardown still drains a registered
/// node. A mode that does not act yields neither an effect nor a token to mint,
/// whatever was observed.
pub fn decide(
    snapshot: &ResourceSnapshot,
    report: &CompositeReport,
    facts: &Facts,
    mode: &Mode,
    now: Timestamp,
) -> Decision {
    let (observed, (action, phase)) = advance(snapshot, report, facts);
    let action = match snapshot.attempt.phase() {
        // `next` is a no-op in the terminal phases; these exceptions change no phase.
        Phase::Deleted => deletion_verification::action(snapshot, report),
        Phase::Failed => release_terminating(observed),
        _ => action,
    };
    let effect = match (action, report.live()) {
        (Action::Apply, _) => apply(snapshot, report, facts, observed.composite, now),
        // `record` writes the drain: it is a write to our own registry.
        (Action::DeregisterNode, _) => Ok(keep_node_running(snapshot, observed.composite)),
        (Action::DeleteSubstrate, Some(live)) => Ok(Effect::Delete { uid: live.uid.clone() }),
        (Action::DeleteSubstrate, None) | (Action::Noop, _) => Ok(Effect::None(Outcome::Done)),
    };
    let wakes_placement = effect.as_ref().err().is_some_and(|obstacle| waits(snapshot, obstacle));
    let effect = effect.unwrap_or_else(|obstacle| Effect::None(Outcome::Blocked(obstacle)));
    let mut decision = Decision { observed, action, phase, effect, wakes_placement };
    // Checked here, or every tick would mint a token that no object carries.
    if let Some(withheld) = decision.withheld_by(snapshot, mode) {
        decision.effect = Effect::None(withheld);
    }
    decision
}

impl Decision {
    /// The outcome under a mode that does not act: the tick observes, records
    /// and reports what it would do. `None` if the mode acts or there is
    /// nothing to withhold.
    pub fn withheld_by(&self, snapshot: &ResourceSnapshot, mode: &Mode) -> Option<Outcome> {
        let name = match &self.effect {
            Effect::Apply(_) => "apply",
            Effect::Delete { .. } => "delete",
            Effect::None(_) if self.drains(snapshot) => Self::DRAIN,
            Effect::None(_) => return None,
        };
        mode.withholds(name)
    }

    /// Whether the record of this tick begins the teardown of another attempt, which this
    /// one replaces.
    pub fn takes_over(&self, snapshot: &ResourceSnapshot) -> bool {
        surge::is_due(snapshot, self.phase)
    }

    /// The name of the action of a tick that begins that.
    pub const TAKE_OVER: &'static str = "take_over";

    /// The name of the action of a tick that only drains.
    pub const DRAIN: &'static str = "drain";

    /// Whether the record of this tick writes to the registry: requests a drain, or
    /// deregisters the node.
    pub fn drains(&self, snapshot: &ResourceSnapshot) -> bool {
        let absent = self.observed.composite == Composite::Absent;
        self.action == Action::DeregisterNode && drain::is_due(snapshot, absent)
    }

    /// Adopts the observation that an apply returned, so that a substrate that is
    /// ready at once needs no second observation. Returns whether it did: if the
    /// object could not be read after the apply, the earlier observation stays.
    pub fn applied(
        &mut self,
        snapshot: &ResourceSnapshot,
        report: &CompositeReport,
        facts: &Facts,
    ) -> bool {
        let (observed, (_, phase)) = advance(snapshot, report, facts);
        if self.action != Action::Apply || observed.composite == Composite::Unknown {
            return false;
        }
        (self.observed, self.phase) = (observed, phase);
        true
    }
}

fn advance(
    snapshot: &ResourceSnapshot,
    report: &CompositeReport,
    facts: &Facts,
) -> (Observed, (Action, Phase)) {
    let composite = report.composite(facts.owned_hash.as_deref().ok());
    let observed = Observed { composite, node: snapshot.node_fact() };
    (observed, next(observed, snapshot.attempt.phase()))
}

fn apply(
    snapshot: &ResourceSnapshot,
    report: &CompositeReport,
    facts: &Facts,
    seen: Composite,
    now: Timestamp,
) -> Result<Effect, Obstacle> {
    facts.owned_hash.as_ref().map_err(Obstacle::clone)?;
    if seen == Composite::Absent {
        dependencies(snapshot)?;
    }
    let placement = snapshot.placement.as_ref().ok_or_else(|| {
        Obstacle::new(BlockerCode::NamespaceNotReady, "the project is not placed on a cluster")
    })?;
    let provider = snapshot.provider.as_ref();
    let config = provider
        .map(|facts| snapshot.blueprint.provider_config(&facts.provider, facts.credential_id));
    let provider = provider
        .zip(config.as_deref())
        .map(|(facts, config)| (&*facts.provider, config, facts.credential_id));
    placement.admits(provider).map_err(|(code, message)| Obstacle { code, message })?;
    if !facts.served {
        let message = format!("this process has no engine {}", snapshot.blueprint.engine);
        return Err(Obstacle::new(BlockerCode::SubstrateUnknown, message));
    }
    let node = snapshot.node_fact();
    let (token, lifetimes) = (snapshot.token.as_ref(), facts.token_lifetimes);
    let token = match snapshot.blueprint.engine.carries_token() {
        true => decide_token(token, report.carried(), node, lifetimes, now),
        false => decide_token_by_hand(token, node),
    };
    match token {
        // An apply would change nothing: the object is ready, has no drift, and
        // its token is in place.
        TokenDecision::Keep
            if matches!(seen, Composite::Present { ready: true, drifted: false, .. }) =>
        {
            Ok(Effect::None(Outcome::Done))
        }
        TokenDecision::Hold(code) => Err(Obstacle::new(code, hold_message(code))),
        TokenDecision::Mint { .. } if needs_another_machine(snapshot, report) => {
            let message = "the token that its machine was made with is of no use any more, and a machine keeps its document; a node enrolled from it before, so it is not replaced by itself: let the machine enrol again with a token by hand, or retry or delete the resource";
            Err(Obstacle::new(BlockerCode::NodeLeft, message))
        }
        // Checked before a token is minted for an object that cannot carry it.
        TokenDecision::Mint { .. } => facts.injectable.clone().map(|()| Effect::Apply(token)),
        TokenDecision::Keep | TokenDecision::Slide { .. } => Ok(Effect::Apply(token)),
    }
}

/// Nothing is made for a server before what its group depends on is there. Once something is,
/// it goes on.
fn dependencies(snapshot: &ResourceSnapshot) -> Result<(), Obstacle> {
    if snapshot.waits_for.is_empty() || snapshot.attempt.phase() != Phase::Pending {
        return Ok(());
    }
    let each = snapshot.waits_for.iter().map(|one| {
        format!("group `{}` has {} of {} servers Ready", one.group, one.ready, one.wanted)
    });
    let message =
        format!("it waits for what it depends on: {}", each.collect::<Vec<_>>().join(", "));
    Err(Obstacle::new(BlockerCode::WaitingForDependency, message))
}

/// A token for a machine that keeps its document takes a new machine. One from which no node
/// ever enrolled is replaced; another may have what somebody needs.
fn needs_another_machine(snapshot: &ResourceSnapshot, report: &CompositeReport) -> bool {
    snapshot.blueprint.engine.keeps_document()
        && report.carried() != Carried::NoObject
        && snapshot.node.is_some()
}

const fn hold_message(code: BlockerCode) -> &'static str {
    match code {
        BlockerCode::NodeLeft => {
            "the node left by itself and its bootstrap token is consumed; let the machine enrol again, or retry or delete the resource"
        }
        _ => "the bootstrap token reached its maximum lifetime and no node enrolled with it",
    }
}

/// A node can only finish its work while it runs, so a substrate that stopped is
/// applied again as it is. Otherwise nobody would ever acknowledge the drain.
fn keep_node_running(snapshot: &ResourceSnapshot, seen: Composite) -> Effect {
    let stopped =
        matches!(seen, Composite::Present { ready: false, failed: false, terminating: false, .. });
    let drains = snapshot.node.as_ref().is_some_and(Node::can_drain);
    if stopped && drains && snapshot.placement.as_ref().is_some_and(Placement::is_ready) {
        Effect::Apply(TokenDecision::Keep)
    } else {
        Effect::None(Outcome::Done)
    }
}

/// Whether the resource begins to wait for its placement. True only once:
/// afterwards the placement loop continues by itself.
fn waits(snapshot: &ResourceSnapshot, obstacle: &Obstacle) -> bool {
    use BlockerCode::{NamespaceNotReady, ProviderNotReady};
    snapshot.placement.is_some()
        && matches!(obstacle.code, NamespaceNotReady | ProviderNotReady)
        && !snapshot.blockers.iter().any(|blocker| blocker.code == obstacle.code)
}

/// The action on the composite of a Failed attempt.
///
/// Failed is final, but the composite carries our finalizer: whoever deletes
/// the composite or its namespace would wait for us for ever. So the loop
/// releases a terminating composite as in any other phase, the node first. The
/// attempt stays Failed, and nothing is created again.
pub const fn release_terminating(observed: Observed) -> Action {
    match (observed.composite, observed.node) {
        (Composite::Present { terminating: true, .. }, NodeFact::Registered) => {
            Action::DeregisterNode
        }
        (
            Composite::Present { terminating: true, .. },
            NodeFact::Absent | NodeFact::NotExpected,
        ) => Action::DeleteSubstrate,
        (Composite::Unknown | Composite::Absent | Composite::Present { .. }, _) => Action::Noop,
    }
}

/// Whether the loop returns to a Failed attempt by itself. It does if the
/// composite could not be read: something woke the attempt for a reason, and a
/// composite that did not change since the watch broke off causes no second wake.
pub(crate) fn is_open(observed: Observed) -> bool {
    release_terminating(observed) != Action::Noop || observed.composite == Composite::Unknown
}

#[cfg(test)]
mod tests;
