//! Renews the claims of a batch for as long as the batch needs them.
//!
//! *Expected flow:* a batch begins with the lease of its claim statement. A
//! third of a lease later the renewer renews the claims that were not released,
//! and repeats that until all of them are.
//!
//! *Guarantees:* a lease counts from the moment before the statement that
//! granted it was sent. A claim that a renewal did not confirm keeps its lease
//! and is renewed again with the next one. A released claim is not renewed.
//!
//! *Assumptions:* the store renews no claim that was released or taken over,
//! even if the statement arrives late. The model of this crate checks this.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::driver::Failure;
use crate::{Lease, Moment};

/// A table whose claims can be renewed.
#[async_trait]
pub trait Renewal: fmt::Debug + Sync {
    type Id: fmt::Debug + Clone + Eq + Hash + Send + Sync;
    /// A claimed row: its id and its claim token.
    type Claim: fmt::Debug + Clone + Send + Sync;

    fn id(claim: &Self::Claim) -> Self::Id;

    /// Renews those of these claims that the worker still holds, and answers their ids.
    async fn renew(
        &self,
        claims: &[Self::Claim],
        lease: Duration,
    ) -> Result<Vec<Self::Id>, Failure>;

    /// The number of claims that the worker holds changed by this much.
    fn count(&self, change: i64);
}

/// The claims of one batch.
#[derive(Debug)]
pub struct LeaseRenewer<R: Renewal> {
    renewal: R,
    length: Duration,
    begun: Instant,
    leased: Mutex<Leased<R>>,
}

type Leased<R> = HashMap<<R as Renewal>::Id, (<R as Renewal>::Claim, Lease)>;

impl<R: Renewal> LeaseRenewer<R> {
    pub fn new(renewal: R, claims: &[R::Claim], lease: Lease, length: Duration) -> Self {
        let leased: Leased<R> =
            claims.iter().map(|claim| (R::id(claim), (claim.clone(), lease))).collect();
        renewal.count(signed(leased.len()));
        Self { renewal, length, begun: Instant::now(), leased: Mutex::new(leased) }
    }

    /// How long the batch has been worked on.
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether an action with this deadline may start on this row. Never on a
    /// row that was released.
    pub fn allows(&self, id: &R::Id, deadline: Duration) -> bool {
        self.with(|leased| leased.get(id).is_some_and(|(_, lease)| lease.allows(deadline)))
    }

    /// How long the lease of this row still lasts; zero for a row that was released.
    pub fn remaining(&self, id: &R::Id) -> Duration {
        self.with(|leased| leased.get(id).map_or(Duration::ZERO, |(_, lease)| lease.remaining()))
    }

    /// Stops renewing these: they were released, or another worker took them over.
    pub fn forget(&self, ids: impl Iterator<Item = R::Id>) {
        let gone = self.with(|leased| ids.filter(|id| leased.remove(id).is_some()).count());
        self.renewal.count(-signed(gone));
    }

    /// Runs the work and renews beside it. Returns when the work is done.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            done = work => done,
            never = self.renew_for_ever() => never,
        }
    }

    async fn renew_for_ever<T>(&self) -> T {
        // A failed renewal is retried soon: four times before the next is due.
        let usual = Lease::renewal_after(self.length);
        let (usual, soon) = (usual.max(SMALLEST), (usual / 4).max(SMALLEST));
        let mut pause = usual;
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.renew().await {
                Ok(()) => usual,
                Err(Failure { message, is_logged }) => {
                    if !is_logged {
                        tracing::warn!(
                            error = message,
                            "claims could not be renewed; trying again"
                        );
                    }
                    soon
                }
            };
        }
    }

    async fn renew(&self) -> Result<(), Failure> {
        let claims: Vec<_> =
            self.with(|leased| leased.values().map(|(claim, _)| claim.clone()).collect());
        if claims.is_empty() {
            return Ok(());
        }
        let asked_before = Moment::now();
        let renewed = self.renewal.renew(&claims, self.length).await?;
        tracing::debug!(asked = claims.len(), renewed = renewed.len(), "renewed claims");
        let lease = Lease::new(asked_before, self.length);
        self.with(|leased| {
            for id in renewed {
                // A claim that was released meanwhile stays released.
                leased.entry(id).and_modify(|(_, of)| *of = lease);
            }
        });
        Ok(())
    }

    fn with<T>(&self, change: impl FnOnce(&mut Leased<R>) -> T) -> T {
        change(&mut self.leased.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When a batch is abandoned its leases expire; this process holds them no more.
impl<R: Renewal> Drop for LeaseRenewer<R> {
    fn drop(&mut self) {
        self.renewal.count(-signed(self.with(|leased| leased.len())));
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A lease of zero must not become a loop without a pause.
const SMALLEST: Duration = Duration::from_millis(1);
