//! Many decisions in one transaction.
//!
//! *Expected flow.* Lock the resource rows in the order of their ids, load all
//! snapshots, ask the rule about each, write all commits by one statement per
//! kind of write, commit once. A row that the rule refuses, or that cannot be
//! hydrated, is left out before anything is written.
//!
//! *Guarantees.* Each row ends as `decide` would end it, and none affects
//! another. A condition that no rule can foresee (a claim lost between load and
//! write, a commit computed from old facts, a constraint) rolls back the whole
//! transaction; its rows are then decided one by one, which finds the failing
//! one. So a bad row costs its batch time and never progress.
//!
//! *Caveats.* Statements go by kind of write and not by commit. The result is the
//! same: the commits of a batch are about different resources, and within one
//! commit every kind that another refers to is written before it.

use std::collections::{BTreeMap, HashMap};

use slipway_app::broker::port::{Decided, ResourceKey, ResourceRule};
use slipway_app::ports::store::Error;
use slipway_core::access::audit::AuditEntry;
use slipway_core::blocker::Blocker;
use slipway_core::commit::{Commit, Write};
use slipway_core::event::Event;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::nodes::token::BootstrapToken;
use slipway_durable::database::{End, Work};
use uuid::Uuid;

use super::deletion::leak_writes;
use super::set_writes::{self, AttemptPatch, HistoryRow};
use super::{Backend, Connection, Db, commit, decide, snapshot};
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
        lock(connection, self.attempts).await?;
        let blueprints = &self.backend.blueprints;
        let loaded = snapshot::load_locked(blueprints, connection, self.attempts).await?;
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
        Ok(match Writes::of(&commits).apply(connection).await? {
            true => End::Commit(Batch::Written(outcomes)),
            false => End::Rollback(Batch::Mixed),
        })
    }
}

/// Locks the resources of these attempts in the order of their ids, so that two
/// batches that share some wait for each other instead of deadlocking. The
/// nodes are locked where they are loaded.
async fn lock(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<(), sqlx::Error> {
    let list: IdList = attempts.iter().map(|id| id.as_uuid()).collect();
    sqlx::query(sql!(
        "SELECT id FROM resources WHERE id IN \
         (SELECT resource_id FROM provisioned_resources WHERE id ",
        (one_of "$1"),
        ") ORDER BY id",
        for_update
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    Ok(())
}

/// All commits of a batch, by kind of write.
#[derive(Default)]
struct Writes<'a> {
    /// Kinds that are rare in a loop; one statement each.
    others: Vec<&'a Write>,
    tokens: Vec<&'a BootstrapToken>,
    patches: BTreeMap<Uuid, AttemptPatch<'a>>,
    blockers: Vec<(ProvisionedResourceId, &'a [Blocker])>,
    history: Vec<HistoryRow<'a>>,
    events: Vec<&'a Event>,
    audit: Vec<&'a AuditEntry>,
    wakes: Vec<ProvisionedResourceId>,
    proven_gone: Vec<ProvisionedResourceId>,
}

impl<'a> Writes<'a> {
    fn of(commits: &'a [Commit]) -> Self {
        let mut writes = Self::default();
        for commit in commits {
            for write in &commit.writes {
                writes.add(write);
            }
            writes.events.extend(&commit.events);
            writes.audit.extend(&commit.audit);
            writes.wakes.extend(&commit.wakes);
        }
        writes
    }

    fn add(&mut self, write: &'a Write) {
        match write {
            Write::TokenInsert(token) => self.tokens.push(token),
            Write::AttemptUpdate(attempt) => {
                let patch = self.patch(attempt.id());
                patch.revision = Some(attempt.revision().0);
                patch.status = Some(attempt.phase().as_str());
                patch.phase_since = Some(attempt.phase_since().into());
                patch.failure_reason = attempt.failure_reason();
                patch.bootstrap_token_id = attempt.bootstrap_token_id().map(|id| id.as_uuid());
                patch.deletion_requested_at = attempt.deletion_requested_at().map(Into::into);
                patch.unsettled_since = attempt.unsettled_since().map(Into::into);
                patch.absence_proven_at = attempt.absence_proven_at().map(Into::into);
            }
            Write::ObservedReplace(attempt, seen) => self.patch(*attempt).observed = Some(seen),
            Write::Release(release) => {
                let patch = self.patch(release.attempt);
                patch.claim_token = Some(release.claim_token.0);
                patch.micros = commit::recheck_micros(release.recheck);
                patch.failures = Some(release.failures);
            }
            Write::LeaksResolve(attempt) => self.proven_gone.push(*attempt),
            Write::BlockersReplace(attempt, blockers) => self.blockers.push((*attempt, blockers)),
            Write::HistoryAppend { attempt, at, from, to, why } => {
                self.history.push(HistoryRow::new(*attempt, *at, *from, *to, why));
            }
            Write::ResourceInsert(_)
            | Write::ResourceUpdate(_)
            | Write::AttemptInsert(_)
            | Write::TokenUpdate(_)
            | Write::NodeInsert(_)
            | Write::NodeUpdate(_)
            | Write::DeletionInsert(_)
            | Write::DeletionUpdate(_)
            | Write::LeakInsert(_)
            | Write::Catalog(_) => self.others.push(write),
        }
    }

    fn patch(&mut self, attempt: ProvisionedResourceId) -> &mut AttemptPatch<'a> {
        let id = attempt.as_uuid();
        self.patches.entry(id).or_insert_with(|| AttemptPatch { id, ..AttemptPatch::default() })
    }

    /// Writes everything and answers whether every condition was met. The caller commits.
    async fn apply(self, connection: &mut Connection) -> Result<bool, Failure> {
        for write in self.others {
            match commit::apply_write(connection, write).await {
                Ok(()) => {}
                // Deciding one by one finds the row.
                Err(Failure::Refused(_)) => return Ok(false),
                Err(failure) => return Err(failure),
            }
        }
        leak_writes::resolve(connection, &self.proven_gone).await?;
        let patches: Vec<_> = self.patches.into_values().collect();
        let met = set_writes::tokens_insert(connection, &self.tokens).await?
            && set_writes::attempts_patch(connection, &patches).await?
            && set_writes::blockers_replace(connection, &self.blockers).await?
            && set_writes::history_append(connection, &self.history).await?
            && set_writes::events_insert(connection, &self.events).await?
            && set_writes::audit_insert(connection, &self.audit).await?;
        if met {
            commit::wake(connection, &self.wakes).await?;
        }
        Ok(met)
    }
}
