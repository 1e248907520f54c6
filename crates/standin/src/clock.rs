//! The clock of the stand-in.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Now, for conditions and the journal.
pub(crate) fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this is the clock adapter of the stand-in")]
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX);
    // Nanoseconds below a second fit; a clock beyond the year 9999 is wrong.
    Timestamp::new(seconds, elapsed.subsec_nanos().cast_signed()).unwrap_or_default()
}

/// Now without fractions of a second, as Kubernetes writes times.
pub(crate) fn now_in_seconds() -> String {
    Timestamp::from_second(now().as_second()).unwrap_or_default().to_string()
}
