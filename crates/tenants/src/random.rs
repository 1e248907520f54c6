//! Random numbers that only decide who waits longer, and names of workers: the standard
//! library's hash seed will do.

use std::hash::{BuildHasher as _, RandomState};

fn bits() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// A number in `0..1`.
pub(crate) fn jitter() -> f64 {
    f64::from(u32::try_from(bits() >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// A name that no other worker has.
pub(crate) fn worker() -> String {
    format!("tenants-{}-{:016x}", std::process::id(), bits())
}
