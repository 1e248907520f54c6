//! SQLite's spelling of the shared statements.

/// Joins literals and fragments of this dialect into one statement.
macro_rules! sql {
    ($($part:tt),* $(,)?) => {
        concat!($(slipway_durable::fragment!(sqlite, $part)),*)
    };
}

/// The assignments that wake a row.
macro_rules! wake_assignments {
    () => {
        slipway_durable::wake_assignments!(sqlite)
    };
}

/// The assignments that release a claim; the row is due after these microseconds.
macro_rules! release_assignments {
    ($micros:expr) => {
        slipway_durable::release_assignments!(sqlite, $micros)
    };
}

/// Equal to one of the ids that a query answers; uses the index of the compared column.
macro_rules! one_of {
    ($query:expr) => {
        concat!("IN (", $query, ")")
    };
}

/// The statements of a table with the columns of a claim.
macro_rules! claimable {
    ($($table:tt)+) => {
        slipway_durable::claimable!(sqlite, $($table)+)
    };
}

/// The condition under which a row may be claimed.
macro_rules! due_condition {
    () => {
        slipway_durable::due_condition!(sqlite)
    };
}

/// The JSON parameter `$1` as rows named `given`: `rows_from_json!(id: uuid, at: time)`.
macro_rules! rows_from_json {
    ($($columns:tt)+) => {
        slipway_durable::rows_from_json!(sqlite, "$1", $($columns)+)
    };
}
