//! Claiming rows of a table, with the fencing token that keeps late workers out.
//!
//! A table whose rows are worked on by a loop carries these columns:
//!
//! | column | meaning |
//! |---|---|
//! | `id` | the claimed row |
//! | `partition` | the cluster whose loop works on it; each partition is claimed by itself |
//! | `due_at` | from when on it may be claimed; null until it is woken |
//! | `wake` | counter, +1 by whatever may change a decision |
//! | `claim_token` | counter, +1 by each claim; every write of a loop names it |
//! | `claimed_wake` | the value of `wake` when it was claimed |
//! | `claimed_by`, `lease_until` | the holder and the end of its lease, or null |
//!
//! A claim moves `due_at` to the end of the lease. The row thereby leaves the
//! head of the due index while it is worked on, and becomes due by itself when
//! its holder dies. A release compares `wake`: if it moved since the claim, the
//! worker decided on old facts, and the row is due again at once.
//!
//! The tests in `model` check in every reachable state of this protocol that no
//! wake is lost and that no late worker writes. Whoever changes a statement here
//! changes the transition there that models it.

/// The statement that claims a batch of due rows.
///
/// Parameters: `$1` the holder's name, `$2` the length of the lease in
/// microseconds, `$3` how many at most, `$4` the partition. `$columns` is what it
/// returns. Its index is on `(partition, due_at, id)` where `due_at` is not null.
///
/// Rows that another claim has locked are skipped, not waited for. The order is
/// by due time, so that no row starves.
///
/// The clock is in a subquery, which is evaluated once: PostgreSQL assumes that
/// its clock may differ from row to row, and would otherwise walk the whole due
/// index in search of due rows.
#[macro_export]
macro_rules! claim_sql {
    ($dialect:ident, $table:literal, $columns:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET claim_token = claim_token + 1, claimed_wake = wake, claimed_by = $1, \
             lease_until = ",
            $crate::fragment!($dialect, now),
            $crate::fragment!($dialect, (plus_micros "$2")),
            ", due_at = ",
            $crate::fragment!($dialect, now),
            $crate::fragment!($dialect, (plus_micros "$2")),
            " WHERE id ",
            $crate::fragment!($dialect, picked_from),
            "SELECT id FROM ",
            $table,
            " WHERE partition = $4 AND due_at IS NOT NULL AND due_at <= (SELECT ",
            $crate::fragment!($dialect, now),
            ") AND (lease_until IS NULL OR lease_until <= ",
            $crate::fragment!($dialect, now),
            ") ORDER BY due_at, id LIMIT $3",
            $crate::fragment!($dialect, skip_locked),
            $crate::fragment!($dialect, picked_end),
            " RETURNING ",
            $columns
        )
    };
}

/// The statement that releases a claimed row.
///
/// Parameters: `$1` the row, `$2` the claim token, `$3` after how many microseconds
/// it is due again, or null for "when it is woken". It changes no row when the token
/// is not the current one: another worker has taken over, and decides. `$more` are
/// further assignments, each after a comma, with parameters from `$4` on.
#[macro_export]
macro_rules! release_sql {
    ($dialect:ident, $table:literal, $more:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET claimed_by = NULL, lease_until = NULL, due_at = CASE WHEN wake <> claimed_wake \
             THEN ",
            $crate::fragment!($dialect, now),
            " ELSE ",
            $crate::fragment!($dialect, now),
            $crate::fragment!($dialect, (plus_micros "$3")),
            " END",
            $more,
            " WHERE id = $1 AND claim_token = $2"
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_postgres_claim_locks_a_fixed_set_and_skips_what_others_hold() {
        let sql = claim_sql!(postgres, "jobs", "id");
        assert!(sql.contains("= ANY(ARRAY(SELECT id FROM jobs"), "{sql}");
        assert!(sql.contains("FOR NO KEY UPDATE SKIP LOCKED"), "{sql}");
        assert!(sql.contains("due_at <= (SELECT clock_timestamp())"), "a bound of the scan: {sql}");
    }

    #[test]
    fn the_sqlite_statements_hold_no_locking_clause() {
        for sql in [
            claim_sql!(sqlite, "jobs", "id"),
            release_sql!(sqlite, "jobs", ""),
            wake_assignments!(sqlite),
        ] {
            assert!(!sql.contains(" FOR ") && !sql.contains("interval"), "{sql}");
        }
    }

    #[test]
    fn every_release_names_the_claim_token() {
        assert!(
            release_sql!(postgres, "jobs", ", failures = $4").ends_with("AND claim_token = $2")
        );
        assert!(release_sql!(sqlite, "jobs", "").ends_with("AND claim_token = $2"));
    }
}
