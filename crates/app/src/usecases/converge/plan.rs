//! The decision of one tick: what is done about one resource, and what is
//! written down before it. Reads no clock and does no I/O; ids and secrets
//! that may be needed are drawn here.

use std::time::Instant;

use slipway_core::blocker::BlockerCode;
use slipway_core::ids::BootstrapTokenId;
use slipway_core::node::Node;
use slipway_core::observation::CompositeReport;
use slipway_core::phase::{Action, Composite, Observed, Phase, next};
use slipway_core::rules::absence;
use slipway_core::rules::control::Mode;
use slipway_core::rules::drain;
use slipway_core::rules::let_go;
use slipway_core::rules::prepare::{FreshToken, Read};
use slipway_core::rules::record::Outcome;
use slipway_core::secret::Secret;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::token::{self, Carried, SecretHash, TokenKind, TokenPlan, TokenText};
use slipway_render::composite::owned_hash;
use slipway_render::{Injection, can_inject, owned_of};

use super::{Engines, address};
use crate::Context;
use crate::ports::substrate::Address;

/// One resource in one tick: what is known of it and what is to be done.
#[derive(Debug)]
pub struct Planned {
    pub(super) snapshot: ResourceSnapshot,
    pub(super) report: CompositeReport,
    pub(super) observed: Observed,
    pub(super) action: Action,
    pub(super) after: Phase,
    pub(super) read: Read,
    pub(super) todo: Todo,
    /// The hash of what we would render, if that can be rendered.
    desired: Option<String>,
    /// When the snapshot had been read.
    read_at: Instant,
}

/// What a tick does outside.
#[derive(Debug)]
pub(super) enum Todo {
    /// Nothing; the outcome is known.
    Nothing(Outcome),
    Apply {
        /// Recorded before the apply.
        intent: Option<Intent>,
        injection: Injection,
    },
    Delete {
        address: Address,
        uid: String,
    },
}

/// What becomes of the token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Intent {
    pub(super) plan: TokenPlan,
    pub(super) fresh: Option<FreshToken>,
}

/// What is to be done about one resource, before it is bound to what it was
/// decided on.
#[derive(Debug)]
pub(super) struct Decision {
    observed: Observed,
    action: Action,
    after: Phase,
    todo: Todo,
    desired: Option<String>,
}

impl Decision {
    pub(super) fn on(
        context: &Context,
        engines: &Engines,
        snapshot: &ResourceSnapshot,
        report: &CompositeReport,
    ) -> Self {
        let desired = owned_of(snapshot, &engines.node_settings).map(|owned| owned_hash(&owned));
        let observed = Observed {
            composite: report.composite(desired.as_deref().ok()),
            node: snapshot.node_fact(),
        };
        let (mut action, after) = next(observed, snapshot.attempt.phase());
        match snapshot.attempt.phase() {
            // `next` asks for nothing there; what should not be there goes all the same.
            Phase::Deleted => action = absence::action(snapshot, report),
            // Nor there; what somebody deletes waits for our finalizer all the same.
            Phase::Failed => action = let_go::action(observed),
            _ => {}
        }
        let hash = desired.as_ref().ok().cloned();
        let todo = match action {
            // The drain is a write to our own registry; it happens in the record.
            Action::DeregisterNode => keep_alive(snapshot, report, observed.composite),
            Action::Noop => Todo::Nothing(Outcome::Done),
            Action::Apply => match desired {
                Ok(_) => apply(context, engines, snapshot, report, observed.composite),
                // Checked before a token is minted for it.
                Err(error) => Todo::Nothing(not_rendered(&error)),
            },
            Action::DeleteSubstrate => match (address(snapshot), report.live()) {
                (Some(address), Some(live)) => Todo::Delete { address, uid: live.uid.clone() },
                // Only a composite that was seen is deleted, so this is not reached.
                _ => Todo::Nothing(Outcome::Done),
            },
        };
        Self { observed, action, after, todo, desired: hash }
    }
}

impl Planned {
    pub(super) fn new(
        snapshot: ResourceSnapshot,
        report: CompositeReport,
        decision: Decision,
    ) -> Self {
        let Decision { observed, action, after, todo, desired } = decision;
        let (read, read_at) = (Read::of(&snapshot), Instant::now());
        Self { snapshot, report, observed, action, after, read, todo, desired, read_at }
    }

    /// Goes on from what was read after the intent was recorded. The facts of
    /// the cloud are those it was decided on: nothing is decided on them under
    /// lock, so they are not read again there.
    pub(super) fn prepared(&mut self, snapshot: ResourceSnapshot) {
        self.read = Read::of(&snapshot);
        let provider = self.snapshot.provider.take();
        self.snapshot = ResourceSnapshot { provider, ..snapshot };
        self.read_at = Instant::now();
    }

    /// Decides on what the apply answered, so that a substrate that is ready at
    /// once needs no second look. One that could not be read afterwards says
    /// nothing: what was seen before stands.
    pub(super) fn applied(&mut self, report: CompositeReport) {
        let composite = report.composite(self.desired.as_deref());
        if self.action != Action::Apply || composite == Composite::Unknown {
            return;
        }
        self.observed = Observed { composite, node: self.read.node };
        self.after = next(self.observed, self.snapshot.attempt.phase()).1;
        self.report = report;
    }

    /// Brings the snapshot's time to the database's time of now, counted on
    /// from when it was read. Never ahead of that clock: the count began after
    /// the reading.
    pub(super) fn bring_to_now(&mut self) {
        let looked = Instant::now();
        self.snapshot.now = self.snapshot.now.plus(looked.duration_since(self.read_at));
        self.read_at = looked;
    }

    pub fn snapshot(&self) -> &ResourceSnapshot {
        &self.snapshot
    }

    /// Whether something outside is asked for, and may be slow.
    pub fn acts(&self) -> bool {
        !matches!(self.todo, Todo::Nothing(_))
    }

    /// What this tick would change, in a word; none if it changes nothing.
    fn deed(&self) -> Option<&'static str> {
        match (&self.todo, self.action) {
            (Todo::Apply { .. }, _) => Some("apply"),
            (Todo::Delete { .. }, _) => Some("delete"),
            (Todo::Nothing(_), Action::DeregisterNode) => {
                let absent = self.observed.composite == Composite::Absent;
                drain::is_due(&self.snapshot, absent).then_some("drain")
            }
            (Todo::Nothing(_), _) => None,
        }
    }

    /// What becomes of this tick under a mode that does not act: it observes
    /// and records, and says what it would do.
    pub(super) fn withheld_by(&self, mode: &Mode) -> Option<Outcome> {
        mode.withholds(self.deed()?)
    }

    /// Before the intent is recorded: a token that nothing will carry must not
    /// be minted, tick after tick.
    pub(super) fn withhold(&mut self, mode: &Mode) {
        if let Some(outcome) = self.withheld_by(mode) {
            self.todo = Todo::Nothing(outcome);
        }
    }

    pub(super) fn intent(&self) -> Option<Intent> {
        match self.todo {
            Todo::Apply { intent, .. } => intent,
            Todo::Nothing(_) | Todo::Delete { .. } => None,
        }
    }
}

/// What is shown of a composite that cannot be rendered.
pub(super) fn not_rendered(error: &slipway_render::Error) -> Outcome {
    use slipway_render::Error;
    let code = match error {
        Error::Parameters(_) => BlockerCode::ParameterValuesInvalid,
        Error::NotPlaced => BlockerCode::NamespaceNotReady,
        Error::Document(_)
        | Error::NoCompositeType { .. }
        | Error::NoNodeImage { .. }
        | Error::Engine(_) => BlockerCode::ApplyFailed,
    };
    Outcome::Held { code, message: error.to_string() }
}

fn held(code: BlockerCode, message: impl Into<String>) -> Todo {
    Todo::Nothing(Outcome::Held { code, message: message.into() })
}

fn apply(
    context: &Context,
    engines: &Engines,
    snapshot: &ResourceSnapshot,
    report: &CompositeReport,
    seen: Composite,
) -> Todo {
    let Some(placement) = &snapshot.placement else {
        return held(BlockerCode::NamespaceNotReady, "the project is not placed on a cluster");
    };
    let provider = snapshot.provider.as_ref();
    let provider = provider.map(|facts| (&*facts.provider, facts.credential_id));
    if let Err((code, message)) = placement.admits(provider) {
        // Once, when it begins to wait: the fleet looks again by itself.
        if !snapshot.blockers.iter().any(|blocker| blocker.code == code) {
            context.wakes.wake_fleet();
        }
        return held(code, message);
    }
    if engines.of(snapshot).is_none() {
        return held(
            BlockerCode::SubstrateUnknown,
            format!("this process has no engine {}", snapshot.blueprint.engine),
        );
    }
    let plan = token::plan(
        snapshot.token.as_ref(),
        report.carried(),
        snapshot.node_fact(),
        context.settings.token_lifetimes,
        snapshot.now,
    );
    // Nothing would change: the object is up, ours to the letter, and its
    // token is in place.
    let settled = matches!(seen, Composite::Present { ready: true, drifted: false, .. });
    if plan == TokenPlan::Keep && settled {
        return Todo::Nothing(Outcome::Done);
    }
    let (intent, injection) = match plan {
        TokenPlan::Hold(code) => return held(code, hold_message(code)),
        TokenPlan::Keep => (None, verbatim(report)),
        TokenPlan::Slide { .. } => (Some(Intent { plan, fresh: None }), verbatim(report)),
        TokenPlan::Mint { .. } => {
            if let Err(error) = can_inject(snapshot, &engines.node_settings) {
                return Todo::Nothing(not_rendered(&error));
            }
            let (fresh, token) = fresh_token(context, snapshot);
            (Some(Intent { plan, fresh: Some(fresh) }), Injection::Fresh { id: fresh.id, token })
        }
    };
    Todo::Apply { intent, injection }
}

/// A node that is to finish its work must run: one whose substrate stopped is
/// applied again as it is. Without it nobody would ever acknowledge the drain.
fn keep_alive(snapshot: &ResourceSnapshot, report: &CompositeReport, seen: Composite) -> Todo {
    let stopped =
        matches!(seen, Composite::Present { ready: false, failed: false, terminating: false, .. });
    let drains = snapshot.node.as_ref().is_some_and(Node::can_drain);
    match &snapshot.placement {
        Some(placement) if stopped && drains && placement.is_ready() => {
            Todo::Apply { intent: None, injection: verbatim(report) }
        }
        _ => Todo::Nothing(Outcome::Done),
    }
}

fn fresh_token(context: &Context, snapshot: &ResourceSnapshot) -> (FreshToken, Secret) {
    let entropy = &context.entropy;
    let mut random = [0; 32];
    entropy.fill(&mut random);
    let text = TokenText::mint(
        &context.settings.token_environment,
        snapshot.attempt.project_id(),
        TokenKind::Node,
        &random,
    );
    let hash = SecretHash::of(text.expose().as_bytes());
    (FreshToken { id: BootstrapTokenId::new(entropy.uuid()), hash }, text)
}

/// What the live object carries, to be applied again to the letter.
fn verbatim(report: &CompositeReport) -> Injection {
    match report.live().and_then(|live| live.injected.clone().map(|document| (live, document))) {
        Some((live, document)) => {
            let id = match live.carried {
                Carried::Token { id, .. } => Some(id),
                Carried::NoObject | Carried::Nothing => None,
            };
            Injection::Verbatim { id, document }
        }
        None => Injection::None,
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
