//! The decision of a tick, before anything is done.
//!
//! [`decide`] alone says what a tick does about a resource. It asks [`next`] for
//! action and phase and adds what `next` does not see: the object that must not
//! exist at Deleted, the finalizer that somebody waits for at Failed, the
//! placement, the token and the mode. The application carries the [`Decision`]
//! out and hands what came of it to [`crate::rules::record`].

use serde_json::Value;

use crate::blocker::BlockerCode;
use crate::node::Node;
use crate::observation::CompositeReport;
use crate::phase::{Action, Composite, NodeFact, Observed, Phase, next};
use crate::placement::Placement;
use crate::rules::control::Mode;
use crate::rules::{deletion_verification, drain};
use crate::snapshot::ResourceSnapshot;
use crate::time::Timestamp;
use crate::token::{self, TokenDecision, TokenLifetimes};

/// What the application knows beside the rows and the observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The hash over the fields that we own, or why we cannot render them.
    pub owned_hash: Result<String, Obstacle>,
    /// Whether a token that is yet to be minted can be injected.
    pub injectable: Result<(), Obstacle>,
    /// Whether this process serves the engine on the resource's cluster.
    pub served: bool,
    pub token_lifetimes: TokenLifetimes,
}

/// Why an action cannot be attempted, as the blocker that shows it.
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

/// What came of the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// It was not attempted, for a reason that is nobody's error.
    Blocked(Obstacle),
    /// It was not attempted, because the mode of the installation does not act.
    Withheld {
        code: BlockerCode,
        message: String,
        evidence: Value,
    },
    /// It was attempted and failed; the loop backs off.
    Failed(Obstacle),
}

/// What the application does outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing; the outcome is known.
    None(Outcome),
    /// Applies the composite. A token decision that writes (slide, mint) is
    /// recorded before the apply.
    Apply(TokenDecision),
    /// Deletes the composite with this uid.
    Delete { uid: String },
}

/// One resource in one tick: what is to be done, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub observed: Observed,
    pub action: Action,
    /// The phase after the action.
    pub phase: Phase,
    pub effect: Effect,
    /// The resource begins to wait for its placement, whose loop is woken.
    pub wakes_placement: bool,
}

/// Decides what a tick does about a resource.
///
/// *Guarantees.* Total and deterministic. The substrate is never deleted while
/// the node is registered, and only by the uid that was observed. An unknown
/// composite changes no phase, except that a registered node is drained all the
/// same. Under a mode that does not act there is neither an effect nor a token
/// to mint, whatever was observed.
pub fn decide(
    snapshot: &ResourceSnapshot,
    report: &CompositeReport,
    facts: &Facts,
    mode: &Mode,
    now: Timestamp,
) -> Decision {
    let (observed, (action, phase)) = advance(snapshot, report, facts);
    let action = match snapshot.attempt.phase() {
        // `next` asks for nothing at the sinks; these two exceptions change no phase.
        Phase::Deleted => deletion_verification::action(snapshot, report),
        Phase::Failed => release_terminating(observed),
        _ => action,
    };
    let effect = match (action, report.live()) {
        (Action::Apply, _) => apply(snapshot, report, facts, observed.composite, now),
        // The record writes the drain: it is a write to our own registry.
        (Action::DeregisterNode, _) => Ok(keep_node_running(snapshot, observed.composite)),
        (Action::DeleteSubstrate, Some(live)) => Ok(Effect::Delete { uid: live.uid.clone() }),
        (Action::DeleteSubstrate, None) | (Action::Noop, _) => Ok(Effect::None(Outcome::Done)),
    };
    let wakes_placement = effect.as_ref().err().is_some_and(|obstacle| waits(snapshot, obstacle));
    let effect = effect.unwrap_or_else(|obstacle| Effect::None(Outcome::Blocked(obstacle)));
    let mut decision = Decision { observed, action, phase, effect, wakes_placement };
    // Before a token is minted that nothing will carry, tick after tick.
    if let Some(withheld) = decision.withheld_by(snapshot, mode) {
        decision.effect = Effect::None(withheld);
    }
    decision
}

impl Decision {
    /// The outcome under a mode that does not act: the tick observes, records
    /// and says what it would do. `None` if the mode acts or there is nothing
    /// to withhold.
    pub fn withheld_by(&self, snapshot: &ResourceSnapshot, mode: &Mode) -> Option<Outcome> {
        let absent = self.observed.composite == Composite::Absent;
        let name = match (&self.effect, self.action) {
            (Effect::Apply(_), _) => "apply",
            (Effect::Delete { .. }, _) => "delete",
            (Effect::None(_), Action::DeregisterNode) if drain::is_due(snapshot, absent) => "drain",
            (Effect::None(_), _) => return None,
        };
        mode.withholds(name)
    }

    /// Takes over what an apply answered, so that a substrate that is ready at
    /// once needs no second observation. Answers whether it did: if the object
    /// could not be read after the apply, the earlier observation stays.
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
    let placement = snapshot.placement.as_ref().ok_or_else(|| {
        Obstacle::new(BlockerCode::NamespaceNotReady, "the project is not placed on a cluster")
    })?;
    let provider = snapshot.provider.as_ref();
    let provider = provider.map(|facts| (&*facts.provider, facts.credential_id));
    placement.admits(provider).map_err(|(code, message)| Obstacle { code, message })?;
    if !facts.served {
        let message = format!("this process has no engine {}", snapshot.blueprint.engine);
        return Err(Obstacle::new(BlockerCode::SubstrateUnknown, message));
    }
    let node = snapshot.node_fact();
    let lifetimes = facts.token_lifetimes;
    let token = token::decide(snapshot.token.as_ref(), report.carried(), node, lifetimes, now);
    match token {
        // Nothing would change: the object is up, ours to the letter, and its
        // token is in place.
        TokenDecision::Keep
            if matches!(seen, Composite::Present { ready: true, drifted: false, .. }) =>
        {
            Ok(Effect::None(Outcome::Done))
        }
        TokenDecision::Hold(code) => Err(Obstacle::new(code, hold_message(code))),
        // Checked before a token is minted for an object that cannot carry it.
        TokenDecision::Mint { .. } => facts.injectable.clone().map(|()| Effect::Apply(token)),
        TokenDecision::Keep | TokenDecision::Slide { .. } => Ok(Effect::Apply(token)),
    }
}

const fn hold_message(code: BlockerCode) -> &'static str {
    match code {
        BlockerCode::NodeLeft => {
            "the node left by itself and its bootstrap token is used up; a person decides whether to start over"
        }
        _ => "the bootstrap token was prolonged up to its cap and nobody enrolled with it",
    }
}

/// A node that is to finish its work must run: one whose substrate stopped is
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

/// Whether the resource begins to wait for its placement. Once: afterwards the
/// placement loop goes on by itself.
fn waits(snapshot: &ResourceSnapshot, obstacle: &Obstacle) -> bool {
    use BlockerCode::{NamespaceNotReady, ProviderNotReady};
    snapshot.placement.is_some()
        && matches!(obstacle.code, NamespaceNotReady | ProviderNotReady)
        && !snapshot.blockers.iter().any(|blocker| blocker.code == obstacle.code)
}

/// What is done about the composite of a Failed attempt.
///
/// Failed is final, but our finalizer is on the composite: whoever deletes that,
/// or its namespace, would wait for us for ever. So the loop releases a
/// terminating composite as in any other phase, the node first. The attempt
/// stays Failed, and nothing is made anew.
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

/// Whether the loop comes back to a Failed attempt by itself. It does where the
/// composite could not be read: somebody had a reason to wake it, and a
/// composite that is as it was when the watch broke off wakes nobody.
pub(crate) fn is_open(observed: Observed) -> bool {
    release_terminating(observed) != Action::Noop || observed.composite == Composite::Unknown
}

#[cfg(test)]
mod tests;
