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

use slipway_core::blocker::Blocker;
use slipway_core::commit::{Commit, Recheck, StateChange, Write};
use slipway_core::subject::{Claimable, LoopKind, Subject};

use super::{
    Connection, access, blockers, broker, catalog, deletion, events, history, nodes, placement,
};
use crate::failure::Failure;
use crate::id_list::IdList;

/// The writes of all commits, by room and kind.
#[derive(Default)]
struct Writes<'a> {
    /// Of the catalog, the placement and access: a decision writes one of them.
    rare: Vec<&'a Write>,
    broker: broker::write::Writes<'a>,
    nodes: nodes::write::Writes<'a>,
    deletion: deletion::write::Writes<'a>,
    blockers: Vec<(Subject, &'a [Blocker])>,
    history: Vec<&'a StateChange>,
}

impl<'a> Writes<'a> {
    fn add(&mut self, write: &'a Write) {
        match write {
            Write::Catalog(_) | Write::Placement(_) | Write::Access(_) => self.rare.push(write),
            Write::Broker(write) => self.broker.add(write),
            Write::Nodes(write) => self.nodes.add(write),
            Write::Deletion(write) => self.deletion.add(write),
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
    writes.broker.apply_resources(connection).await?;
    writes.nodes.apply(connection).await?;
    writes.broker.apply_attempts(connection).await?;
    blockers::replace(connection, &writes.blockers).await?;
    history::append(connection, &writes.history).await?;
    let announced: Vec<_> = commits.iter().flat_map(|commit| &commit.events).collect();
    events::write::insert(connection, &announced).await?;
    let audited: Vec<_> = commits.iter().flat_map(|commit| &commit.audit).collect();
    access::audit::insert(connection, &audited).await?;
    let woken: Vec<_> = commits.iter().flat_map(|commit| &commit.wakes).copied().collect();
    wake(connection, &woken).await
}

/// Wakes subjects. In the order of their ids, so that two decisions that wake
/// the same ones take the row locks in the same order.
pub(crate) async fn wake(
    connection: &mut Connection,
    subjects: &[Claimable],
) -> Result<(), Failure> {
    if subjects.is_empty() {
        return Ok(());
    }
    // Each kind has its table; there is one so far.
    let attempts = subjects.iter().map(|subject| match subject.kind() {
        LoopKind::ProvisionedResource => subject.id(),
    });
    sqlx::query(concat!(
        "UPDATE provisioned_resources SET ",
        wake_assignments!(),
        " WHERE id ",
        sql!(
            picked_from,
            "SELECT id FROM provisioned_resources WHERE id ",
            (one_of "$1"),
            " ORDER BY id",
            for_update,
            picked_end
        ),
    ))
    .bind(attempts.collect::<IdList>())
    .execute(connection)
    .await?;
    Ok(())
}

/// After how many microseconds the row is due again; none means "when woken".
pub(crate) fn recheck_micros(recheck: Recheck) -> Option<i64> {
    match recheck {
        Recheck::Now => Some(0),
        // A century is as good as for ever, and fits both databases' times.
        Recheck::After(delay) => Some(
            i64::try_from(delay.as_micros())
                .unwrap_or(i64::MAX)
                .min(100 * 365 * 24 * 3_600 * 1_000_000),
        ),
        Recheck::Never => None,
    }
}
