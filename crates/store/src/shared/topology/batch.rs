//! The servers of a workspace that is taken down, many in one transaction.
//!
//! *Expected flow.* As of a batch of resources (see `broker/batch.rs`), with the workspace and
//! its groups locked before the resources. No gate is asked in a teardown, so nothing is counted.
//!
//! *Guarantees.* Each server ends as its own decision would end it. If a condition is not met
//! that no rule can foresee, the transaction is rolled back and the servers are decided one by
//! one.

use std::collections::HashMap;

use slipway_app::ports::store::Error;
use slipway_app::topology::port::{DecidedServer, ServerRule};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::Commit;
use slipway_core::deletion::door::{Defaults, Doored};
use slipway_core::ids::{ProvisionedResourceId, ResourceId, WorkspaceId};
use slipway_core::topology::group::Group;
use slipway_core::topology::scale::{Counts, GroupSnapshot, OfServer};
use slipway_core::topology::workspace::Workspace;
use slipway_durable::database::{End, Work};
use sqlx::Row as _;
use uuid::Uuid;

use super::broker::{hydrate, snapshot};
use super::decide::Server;
use super::deletion::decide::{AtTheDoor, door_of};
use super::{Backend, Connection, Db, commit, group, port, workspace};
use crate::failure::Failure;
use crate::id_list::IdList;

/// How the transaction of a batch ended.
enum Batch {
    /// Committed; the result of each server that exists.
    Written(HashMap<ResourceId, Result<(), Failure>>),
    /// Rolled back: a condition was not met, and it is not known for which server.
    Mixed,
}

pub(crate) async fn take_down(
    backend: &Backend,
    workspace: WorkspaceId,
    servers: &[ResourceId],
    defaults: Defaults,
    rule: &mut ServerRule<'_>,
) -> Result<Vec<DecidedServer>, Error> {
    let together = Together { backend, workspace, servers, defaults, rule: &mut *rule };
    match Box::pin(backend.database.transact(together)).await {
        Ok(Batch::Written(mut outcomes)) => {
            let missing = || Err(Failure::NotFound { kind: ResourceId::KIND });
            let outcome = |id| outcomes.remove(id).unwrap_or_else(missing).map_err(Error::from);
            Ok(servers.iter().copied().zip(servers.iter().map(outcome)).collect())
        }
        Ok(Batch::Mixed) => Ok(one_by_one(backend, servers, defaults, rule).await),
        Err(failure) if failure.may_be_of_one_row() => {
            tracing::debug!(?failure, servers = servers.len(), "a batch failed; one by one");
            Ok(one_by_one(backend, servers, defaults, rule).await)
        }
        Err(failure) => Err(failure.into()),
    }
}

async fn one_by_one(
    backend: &Backend,
    servers: &[ResourceId],
    defaults: Defaults,
    rule: &mut ServerRule<'_>,
) -> Vec<DecidedServer> {
    let mut decided = Vec::with_capacity(servers.len());
    for id in servers {
        let of = Server { blueprints: &backend.blueprints, id: *id };
        let key = AtTheDoor { of, subject: port::of_server, input: defaults.into() };
        decided.push((*id, Box::pin(backend.decided(key, &mut *rule)).await));
    }
    decided
}

/// The transaction of a batch.
struct Together<'a, 'r> {
    backend: &'a Backend,
    workspace: WorkspaceId,
    servers: &'a [ResourceId],
    defaults: Defaults,
    rule: &'a mut ServerRule<'r>,
}

impl Work<Db> for Together<'_, '_> {
    type Answer = Batch;
    type Error = Failure;

    async fn run(&mut self, connection: &mut Connection) -> Result<End<Batch>, Failure> {
        let mut outcomes = HashMap::with_capacity(self.servers.len());
        let Some(workspace) = workspace::lock(connection, self.workspace).await? else {
            return Ok(End::Rollback(Batch::Written(outcomes)));
        };
        let groups = group::lock_all(connection, workspace.id).await?;
        let Locked { attempts, others } = lock(connection, self.servers).await?;
        let ids: Vec<_> = attempts.keys().copied().collect();
        let blueprints = &self.backend.blueprints;
        let loaded = Box::pin(snapshot::load_locked(blueprints, connection, &ids, &others)).await?;
        let mut commits = Vec::with_capacity(loaded.len());
        for (attempt, loaded) in loaded {
            let Some(id) = attempts.get(&attempt).copied() else { continue };
            let decided = match loaded {
                Ok(of) => {
                    let door = door_of(connection, id.into(), self.defaults).await?;
                    let owner = owner(&of, &workspace, &groups);
                    (self.rule)(&Doored { of: OfServer { of, owner }, door }).map_err(Failure::from)
                }
                Err(fault) => Err(Failure::Corrupt { id: attempt.as_uuid(), fault }),
            };
            outcomes.insert(id, decided.map(|commit| commits.push(commit)));
        }
        if commits.iter().all(Commit::is_empty) {
            return Ok(End::Rollback(Batch::Written(outcomes)));
        }
        match commit::apply(connection, &commits).await {
            Ok(()) => Ok(End::Commit(Batch::Written(outcomes))),
            // Deciding one by one finds the server.
            Err(Failure::Refused(_)) => Ok(End::Rollback(Batch::Mixed)),
            Err(failure) => Err(failure),
        }
    }
}

fn owner(of: &ResourceSnapshot, workspace: &Workspace, groups: &[Group]) -> Option<GroupSnapshot> {
    let owner = of.resource.owner.as_ref()?;
    let group = groups.iter().find(|group| group.id == owner.group_id)?;
    Some(GroupSnapshot {
        now: of.now,
        workspace: workspace.clone(),
        group: group.clone(),
        counts: Counts::default(),
    })
}

/// The attempts in use of locked servers.
struct Locked {
    attempts: HashMap<ProvisionedResourceId, ResourceId>,
    /// Both attempts of each server that has two.
    others: Vec<Uuid>,
}

/// Locks these servers in the order of their ids. Their nodes and attempts are locked where they
/// are loaded.
async fn lock(connection: &mut Connection, servers: &[ResourceId]) -> Result<Locked, Failure> {
    let list: IdList = servers.iter().map(|id| id.as_uuid()).collect();
    let locked = sqlx::query(sql!(
        "SELECT id, surge_from AS r_surge_from, surge_to AS r_surge_to FROM resources WHERE id ",
        (one_of "$1"),
        " ORDER BY id",
        for_update
    ))
    .bind(list.clone())
    .fetch_all(&mut *connection)
    .await?;
    // The attempt in use may change, so it is read after the lock.
    let found = sqlx::query(sql!(
        "SELECT a.id, a.resource_id FROM provisioned_resources a WHERE a.resource_id ",
        (one_of "$1"),
        " AND a.in_use <> 0 AND NOT EXISTS (SELECT 1 FROM provisioned_resources n \
            WHERE n.resource_id = a.resource_id AND n.in_use <> 0 AND n.attempt > a.attempt)"
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    let mut attempts = HashMap::with_capacity(found.len());
    for row in &found {
        let attempt = ProvisionedResourceId::new(row.try_get("id")?);
        attempts.insert(attempt, ResourceId::new(row.try_get("resource_id")?));
    }
    let is_of_these = |id: &Uuid| attempts.contains_key(&ProvisionedResourceId::new(*id));
    let mut others = Vec::new();
    for row in &locked {
        others.extend(hydrate::pair(row)?.filter(|pair| pair.iter().any(is_of_these)));
    }
    Ok(Locked { others: others.into_iter().flatten().collect(), attempts })
}
