//! PostgreSQL's spelling of the shared statements.

/// Joins literals and fragments of this dialect into one statement.
macro_rules! sql {
    ($($part:tt),* $(,)?) => {
        concat!($(slipway_durable::fragment!(postgres, $part)),*)
    };
}

/// The assignments that wake a row.
macro_rules! wake_assignments {
    () => {
        slipway_durable::wake_assignments!(postgres)
    };
}

/// The assignments that release a claim; the row is due after these microseconds.
macro_rules! release_assignments {
    ($micros:expr) => {
        slipway_durable::release_assignments!(postgres, $micros)
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

/// The columns of events with their positions, from this table of positions.
macro_rules! positioned_events {
    ($positions:literal) => {
        concat!(
            "SELECT e.id, p.position, e.event_type, e.aggregate_id, e.project_id, e.revision, \
             e.occurred_at, e.payload FROM ",
            $positions,
            " p JOIN outbox_events e ON e.seq = p.seq "
        )
    };
}

/// Equal to one of the ids that a query answers; uses the index of the compared column.
macro_rules! one_of {
    ($query:literal) => {
        concat!("= ANY (ARRAY (", $query, "))")
    };
}

/// The statements of a table with the columns of a claim.
macro_rules! claimable {
    ($($table:tt)+) => {
        slipway_durable::claimable!(postgres, $($table)+)
    };
}

/// The condition under which a row may be claimed.
macro_rules! due_condition {
    () => {
        slipway_durable::due_condition!(postgres)
    };
}

/// The JSON parameter `$1` as rows named `given`: `rows_from_json!(id: uuid, at: time)`.
macro_rules! rows_from_json {
    ($($columns:tt)+) => {
        slipway_durable::rows_from_json!(postgres, "$1", $($columns)+)
    };
}
