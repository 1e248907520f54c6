//! Claiming rows of any table, with the fencing token that keeps late workers out.
//!
//! A table whose rows are worked on by a loop carries these columns. With their
//! defaults a row is due at once, whoever inserted it and however.
//!
//! | column | type, default | meaning |
//! |---|---|---|
//! | `id` | uuid | the claimed row |
//! | `partition` | uuid, may be null | the cluster whose loop works on it; each partition is claimed by itself |
//! | `due_at` | time, now | from when on it may be claimed; null until it is woken |
//! | `wake` | bigint, 0 | counter, +1 by whatever may change a decision |
//! | `claim_token` | bigint, 0 | counter, +1 by each claim; every write of a loop names it |
//! | `claimed_wake` | bigint, 0 | the value of `wake` when it was claimed |
//! | `claimed_by`, `lease_until` | text and time, null | the holder and the end of its lease |
//! | `failures` | integer, 0 | failures in a row, from which a loop computes its backoff |
//!
//! A table may have another key, and name another column by which its rows are
//! claimed; [`claimable!`](crate::claimable) says how. Where many rows are due,
//! the table has an index on `(partition, due_at, id)` where `due_at` is not null.
//!
//! A claim moves `due_at` to the end of the lease. The row thereby leaves the
//! head of the due index while it is worked on, and becomes due by itself when
//! its holder dies. A release compares `wake`: if it moved since the claim, the
//! worker decided on old facts, and the row is due again at once.
//!
//! The tests in `model` check in every reachable state of this protocol that no
//! wake is lost and that no late worker writes. Whoever changes a statement here
//! changes the transition there that models it. `testing` checks a table and its
//! statements on a real database.

mod postgres;
mod sqlite;
mod statements;
mod table;

pub use table::{Claim, Demand, Failures, Release, Statements, Table, micros};

/// The conformance suite of a table with the columns of a claim.
#[cfg(feature = "testing")]
pub mod testing {
    pub use super::postgres::conforms as postgres_conforms;
    pub use super::sqlite::conforms as sqlite_conforms;
}
