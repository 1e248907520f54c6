//! Many decisions in one transaction.
//!
//! *Expected flow.* Lock the resource rows in the order of their ids, load all
//! snapshots, ask the rule about each, write all commits by sets (see
//! `commit.rs`), commit once. A row that the rule refuses, or that cannot be
//! hydrated, is left out before anything is written.
//!
//! *Guarantees.* Each row ends as `decide` would end it, and none affects
//! another. A condition that no rule can foresee (a claim lost between load and
//! write, a commit computed from old facts, a constraint) rolls back the whole
//! transaction; its rows are then decided one by one, which finds the failing
//! one. So a bad row costs its batch time and never progress.

use std::collections::HashMap;

use slipway_app::broker::port::{Decided, ResourceKey, ResourceRule};
use slipway_app::ports::store::Error;
use slipway_core::commit::Commit;
use slipway_core::ids::ProvisionedResourceId;
use slipway_durable::database::{End, Work};
use uuid::Uuid;

use super::{Backend, Connection, Db, commit, decide, hydrate, snapshot};
use crate::failure::Failure;
use crate::id_list::IdList;

/// How the transaction of a batch ended.
enum Batch {
    /// Committed; the result of each row that exists.
    Written(HashMap<ProvisionedResourceId, Result<(), Failure>>),
    /// Rolled back: a condition was not met, and it is not known for which row.
    Mixed,
}

pub(crate) async fn decide_many(
    backend: &Backend,
    attempts: &[ProvisionedResourceId],
    rule: &mut ResourceRule<'_>,
) -> Result<Vec<Decided>, Error> {
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let together = Together { backend, attempts, rule: &mut *rule };
    match backend.database.transact(together).await {
        Ok(Batch::Written(mut outcomes)) => {
            let missing = || Err(Failure::NotFound { kind: ProvisionedResourceId::KIND });
            Ok(attempts
                .iter()
                .map(|id| (*id, outcomes.remove(id).unwrap_or_else(missing).map_err(Error::from)))
                .collect())
        }
        Ok(Batch::Mixed) => Ok(one_by_one(backend, attempts, rule).await),
        Err(failure) if failure.may_be_of_one_row() => {
            tracing::debug!(?failure, rows = attempts.len(), "a batch failed; row by row");
            Ok(one_by_one(backend, attempts, rule).await)
        }
        Err(failure) => Err(failure.into()),
    }
}

async fn one_by_one(
    backend: &Backend,
    attempts: &[ProvisionedResourceId],
    rule: &mut ResourceRule<'_>,
) -> Vec<Decided> {
    let mut decided = Vec::with_capacity(attempts.len());
    for attempt in attempts {
        let key = ResourceKey::Attempt(*attempt);
        let key = decide::ByKey { blueprints: &backend.blueprints, key };
        decided.push((*attempt, backend.decided(key, &mut *rule).await));
    }
    decided
}

/// The transaction of a batch.
struct Together<'a, 'r> {
    backend: &'a Backend,
    attempts: &'a [ProvisionedResourceId],
    rule: &'a mut ResourceRule<'r>,
}

impl Work<Db> for Together<'_, '_> {
    type Answer = Batch;
    type Error = Failure;

    async fn run(&mut self, connection: &mut Connection) -> Result<End<Batch>, Failure> {
        let others = lock(connection, self.attempts).await?;
        if self.attempts.iter().filter(|id| others.contains(&id.as_uuid())).count() > 1 {
            // They may be of one resource: what is decided about one changes the other.
            return Ok(End::Rollback(Batch::Mixed));
        }
        let blueprints = &self.backend.blueprints;
        let loaded = snapshot::load_locked(blueprints, connection, self.attempts, &others).await?;
        let mut outcomes = HashMap::with_capacity(loaded.len());
        let mut commits = Vec::with_capacity(loaded.len());
        for (id, loaded) in loaded {
            let decided = match loaded {
                Ok(snapshot) => (self.rule)(&snapshot).map_err(Failure::from),
                Err(fault) => Err(Failure::Corrupt { id: id.as_uuid(), fault }),
            };
            outcomes.insert(id, decided.map(|commit| commits.push(commit)));
        }
        if commits.iter().all(Commit::is_empty) {
            return Ok(End::Rollback(Batch::Written(outcomes)));
        }
        match commit::apply(connection, &commits).await {
            Ok(()) => Ok(End::Commit(Batch::Written(outcomes))),
            // Deciding one by one finds the row.
            Err(Failure::Refused(_)) => Ok(End::Rollback(Batch::Mixed)),
            Err(failure) => Err(failure),
        }
    }
}

/// Locks the resources of these attempts in the order of their ids, so that two
/// batches that share some wait for each other instead of deadlocking. The
/// nodes are locked where they are loaded. Answers the attempts of the resources that have
/// two.
async fn lock(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<Vec<Uuid>, sqlx::Error> {
    let list: IdList = attempts.iter().map(|id| id.as_uuid()).collect();
    let locked = sqlx::query(sql!(
        "SELECT id, surge_from AS r_surge_from, surge_to AS r_surge_to FROM resources WHERE id IN \
         (SELECT resource_id FROM provisioned_resources WHERE id ",
        (one_of "$1"),
        ") ORDER BY id",
        for_update
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    let pairs = locked.iter().filter_map(|row| hydrate::pair(row).transpose());
    Ok(pairs.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
