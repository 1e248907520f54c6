//! The format of values in the JSON of `rows_from_json!`: what PostgreSQL's
//! input functions read.

use data_encoding::HEXLOWER;
use serde::Serialize;
use slipway_core::Timestamp;

/// RFC 3339, down to the microsecond.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct JsonTime(Timestamp);

impl From<Timestamp> for JsonTime {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp)
    }
}

/// Hexadecimal after PostgreSQL's `\x`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct JsonBytes(String);

impl From<&[u8]> for JsonBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(format!("\\x{}", HEXLOWER.encode(bytes)))
    }
}
