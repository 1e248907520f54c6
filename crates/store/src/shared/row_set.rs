//! Statements over rows that arrive as one JSON parameter, from one list of
//! columns: `insert_rows!` and `update_rows!` take the name, the SQL type and the
//! value of each column, and write the statement and the JSON from it.
//!
//! ```ignore
//! const INSERT: RowSet<Cloud> = insert_rows!(guarded, "clouds", |cloud: &Cloud| {
//!     id: uuid = cloud.id,
//!     name: text = cloud.name,
//!     created_at: time = cloud.created_at,
//! });
//! ```
//!
//! The types are those of `rows_from_json!`; a time or bytes may be optional. The
//! first column is the id of a row, by which a set is checked.

use serde_json::Value;
use slipway_core::{Refusal, Timestamp};
use uuid::Uuid;

use super::json_values::{JsonBytes, JsonTime};
use super::{Connection, writes};
use crate::failure::Failure;

/// A statement, and the row that it takes for an item.
pub(crate) struct RowSet<T: 'static> {
    pub(crate) statement: &'static str,
    pub(crate) id: fn(&T) -> Uuid,
    pub(crate) row: fn(&T) -> Value,
}

impl<T> RowSet<T> {
    /// Writes rows that no condition guards.
    pub(crate) async fn write(
        &self,
        connection: &mut Connection,
        items: &[&T],
    ) -> Result<(), Failure> {
        let rows: Vec<Value> = items.iter().map(|item| (self.row)(item)).collect();
        Ok(writes::write(connection, self.statement, &rows).await?)
    }

    /// Writes rows under a condition; see [`writes::write_guarded`].
    pub(crate) async fn write_guarded(
        &self,
        connection: &mut Connection,
        items: &[&T],
        refusal: impl FnOnce(&T) -> Refusal,
    ) -> Result<(), Failure> {
        let row = |item: &T| ((self.id)(item), (self.row)(item));
        writes::write_guarded(connection, self.statement, items, row, refusal).await
    }
}

/// Inserts rows. A `guarded` insert leaves out those that violate a unique index, so that
/// the transaction stays usable on both databases; a `plain` one fails.
macro_rules! insert_rows {
    (guarded, $($rows:tt)+) => {
        insert_rows!(@ending (" WHERE true ON CONFLICT DO NOTHING RETURNING "), $($rows)+)
    };
    (plain, $($rows:tt)+) => {
        insert_rows!(@ending (), $($rows)+)
    };
    (@ending ($($returning:literal)?), $table:literal, |$item:ident: &$aggregate:ty| {
        $first:ident: $first_kind:ident = $first_value:expr,
        $($column:ident: $kind:ident = $value:expr,)+
    }) => {
        RowSet::<$aggregate> {
            statement: concat!(
                "INSERT INTO ", $table, " (",
                stringify!($first), $(", ", stringify!($column),)+
                ") SELECT given.",
                stringify!($first), $(", given.", stringify!($column),)+
                " FROM ",
                rows_from_json!($first: $first_kind, $($column: $kind),+),
                $($returning, stringify!($first), " AS id",)?
            ),
            id: |$item| ($first_value).into(),
            row: |$item| json_row!(
                $first: $first_kind = $first_value, $($column: $kind = $value,)+
            ),
        }
    };
}

/// Updates rows, each at the revision that was read, and gives it the next one. The fields
/// after `by` are the key. `dated` rows have the time of their last update.
macro_rules! update_rows {
    (dated, $($rows:tt)+) => {
        update_rows!(
            @dates concat!(", updated_at = ", sql!(greatest, "(", now, ", updated_at)")),
            $($rows)+
        )
    };
    (undated, $($rows:tt)+) => {
        update_rows!(@dates "", $($rows)+)
    };
    (@dates $dates:expr, $table:literal by $first:ident $($key:ident)*,
     |$item:ident: &$aggregate:ty| { $($column:ident: $kind:ident = $value:expr,)+ }) => {
        RowSet::<$aggregate> {
            statement: concat!(
                "UPDATE ", $table, " SET ",
                $(stringify!($column), " = given.", stringify!($column), ", ",)+
                "revision = ", $table, ".revision + 1", $dates,
                " FROM ",
                rows_from_json!($first: uuid, $($key: uuid,)* revision: bigint, $($column: $kind),+),
                " WHERE ",
                $($table, ".", stringify!($key), " = given.", stringify!($key), " AND ",)*
                $table, ".", stringify!($first), " = given.", stringify!($first),
                " AND ", $table, ".revision = given.revision RETURNING ",
                $table, ".", stringify!($first), " AS id",
            ),
            id: |$item| $item.$first.into(),
            row: |$item| json_row!(
                $first: uuid = $item.$first,
                $($key: uuid = $item.$key,)*
                revision: bigint = $item.revision,
                $($column: $kind = $value,)+
            ),
        }
    };
}

macro_rules! json_row {
    (@value time, $value:expr) => { serde_json::json!(super::row_set::json_time($value)) };
    (@value bytes, $value:expr) => { serde_json::json!(super::row_set::json_bytes($value)) };
    (@value $kind:ident, $value:expr) => { serde_json::json!($value) };
    ($($column:ident: $kind:ident = $value:expr,)+) => {
        serde_json::Value::Object(serde_json::Map::from_iter([
            $((stringify!($column).to_owned(), json_row!(@value $kind, $value)),)+
        ]))
    };
}

/// A time as `rows_from_json!` reads it.
pub(crate) fn json_time(time: impl Into<Option<Timestamp>>) -> Option<JsonTime> {
    time.into().map(JsonTime::from)
}

/// Thirty-two bytes as `rows_from_json!` reads them.
pub(crate) fn json_bytes<'a>(bytes: impl Into<Option<&'a [u8; 32]>>) -> Option<JsonBytes> {
    bytes.into().map(|bytes| JsonBytes::from(&bytes[..]))
}
