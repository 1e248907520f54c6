//! The format of values in the JSON of `rows_from_json!`: as SQLite stores
//! them, or as `unhex` reads them.

use data_encoding::HEXLOWER;
use serde::Serialize;
use slipway_core::Timestamp;

/// Microseconds since the Unix epoch, as they are stored.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct JsonTime(i64);

impl From<Timestamp> for JsonTime {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp.as_micros())
    }
}

/// Hexadecimal.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct JsonBytes(String);

impl From<&[u8]> for JsonBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(HEXLOWER.encode(bytes))
    }
}
