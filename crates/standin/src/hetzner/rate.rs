//! The rate limit of one project: so many requests an hour, which come back evenly.

use std::time::Instant;

use crate::clock;

#[derive(Debug)]
pub(super) struct Bucket {
    limit: u32,
    left: f64,
    at: Instant,
}

/// What the headers of an answer say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) limit: u32,
    pub(super) remaining: u32,
    /// When the bucket is full again, in seconds since 1970.
    pub(super) reset: i64,
}

impl Bucket {
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, left: f64::from(limit), at: Instant::now() }
    }

    pub(super) fn set(&mut self, limit: u32, remaining: u32) {
        *self = Self { limit, left: f64::from(remaining), at: Instant::now() };
    }

    /// Takes one request, if there is one left.
    pub(super) fn take(&mut self) -> (bool, Rate) {
        let (now, each_second) = (Instant::now(), f64::from(self.limit) / 3_600.0);
        let more = (now - self.at).as_secs_f64() * each_second;
        self.left = (self.left + more).min(f64::from(self.limit));
        self.at = now;
        let admitted = self.left >= 1.0;
        if admitted {
            self.left -= 1.0;
        }
        let lacking = (f64::from(self.limit) - self.left) / each_second.max(f64::MIN_POSITIVE);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "both are small and not negative"
        )]
        let (remaining, seconds) = (self.left as u32, lacking.ceil() as i64);
        let reset = clock::now().as_second().saturating_add(seconds);
        (admitted, Rate { limit: self.limit, remaining, reset })
    }
}
