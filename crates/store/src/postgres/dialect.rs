//! PostgreSQL's spelling of the shared statements.

/// Joins literals and fragments of this dialect into one statement.
macro_rules! sql {
    ($($part:tt),* $(,)?) => {
        concat!($(slipway_durable::fragment!(postgres, $part)),*)
    };
}

/// The assignments that wake an attempt.
macro_rules! wake_assignments {
    () => {
        slipway_durable::wake_assignments!(postgres)
    };
}

/// Gives one claimed attempt back; `$4` is its count of failures.
macro_rules! release_sql {
    () => {
        slipway_durable::release_sql!(postgres, "provisioned_resources", ", failures = $4")
    };
}

/// Claims a batch of due attempts.
macro_rules! claim_sql {
    () => {
        slipway_durable::claim_sql!(postgres, "provisioned_resources", "id, claim_token")
    };
}

/// A JSON parameter of releases as rows, named `given`.
macro_rules! given_releases {
    () => {
        "jsonb_to_recordset($1) AS given (id uuid, claim_token bigint, micros bigint, \
         failures integer)"
    };
}

/// What a row of `given` adds to a time.
macro_rules! given_micros {
    () => {
        "given.micros * interval '1 microsecond'"
    };
}
