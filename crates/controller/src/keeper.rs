//! Keeps the claims of a batch alive for as long as the batch needs them.
//!
//! *Expected flow:* a batch begins with the lease of its claim statement. A
//! third of a lease later what is still held is renewed, and so on until the
//! last of it was given back.
//!
//! *Guarantees:* a lease is believed from the moment before the statement was
//! sent that gave it; what a renewal did not answer keeps the lease it had and
//! is asked for again; what was given back is not asked for.
//!
//! *Assumptions:* the store renews nothing that was given back or taken over,
//! also if the statement arrives late. The model in `slipway_durable` has it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slipway_app::ports::store::Claimed;
use slipway_app::ports::{Meter, Store};
use slipway_core::ids::ProvisionedResourceId;
use slipway_durable::{Lease, Moment};

/// The claims of one batch.
#[derive(Debug)]
pub(crate) struct Keeper<'a> {
    store: &'a dyn Store,
    worker: &'a str,
    length: Duration,
    gauge: Gauge<'a>,
    begun: Instant,
    held: Mutex<HashMap<ProvisionedResourceId, (Claimed, Lease)>>,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        worker: &'a str,
        claims: &[Claimed],
        lease: Lease,
        length: Duration,
        gauge: Gauge<'a>,
    ) -> Self {
        let held: HashMap<_, _> =
            claims.iter().map(|claimed| (claimed.id, (*claimed, lease))).collect();
        gauge.up(held.len());
        let begun = Instant::now();
        Self { store, worker, length, gauge, begun, held: Mutex::new(held) }
    }

    /// How long the batch has been worked on.
    pub(crate) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether an action with this deadline may start on this row. Never on
    /// one that was given back.
    pub(crate) fn allows(&self, id: ProvisionedResourceId, deadline: Duration) -> bool {
        self.with(|held| held.get(&id).is_some_and(|(_, lease)| lease.allows(deadline)))
    }

    /// These were given back, or are somebody else's.
    pub(crate) fn let_go(&self, ids: impl Iterator<Item = ProvisionedResourceId>) {
        let gone = self.with(|held| ids.filter(|id| held.remove(id).is_some()).count());
        self.gauge.down(gone);
    }

    /// Renews beside the work, which is all that is waited for.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            done = work => done,
            never = self.renew_for_ever() => never,
        }
    }

    async fn renew_for_ever<T>(&self) -> T {
        // One that failed is tried again soon: four times before the next is due.
        let usual = Lease::renewal_after(self.length);
        let (usual, soon) = (usual.max(SMALLEST), (usual / 4).max(SMALLEST));
        let mut pause = usual;
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.renew().await {
                Ok(()) => usual,
                Err(error) => {
                    tracing::warn!(error, "claims could not be renewed; trying again");
                    soon
                }
            };
        }
    }

    async fn renew(&self) -> Result<(), String> {
        let claims: Vec<_> = self.with(|held| held.values().map(|(claimed, _)| *claimed).collect());
        if claims.is_empty() {
            return Ok(());
        }
        let asked_before = Moment::now();
        let renewed = self.store.attempt_renew(self.worker, &claims, self.length).await;
        let renewed = renewed.map_err(|error| error.to_string())?;
        tracing::debug!(asked = claims.len(), renewed = renewed.len(), "renewed claims");
        let lease = Lease::new(asked_before, self.length);
        self.with(|held| {
            for id in renewed {
                // What was given back meanwhile stays given back.
                held.entry(id).and_modify(|(_, of)| *of = lease);
            }
        });
        Ok(())
    }

    fn with<T>(
        &self,
        look: impl FnOnce(&mut HashMap<ProvisionedResourceId, (Claimed, Lease)>) -> T,
    ) -> T {
        look(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What was not let go of, because the batch was given up, runs out; this
/// process holds it no more.
impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.gauge.down(self.with(|held| held.len()));
    }
}

/// How many claims are held, told to whoever measures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauge<'a> {
    pub(crate) meter: &'a dyn Meter,
    pub(crate) lane: &'a str,
}

impl Gauge<'_> {
    fn up(self, count: usize) {
        self.meter.held(self.lane, i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn down(self, count: usize) {
        self.meter.held(self.lane, -i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// A lease of nothing must not become a loop without a pause.
const SMALLEST: Duration = Duration::from_millis(1);
