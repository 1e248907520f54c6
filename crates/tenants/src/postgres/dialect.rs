//! PostgreSQL's spelling of the shared statements.

/// Joins literals and fragments of this dialect into one statement.
macro_rules! sql {
    ($($part:tt),* $(,)?) => {
        concat!($(slipway_durable::fragment!(postgres, $part)),*)
    };
}

/// The statements of a table with the columns of a claim.
macro_rules! claimable {
    ($($table:tt)+) => {
        slipway_durable::claimable!(postgres, $($table)+)
    };
}

macro_rules! due_condition {
    () => {
        slipway_durable::due_condition!(postgres)
    };
}

macro_rules! wake_assignments {
    () => {
        slipway_durable::wake_assignments!(postgres)
    };
}

/// The JSON parameter `$1` as rows named `given`.
macro_rules! rows_from_json {
    ($($columns:tt)+) => {
        slipway_durable::rows_from_json!(postgres, "$1", $($columns)+)
    };
}
