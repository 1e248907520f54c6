//! The outside half of a tick: rendering, and the one action.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::decide::{Decision, Effect, Facts, Obstacle, Outcome};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::orphan::KeepOrder;
use slipway_core::broker::prepare::FreshToken;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::BootstrapTokenId;
use slipway_core::nodes::token::{Carried, SecretHash, TokenDecision, TokenKind, TokenText};
use slipway_core::secret::Secret;
use slipway_render::cloud_tags::Skipped;
use slipway_render::composite::owned_hash;
use slipway_render::{
    Injection, RenderedComposite, can_inject, composite_of, crossplane, owned_of,
};
use tracing::Instrument;

use super::{Acted, Batch, Item, Ticked, address, tick_span};
use crate::ports::substrate::{Address, Error};

/// A token drawn for an apply: what is recorded, and what is injected.
#[derive(Debug)]
pub(super) struct Minted {
    pub(super) fresh: FreshToken,
    text: Secret,
}

/// The action to request of the substrate.
enum Request {
    Apply(RenderedComposite),
    /// Tells these to keep their external objects first.
    Delete {
        address: Address,
        uid: String,
        kept: Vec<KeepOrder>,
    },
}

impl Batch<'_> {
    /// The inputs of the decision besides rows and observation.
    pub(super) fn facts(&self, snapshot: &ResourceSnapshot) -> Facts {
        let settings = &self.engines.node_settings;
        Facts {
            owned_hash: owned_of(snapshot, settings)
                .map(|owned| owned_hash(&owned))
                .map_err(|error| not_rendered(&error)),
            injectable: can_inject(snapshot, settings).map_err(|error| not_rendered(&error)),
            served: self.engines.of(snapshot).is_some(),
            token_lifetimes: self.context.settings.token_lifetimes,
        }
    }

    /// Draws id and secret if the decision mints a token.
    pub(super) fn mint(&self, snapshot: &ResourceSnapshot, decision: &Decision) -> Option<Minted> {
        let Effect::Apply(TokenDecision::Mint { .. }) = decision.effect else { return None };
        let entropy = &self.context.entropy;
        let mut random = [0; 32];
        entropy.fill(&mut random);
        let environment = &self.context.settings.token_environment;
        let project = snapshot.attempt.project_id();
        let text = TokenText::mint(environment, project, TokenKind::Node, &random);
        let hash = SecretHash::of(text.expose().as_bytes());
        Some(Minted { fresh: FreshToken { id: BootstrapTokenId::new(entropy.uuid()), hash }, text })
    }

    /// Carries out the outside action of the decision. A panic before the engine is
    /// called becomes the error of this resource alone. Waits for a slot among the
    /// actions on the cluster; the lease is renewed during the wait and checked
    /// after it.
    pub(super) async fn act(&self, mut item: Item) -> Acted {
        let _permit = match item.acts() {
            // The semaphore is never closed; if it were, the lease would still
            // prevent overlap.
            true => self.actions.acquire().await.ok(),
            false => None,
        };
        let span = tick_span(&item.snapshot);
        let acted = AssertUnwindSafe(self.carry_out(&mut item)).catch_unwind();
        match acted.instrument(span).await {
            Ok(Some(outcome)) => Ok((item, outcome)),
            Ok(None) => Err((item.snapshot, Ticked::Expiring)),
            Err(_) => Err((item.snapshot, Ticked::failed("the action panicked"))),
        }
    }

    /// `None` if the lease is about to end; then no action started.
    async fn carry_out(&self, item: &mut Item) -> Option<Outcome> {
        let snapshot = &item.snapshot;
        let (code, request) = match self.request(item) {
            Ok(request) => request,
            Err(outcome) => return Some(outcome),
        };
        let blocked = |code, message: String| Some(Outcome::Blocked(Obstacle { code, message }));
        let Some(substrate) = self.engines.of(snapshot) else {
            let message = "this process has no such engine".to_owned();
            return blocked(BlockerCode::SubstrateUnknown, message);
        };
        // Kept until the action ends. Acquired before the lease check, since it
        // may query the database.
        let _permit = match self.permits.enter(&self.context.stores).await {
            Ok(Ok(pass)) => pass,
            Ok(Err(mode)) => {
                let withheld = item.decision.withheld_by(snapshot, &mode);
                return Some(withheld.unwrap_or(Outcome::Done));
            }
            Err(error) => return blocked(code, format!("the mode could not be read: {error}")),
        };
        if !self.may_act(snapshot) {
            return None;
        }
        let action = async {
            match &request {
                Request::Apply(rendered) => substrate.apply(rendered).await.map(Some),
                Request::Delete { address, uid, kept } => {
                    if !kept.is_empty() {
                        substrate.keep(address, kept).await?;
                    }
                    substrate.delete(address, uid).await.map(|()| None)
                }
            }
        };
        let deadline = self.action_deadline;
        let unanswered = |message: String| Outcome::Unanswered(Obstacle { code, message });
        let action = AssertUnwindSafe(action).catch_unwind();
        let answer = match tokio::time::timeout(deadline, action).await {
            Ok(Ok(answer)) => answer,
            // It may have sent a request before.
            Ok(Err(_)) => {
                let message = "the engine panicked during the action".to_owned();
                tracing::error!("{message}; the claim lapses");
                let code = BlockerCode::InternalError;
                return Some(Outcome::Unanswered(Obstacle { code, message }));
            }
            Err(_) => {
                let limit = deadline.as_millis();
                let message = format!("the substrate did not answer within {limit} ms");
                return Some(unanswered(message));
            }
        };
        Some(match answer {
            Ok(seen) => {
                if let Some(report) = seen
                    && item.decision.applied(&item.snapshot, &report, &item.facts)
                {
                    item.report = report;
                }
                Outcome::Done
            }
            Err(Error::Unanswered(message)) => unanswered(message),
            // The mode changed after the action began.
            Err(Error::Withheld) => match self.permits.enter(&self.context.stores).await {
                Ok(Err(mode)) => {
                    item.decision.withheld_by(&item.snapshot, &mode).unwrap_or(Outcome::Done)
                }
                Ok(Ok(_)) | Err(_) => return None,
            },
            Err(Error::NoCapacity(message)) => {
                Outcome::Failed(Obstacle { code: BlockerCode::NoCapacity, message })
            }
            Err(error) => Outcome::Failed(Obstacle { code, message: error.to_string() }),
        })
    }

    /// The action, and the blocker code for its failure; or the outcome, if
    /// there is no action.
    fn request(&self, item: &Item) -> Result<(BlockerCode, Request), Outcome> {
        let snapshot = &item.snapshot;
        match &item.decision.effect {
            Effect::None(outcome) => Err(outcome.clone()),
            Effect::Apply(_) => {
                let settings = &self.engines.node_settings;
                let rendered = composite_of(snapshot, settings, &item.injection())
                    .map_err(|error| Outcome::Blocked(not_rendered(&error)))?;
                log_skipped(snapshot);
                Ok((BlockerCode::ApplyFailed, Request::Apply(rendered)))
            }
            Effect::Delete { uid } => {
                // A delete follows an observation of the composite, which
                // needed an address.
                let address = address(snapshot).ok_or(Outcome::Done)?;
                let (uid, kept) = (uid.clone(), snapshot.kept.clone());
                Ok((BlockerCode::DeleteFailed, Request::Delete { address, uid, kept }))
            }
        }
    }
}

impl Item {
    fn injection(&self) -> Injection {
        match &self.minted {
            Some(Minted { fresh, text }) => Injection::Fresh { id: fresh.id, token: text.clone() },
            None => verbatim(&self.report),
        }
    }
}

/// The document that the live object carries, to be applied again unchanged.
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

/// The blocker for a composite that cannot be rendered.
fn not_rendered(error: &slipway_render::Error) -> Obstacle {
    use slipway_render::Error as Render;
    let code = match error {
        Render::Parameters(_) => BlockerCode::ParameterValuesInvalid,
        Render::NotPlaced => BlockerCode::NamespaceNotReady,
        Render::Document(_) | Render::NoCompositeType { .. } | Render::NoNodeImage { .. } => {
            BlockerCode::ApplyFailed
        }
    };
    Obstacle::new(code, error.to_string())
}

/// Logs the labels that should become cloud tags and cannot.
fn log_skipped(snapshot: &ResourceSnapshot) {
    let attempt_id = snapshot.attempt.id();
    for Skipped { key, reason } in crossplane::cloud_tags(snapshot).skipped {
        tracing::info!(%attempt_id, key, %reason, "a label cannot become a cloud tag and is skipped");
    }
}
