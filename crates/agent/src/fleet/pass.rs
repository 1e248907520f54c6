//! One round of an agent: ask what it should have, decide, carry it out, report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use slipway_wire::fleet::{DeploymentObject, PruneRefusal};
use tokio::sync::watch;
use tokio::time::Instant;

use super::backend::{Backend, Fault, Owner};
use super::client::{Answer, Client, ClusterContact};
use super::decide::{Action, Evidence, Plan, decide};
use super::error::Error;
use super::inventory::{Inventory, Report, set_digest};
use super::observe::KnownHealth;
use super::retries::Retries;
use crate::http::Failure;

/// The status with which an agent acts.
const ACTIVE: &str = "ACTIVE";

/// What an agent tells its heartbeat about its cluster; `None` before it asked.
pub(crate) type Vitals = watch::Sender<Option<ClusterContact>>;

/// Why a pass broke off.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The control plane did not answer or refused.
    Server(Failure),
    /// The backend did not answer.
    Backend(String),
    /// The agent must not go on.
    Fatal(Error),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Server(failure)
    }
}

impl From<getrandom::Error> for Stop {
    fn from(error: getrandom::Error) -> Self {
        Self::Fatal(error.into())
    }
}

/// What came of a pass.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// The answer was another one than before.
    pub(crate) is_new: bool,
    /// Something was carried out, or tried.
    pub(crate) has_acted: bool,
    /// Absent stacks wait for a second equal answer.
    pub(crate) is_unproven: bool,
    /// The status, if it is not `ACTIVE`.
    pub(crate) inactive: Option<String>,
    /// What is not as it should be.
    pub(crate) problems: Vec<String>,
}

/// An agent between two passes. Everything that matters is in the inventory of the
/// backend; what is here only spares requests.
#[derive(Debug)]
pub(crate) struct Agent<'a, B> {
    pub(super) client: &'a Client,
    pub(super) id: String,
    pub(super) owner: Owner,
    pub(super) backend: B,
    pub(super) vitals: &'a Vitals,
    /// `None` if it has to be read.
    pub(super) inventory: Option<Inventory>,
    pub(super) answer: Option<Offered>,
    evidence: Evidence,
    /// The digest of the prune that the control plane knows to be refused.
    refused: Option<String>,
    pub(super) retries: Retries,
    /// Reports about drift that were not delivered yet.
    pub(super) drifts: Vec<Report>,
    pub(super) drift_cursor: usize,
    pub(super) known_health: BTreeMap<String, KnownHealth>,
    is_active: bool,
}

/// The last complete answer.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    tag: Option<String>,
    pub(super) objects: Arc<Vec<DeploymentObject>>,
}

impl<'a, B: Backend> Agent<'a, B> {
    pub(crate) fn new(
        client: &'a Client,
        (id, owner): (String, Owner),
        backend: B,
        vitals: &'a Vitals,
    ) -> Self {
        Self {
            client,
            id,
            owner,
            backend,
            vitals,
            inventory: None,
            answer: None,
            evidence: Evidence::default(),
            refused: None,
            retries: Retries::default(),
            drifts: Vec::new(),
            drift_cursor: 0,
            known_health: BTreeMap::new(),
            is_active: false,
        }
    }

    /// When something has to be done that no answer of the server announces.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.retries.next()
    }

    /// The same for what only takes its time.
    pub(crate) fn next_waiting(&self) -> Option<Instant> {
        self.retries.next_waiting()
    }

    /// One pass. The server may hold its answer back for `wait` if nothing changed.
    pub(crate) async fn pass(&mut self, wait: Duration) -> Result<Summary, Stop> {
        if !self.is_active
            && let Some(status) = self.inactive().await?
        {
            return Ok(Summary { inactive: Some(status), ..Summary::default() });
        }
        let is_new = self.poll(wait).await?;
        self.contact().await?;
        let Some(offered) = self.answer.as_ref().map(|answer| Arc::clone(&answer.objects)) else {
            return Ok(Summary::default());
        };
        let plan = self.plan(&offered).await?;
        let mut summary = Summary { is_new, is_unproven: plan.is_unproven, ..Summary::default() };
        let now = Instant::now();
        let due: Vec<_> = plan.actions.iter().filter(|action| self.is_due(action, now)).collect();
        if !due.is_empty() {
            // Somebody may have deactivated it since the last pass.
            if let Some(status) = self.inactive().await? {
                return Ok(Summary { inactive: Some(status), ..summary });
            }
            summary.has_acted = true;
        }
        for action in due {
            let done = self.carry_out(action).await;
            self.classify(done)?;
            self.deliver().await?;
        }
        self.deliver().await?;
        let is_idle = !summary.has_acted && !summary.is_unproven;
        if is_idle && let Some(status) = self.check_drift(&offered).await? {
            return Ok(Summary { inactive: Some(status), ..summary });
        }
        self.tell_health().await?;
        self.end_refusal(&plan).await;
        let known: BTreeSet<_> = offered.iter().map(|object| object.stack_id.clone()).collect();
        let inventory = self.inventory.as_ref();
        self.retries.retain(|stack| {
            known.contains(stack) || inventory.is_some_and(|held| held.contains_key(stack))
        });
        summary.problems = self.retries.problems();
        summary.problems.extend(plan.refusal.as_ref().map(refusal_text));
        Ok(summary)
    }

    /// The status if the agent must not act; `None` if it may.
    pub(super) async fn inactive(&mut self) -> Result<Option<String>, Failure> {
        let agent = self.client.agent(&self.id).await?;
        self.is_active = agent.status == ACTIVE;
        Ok((!self.is_active).then_some(agent.status))
    }

    /// Asks what the agent should have; whether that is new.
    async fn poll(&mut self, wait: Duration) -> Result<bool, Failure> {
        let tag = self.answer.as_ref().and_then(|answer| answer.tag.as_deref());
        match self.client.target_state(&self.id, tag, wait).await {
            Ok(Answer::Unchanged) => {
                self.evidence.unchanged();
                Ok(false)
            }
            Ok(Answer::Objects { tag, objects }) => {
                self.evidence.answered(&objects);
                let before = self.answer.as_ref().map(|answer| Arc::clone(&answer.objects));
                let is_new = before.is_none_or(|before| *before != objects);
                self.answer = Some(Offered { tag, objects: Arc::new(objects) });
                Ok(is_new)
            }
            Err(failure) => {
                self.evidence.failed();
                Err(failure)
            }
        }
    }

    /// Makes sure that the backend answers and that the inventory is its.
    async fn contact(&mut self) -> Result<(), Stop> {
        let contact = self.backend.contact().await;
        let contact = self.classify(contact)?;
        if let Some(latency) = contact.latency {
            let latency_ms = i32::try_from(latency.as_millis()).ok();
            self.vitals.send_replace(Some(ClusterContact { is_reachable: true, latency_ms }));
        }
        if contact.is_new {
            self.inventory = None;
            self.known_health.clear();
        }
        if self.inventory.is_none() {
            let owner = self.owner.clone();
            let loaded = self.backend.load(&owner).await;
            self.inventory = Some(self.classify(loaded)?);
        }
        Ok(())
    }

    /// The value, or the reason to break the pass off.
    pub(super) fn classify<T>(&mut self, done: Result<T, Fault>) -> Result<T, Stop> {
        match done {
            Ok(value) => Ok(value),
            Err(Fault::Unreachable(reason)) => {
                if B::HAS_CLUSTER {
                    let away = ClusterContact { is_reachable: false, latency_ms: None };
                    self.vitals.send_replace(Some(away));
                }
                Err(Stop::Backend(reason))
            }
            Err(Fault::Refused(reason) | Fault::Moved(reason)) => {
                // Whatever this process believes may be wrong.
                self.inventory = None;
                Err(Stop::Backend(reason))
            }
            Err(Fault::Foreign(reason)) => {
                Err(Stop::Fatal(Error::OtherOwner { target: self.backend.name(), reason }))
            }
        }
    }

    /// Decides. A prune that is refused is told to the control plane, which may know
    /// that somebody confirmed it.
    async fn plan<'o>(&mut self, offered: &'o [DeploymentObject]) -> Result<Plan<'o>, Stop> {
        let nothing = Inventory::new();
        let inventory = self.inventory.as_ref().unwrap_or(&nothing);
        let plan = decide(offered, inventory, &self.evidence, &BTreeSet::new());
        let Some(refusal) = &plan.refusal else { return Ok(plan) };
        if self.refused.as_ref() != Some(&refusal.digest) {
            tracing::warn!(
                digest = refusal.digest,
                objects = refusal.objects,
                total = refusal.total,
                stacks = ?refusal.stacks,
                "a prune is refused until somebody confirms it"
            );
            self.client.refuse_prune(&self.id, refusal).await?;
            self.refused = Some(refusal.digest.clone());
        }
        let confirmed = self.client.confirmed_prunes(&self.id).await?;
        let confirmed = confirmed.into_iter().map(|one| one.digest).collect();
        Ok(decide(offered, inventory, &self.evidence, &confirmed))
    }

    /// Takes back a refusal that has no reason any more, so that what was confirmed is
    /// confirmed once.
    async fn end_refusal(&mut self, plan: &Plan<'_>) {
        let prunes = plan.actions.iter().any(|action| matches!(action, Action::Prune { .. }));
        if self.refused.is_none() || plan.refusal.is_some() || plan.is_unproven || prunes {
            return;
        }
        let digest = set_digest(std::iter::empty());
        let none = PruneRefusal { digest, objects: 0, stacks: Vec::new(), total: 0 };
        match self.client.refuse_prune(&self.id, &none).await {
            Err(failure) if failure.refusal().is_none() => {}
            _ => self.refused = None,
        }
    }

    fn is_due(&self, action: &Action<'_>, now: Instant) -> bool {
        let inventory = self.inventory.as_ref();
        let held = |stack: &str| {
            let entry = inventory.and_then(|held| held.get(stack));
            entry.map(|entry| entry.object_id.clone()).unwrap_or_default()
        };
        match action {
            Action::Release { stack, object_id } => self.retries.is_due(stack, object_id, now),
            Action::Remove { marker: object }
            | Action::Refuse { object, .. }
            | Action::Apply { object } => self.retries.is_due(&object.stack_id, &object.id, now),
            Action::Sweep { stack } | Action::Prune { stack } => {
                self.retries.is_due(stack, &held(stack), now)
            }
            Action::Forget { .. } => true,
        }
    }
}

fn refusal_text(refusal: &PruneRefusal) -> String {
    format!(
        "the answer lacks {} stacks with {} of {} objects, more than an agent removes by itself; find out why, and confirm the digest {} if that is meant",
        refusal.stacks.len(),
        refusal.objects,
        refusal.total,
        refusal.digest
    )
}
