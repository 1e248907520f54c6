//! What decisions about deletions lock and load.

use slipway_app::ports::SubjectOf;
use slipway_core::deletion::door::{Defaults, Door, DoorInput, Doored};
use slipway_core::deletion::record::Deletion;
use slipway_core::deletion::request::{Contents, DeletionSnapshot};
use slipway_core::ids::{DeletionId, ProjectId, WorkspaceId};
use slipway_core::subject::{Subject, SubjectKind};

use super::broker::users;
use super::fleet::members;
use super::page::{fetch_one, now};
use super::placement::namespace;
use super::reads::{self, select_deletions};
use super::tenants::tenant;
use super::topology::servers;
use super::transaction::Load;
use super::{Connection, brakes, hydrate, marks, plans, protections, settings};
use crate::failure::Failure;

/// A request to delete: what its own kind loads, and what every request passes.
pub(crate) struct AtTheDoor<L: Load> {
    pub(crate) of: L,
    pub(crate) subject: SubjectOf<L::Snapshot>,
    pub(crate) input: DoorInput,
}

impl<L: Load> Load for AtTheDoor<L> {
    type Snapshot = Doored<L::Snapshot>;

    async fn load(&self, connection: &mut Connection) -> Result<Self::Snapshot, Failure> {
        let brake = match &self.input.caller {
            Some(caller) => Some((caller, brakes::lock(connection, caller).await?)),
            None => None,
        };
        let of = self.of.load(connection).await?;
        let mut door = Door { defaults: self.input.defaults, ..Door::default() };
        if let Some(subject) = (self.subject)(&of) {
            door = door_of(connection, subject, self.input.defaults).await?;
            let reads = self.input.reads;
            if let Some((caller, brake)) = brake {
                door.brake = Some(brakes::count(connection, caller, brake, subject).await?);
            }
            let under_way = door.under_way.as_ref();
            let cascades = subject.kind != SubjectKind::Project
                || self.input.cascade
                || under_way.is_some_and(|deletion| deletion.cascade);
            if cascades {
                door.fleet = Box::pin(members::of(connection, subject)).await?;
            }
            if self.input.keep || under_way.is_some_and(|deletion| deletion.fleet.keep) {
                door.fleet.unable = Box::pin(members::unable(connection, subject)).await?;
            }
            let reading = plans::reading(connection, subject, reads, &door.protections);
            door.reading = Box::pin(reading).await?;
        }
        if let Some(plan) = self.input.plan {
            // Whoever uses it has locked its target.
            door.plan = plans::fetch(connection, plan).await?;
            if let Some(plan) = &door.plan {
                let caller = self.input.caller.as_ref().map(|caller| &*caller.name);
                door.people = plans::people(connection, plan, caller).await?;
            }
        }
        Ok(Doored { of, door })
    }
}

/// What every request about this subject passes, whoever asks. Its row is locked.
pub(crate) async fn door_of(
    connection: &mut Connection,
    subject: Subject,
    defaults: Defaults,
) -> Result<Door, Failure> {
    Ok(Door {
        under_way: under_way(connection, subject).await?,
        protections: protections::of(connection, subject).await?,
        defaults: settings::of(connection, subject, defaults).await?,
        ..Door::default()
    })
}

/// The open deletion of this target; there is at most one.
async fn under_way(
    connection: &mut Connection,
    target: Subject,
) -> Result<Option<Deletion>, Failure> {
    let query = sqlx::query(concat!(
        select_deletions!(),
        "WHERE kind = $1 AND target_id = $2 AND state IN ('scheduled', 'running')"
    ));
    let query = query.bind(target.kind.as_str()).bind(target.id);
    fetch_one(connection, query, "d_id", hydrate::deletion).await
}

/// A deletion by its id. Its target is locked before its record is read, as every decision
/// about the target does it.
pub(crate) struct ById(pub(crate) DeletionId);

impl Load for ById {
    type Snapshot = DeletionSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<DeletionSnapshot, Failure> {
        let missing = Failure::NotFound { kind: DeletionId::KIND };
        let Some(found) = reads::fetch(connection, self.0).await? else { return Err(missing) };
        let Subject { kind, id } = found.target;
        let target = match marks::of(kind) {
            Some(marks) => marks.lock(connection, id).await?,
            None => None,
        };
        let Some(deletion) = reads::fetch(connection, self.0).await? else { return Err(missing) };
        let contents = match kind {
            SubjectKind::Project => Contents {
                resources: users::live_resources(connection, ProjectId::new(id)).await?,
                outside: namespace::is_left(connection, ProjectId::new(id)).await?,
            },
            SubjectKind::Tenant => {
                Contents { resources: 0, outside: tenant::is_open(connection, id).await? }
            }
            SubjectKind::Workspace => Contents {
                resources: servers::live(connection, WorkspaceId::new(id)).await?,
                outside: false,
            },
            _ => Contents::default(),
        };
        Ok(DeletionSnapshot { now: now(connection).await?, deletion, target, contents })
    }
}
