//! Rate limits per key and per node. In memory and per process: N replicas admit
//! N times as much, which is still a limit, and no request pays a database round
//! trip. Only a caller with a valid key has an entry, and only until its bucket
//! is full again: a full bucket and none are the same.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use slipway_core::access::rate::{Bucket, Rate};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ApiKeyId, NodeId};

/// The field in a refusal's details with the seconds to wait.
pub(crate) const RETRY_AFTER_SECONDS: &str = "retry_after_seconds";

/// Entries that are kept without looking for full ones.
const FEW: usize = 1_024;

/// The token buckets of this process.
#[derive(Debug)]
pub struct RateLimits<K> {
    rate: Rate,
    /// Whose limit it is, in refusals.
    who: &'static str,
    started: Instant,
    buckets: Mutex<Buckets<K>>,
}

#[derive(Debug)]
struct Buckets<K> {
    by_caller: HashMap<K, Bucket>,
    /// With so many, the full ones are removed.
    crowded: usize,
}

impl RateLimits<ApiKeyId> {
    pub fn of_keys(rate: Rate) -> Self {
        Self::new(rate, "this key")
    }
}

impl RateLimits<NodeId> {
    pub fn of_nodes(rate: Rate) -> Self {
        Self::new(rate, "a node")
    }
}

impl<K: Eq + Hash> RateLimits<K> {
    fn new(rate: Rate, who: &'static str) -> Self {
        let buckets = Buckets { by_caller: HashMap::new(), crowded: FEW };
        Self { rate, who, started: Instant::now(), buckets: Mutex::new(buckets) }
    }

    /// Counts a request, or refuses it.
    pub(crate) fn take(&self, caller: K) -> Result<(), Refusal> {
        let now = self.started.elapsed();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.by_caller.len() >= buckets.crowded {
            buckets.by_caller.retain(|_, bucket| !bucket.is_full(self.rate, now));
            // Twice what is left, so that the next look is as far away.
            buckets.crowded = FEW.max(2 * buckets.by_caller.len());
        }
        let full = || Bucket::full(self.rate, now);
        let bucket = buckets.by_caller.entry(caller).or_insert_with(full);
        let Err(wait) = bucket.take(self.rate, now) else { return Ok(()) };
        // `Retry-After` takes whole seconds only.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let Rate { per_second, burst } = self.rate;
        let who = self.who;
        Err(Refusal::new(
            ErrorKind::RateLimited,
            format!(
                "{who} may ask {per_second} times a second and {burst} times at once; try again \
                 in {seconds} s"
            ),
        )
        .with(retry_after(seconds)))
    }
}

/// The details of a refusal that passes by itself.
pub(crate) fn retry_after(seconds: u64) -> Value {
    json!({ RETRY_AFTER_SECONDS: seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_went_away_leave_nothing_behind() {
        // Full again a nanosecond later.
        let rate = Rate { per_second: 1_000_000_000, burst: 1 };
        let limits = RateLimits::new(rate, "a number");
        for caller in 0..20 * FEW {
            limits.take(caller).unwrap();
        }
        let kept = limits.buckets.lock().unwrap().by_caller.len();
        assert!(kept <= FEW, "{kept}");
    }
}
