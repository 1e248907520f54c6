//! The suite's worker: claims, ticks and releases as the loop does, with the
//! simulated substrate.

use std::time::Duration;

use slipway_core::audit::Actor;
use slipway_core::blocker::Deadlines;
use slipway_core::commit::{Commit, Recheck, Release, Write};
use slipway_core::ids::{BootstrapTokenId, DrainId, ProvisionedResourceId};
use slipway_core::observation::CompositeReport;
use slipway_core::phase::{Action, Observed, next};
use slipway_core::rules::prepare::{FreshToken, Read, prepare};
use slipway_core::rules::record::{Outcome, Pace, Tick, record};
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::token::{Carried, TokenLifetimes, TokenPlan, plan};
use slipway_core::{ErrorKind, Phase, Refusal};

use super::world::World;
use crate::ports::store::{Claimed, Error, ResourceKey};

/// Long enough that it never ends by itself during a test.
pub(super) const LEASE: Duration = Duration::from_secs(600);

impl World {
    /// Makes one attempt due, as a watch would.
    pub(super) async fn wake(&self, attempt: ProvisionedResourceId) -> Result<(), Error> {
        let mut rule = |_: &ResourceSnapshot| -> Result<Commit, Refusal> {
            Ok(Commit { wakes: vec![attempt], ..Commit::default() })
        };
        self.store.decide(ResourceKey::Attempt(attempt), &mut rule).await
    }

    /// Claims this attempt if it is due. Others that are due belong to rounds
    /// that are over; they are parked.
    pub(super) async fn claim(&self, attempt: ProvisionedResourceId) -> Option<Claimed> {
        let mut mine = None;
        loop {
            let claimed = self.store.attempt_claim("suite", 200, LEASE).await.expect("a claim");
            let (own, others): (Vec<_>, Vec<_>) =
                claimed.into_iter().partition(|claimed| claimed.id == attempt);
            mine = mine.or(own.first().copied());
            if others.is_empty() {
                return mine;
            }
            let parked: Vec<_> =
                others.iter().map(|other| released(*other, Recheck::Never)).collect();
            self.store.attempt_release(&parked).await.expect("a release");
        }
    }

    /// Leaves nothing that is due or will become so by itself: what earlier
    /// tests left behind is claimed and given back for good.
    pub(super) async fn park_all(&self) {
        self.store.attempt_wake_all().await.expect("a wake");
        let claimed = self.store.attempt_claim("suite", 10_000, LEASE).await.expect("a claim");
        let parked: Vec<_> =
            claimed.into_iter().map(|claimed| released(claimed, Recheck::Never)).collect();
        self.store.attempt_release(&parked).await.expect("a release");
    }

    /// Claims this attempt, once it is due, for a lease of this length.
    pub(super) async fn claim_with_lease(
        &self,
        attempt: ProvisionedResourceId,
        lease: Duration,
    ) -> Claimed {
        self.wake(attempt).await.expect("a wake");
        let claimed = self.store.attempt_claim("suite", 200, lease).await.expect("a claim");
        let (own, others): (Vec<_>, Vec<_>) =
            claimed.into_iter().partition(|claimed| claimed.id == attempt);
        let parked: Vec<_> = others.iter().map(|other| released(*other, Recheck::Never)).collect();
        self.store.attempt_release(&parked).await.expect("a release");
        own.first().copied().expect("a woken attempt that nobody holds can be claimed")
    }

    /// Wakes and claims.
    pub(super) async fn claim_now(&self, attempt: ProvisionedResourceId) -> Claimed {
        self.wake(attempt).await.expect("a wake");
        self.claim(attempt).await.expect("a woken attempt that nobody holds can be claimed")
    }

    pub(super) async fn snapshot(&self, attempt: ProvisionedResourceId) -> ResourceSnapshot {
        let mut loaded = self.store.attempt_load(&[attempt]).await.expect("a load");
        assert_eq!(loaded.len(), 1, "{attempt} is there");
        loaded.remove(0).expect("the row is valid")
    }

    /// One tick of the loop under this claim, with the simulated substrate.
    pub(super) async fn tick(&self, claimed: Claimed) -> Result<(), Error> {
        let report = self.substrate.observe(claimed.id);
        self.tick_seeing(claimed, &report).await
    }

    /// One tick that observed `report`. Gives the claim back whatever happens,
    /// as the loop does.
    pub(super) async fn tick_seeing(
        &self,
        claimed: Claimed,
        report: &CompositeReport,
    ) -> Result<(), Error> {
        let outcome = self.tick_inner(claimed, report).await;
        if let Err(Error::Refused(refusal)) = &outcome
            && refusal.kind == ErrorKind::RevisionStale
        {
            self.store.attempt_release(&[released(claimed, Recheck::Now)]).await?;
        }
        outcome
    }

    async fn tick_inner(&self, claimed: Claimed, report: &CompositeReport) -> Result<(), Error> {
        let snapshot = self.snapshot(claimed.id).await;
        let observed = Observed { composite: report.composite(None), node: snapshot.node_fact() };
        let (action, after) = next(observed, snapshot.attempt.phase());
        let mut read =
            Read { revision: snapshot.attempt.revision(), claim_token: claimed.claim_token };
        match action {
            Action::Apply => read = self.apply(&snapshot, read, report).await?,
            Action::DeleteSubstrate => self.substrate.remove(claimed.id),
            Action::Noop | Action::DeregisterNode => {}
        }
        let tick = Tick {
            read,
            report,
            observed,
            action,
            after,
            outcome: Outcome::Done,
            drain_id: DrainId::new(self.uuid()),
            pace: Pace { deadlines: Deadlines::default(), sweep: Duration::from_secs(30) },
            jitter: 0.5,
        };
        let mut rule = |snapshot: &ResourceSnapshot| record(snapshot, &tick, &worker());
        self.store.decide(ResourceKey::Attempt(claimed.id), &mut rule).await
    }

    /// Records the intent, then applies; answers what the record must name.
    async fn apply(
        &self,
        snapshot: &ResourceSnapshot,
        mut read: Read,
        report: &CompositeReport,
    ) -> Result<Read, Error> {
        let id = snapshot.attempt.id();
        let carried = report.carried();
        let token_plan = plan(
            snapshot.token.as_ref(),
            carried,
            snapshot.node_fact(),
            TokenLifetimes::default(),
            snapshot.now,
        );
        let fresh = FreshToken { id: BootstrapTokenId::new(self.uuid()), hash: self.hash() };
        let mut moved = false;
        self.store
            .decide(ResourceKey::Attempt(id), &mut |snapshot| {
                let commit = prepare(snapshot, read, token_plan, carried, Some(fresh), &worker())?;
                moved = commit.writes.iter().any(|write| matches!(write, Write::AttemptUpdate(_)));
                Ok(commit)
            })
            .await?;
        if moved {
            read.revision = read.revision.next();
        }
        if let TokenPlan::Mint { .. } = token_plan {
            self.substrate.apply(id, Carried::Token { id: fresh.id, hash: fresh.hash });
        }
        Ok(read)
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

fn worker() -> Actor {
    Actor::new("loop:suite")
}

pub(super) fn released(claimed: Claimed, recheck: Recheck) -> Release {
    Release { attempt: claimed.id, claim_token: claimed.claim_token, recheck, failures: 0 }
}
