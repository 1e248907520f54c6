//! Writes commits, in the transaction that loaded their snapshots: the commit of
//! one decision, or those of a batch.
//!
//! Writes go by kind and not by commit, a handful of statements whatever their
//! number. The result is the same: commits of a batch are about different
//! resources, and every kind that another refers to is written before it.
//!
//! Every update names the revision (or the claim token) that was read. Under
//! the lock of the resource row it cannot have moved; if it did all the same,
//! all commits are refused and rolled back.

use std::time::Duration;

use slipway_core::blocker::Blocker;
use slipway_core::commit::{Commit, Recheck, StateChange, Write};
use slipway_core::files::FilesWrite;
use slipway_core::fleet::FleetWrite;
use slipway_core::rollouts::RolloutsWrite;
use slipway_core::subject::{Claimable, LoopKind, Subject};
use slipway_core::tenants::TenantsWrite;
use slipway_core::topology::TopologyWrite;
use slipway_durable::claim::micros;

use super::broker::claims::ATTEMPTS;
use super::{
    Connection, access, blockers, broker, catalog, deletion, events, files, fleet, history, nodes,
    operations, placement, rollouts, tenants, topology,
};
use crate::failure::Failure;

/// The writes of all commits, by room and kind.
#[derive(Default)]
struct Writes<'a> {
    /// Of the catalog, the placement and access: a decision writes one of them.
    rare: Vec<&'a Write>,
    broker: broker::write::Writes<'a>,
    nodes: nodes::write::Writes<'a>,
    deletion: deletion::write::Writes<'a>,
    rollouts: Vec<&'a RolloutsWrite>,
    blockers: Vec<(Subject, &'a [Blocker])>,
    history: Vec<&'a StateChange>,
    files: Vec<&'a FilesWrite>,
    fleet: Vec<&'a FleetWrite>,
    tenants: Vec<&'a TenantsWrite>,
    topology: Vec<&'a TopologyWrite>,
}

impl<'a> Writes<'a> {
    fn add(&mut self, write: &'a Write) {
        match write {
            Write::Catalog(_) | Write::Placement(_) | Write::Access(_) => self.rare.push(write),
            Write::Rollouts(write) => self.rollouts.push(write),
            Write::Broker(write) => self.broker.add(write),
            Write::Nodes(write) => self.nodes.add(write),
            Write::Deletion(write) => self.deletion.add(write),
            Write::Files(write) => self.files.push(write),
            Write::Fleet(write) => self.fleet.push(write),
            Write::Tenants(write) => self.tenants.push(write),
            Write::Topology(write) => self.topology.push(write),
            Write::BlockersReplace(subject, blockers) => self.blockers.push((*subject, blockers)),
            Write::HistoryAppend(line) => self.history.push(line),
            Write::Release(release) => match release.subject.kind() {
                LoopKind::ProvisionedResource => self.broker.release(release),
            },
        }
    }
}

/// Writes all of the commits, or refuses. The caller ends the transaction.
pub(crate) async fn apply(connection: &mut Connection, commits: &[Commit]) -> Result<(), Failure> {
    let mut writes = Writes::default();
    commits.iter().flat_map(|commit| &commit.writes).for_each(|write| writes.add(write));
    // A second request with the same idempotency key waits here, before it has
    // written anything.
    for write in writes.rare {
        match write {
            Write::Catalog(write) => catalog::write::apply(connection, write).await?,
            Write::Placement(write) => placement::write::apply(connection, write).await?,
            Write::Access(write) => access::write::apply(connection, write).await?,
            _ => {}
        }
    }
    writes.deletion.apply(connection).await?;
    for write in writes.topology {
        // Off the stack of whoever commits.
        Box::pin(topology::write::apply(connection, write)).await?;
    }
    writes.broker.apply_resources(connection).await?;
    writes.nodes.apply(connection).await?;
    writes.broker.apply_attempts(connection).await?;
    for write in writes.rollouts {
        rollouts::write::apply(connection, write).await?;
    }
    for write in writes.fleet {
        fleet::write::apply(connection, write).await?;
    }
    tenants::write::apply(connection, &writes.tenants).await?;
    blockers::replace(connection, &writes.blockers).await?;
    history::append(connection, &writes.history).await?;
    files::write::apply(connection, &writes.files).await?;
    let announced: Vec<_> = commits.iter().flat_map(|commit| &commit.events).collect();
    events::write::insert(connection, &announced).await?;
    let audited: Vec<_> = commits.iter().flat_map(|commit| &commit.audit).collect();
    access::audit::insert(connection, &audited).await?;
    let woken: Vec<_> = commits.iter().flat_map(|commit| &commit.wakes).copied().collect();
    wake(connection, &woken).await?;
    // Last, so that only the end of the transaction comes after it.
    let permitted = commits.iter().filter_map(|commit| commit.mode);
    operations::control::require_mode(connection, permitted).await
}

/// Wakes subjects; each kind has its table.
pub(crate) async fn wake(
    connection: &mut Connection,
    subjects: &[Claimable],
) -> Result<(), Failure> {
    let attempts: Vec<_> = subjects
        .iter()
        .map(|subject| match subject.kind() {
            LoopKind::ProvisionedResource => subject.id(),
        })
        .collect();
    Ok(ATTEMPTS.wake(connection, &attempts).await?)
}

/// After how long the row is due again; none means "when woken".
pub(crate) fn due_in(recheck: Recheck) -> Option<Duration> {
    match recheck {
        Recheck::Now => Some(Duration::ZERO),
        Recheck::After(delay) => Some(delay),
        Recheck::Never => None,
    }
}

/// The same in microseconds.
pub(crate) fn recheck_micros(recheck: Recheck) -> Option<i64> {
    due_in(recheck).map(micros)
}
