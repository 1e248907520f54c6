//! Which offers the provider had no capacity for a moment ago. What several resources want is
//! asked for once in that time, so a lack of capacity does not use up the rate limit.
//!
//! In memory and per process: the price of forgetting is one request for each offer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use slipway_render::hetzner::Offer;

/// Capacity comes back in minutes rather than seconds.
const FOR: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(super) struct Exhausted {
    /// Until when, and what the provider said.
    offers: Mutex<BTreeMap<Offer, (Instant, String)>>,
    lasts: Duration,
}

impl Default for Exhausted {
    fn default() -> Self {
        Self { offers: Mutex::default(), lasts: FOR }
    }
}

impl Exhausted {
    /// For a shorter time; for tests.
    pub(super) fn lasting(lasts: Duration) -> Self {
        Self { lasts, ..Self::default() }
    }

    pub(super) fn note(&self, offer: &Offer, said: &str) {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers.insert(offer.clone(), (Instant::now() + self.lasts, said.to_owned()));
    }

    /// What the provider said a moment ago, if it is not to be asked again yet.
    pub(super) fn of(&self, offer: &Offer) -> Option<String> {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        offers.retain(|_, (until, _)| *until > now);
        offers.get(offer).map(|(_, said)| said.clone())
    }
}
