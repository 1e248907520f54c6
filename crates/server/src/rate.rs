//! Rate limits per key. In memory and per process: N replicas admit N times as
//! much, which is still a limit, and no request pays a database round trip.
//! There is one entry per key that ever authenticated here; requests without a
//! valid key are refused earlier and leave no entry.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;
use slipway_core::access::rate::{Bucket, Rate};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ApiKeyId;

/// The field in a refusal's details with the seconds to wait.
pub(crate) const RETRY_AFTER_SECONDS: &str = "retry_after_seconds";

/// The token buckets of this process.
#[derive(Debug)]
pub struct RateLimits {
    rate: Rate,
    started: Instant,
    buckets: Mutex<HashMap<ApiKeyId, Bucket>>,
}

impl RateLimits {
    pub fn new(rate: Rate) -> Self {
        Self { rate, started: Instant::now(), buckets: Mutex::default() }
    }

    /// Counts a request of this key, or refuses it.
    pub(crate) fn take(&self, key: ApiKeyId) -> Result<(), Refusal> {
        let now = self.started.elapsed();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(key).or_insert_with(|| Bucket::full(self.rate, now));
        let Err(wait) = bucket.take(self.rate, now) else { return Ok(()) };
        // `Retry-After` takes whole seconds only.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let Rate { per_second, burst } = self.rate;
        Err(Refusal::new(
            ErrorKind::RateLimited,
            format!(
                "this key may ask {per_second} times a second and {burst} times at once; try again \
                 in {seconds} s"
            ),
        )
        .with(json!({ RETRY_AFTER_SECONDS: seconds })))
    }
}
