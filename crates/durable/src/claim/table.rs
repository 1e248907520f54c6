//! A table that has the columns of a claim, and what its statements are given.

use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;

use crate::database::TableName;

/// The statements of one table in one dialect; see [`claimable!`](crate::claimable).
#[derive(Debug, Clone, Copy)]
pub struct Statements {
    pub table: &'static str,
    pub key: &'static str,
    pub claim: &'static str,
    pub is_due: &'static str,
    pub renew: &'static str,
    pub release: &'static str,
    pub wake: &'static str,
    pub reclaim: &'static str,
    pub reclaim_in: &'static str,
    pub pull_in: &'static str,
}

/// A table of database `Db` whose rows can be claimed.
#[derive(Debug)]
pub struct Table<Db> {
    pub(super) statements: Statements,
    database: PhantomData<fn() -> Db>,
}

impl<Db> Table<Db> {
    pub const fn of(statements: Statements) -> Self {
        Self { statements, database: PhantomData }
    }

    /// The same claims of a table whose name is known at run time; the statements were
    /// made for the name [`TableName::PLACEHOLDER`].
    #[must_use]
    pub fn named(&self, table: &TableName) -> Self {
        let Statements {
            table: _,
            key,
            claim,
            is_due,
            renew,
            release,
            wake,
            reclaim,
            reclaim_in,
            pull_in,
        } = self.statements;
        Self::of(Statements {
            table: table.in_statement(TableName::PLACEHOLDER),
            key,
            claim: table.in_statement(claim),
            is_due: table.in_statement(is_due),
            renew: table.in_statement(renew),
            release: table.in_statement(release),
            wake: table.in_statement(wake),
            reclaim: table.in_statement(reclaim),
            reclaim_in: table.in_statement(reclaim_in),
            pull_in: table.in_statement(pull_in),
        })
    }

    pub const fn statements(&self) -> &Statements {
        &self.statements
    }
}

/// Who claims, how many rows at most, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Demand<'a> {
    pub worker: &'a str,
    pub limit: u32,
    pub lease: Duration,
}

/// A claim: the row and the token that the claim gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Claim<K> {
    pub key: K,
    pub claim_token: i64,
}

/// The end of a claim.
///
/// A row is quarantined by a release like any other: it stays out of the due
/// index for the given time and keeps its count of failures.
#[derive(Debug, Clone, Copy)]
pub struct Release<'a, K> {
    pub claim: Claim<K>,
    /// When the row is due again; `None` means when it is woken.
    pub due_in: Option<Duration>,
    pub failures: Failures,
    /// For tables that store the last error.
    pub error: Option<&'a str>,
}

/// What a release does to the count of failures in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failures {
    Keep,
    Add,
    Set(i32),
}

/// A row of the JSON parameter of a release.
#[derive(Debug, Serialize)]
pub(super) struct GivenRelease<'a, K> {
    #[serde(flatten)]
    claim: &'a Claim<K>,
    micros: Option<i64>,
    failures: Option<i32>,
    added: i32,
    error: Option<&'a str>,
}

impl<'a, K> From<&'a Release<'a, K>> for GivenRelease<'a, K> {
    fn from(release: &'a Release<'a, K>) -> Self {
        let (failures, added) = match release.failures {
            Failures::Keep => (None, 0),
            Failures::Add => (None, 1),
            Failures::Set(failures) => (Some(failures), 0),
        };
        Self {
            claim: &release.claim,
            micros: release.due_in.map(micros),
            failures,
            added,
            error: release.error,
        }
    }
}

/// A row of the JSON parameter of a wake.
#[derive(Debug, Serialize)]
pub(super) struct GivenKey<'a, K> {
    pub(super) key: &'a K,
}

/// A duration as the statements take it. A century is as good as for ever, and
/// fits both databases' times.
#[must_use]
pub fn micros(duration: Duration) -> i64 {
    const CENTURY: i64 = 100 * 365 * 24 * 3_600 * 1_000_000;
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).min(CENTURY)
}
