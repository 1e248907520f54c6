//! Many declarations in few transactions.
//!
//! *Expected flow.* Declarations that name the same project, blueprint, version and credential
//! are a group: all that their snapshots differ in is who holds the handle. One transaction
//! goes through up to [`TOGETHER`] declarations, group by group. It loads one snapshot and all
//! holders of a group, decides each declaration as it would decide it alone, and writes those
//! that the rule accepted by sets before the next group is loaded, which sees them.
//!
//! *Guarantees.* Each declaration is written whole or not at all, and one that the rule refuses
//! has written nothing, so the transaction goes on. A write that fails rolls all of them back;
//! then each is decided alone, which finds the failing one. Projects are locked in the order of
//! their names, so two batches wait for each other instead of deadlocking.
//!
//! *Assumption.* A declaration of a group changes nothing that its siblings are checked against
//! but the holder of its own handle, which no two of a group share. In particular the
//! ProviderConfig of a project conflicts only with another credential.

use std::collections::BTreeSet;

use slipway_app::broker::port::{DeclarationsRule, DeclareKey};
use slipway_app::ports::store::Error;
use slipway_core::broker::snapshot::DeclareSnapshot;
use slipway_durable::database::{End, Work};

use super::{Backend, Connection, Db, commit, declare};
use crate::failure::Failure;

/// Declarations of one transaction, as many as one request applies. They lock their project
/// meanwhile, and a batch is a few dozen statements whatever its size.
const TOGETHER: usize = 200;

/// The result of each declaration; `None` if a write failed.
type Outcomes = Option<Vec<(usize, Result<(), Failure>)>>;

pub(crate) async fn decide(
    backend: &Backend,
    keys: &[DeclareKey],
    rule: &mut DeclarationsRule<'_>,
) -> Result<Vec<Result<(), Error>>, Error> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|number| (group_of(&keys[*number]), *number));
    let mut outcomes = Vec::with_capacity(keys.len());
    for numbers in order.chunks(TOGETHER) {
        let together = Together { keys, numbers, rule: &mut *rule };
        match backend.database.transact(together).await {
            Ok(Some(decided)) => {
                let answered =
                    |(number, one): (_, Result<_, Failure>)| (number, one.map_err(Error::from));
                outcomes.extend(decided.into_iter().map(answered));
                continue;
            }
            Ok(None) => {}
            Err(failure) if failure.may_be_of_one_row() => {}
            Err(failure) => return Err(failure.into()),
        }
        for number in numbers {
            let mut rule = |snapshot: &DeclareSnapshot| rule(*number, snapshot);
            outcomes.push((*number, backend.decided(&keys[*number], &mut rule).await));
        }
    }
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// What the declarations of a group have in common.
fn group_of(key: &DeclareKey) -> (&str, &str, Option<&str>, Option<&str>) {
    (&key.project, &key.blueprint, key.version.as_deref(), key.credential.as_deref())
}

/// Cuts ordered declarations into groups. The second declaration of a handle begins a new
/// one, so that it finds the first.
fn groups<'n>(keys: &[DeclareKey], numbers: &'n [usize]) -> Vec<&'n [usize]> {
    let (mut groups, mut begin, mut handles) = (Vec::new(), 0, BTreeSet::new());
    for (at, number) in numbers.iter().enumerate() {
        let key = &keys[*number];
        let is_other = group_of(key) != group_of(&keys[numbers[begin]]);
        if is_other || !handles.insert(&key.handle) {
            groups.push(&numbers[begin..at]);
            (begin, handles) = (at, BTreeSet::from([&key.handle]));
        }
    }
    groups.push(&numbers[begin..]);
    groups
}

struct Together<'a, 'r> {
    keys: &'a [DeclareKey],
    /// The declarations of this transaction, in the order of their groups.
    numbers: &'a [usize],
    rule: &'a mut DeclarationsRule<'r>,
}

impl Work<Db> for Together<'_, '_> {
    type Answer = Outcomes;
    type Error = Failure;

    async fn run(&mut self, connection: &mut Connection) -> Result<End<Outcomes>, Failure> {
        let mut outcomes = Vec::with_capacity(self.numbers.len());
        for group in groups(self.keys, self.numbers) {
            let keys: Vec<&DeclareKey> = group.iter().map(|number| &self.keys[*number]).collect();
            let (mut snapshot, holders) = declare::load_group(connection, &keys).await?;
            let mut commits = Vec::with_capacity(group.len());
            for (number, key) in group.iter().zip(keys) {
                snapshot.holder = holders.get(&key.handle).copied();
                let decided = (self.rule)(*number, &snapshot).map(|commit| commits.push(commit));
                outcomes.push((*number, decided.map_err(Failure::from)));
            }
            match commit::apply(connection, &commits).await {
                Err(Failure::Refused(_)) => return Ok(End::Rollback(None)),
                written => written?,
            }
        }
        Ok(End::Commit(Some(outcomes)))
    }
}
