//! Time as a value: microseconds since the Unix epoch, shown as RFC 3339 in
//! UTC. Nothing in this crate can ask what time it is.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, with the resolution that both databases keep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is not an RFC 3339 time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time: expected RFC 3339 such as 2026-01-31T12:00:00Z")]
pub struct InvalidTimestamp(String);

/// A length of time as people write it: `90s`, `5m`, `1h 30m`, `8d`; a day is
/// 24 hours. Zero is fine, less is not.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let days_are_24_hours = jiff::SpanRelativeTo::days_are_24_hours();
    let span = text.trim().parse::<jiff::Span>().ok();
    let length = span.and_then(|span| span.to_duration(days_are_24_hours).ok());
    length.and_then(|length| Duration::try_from(length).ok()).ok_or(InvalidDuration)
}

/// A text that is not a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number with ms, s, m, h or d, such as 90s, 5m, 1h or 8d")]
pub struct InvalidDuration;

impl Timestamp {
    /// The epoch; no stored row may carry it (see the aggregate invariants).
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The time of an HTTP `Date`, such as `Sat, 31 Jan 2026 12:00:00 GMT`.
    pub fn from_http_date(text: &str) -> Option<Self> {
        let date = jiff::fmt::rfc2822::parse(text).ok()?;
        Some(Self(date.timestamp().as_microsecond()))
    }

    /// Saturates at the end of representable time.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Saturates at the beginning of representable time.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(timestamp) => write!(f, "{timestamp:.6}"),
            // Outside the years that RFC 3339 can write.
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        text.parse::<jiff::Timestamp>()
            .map(|timestamp| Self(timestamp.as_microsecond()))
            .map_err(|_| InvalidTimestamp(text.chars().take(64).collect()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_http_is_read() {
        let date = Timestamp::from_http_date("Sat, 31 Jan 2026 12:00:00 GMT").unwrap();
        assert_eq!(date.to_string(), "2026-01-31T12:00:00.000000Z");
        assert_eq!(Timestamp::from_http_date("yesterday"), None);
    }

    #[test]
    fn text_and_value_agree() {
        let moment: Timestamp = "2026-01-31T12:00:00.000001Z".parse().unwrap();
        assert_eq!(moment.to_string(), "2026-01-31T12:00:00.000001Z");
        assert_eq!(moment.to_string().parse(), Ok(moment));
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn lengths_of_time_have_a_unit() {
        const HOUR: u64 = 3_600_000;
        for (text, milliseconds) in [
            ("200ms", 200),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h", HOUR),
            ("1h 30m", HOUR + HOUR / 2),
            ("8d", 8 * 24 * HOUR),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for bad in ["", "5", "m", "-5s", "1y", "99999999999999999999s", "soon"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn since_never_goes_below_zero() {
        let (early, late) = (Timestamp::from_micros(5), Timestamp::from_micros(9));
        assert_eq!(late.since(early), Duration::from_micros(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
