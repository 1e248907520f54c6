//! Reads columns by name. A column that cannot be read or breaks a rule of core
//! is a [`Fault`] of that row alone; nothing here guesses, repairs or fails
//! other rows. Each room hydrates its own aggregates with these functions.

use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_core::Timestamp;
use sqlx::types::Json;
use sqlx::{Decode, Row as _, Type};

use super::{Db, Row};
use crate::fault::Fault;
use crate::micros::Micros;

/// Reads one column.
pub(crate) fn get<'r, T>(row: &'r Row, column: &str) -> Result<T, Fault>
where
    T: Decode<'r, Db> + Type<Db>,
{
    row.try_get(column).map_err(|error| Fault::new(column, format!("cannot be read: {error}")))
}

pub(crate) fn time(row: &Row, column: &str) -> Result<Timestamp, Fault> {
    get::<Micros>(row, column).map(Timestamp::from)
}

pub(crate) fn time_or_null(row: &Row, column: &str) -> Result<Option<Timestamp>, Fault> {
    Ok(get::<Option<Micros>>(row, column)?.map(Timestamp::from))
}

pub(crate) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, Fault> {
    let value: Json<Value> = get(row, column)?;
    serde_json::from_value(value.0)
        .map_err(|error| Fault::new(column, format!("has an unexpected shape: {error}")))
}

/// The same for a column that may be null.
pub(crate) fn json_or_null<T: DeserializeOwned>(
    row: &Row,
    column: &str,
) -> Result<Option<T>, Fault> {
    let stored: Option<Json<Value>> = get(row, column)?;
    match stored {
        Some(_) => json(row, column).map(Some),
        None => Ok(None),
    }
}

/// Reads a text of a closed set. A member that this version does not know is a
/// fault, never replaced by a default.
pub(crate) fn member<T>(
    row: &Row,
    column: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Fault> {
    let text: String = get(row, column)?;
    parse(&text)
        .ok_or_else(|| Fault::new(column, format!("is `{text}`, which this version does not know")))
}

pub(crate) fn bytes32(row: &Row, column: &str) -> Result<[u8; 32], Fault> {
    let bytes: Vec<u8> = get(row, column)?;
    bytes.try_into().map_err(|_| Fault::new(column, "must have 32 bytes"))
}

pub(crate) fn bytes32_or_null(row: &Row, column: &str) -> Result<Option<[u8; 32]>, Fault> {
    match get::<Option<Vec<u8>>>(row, column)? {
        None => Ok(None),
        Some(_) => bytes32(row, column).map(Some),
    }
}

pub(crate) fn required<T>(value: Option<T>, column: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::new(column, "must be set together with the columns beside it"))
}
