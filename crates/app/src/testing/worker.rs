//! The suite's worker: claims, ticks and releases as the loop does, with the
//! simulated substrate.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use slipway_core::access::audit::Actor;
use slipway_core::blocker::Deadlines;
use slipway_core::broker::decide::{Decision, Facts, Outcome, decide};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};
use slipway_core::broker::phase::Action;
use slipway_core::broker::prepare::{FreshToken, Read, prepare};
use slipway_core::broker::record::{Pace, Tick, record};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Recheck, Recorded, Release};
use slipway_core::ids::{BootstrapTokenId, DrainId, ProvisionedResourceId};
use slipway_core::nodes::token::{Carried, TokenDecision, TokenLifetimes, decide_token};
use slipway_core::operations::control::Mode;
use slipway_core::{ErrorKind, Phase, Refusal};

use super::world::World;
use crate::broker::port::{Claimed, Decided, ResourceKey};
use crate::ports::store::Error;

/// Long enough that it never expires during a test.
pub(super) const LEASE: Duration = Duration::from_secs(600);

impl World {
    /// Makes one attempt due, as a watch would.
    pub(super) async fn wake(&self, attempt: ProvisionedResourceId) -> Result<(), Error> {
        let mut rule = |_: &ResourceSnapshot| -> Result<Commit, Refusal> {
            Ok(Commit { wakes: vec![attempt.into()], ..Commit::default() })
        };
        self.store.broker.decide(ResourceKey::Attempt(attempt), &mut rule).await
    }

    /// Claims this attempt if it is due. Parks others that are due: they belong
    /// to earlier rounds.
    pub(super) async fn claim(&self, attempt: ProvisionedResourceId) -> Option<Claimed> {
        let partition = self.snapshot(attempt).await.attempt.partition();
        let mut mine = None;
        loop {
            let claimed = self
                .store
                .broker
                .attempt_claim("suite", partition, 200, LEASE)
                .await
                .expect("a claim");
            let (own, others): (Vec<_>, Vec<_>) =
                claimed.into_iter().partition(|claimed| claimed.id == attempt);
            mine = mine.or(own.first().copied());
            if others.is_empty() {
                return mine;
            }
            let parked: Vec<_> =
                others.iter().map(|other| released(*other, Recheck::Never)).collect();
            self.store.broker.attempt_release(&parked).await.expect("a release");
        }
    }

    /// Parks everything that earlier tests left: claims all rows and releases
    /// them so that they never become due by themselves.
    pub(super) async fn park_all(&self) {
        self.store.broker.attempt_wake_all(self.partition).await.expect("a wake");
        let claimed = self
            .store
            .broker
            .attempt_claim("suite", self.partition, 10_000, LEASE)
            .await
            .expect("a claim");
        let parked: Vec<_> =
            claimed.into_iter().map(|claimed| released(claimed, Recheck::Never)).collect();
        self.store.broker.attempt_release(&parked).await.expect("a release");
    }

    /// Wakes this attempt and claims it with a lease of this length.
    pub(super) async fn claim_with_lease(
        &self,
        attempt: ProvisionedResourceId,
        lease: Duration,
    ) -> Claimed {
        self.wake(attempt).await.expect("a wake");
        let claimed = self
            .store
            .broker
            .attempt_claim("suite", self.partition, 200, lease)
            .await
            .expect("a claim");
        let (own, others): (Vec<_>, Vec<_>) =
            claimed.into_iter().partition(|claimed| claimed.id == attempt);
        let parked: Vec<_> = others.iter().map(|other| released(*other, Recheck::Never)).collect();
        self.store.broker.attempt_release(&parked).await.expect("a release");
        own.first().copied().expect("a woken attempt that nobody holds can be claimed")
    }

    /// Wakes and claims.
    pub(super) async fn claim_now(&self, attempt: ProvisionedResourceId) -> Claimed {
        self.wake(attempt).await.expect("a wake");
        self.claim(attempt).await.expect("a woken attempt that nobody holds can be claimed")
    }

    pub(super) async fn snapshot(&self, attempt: ProvisionedResourceId) -> ResourceSnapshot {
        let mut loaded = self.store.broker.attempt_load(&[attempt]).await.expect("a load");
        assert_eq!(loaded.len(), 1, "{attempt} is there");
        loaded.remove(0).expect("the row is valid")
    }

    /// One tick of the loop under this claim, with the simulated substrate.
    pub(super) async fn tick(&self, claimed: Claimed) -> Result<(), Error> {
        let report = self.substrate.observe(claimed.id);
        self.tick_seeing(claimed, &report).await
    }

    /// One tick that observed `report`. Always releases the claim, as the loop does.
    pub(super) async fn tick_seeing(
        &self,
        claimed: Claimed,
        report: &CompositeReport,
    ) -> Result<(), Error> {
        let outcome = self.tick_inner(claimed, report, pace()).await;
        if let Err(Error::Refused(refusal)) = &outcome
            && refusal.kind == ErrorKind::RevisionStale
        {
            self.store.broker.attempt_release(&[released(claimed, Recheck::Now)]).await?;
        }
        outcome
    }

    /// One tick that observed a composite that failed for this reason.
    pub(super) async fn fail(&self, attempt: ProvisionedResourceId, reason: &str) {
        let failed = CompositeReport::Present(Box::new(LiveComposite {
            uid: "one".to_owned(),
            ready: false,
            failure: Some(reason.to_owned()),
            terminating: false,
            owned_hash: "same".to_owned(),
            carried: Carried::Nothing,
            injected: None,
            evidence: json!({ "conditions": [{ "type": "ProvisioningFailed" }] }),
        }));
        let claimed = self.claim_now(attempt).await;
        self.tick_seeing(claimed, &failed).await.expect("a tick");
    }

    /// One tick of a loop with leases of length zero, so that the deletion
    /// verification need not wait.
    pub(super) async fn tick_proving(
        &self,
        claimed: Claimed,
        report: &CompositeReport,
    ) -> Result<(), Error> {
        self.tick_inner(claimed, report, Pace { lease: Duration::ZERO, ..pace() }).await
    }

    async fn tick_inner(
        &self,
        claimed: Claimed,
        report: &CompositeReport,
        pace: Pace,
    ) -> Result<(), Error> {
        let mut snapshot = self.snapshot(claimed.id).await;
        let decision = decided(&snapshot, report);
        let mut read = Read { claim_token: claimed.claim_token, ..Read::of(&snapshot) };
        match decision.action {
            Action::Apply => {
                snapshot = self.apply(snapshot, read, report).await?;
                read = Read { claim_token: claimed.claim_token, ..Read::of(&snapshot) };
            }
            Action::DeleteSubstrate => self.substrate.remove(claimed.id),
            Action::Noop | Action::DeregisterNode => {}
        }
        let tick = Tick {
            read,
            report,
            decision: &decision,
            outcome: Outcome::Done,
            drain_id: DrainId::new(self.uuid()),
            pace,
            jitter: 0.5,
        };
        // As the loop does: without a lock if nothing changed, under lock otherwise.
        let commit = record(&snapshot, &tick, &worker())?;
        if let Some(recorded) = Recorded::new(claimed.id, read.revision, commit)
            && !self.store.broker.attempt_record(&[recorded]).await?.is_empty()
        {
            return Ok(());
        }
        let mut rule = |snapshot: &ResourceSnapshot| record(snapshot, &tick, &worker());
        self.store.broker.decide(ResourceKey::Attempt(claimed.id), &mut rule).await
    }

    /// What a tick without an outside action would record now.
    pub(super) async fn record_of(&self, claimed: Claimed) -> Recorded {
        let (snapshot, report) =
            (self.snapshot(claimed.id).await, self.substrate.observe(claimed.id));
        let decision = decided(&snapshot, &report);
        let tick = Tick {
            read: Read::of(&snapshot),
            report: &report,
            decision: &decision,
            outcome: Outcome::Done,
            drain_id: DrainId::new(self.uuid()),
            pace: pace(),
            jitter: 0.5,
        };
        let commit = record(&snapshot, &tick, &worker()).expect("a record");
        Recorded::new(claimed.id, snapshot.attempt.revision(), commit).expect("a plain record")
    }

    /// One tick of each under these claims, batched as in the loop: all intents
    /// in one transaction, all records in another.
    pub(super) async fn tick_many(&self, claimed: &[Claimed]) -> Vec<Decided> {
        self.tick_many_at(claimed, pace()).await
    }

    /// The same with leases of length zero.
    pub(super) async fn tick_many_proving(&self, claimed: &[Claimed]) -> Vec<Decided> {
        self.tick_many_at(claimed, Pace { lease: Duration::ZERO, ..pace() }).await
    }

    async fn tick_many_at(&self, claimed: &[Claimed], pace: Pace) -> Vec<Decided> {
        let mut ticks = HashMap::new();
        for claimed in claimed {
            let snapshot = self.snapshot(claimed.id).await;
            let report = self.substrate.observe(claimed.id);
            let fresh = FreshToken { id: BootstrapTokenId::new(self.uuid()), hash: self.hash() };
            let read = Read { claim_token: claimed.claim_token, ..Read::of(&snapshot) };
            ticks.insert(claimed.id, (snapshot, report, fresh, read));
        }
        let ids: Vec<_> = claimed.iter().map(|claimed| claimed.id).collect();
        let mut prepare_rule = |current: &ResourceSnapshot| {
            let id = current.attempt.id();
            let (snapshot, report, fresh, read) = &ticks[&id];
            let carried = report.carried();
            if decided(snapshot, report).action != Action::Apply {
                return Ok(Commit::default());
            }
            let token = token_decision(snapshot, carried);
            prepare(current, *read, token, carried, Some(*fresh), &worker())
        };
        let prepared =
            self.store.broker.decide_many(&ids, &mut prepare_rule).await.expect("prepared");
        let (prepared, lost): (Vec<_>, Vec<_>) =
            prepared.into_iter().partition(|(_, outcome)| outcome.is_ok());
        let ids: Vec<_> = prepared.into_iter().map(|(id, _)| id).collect();
        for id in &ids {
            let (snapshot, report, fresh, read) = ticks.get_mut(id).expect("one of the batch");
            let action = decided(snapshot, report).action;
            let token = token_decision(snapshot, report.carried());
            if action == Action::DeleteSubstrate {
                self.substrate.remove(*id);
            } else if action == Action::Apply && matches!(token, TokenDecision::Mint { .. }) {
                self.substrate.apply(*id, Carried::Token { id: fresh.id, hash: fresh.hash });
                read.revision = read.revision.next();
            }
        }
        let drain_id = DrainId::new(self.uuid());
        let mut record_rule = |current: &ResourceSnapshot| {
            let (snapshot, report, _, read) = &ticks[&current.attempt.id()];
            let (decision, outcome, read) = (&decided(snapshot, report), Outcome::Done, *read);
            let tick = Tick { read, report, decision, outcome, drain_id, pace, jitter: 0.5 };
            record(current, &tick, &worker())
        };
        let mut ended =
            self.store.broker.decide_many(&ids, &mut record_rule).await.expect("the records");
        ended.extend(lost);
        for (id, outcome) in &ended {
            if outcome.is_err() {
                let claimed = claimed.iter().find(|claimed| claimed.id == *id).expect("claimed");
                let back = [released(*claimed, Recheck::Now)];
                self.store.broker.attempt_release(&back).await.expect("a release");
            }
        }
        ended
    }

    /// Records the intent, then applies; returns the state after that.
    async fn apply(
        &self,
        snapshot: ResourceSnapshot,
        read: Read,
        report: &CompositeReport,
    ) -> Result<ResourceSnapshot, Error> {
        let id = snapshot.attempt.id();
        let carried = report.carried();
        let token = token_decision(&snapshot, carried);
        let fresh = FreshToken { id: BootstrapTokenId::new(self.uuid()), hash: self.hash() };
        let mut after = snapshot;
        self.store
            .broker
            .decide(ResourceKey::Attempt(id), &mut |snapshot| {
                let commit = prepare(snapshot, read, token, carried, Some(fresh), &worker())?;
                after = snapshot.after(&commit);
                Ok(commit)
            })
            .await?;
        if let TokenDecision::Mint { .. } = token {
            self.substrate.apply(id, Carried::Token { id: fresh.id, hash: fresh.hash });
        }
        Ok(after)
    }

    /// Ticks the batch until each attempt is in this phase.
    pub(super) async fn drive_many(&self, attempts: &[ProvisionedResourceId], phase: Phase) {
        for _ in 0..8 {
            let mut claims = Vec::new();
            for attempt in attempts {
                if self.snapshot(*attempt).await.attempt.phase() != phase {
                    claims.push(self.claim_now(*attempt).await);
                }
            }
            if claims.is_empty() {
                return;
            }
            for (id, outcome) in self.tick_many(&claims).await {
                outcome.unwrap_or_else(|error| panic!("an undisturbed tick of {id}: {error}"));
            }
        }
        panic!("not all of {attempts:?} became {phase}");
    }

    /// Ticks until the attempt is in this phase.
    pub(super) async fn drive(&self, attempt: ProvisionedResourceId, phase: Phase) {
        // The longest way between two phases is four ticks.
        for _ in 0..8 {
            if self.snapshot(attempt).await.attempt.phase() == phase {
                return;
            }
            let claimed = self.claim_now(attempt).await;
            self.tick(claimed).await.expect("an undisturbed tick succeeds");
        }
        let stuck = self.snapshot(attempt).await;
        panic!("{attempt} is {} and does not become {phase}", stuck.attempt.phase());
    }
}

fn pace() -> Pace {
    Pace { deadlines: Deadlines::default(), sweep: Duration::from_secs(30), lease: LEASE }
}

/// The decision of the loop.
fn decided(snapshot: &ResourceSnapshot, report: &CompositeReport) -> Decision {
    let facts = Facts {
        // The hash of the live object, so that nothing drifts here.
        owned_hash: Ok(report.live().map(|live| live.owned_hash.clone()).unwrap_or_default()),
        injectable: Ok(()),
        served: true,
        token_lifetimes: TokenLifetimes::default(),
    };
    decide(snapshot, report, &facts, &Mode::Acting, snapshot.now)
}

fn token_decision(snapshot: &ResourceSnapshot, carried: Carried) -> TokenDecision {
    let lifetimes = TokenLifetimes::default();
    decide_token(snapshot.token.as_ref(), carried, snapshot.node_fact(), lifetimes, snapshot.now)
}

fn worker() -> Actor {
    Actor::new("loop:suite")
}

pub(super) fn released(claimed: Claimed, recheck: Recheck) -> Release {
    Release { subject: claimed.id.into(), claim_token: claimed.claim_token, recheck, failures: 0 }
}
