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

/// The columns of a node, by name: a statement prepared with `*` breaks, or
/// answers something else, when a newer version adds a column.
macro_rules! node_columns {
    () => {
        "id, revision, project_id, resource_id, provisioned_resource_id, bootstrap_token_id, \
         hostname, public_key, key_hash, capabilities, registered_at, last_heartbeat_at, \
         drain_id, drain_requested_at, deregistered_at, deregistered_how, deregistered_by, \
         deregistered_reason, mesh_host, mesh_ip, binary_version, binary_checksum, agent_status"
    };
}

/// The columns of a deletion, with FROM and its table.
macro_rules! deletion_columns {
    () => {
        deletion_columns!("deletions")
    };
    ($from:literal) => {
        concat!(
            "SELECT id AS d_id, kind AS d_kind, target_id AS d_target_id, state AS d_state, \
         requested_by AS d_requested_by, reason AS d_reason, members AS d_members, \
         revision AS d_revision, requested_at AS d_requested_at, done_at AS d_done_at, \
         restorable_until AS d_restorable_until FROM ",
            $from,
            " "
        )
    };
}

/// Equal to one of the ids that a query answers; uses the index of the compared column.
macro_rules! one_of {
    ($query:literal) => {
        concat!("= ANY (ARRAY (", $query, "))")
    };
}

/// Claims a batch of due attempts.
macro_rules! claim_sql {
    () => {
        slipway_durable::claim_sql!(postgres, "provisioned_resources", "id, claim_token")
    };
}

/// The JSON parameter `$1`, an array of objects, as rows named `given`:
/// `rows_from_json!(id: uuid, at: time)`. A missing field is null. It is one parameter
/// whatever the length, so a statement is prepared once and a batch is one round trip.
macro_rules! rows_from_json {
    (@list $column:ident $kind:ident) => {
        concat!(stringify!($column), " ", rows_from_json!(@type $kind))
    };
    (@list $column:ident $kind:ident, $($rest:tt)+) => {
        concat!(rows_from_json!(@list $column $kind), ", ", rows_from_json!(@list $($rest)+))
    };
    (@type uuid) => { "uuid" };
    (@type bigint) => { "bigint" };
    (@type integer) => { "integer" };
    (@type text) => { "text" };
    (@type json) => { "jsonb" };
    (@type bytes) => { "bytea" };
    (@type time) => { "timestamptz" };
    ($($column:ident: $kind:ident),+ $(,)?) => {
        concat!("jsonb_to_recordset($1) AS given (", rows_from_json!(@list $($column $kind),+), ")")
    };
}

/// The interval that a row of `given` adds to a time.
macro_rules! json_micros {
    () => {
        "given.micros * interval '1 microsecond'"
    };
}
