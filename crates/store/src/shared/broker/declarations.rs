//! Many declarations in few transactions.
//!
//! *Expected flow.* One transaction decides declaration after declaration as it would decide
//! each alone, writes each before the next is loaded, so that the next sees it, and commits
//! once.
//!
//! *Guarantees.* A declaration that the rule refuses has written nothing, so the transaction
//! goes on. A write that fails rolls all of them back; then each is decided alone, which finds
//! the failing one. A project is locked by one transaction in the order of the keys; callers
//! sort them, so that two batches wait for each other instead of deadlocking.

use slipway_app::broker::port::{DeclarationsRule, DeclareKey};
use slipway_app::ports::store::Error;
use slipway_core::broker::snapshot::DeclareSnapshot;
use slipway_durable::database::{End, Work};

use super::transaction::Decision;
use super::{Backend, Connection, Db};
use crate::failure::Failure;

/// Declarations of one transaction: it locks the project, and others wait meanwhile.
const TOGETHER: usize = 50;

/// The result of each declaration; `None` if a write failed.
type Outcomes = Option<Vec<Result<(), Failure>>>;

pub(crate) async fn decide(
    backend: &Backend,
    keys: &[DeclareKey],
    rule: &mut DeclarationsRule<'_>,
) -> Result<Vec<Result<(), Error>>, Error> {
    let mut outcomes = Vec::with_capacity(keys.len());
    for (number, keys) in keys.chunks(TOGETHER).enumerate() {
        let first = number * TOGETHER;
        let together = Together { keys, first, rule: &mut *rule };
        match backend.database.transact(together).await {
            Ok(Some(decided)) => {
                outcomes.extend(decided.into_iter().map(|one| one.map_err(Error::from)));
                continue;
            }
            Ok(None) => {}
            Err(failure) if failure.may_be_of_one_row() => {}
            Err(failure) => return Err(failure.into()),
        }
        for (number, key) in (first..).zip(keys) {
            let mut rule = |snapshot: &DeclareSnapshot| rule(number, snapshot);
            outcomes.push(backend.decided(key, &mut rule).await);
        }
    }
    Ok(outcomes)
}

struct Together<'a, 'r> {
    keys: &'a [DeclareKey],
    first: usize,
    rule: &'a mut DeclarationsRule<'r>,
}

impl Work<Db> for Together<'_, '_> {
    type Answer = Outcomes;
    type Error = Failure;

    async fn run(&mut self, connection: &mut Connection) -> Result<End<Outcomes>, Failure> {
        let mut outcomes = Vec::with_capacity(self.keys.len());
        for (number, key) in (self.first..).zip(self.keys) {
            let mut refused = false;
            let mut rule = |snapshot: &DeclareSnapshot| {
                let decided = (self.rule)(number, snapshot);
                refused = decided.is_err();
                decided
            };
            let mut decision = Decision { key, rule: &mut rule, beside: None };
            match decision.in_txn(connection).await {
                Ok(_) => outcomes.push(Ok(())),
                Err(failure @ Failure::Refused(_)) if refused => outcomes.push(Err(failure)),
                Err(Failure::Refused(_)) => return Ok(End::Rollback(None)),
                Err(failure) => return Err(failure),
            }
        }
        Ok(End::Commit(Some(outcomes)))
    }
}
