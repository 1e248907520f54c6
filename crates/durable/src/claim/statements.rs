//! The statements of a claim, as string literals for a table and a dialect.
//!
//! [`claimable!`](crate::claimable) makes all of them for one table. The others
//! are the pieces that a store puts into statements of its own: what is due, the
//! assignments of a wake and of a release, the oldest due time of a partition.
//!
//! A set of rows is one JSON parameter, an array of objects, so that a statement
//! is prepared once and a batch is one round trip whatever its length.

/// The statements of a table that has the columns of a claim, as a
/// [`Table`](crate::claim::Table).
///
/// A table brings its name: `claimable!(postgres, "jobs")`. Its key is then the
/// uuid `id`, and its rows are claimed by `partition`. A table that differs says
/// everything:
///
/// | field | meaning |
/// |---|---|
/// | `key` | the column of the key, and its type (`uuid` or `text`) |
/// | `by` | the column by which rows are claimed: one value at a time |
/// | `and` | a further condition under which a row may be claimed |
/// | `returning` | what a claim answers |
/// | `release` | further assignments of a release, each after a comma; `given.error` is the error of the release |
#[macro_export]
macro_rules! claimable {
    ($dialect:ident, $table:literal) => {
        $crate::claimable!($dialect, $table, {
            key: id uuid,
            by: partition,
            and: "",
            returning: "id, claim_token",
            release: "",
        })
    };
    ($dialect:ident, $table:literal, {
        key: $key:ident $kind:ident,
        by: $by:ident,
        and: $and:expr,
        returning: $returning:expr,
        release: $release:expr $(,)?
    }) => {
        $crate::claim::Table::of($crate::claim::Statements {
            table: $table,
            key: stringify!($key),
            // Rows that another claim has locked are skipped, not waited for. The
            // order is by due time, so that no row starves.
            claim: concat!(
                "UPDATE ",
                $table,
                " SET claim_token = claim_token + 1, claimed_wake = wake, claimed_by = $1, ",
                $crate::lease_assignments!($dialect),
                " WHERE ",
                stringify!($key),
                " ",
                $crate::fragment!($dialect, picked_from),
                "SELECT ",
                stringify!($key),
                " FROM ",
                $table,
                " WHERE ",
                stringify!($by),
                " = $4 AND ",
                $crate::due_condition!($dialect),
                $and,
                " ORDER BY due_at, ",
                stringify!($key),
                " LIMIT $3",
                $crate::fragment!($dialect, skip_locked),
                $crate::fragment!($dialect, picked_end),
                " RETURNING ",
                $returning
            ),
            is_due: concat!(
                "SELECT 1 AS due FROM ",
                $table,
                " WHERE ",
                stringify!($by),
                " = $1 AND ",
                $crate::due_condition!($dialect),
                $and,
                " LIMIT 1"
            ),
            // It names the claim token, so that a worker that was replaced renews
            // nothing, and the holder, because a release leaves the token as it is.
            // It skips locked rows: the writer may be the record of this very batch,
            // which locks them in an order of its own, so waiting could deadlock.
            renew: concat!(
                "UPDATE ",
                $table,
                " SET ",
                $crate::lease_assignments!($dialect),
                " WHERE ",
                stringify!($key),
                " ",
                $crate::fragment!($dialect, picked_from),
                "SELECT leased.",
                stringify!($key),
                " FROM ",
                $table,
                " AS leased, ",
                $crate::rows_from_json!($dialect, "$3", key: $kind, claim_token: bigint),
                " WHERE leased.",
                stringify!($key),
                " = given.key AND leased.claim_token = given.claim_token \
                 AND leased.claimed_by = $1 ORDER BY leased.",
                stringify!($key),
                $crate::fragment!($dialect, skip_locked),
                $crate::fragment!($dialect, picked_end),
                " RETURNING ",
                stringify!($key)
            ),
            release: concat!(
                "UPDATE ",
                $table,
                " SET failures = coalesce(given.failures, ",
                $table,
                ".failures + given.added), ",
                $crate::release_assignments!(
                    $dialect,
                    $crate::fragment!($dialect, given_micros)
                ),
                $release,
                " FROM ",
                $crate::rows_from_json!(
                    $dialect, "$1", key: $kind, claim_token: bigint, micros: bigint,
                    failures: integer, added: integer, error: text
                ),
                " WHERE ",
                $table,
                ".",
                stringify!($key),
                " = given.key AND ",
                $crate::release_condition!($table, "given.claim_token")
            ),
            // In the order of the keys, so that two that wake the same rows lock them
            // in the same order.
            wake: concat!(
                "UPDATE ",
                $table,
                " SET ",
                $crate::wake_assignments!($dialect),
                " WHERE ",
                stringify!($key),
                " ",
                $crate::fragment!($dialect, picked_from),
                "SELECT woken.",
                stringify!($key),
                " FROM ",
                $table,
                " AS woken, ",
                $crate::rows_from_json!($dialect, "$1", key: $kind),
                " WHERE woken.",
                stringify!($key),
                " = given.key ORDER BY woken.",
                stringify!($key),
                $crate::fragment!($dialect, for_update),
                $crate::fragment!($dialect, picked_end)
            ),
            reclaim: $crate::reclaim_sql!($dialect, $table, ""),
            reclaim_in: $crate::reclaim_sql!(
                $dialect, $table, concat!(" AND ", stringify!($by), " = $2")
            ),
            // A lease that a live worker took or renewed since the jump is not longer
            // than `$2` and stays. A longer one was taken before a jump, maybe one that
            // nobody measured: it ends after `$2` at the latest.
            pull_in: concat!(
                "UPDATE ",
                $table,
                " SET due_at = ",
                $crate::pulled_in!($dialect, "due_at"),
                ", lease_until = CASE WHEN lease_until > ",
                $crate::fragment!($dialect, now),
                $crate::fragment!($dialect, (plus_micros "$2")),
                " THEN ",
                $crate::pulled_in!($dialect, "lease_until"),
                " ELSE lease_until END WHERE due_at > (SELECT ",
                $crate::fragment!($dialect, now),
                ")"
            ),
        })
    };
}

/// The assignments that release a claim, for use inside an UPDATE of the row, which
/// must also meet [`release_condition!`](crate::release_condition). The row is due
/// after these microseconds, or when woken if they are null, but at once if its wake
/// moved since the claim: a release cannot lose a wake.
#[macro_export]
macro_rules! release_assignments {
    ($dialect:ident, $micros:expr) => {
        concat!(
            "claimed_by = NULL, lease_until = NULL, due_at = CASE WHEN wake <> claimed_wake THEN ",
            $crate::fragment!($dialect, now),
            " ELSE ",
            $crate::fragment!($dialect, now),
            " + ",
            $micros,
            " END"
        )
    };
}

/// A time that lies `$1` too far in the future; of a claimed row at most `$2` from now.
#[doc(hidden)]
#[macro_export]
macro_rules! pulled_in {
    ($dialect:ident, $column:literal) => {
        concat!(
            $crate::fragment!($dialect, least),
            "(",
            $crate::fragment!($dialect, greatest),
            "(",
            $crate::fragment!($dialect, now),
            ", ",
            $column,
            $crate::fragment!($dialect, (minus_micros "$1")),
            "), CASE WHEN lease_until IS NULL THEN ",
            $column,
            " ELSE ",
            $crate::fragment!($dialect, now),
            $crate::fragment!($dialect, (plus_micros "$2")),
            " END)"
        )
    };
}

/// The condition of a release. It names the claim token, and that the claim was not
/// released before, because a release leaves the token as it is: a late release
/// changes no row that another worker has, or will have.
#[macro_export]
macro_rules! release_condition {
    ($table:literal, $token:literal) => {
        concat!($table, ".claim_token = ", $token, " AND ", $table, ".claimed_by IS NOT NULL")
    };
}

/// The end of a lease of `$2` microseconds from now, and with it the due time.
#[doc(hidden)]
#[macro_export]
macro_rules! lease_assignments {
    ($dialect:ident) => {
        concat!(
            "lease_until = ",
            $crate::fragment!($dialect, now),
            $crate::fragment!($dialect, (plus_micros "$2")),
            ", due_at = ",
            $crate::fragment!($dialect, now),
            $crate::fragment!($dialect, (plus_micros "$2"))
        )
    };
}

/// Ends the claims of worker `$1`, with a further condition. The token moves, so
/// that the earlier life of the worker cannot write any more.
#[doc(hidden)]
#[macro_export]
macro_rules! reclaim_sql {
    ($dialect:ident, $table:literal, $and:expr) => {
        concat!(
            "UPDATE ",
            $table,
            " SET claim_token = claim_token + 1, claimed_by = NULL, lease_until = NULL, \
             due_at = ",
            $crate::fragment!($dialect, now),
            " WHERE claimed_by = $1",
            $and
        )
    };
}

/// The condition under which a row is due and under no live lease.
///
/// The clock is in a subquery, which is evaluated once: PostgreSQL assumes that
/// its clock may differ from row to row, and would otherwise walk the whole due
/// index in search of due rows.
#[macro_export]
macro_rules! due_condition {
    ($dialect:ident) => {
        concat!(
            "due_at IS NOT NULL AND due_at <= (SELECT ",
            $crate::fragment!($dialect, now),
            ") AND (lease_until IS NULL OR lease_until <= ",
            $crate::fragment!($dialect, now),
            ")"
        )
    };
}

/// The assignments that wake a row, for use inside an UPDATE of it.
///
/// A row under a live lease keeps its `due_at`: the holder notices the moved
/// counter when it releases, or the lease expires. Any other row is due now.
#[macro_export]
macro_rules! wake_assignments {
    ($dialect:ident) => {
        concat!(
            "wake = wake + 1, due_at = CASE WHEN lease_until > ",
            $crate::fragment!($dialect, now),
            " THEN due_at ELSE ",
            $crate::fragment!($dialect, now),
            " END"
        )
    };
}

/// The oldest due time among the rows that meet a condition on their partition:
/// one lookup in the due index, however many rows are due. It may lie in the
/// future.
#[macro_export]
macro_rules! oldest_due {
    ($table:literal, $partition:literal) => {
        concat!(
            "(SELECT min(due_at) FROM ",
            $table,
            " WHERE ",
            $partition,
            " AND due_at IS NOT NULL)"
        )
    };
}

#[cfg(test)]
mod tests {
    use crate::claim::Table;

    const POSTGRES: Table<sqlx::Postgres> = claimable!(postgres, "jobs");
    const SQLITE: Table<sqlx::Sqlite> = claimable!(sqlite, "jobs");

    #[test]
    fn the_postgres_claim_locks_a_fixed_set_and_skips_what_others_hold() {
        let sql = POSTGRES.statements().claim;
        assert!(sql.contains("= ANY(ARRAY(SELECT id FROM jobs"), "{sql}");
        assert!(sql.contains("FOR NO KEY UPDATE SKIP LOCKED"), "{sql}");
        assert!(sql.contains("due_at <= (SELECT clock_timestamp())"), "a bound of the scan: {sql}");
    }

    #[test]
    fn the_sqlite_statements_hold_no_locking_clause() {
        let statements = SQLITE.statements();
        for sql in [statements.claim, statements.renew, statements.release, statements.wake] {
            assert!(!sql.contains(" FOR ") && !sql.contains("interval"), "{sql}");
        }
    }

    #[test]
    fn every_release_names_the_claim_token() {
        for statements in [POSTGRES.statements(), SQLITE.statements()] {
            for sql in [statements.release, statements.renew] {
                assert!(sql.contains("claim_token = given.claim_token AND "), "{sql}");
            }
        }
    }
}
