//! The conformance suite of a table with the columns of a claim, compiled once
//! for each database. It expects a table that nobody else uses, and panics on the
//! first violation.
//!
//! `insert` inserts a row by plain SQL that names the table's own columns only,
//! and answers its key and the partition by which it is claimed.

use std::fmt::Debug;
use std::time::Duration;

use serde::Serialize;
use sqlx::{AssertSqlSafe, Decode, Encode, Row as _, Type};

use super::{Connection, Db};
use crate::claim::{Claim, Demand, Failures, Release, Table};

const LEASE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Rounds in which two workers claim the same row at the same moment.
const ROUNDS: u32 = 20;

/// The key of a row.
pub trait Key: Serialize + Debug + Ord + Partition + for<'r> Decode<'r, Db> {}

impl<K: Serialize + Debug + Ord + Partition + for<'r> Decode<'r, Db>> Key for K {}

/// What a partition is compared with.
pub trait Partition: Clone + Type<Db> + for<'q> Encode<'q, Db> + 'static {}

impl<P: Clone + Type<Db> + for<'q> Encode<'q, Db> + 'static> Partition for P {}

/// Checks the table and its statements. `connection` and `other` are two
/// connections to its database.
pub async fn conforms<K: Key, P: Partition>(
    table: &Table<Db>,
    connection: &mut Connection,
    other: &mut Connection,
    mut insert: impl AsyncFnMut(&mut Connection) -> (K, P),
) {
    let mut rows = Vec::new();
    for _ in 0..8 {
        rows.push(insert(&mut *connection).await);
    }
    let mut rows = rows.into_iter().map(|(key, partition)| Suite { table, key, partition });
    let mut next = || rows.next().expect("a row for each part of the suite");
    next().is_due_by_its_defaults(connection).await;
    next().has_one_holder(connection, other).await;
    next().fences_off_a_late_worker(connection).await;
    next().is_renewed_by_its_holder_alone(connection).await;
    next().loses_no_wake(connection).await;
    next().is_released_as_said_and_quarantined(connection).await;
    next().is_reclaimed(connection).await;
    next().is_pulled_in(connection).await;
    let mut many = Vec::new();
    for _ in 0..3 {
        let (key, partition) = insert(&mut *connection).await;
        many.push(Suite { table, key, partition });
    }
    are_written_by_sets(&many, connection).await;
}

/// One row of the table. Each part of the suite has its own and ends with a
/// release that keeps the row away from the others.
struct Suite<'a, K, P> {
    table: &'a Table<Db>,
    key: K,
    partition: P,
}

impl<K: Key, P: Partition> Suite<'_, K, P> {
    /// Claims the row if it can be claimed; a claim of other rows is released.
    async fn claim(
        &self,
        connection: &mut Connection,
        worker: &str,
        lease: Duration,
    ) -> Option<Claim<K>> {
        let demand = Demand { worker, limit: 1_000, lease };
        let rows = self.table.claim(connection, self.partition.clone(), demand).await;
        let column = self.table.statements().key;
        let mut own = None;
        for row in rows.expect("a claim") {
            let claim = Claim {
                key: row.try_get::<K, _>(column).expect("a key"),
                claim_token: row.try_get("claim_token").expect("a token"),
            };
            if claim.key == self.key {
                own = Some(claim);
            } else {
                let release = Release { due_in: Some(Duration::ZERO), ..ended(&claim) };
                self.table.release(connection, &[release]).await.expect("a release");
            }
        }
        own
    }

    async fn release(&self, connection: &mut Connection, release: Release<'_, K>) -> u64 {
        self.table.release(connection, &[release]).await.expect("a release")
    }

    async fn renew(&self, connection: &mut Connection, worker: &str, claim: &Claim<K>) -> usize {
        let claims = [claim.clone()];
        self.table.renew(connection, worker, &claims, LEASE).await.expect("a renewal").len()
    }

    async fn wake(&self, connection: &mut Connection) {
        self.table.wake(connection, std::slice::from_ref(&self.key)).await.expect("a wake");
    }

    async fn failures(&self, connection: &mut Connection) -> i32 {
        let statements = self.table.statements();
        let sql =
            format!("SELECT failures FROM {} WHERE {} = $1", statements.table, statements.key);
        let row = sqlx::query(AssertSqlSafe(sql)).bind(self.key.clone());
        row.fetch_one(connection).await.expect("the row").try_get("failures").expect("a count")
    }

    async fn is_due_by_its_defaults(&self, connection: &mut Connection) {
        let due = self.table.is_due(connection, self.partition.clone()).await;
        assert!(due.expect("an answer"), "a row with its defaults is due");
        let claim = self.claim(connection, "one", LEASE).await.expect("and can be claimed");
        assert_eq!((claim.claim_token, self.failures(connection).await), (1, 0));
        assert_eq!(self.release(connection, ended(&claim)).await, 1);
        assert_eq!(self.claim(connection, "one", LEASE).await, None, "not before its time");
    }

    async fn has_one_holder(&self, connection: &mut Connection, other: &mut Connection) {
        for round in 0..ROUNDS {
            let (one, two) =
                tokio::join!(self.claim(connection, "one", LEASE), self.claim(other, "two", LEASE));
            assert!(one.is_none() || two.is_none(), "round {round}: {one:?} and {two:?}");
            let claim = one.or(two).expect("one of them has it");
            assert_eq!(self.claim(other, "two", LEASE).await, None, "somebody has it");
            self.wake(connection).await;
            assert_eq!(self.claim(other, "two", LEASE).await, None, "a wake breaks no lease");
            assert_eq!(self.release(connection, ended(&claim)).await, 1);
        }
        self.park(connection).await;
    }

    async fn fences_off_a_late_worker(&self, connection: &mut Connection) {
        let late = self.claim(connection, "one", Duration::ZERO).await.expect("it is due");
        let holder = self.claim(connection, "two", LEASE).await.expect("that lease is over");
        assert_eq!(holder.claim_token, late.claim_token + 1);
        assert_eq!(self.renew(connection, "one", &late).await, 0, "an old token renews nothing");
        let release = Release { due_in: Some(Duration::ZERO), ..ended(&late) };
        let released = self.release(connection, release.clone()).await;
        assert_eq!(released, 0, "an old token releases nothing");
        assert_eq!(self.claim(connection, "one", LEASE).await, None);
        assert_eq!(self.release(connection, ended(&holder)).await, 1, "the holder releases");
        assert_eq!(self.release(connection, release).await, 0);
        let again = Release { due_in: Some(Duration::ZERO), ..ended(&holder) };
        assert_eq!(self.release(connection, again).await, 0, "released already");
        assert_eq!(self.claim(connection, "one", LEASE).await, None);
    }

    async fn is_renewed_by_its_holder_alone(&self, connection: &mut Connection) {
        let claim = self.claim(connection, "one", Duration::ZERO).await.expect("it is due");
        assert_eq!(self.renew(connection, "two", &claim).await, 0, "another worker");
        assert_eq!(self.renew(connection, "one", &claim).await, 1, "nobody took it over");
        assert_eq!(self.claim(connection, "two", LEASE).await, None, "it is leased again");
        let release = Release { due_in: Some(Duration::ZERO), ..ended(&claim) };
        assert_eq!(self.release(connection, release).await, 1);
        assert_eq!(self.renew(connection, "one", &claim).await, 0, "a late renewal");
        let next = self.claim(connection, "two", LEASE).await.expect("due at once");
        assert_eq!(self.release(connection, ended(&next)).await, 1);
    }

    async fn loses_no_wake(&self, connection: &mut Connection) {
        let claim = self.claim(connection, "one", LEASE).await.expect("it is due");
        self.wake(connection).await;
        assert_eq!(self.renew(connection, "one", &claim).await, 1);
        assert_eq!(self.release(connection, ended(&claim)).await, 1);
        let again = self.claim(connection, "one", LEASE).await.expect("it was woken meanwhile");
        assert_eq!(self.release(connection, ended(&again)).await, 1);
        assert_eq!(self.claim(connection, "one", LEASE).await, None, "nothing woke it since");
        self.wake(connection).await;
        self.park(connection).await;
    }

    async fn is_released_as_said_and_quarantined(&self, connection: &mut Connection) {
        let now = Some(Duration::ZERO);
        let said = [(Failures::Set(7), 7), (Failures::Add, 8), (Failures::Keep, 8)];
        for (failures, counted) in said {
            let claim = self.claim(connection, "one", LEASE).await.expect("it is due");
            let release =
                Release { failures, due_in: now, error: Some("no luck"), ..ended(&claim) };
            assert_eq!(self.release(connection, release).await, 1);
            assert_eq!(self.failures(connection).await, counted, "{failures:?}");
        }
        let claim = self.claim(connection, "one", LEASE).await.expect("it is due");
        let quarantine = Release { failures: Failures::Keep, ..ended(&claim) };
        assert_eq!(self.release(connection, quarantine).await, 1);
        assert_eq!(self.failures(connection).await, 8);
        assert_eq!(self.claim(connection, "one", LEASE).await, None, "it is left alone");
    }

    async fn is_reclaimed(&self, connection: &mut Connection) {
        let dead = self.claim(connection, "dead", LEASE).await.expect("it is due");
        let ended_claims = self.table.reclaim(connection, "nobody").await.expect("an answer");
        assert_eq!(ended_claims, 0, "another worker's claim is left alone");
        assert_eq!(self.table.reclaim(connection, "dead").await.expect("an answer"), 1);
        assert_eq!(self.release(connection, ended(&dead)).await, 0, "the earlier life is fenced");
        let next = self.claim(connection, "dead", LEASE).await.expect("due at once");
        assert!(next.claim_token > dead.claim_token + 1);
        let partition = self.partition.clone();
        let ended_claims = self.table.reclaim_in(connection, "dead", partition).await;
        assert_eq!(ended_claims.expect("an answer"), 1);
        self.park(connection).await;
    }

    async fn is_pulled_in(&self, connection: &mut Connection) {
        let claim = self.claim(connection, "one", LEASE).await.expect("it is due");
        assert_eq!(self.release(connection, ended(&claim)).await, 1);
        assert!(self.table.pull_in(connection, HOUR * 2, LEASE).await.expect("an answer") >= 1);
        let claim = self.claim(connection, "dead", HOUR).await.expect("due since the jump");
        self.table.pull_in(connection, HOUR * 2, LEASE).await.expect("an answer");
        let next = self.claim(connection, "one", LEASE).await.expect("a lease of before the jump");
        assert_eq!(next.claim_token, claim.claim_token + 1);
        self.table.pull_in(connection, HOUR * 2, LEASE).await.expect("an answer");
        assert_eq!(self.renew(connection, "one", &next).await, 1, "a lease of after it stays");
        assert_eq!(self.release(connection, ended(&next)).await, 1);
    }

    /// Keeps the row away from the claims of other parts.
    async fn park(&self, connection: &mut Connection) {
        self.wake(connection).await;
        let claim = self.claim(connection, "park", LEASE).await.expect("it was woken");
        assert_eq!(self.release(connection, ended(&claim)).await, 1);
    }
}

/// Renewal, release and wake of many rows, each by one statement, in any order.
async fn are_written_by_sets<K: Key, P: Partition>(
    rows: &[Suite<'_, K, P>],
    connection: &mut Connection,
) {
    let table = rows[0].table;
    let mut claims = Vec::new();
    for row in rows {
        claims.push(row.claim(connection, "one", LEASE).await.expect("it is due"));
    }
    claims.reverse();
    let renewed = table.renew(connection, "one", &claims, LEASE).await.expect("a renewal");
    assert_eq!(renewed.len(), rows.len());
    let releases: Vec<_> = claims.iter().map(ended).collect();
    let released = table.release(connection, &releases).await.expect("a release");
    assert_eq!(usize::try_from(released).expect("a small number"), rows.len());
    let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
    table.wake(connection, &keys).await.expect("a wake");
    for row in rows {
        row.park(connection).await;
    }
    assert_eq!(table.release::<K>(connection, &[]).await.expect("nothing to do"), 0);
    assert_eq!(table.renew::<K>(connection, "one", &[], LEASE).await.expect("nothing"), []);
    table.wake::<K>(connection, &[]).await.expect("nothing to do");
}

/// A release that keeps the row away for the rest of the suite.
fn ended<K: Clone>(claim: &Claim<K>) -> Release<'static, K> {
    Release { claim: claim.clone(), due_in: Some(HOUR), failures: Failures::Set(0), error: None }
}
