//! One tick of one resource: observed facts in, outside action and record out.
//! The loop in `controller` brings the batch, the claim and the budget; this
//! is what it does with each resource.
//!
//! The order is the point: decide (pure), record the intent (token minted,
//! old one revoked), act outside, record the outcome and give the claim back.
//! A crash between any two leaves a state that the next tick recognises.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use slipway_core::audit::Actor;
use slipway_core::blocker::BlockerCode;
use slipway_core::blueprint::Engine;
use slipway_core::commit::Write;
use slipway_core::ids::{BootstrapTokenId, DrainId};
use slipway_core::observation::CompositeReport;
use slipway_core::phase::{Action, Composite, Observed, next};
use slipway_core::rules::prepare::{self, FreshToken, Read};
use slipway_core::rules::record::{self, Outcome, Pace, Tick};
use slipway_core::secret::Secret;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::token::{self, Carried, SecretHash, TokenKind, TokenPlan, TokenText};
use slipway_render::composite::owned_hash;
use slipway_render::local_node::{self, Injection, NodeSettings};

use crate::Context;
use crate::ports::store::{self, ResourceKey};
use crate::ports::substrate::{self, Address, Substrate};

/// The engines of this process and what they render with.
#[derive(Debug, Clone)]
pub struct Engines {
    engines: HashMap<Engine, Arc<dyn Substrate>>,
    pub node_settings: NodeSettings,
}

impl Engines {
    pub fn new(engines: Vec<Arc<dyn Substrate>>, node_settings: NodeSettings) -> Self {
        let engines = engines.into_iter().map(|engine| (engine.engine(), engine)).collect();
        Self { engines, node_settings }
    }

    pub fn get(&self, engine: Engine) -> Option<&Arc<dyn Substrate>> {
        self.engines.get(&engine)
    }
}

/// How long one outside action may take. It is started only with more lease
/// left than this, and abandoned after it: the actions are idempotent, and
/// what became of it is seen by the next observation.
pub const ACTION_DEADLINE: Duration = Duration::from_secs(10);

/// What became of a tick.
#[derive(Debug)]
pub enum Ticked {
    /// Recorded, with the claim given back in the same transaction.
    Recorded { action: Action, changed_phase: bool },
    /// Nothing to record; the claim is given back with others of its batch.
    Unchanged(slipway_core::commit::Release),
    /// Another worker or writer was faster; nothing was written here.
    Overtaken,
}

/// Where the composite of a snapshot lives. `None` without a placement.
pub fn address(snapshot: &ResourceSnapshot) -> Option<Address> {
    let placement = snapshot.placement.as_ref()?;
    Some(Address {
        provisioned_resource_id: snapshot.attempt.id(),
        namespace: placement.namespace.clone(),
        name: snapshot.attempt.xr_name().to_owned(),
        substrate_uid: placement.substrate_uid.clone(),
    })
}

/// Observes a batch: one call per engine, whatever the number of resources.
pub async fn observe(engines: &Engines, snapshots: &[ResourceSnapshot]) -> Vec<CompositeReport> {
    let unknown = |reason: &str| CompositeReport::Unknown { reason: reason.to_owned() };
    let mut reports: Vec<_> =
        snapshots.iter().map(|_| unknown("the project is not placed on a cluster")).collect();
    let mut groups: HashMap<Engine, (Vec<usize>, Vec<Address>)> = HashMap::new();
    for (index, snapshot) in snapshots.iter().enumerate() {
        if let Some(address) = address(snapshot) {
            let (indexes, addresses) = groups.entry(snapshot.blueprint.engine).or_default();
            indexes.push(index);
            addresses.push(address);
        }
    }
    for (engine, (indexes, addresses)) in groups {
        match engines.get(engine) {
            Some(substrate) => {
                let seen = substrate.observe(&addresses).await;
                for (index, report) in indexes.into_iter().zip(seen) {
                    reports[index] = report;
                }
            }
            None => {
                for index in indexes {
                    reports[index] = unknown("this process has no such engine; start one that has");
                }
            }
        }
    }
    reports
}

/// One resource in one tick: what is known of it and what may be done about it.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    pub context: &'a Context,
    pub engines: &'a Engines,
    pub snapshot: &'a ResourceSnapshot,
    pub report: &'a CompositeReport,
    pub pace: Pace,
    pub actor: &'a Actor,
    /// Whether more lease is left than a deadline. Asked right before each
    /// outside action.
    pub lease_allows: &'a (dyn Fn(Duration) -> bool + Send + Sync),
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("attempt", &self.snapshot.attempt.id()).finish_non_exhaustive()
    }
}

impl Step<'_> {
    /// Takes the resource one step.
    pub async fn take(self) -> Result<Ticked, store::Error> {
        let snapshot = self.snapshot;
        let desired = local_node::owned(snapshot, &self.engines.node_settings);
        let desired = desired.map(|owned| owned_hash(&owned));
        let observed = Observed {
            composite: self.report.composite(desired.as_deref().ok()),
            node: snapshot.node_fact(),
        };
        let (action, after) = next(observed, snapshot.attempt.phase());
        let mut read =
            Read { revision: snapshot.attempt.revision(), claim_token: snapshot.claim_token };

        let outcome = match action {
            // The drain is a write to our own registry; it happens in the record.
            Action::Noop | Action::DeregisterNode => Outcome::Done,
            Action::Apply => match self.apply(observed.composite, &mut read).await {
                Err(error) if overtaken(&error) => return Ok(Ticked::Overtaken),
                outcome => outcome?,
            },
            Action::DeleteSubstrate => self.delete().await,
        };

        let entropy = &self.context.entropy;
        let tick = Tick {
            read,
            report: self.report,
            observed,
            action,
            after,
            outcome,
            drain_id: DrainId::new(entropy.uuid()),
            pace: self.pace,
            jitter: entropy.jitter(),
        };
        // Without a prepare the snapshot is as fresh as the claim, so whether
        // there is anything to record can be asked of it before a transaction.
        if read.revision == snapshot.attempt.revision()
            && let Some(release) = record::record(snapshot, &tick, self.actor)?.only_release()
        {
            return Ok(Ticked::Unchanged(release));
        }
        let key = ResourceKey::Attempt(snapshot.attempt.id());
        let recorded = self
            .context
            .store
            .decide(key, &mut |fresh| record::record(fresh, &tick, self.actor))
            .await;
        match recorded {
            Err(error) if overtaken(&error) => Ok(Ticked::Overtaken),
            Err(error) => Err(error),
            Ok(()) => {
                Ok(Ticked::Recorded { action, changed_phase: after != snapshot.attempt.phase() })
            }
        }
    }

    async fn apply(&self, seen: Composite, read: &mut Read) -> Result<Outcome, store::Error> {
        let (snapshot, settings) = (self.snapshot, &self.engines.node_settings);
        let held = |code, message: String| Ok(Outcome::Held { code, message });
        let Some(placement) = &snapshot.placement else {
            return held(
                BlockerCode::NamespaceNotReady,
                "the project is not placed on a cluster".to_owned(),
            );
        };
        if !placement.is_ready() {
            return held(
                BlockerCode::NamespaceNotReady,
                format!(
                    "namespace {} on cluster {} is {}, not Ready",
                    placement.namespace, placement.cluster, placement.namespace_phase
                ),
            );
        }
        let Some(substrate) = self.engines.get(snapshot.blueprint.engine) else {
            return held(
                BlockerCode::SubstrateUnknown,
                format!("this process has no engine {}", snapshot.blueprint.engine),
            );
        };
        // Checked before a token is minted for it.
        if let Err(error) = local_node::owned(snapshot, settings) {
            return held(BlockerCode::ParameterValuesInvalid, error.to_string());
        }
        let plan = token::plan(
            snapshot.token.as_ref(),
            self.report.carried(),
            snapshot.node_fact(),
            self.context.settings.token_lifetimes,
            snapshot.now,
        );
        // Nothing would change: the object is up, ours to the letter, and its
        // token is in place.
        let settled = matches!(seen, Composite::Present { ready: true, drifted: false, .. });
        if plan == TokenPlan::Keep && settled {
            return Ok(Outcome::Done);
        }
        let injection = match plan {
            TokenPlan::Hold(code) => return held(code, hold_message(code).to_owned()),
            TokenPlan::Keep => verbatim(self.report),
            TokenPlan::Slide { .. } => {
                self.prepare(plan, None, read).await?;
                verbatim(self.report)
            }
            TokenPlan::Mint { .. } => {
                let (fresh, token) = self.fresh_token();
                self.prepare(plan, Some(fresh), read).await?;
                Injection::Fresh { id: fresh.id, token }
            }
        };
        let rendered = local_node::render(
            snapshot,
            &placement.namespace,
            settings,
            snapshot.claim_token,
            &injection,
        );
        let composite = match rendered {
            Ok(composite) => composite,
            Err(error) => return held(BlockerCode::ParameterValuesInvalid, error.to_string()),
        };
        if !(self.lease_allows)(ACTION_DEADLINE) {
            return held(BlockerCode::ApplyFailed, LEASE_TOO_SHORT.to_owned());
        }
        Ok(act(BlockerCode::ApplyFailed, substrate.apply(&composite)).await)
    }

    fn fresh_token(&self) -> (FreshToken, Secret) {
        let entropy = &self.context.entropy;
        let mut random = [0; 32];
        entropy.fill(&mut random);
        let text = TokenText::mint(
            &self.context.settings.token_environment,
            self.snapshot.attempt.project_id(),
            TokenKind::Node,
            &random,
        );
        let hash = SecretHash::of(text.expose().as_bytes());
        (FreshToken { id: BootstrapTokenId::new(entropy.uuid()), hash }, text)
    }

    /// Records the token intent, and keeps `read` in step with the row.
    async fn prepare(
        &self,
        plan: TokenPlan,
        fresh: Option<FreshToken>,
        read: &mut Read,
    ) -> Result<(), store::Error> {
        let (before, carried) = (*read, self.report.carried());
        let mut wrote_attempt = false;
        let key = ResourceKey::Attempt(self.snapshot.attempt.id());
        self.context
            .store
            .decide(key, &mut |current| {
                let commit = prepare::prepare(current, before, plan, carried, fresh, self.actor)?;
                let attempt = |write: &Write| matches!(write, Write::AttemptUpdate(_));
                wrote_attempt = commit.writes.iter().any(attempt);
                Ok(commit)
            })
            .await?;
        if wrote_attempt {
            read.revision = read.revision.next();
        }
        Ok(())
    }

    async fn delete(&self) -> Outcome {
        let substrate = self.engines.get(self.snapshot.blueprint.engine);
        let (Some(substrate), Some(address), Some(live)) =
            (substrate, address(self.snapshot), self.report.live())
        else {
            // Only a composite that was seen is deleted, so this is not reached.
            return Outcome::Done;
        };
        if !(self.lease_allows)(ACTION_DEADLINE) {
            return Outcome::Held {
                code: BlockerCode::DeleteFailed,
                message: LEASE_TOO_SHORT.to_owned(),
            };
        }
        act(BlockerCode::DeleteFailed, substrate.delete(&address, &live.uid)).await
    }
}

/// Fenced off: somebody else holds the row or wrote it meanwhile.
fn overtaken(error: &store::Error) -> bool {
    use slipway_core::ErrorKind::{ClaimLost, RevisionStale};
    matches!(error, store::Error::Refused(refusal) if matches!(refusal.kind, ClaimLost | RevisionStale))
}

const LEASE_TOO_SHORT: &str = "the claim is about to end; the next tick acts";

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

/// Runs an outside action within its deadline.
async fn act(
    code: BlockerCode,
    action: impl Future<Output = Result<(), substrate::Error>>,
) -> Outcome {
    match tokio::time::timeout(ACTION_DEADLINE, action).await {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(error)) => Outcome::Failed { code, message: error.to_string() },
        Err(_) => Outcome::Failed {
            code,
            message: format!("the substrate did not answer within {} s", ACTION_DEADLINE.as_secs()),
        },
    }
}
