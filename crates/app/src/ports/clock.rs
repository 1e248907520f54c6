//! Time and randomness, the two inputs that a pure core cannot make itself.

use std::fmt;

use slipway_core::time::Timestamp;
use uuid::Uuid;

/// The wall clock, for display and deadlines. Stored times are the database's.
pub trait Clock: fmt::Debug + Send + Sync {
    fn now(&self) -> Timestamp;
}

/// Fresh identities, secrets and jitter.
pub trait Entropy: fmt::Debug + Send + Sync {
    /// A new UUIDv7.
    fn uuid(&self) -> Uuid;

    /// Fills the buffer from the operating system's random source.
    fn fill(&self, bytes: &mut [u8]);

    /// Evenly spread over 0..1.
    fn jitter(&self) -> f64 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        f64::from(u32::from_be_bytes(bytes)) / f64::from(u32::MAX)
    }
}
