//! How often a key may ask. In memory and per process: with N replicas a key
//! gets N times as much, which is a limit all the same, and costs no request a
//! trip to the database. One entry per key that was ever good here; whoever has
//! no good key is refused before, and leaves nothing behind.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ApiKeyId;
use slipway_core::rate::{Bucket, Rate};

/// The detail of a refusal that says how long to wait.
pub(crate) const RETRY_AFTER_SECONDS: &str = "retry_after_seconds";

/// The buckets of this process.
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
        // The header knows whole seconds only.
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
