//! What a restore locks and loads, and how the marks go.

use std::collections::BTreeMap;

use slipway_core::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::deletion::request::TargetRow;
use slipway_core::deletion::restore::{
    DeletedResource, DeletedRow, Needed, Renames, RestoreSnapshot,
};
use slipway_core::deletion::write::Restored;
use slipway_core::ids::{CloudCredentialId, DeletionId};
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::{ErrorKind, Refusal};
use sqlx::Row as _;
use uuid::Uuid;

use super::broker::{declare, marks as resources, snapshot};
use super::catalog::{blueprint, cloud, credential};
use super::fleet::restore::{container as of_fleet, things};
use super::page::now;
use super::placement::cluster;
use super::table::Marks;
use super::transaction::Load;
use super::{Connection, marks, protections, reads};
use crate::blueprints::Blueprints;
use crate::failure::Failure;

/// A deletion by its id, and the names under which its members would come back. Locks what
/// contains the target, then the target, then its members, in the order of all locks.
pub(crate) struct Restoring<'a> {
    pub(crate) blueprints: &'a Blueprints,
    pub(crate) id: DeletionId,
    pub(crate) renames: &'a Renames,
}

impl Load for Restoring<'_> {
    type Snapshot = RestoreSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<RestoreSnapshot, Failure> {
        let missing = Failure::NotFound { kind: DeletionId::KIND };
        let Some(found) = reads::fetch(connection, self.id).await? else { return Err(missing) };
        let mut needs = Vec::new();
        if let Some(container) = container(connection, &found).await? {
            needs.extend(lock(connection, container).await?);
        }
        let target = self.target(connection, found.target, needs).await?;
        // Its state may have changed until the lock was granted.
        let Some(deletion) = reads::fetch(connection, self.id).await? else { return Err(missing) };
        let (mut resources, mut fleet) = (Vec::new(), Vec::new());
        if deletion.state == DeletionState::Done && target.is_some() {
            resources = self.resources(connection, &deletion).await?;
            fleet = Box::pin(things(connection, &deletion)).await?;
        }
        Ok(RestoreSnapshot { now: now(connection).await?, deletion, target, resources, fleet })
    }
}

impl Restoring<'_> {
    async fn target(
        &self,
        connection: &mut Connection,
        subject: Subject,
        mut needs: Vec<Needed>,
    ) -> Result<Option<DeletedRow>, Failure> {
        let Some(marks) = marks::of(subject.kind) else { return Ok(None) };
        let row = marks.lock(connection, subject.id).await?;
        let Some(row) = row.filter(|row| row.is_deleted && row.deletion_id == Some(self.id)) else {
            return Ok(None);
        };
        if subject.kind == SubjectKind::Project
            && let Some(cluster) = cluster::placed_on(connection, subject.id).await?
        {
            needs.extend(lock(connection, Subject::new(SubjectKind::Cluster, cluster)).await?);
        }
        let name = self.renames.target.as_ref().unwrap_or(&row.name);
        let same_identity = match subject.kind {
            SubjectKind::Cluster => cluster::same_identity(connection, subject.id).await?,
            _ => None,
        };
        let holder = holder(connection, marks, name, subject.id).await?;
        Ok(Some(DeletedRow { subject, name: row.name, holder, needs, same_identity }))
    }

    /// The resources among the members. A project that is deleted has no live ones, so
    /// that nobody has their names.
    async fn resources(
        &self,
        connection: &mut Connection,
        deletion: &Deletion,
    ) -> Result<Vec<DeletedResource>, Failure> {
        let attempts = resources::lock_members(connection, deletion.id).await?;
        // Neither nodes nor attempts are locked: a Deleted attempt has no registered node, and
        // nothing that the loop still writes about it is read here.
        let loaded = snapshot::load(self.blueprints, connection, &attempts).await?;
        let mut known = Declared::default();
        let mut resources = Vec::with_capacity(loaded.len());
        for (id, loaded) in loaded {
            let snapshot = loaded.map_err(|fault| Failure::Corrupt { id: id.as_uuid(), fault })?;
            let (declared, needs) = known.of(connection, &snapshot).await?;
            resources.push(DeletedResource { snapshot, declared, needs });
        }
        Ok(resources)
    }
}

/// What the declarations of many resources read, once for those of one blueprint version
/// and one credential.
#[derive(Default)]
struct Declared(BTreeMap<(Uuid, Uuid), (DeclareSnapshot, Vec<Needed>)>);

impl Declared {
    async fn of(
        &mut self,
        connection: &mut Connection,
        snapshot: &ResourceSnapshot,
    ) -> Result<(DeclareSnapshot, Vec<Needed>), Failure> {
        let version = &snapshot.blueprint;
        let credential = snapshot.attempt.cloud_credential_id();
        let key = (version.id.as_uuid(), credential.as_uuid());
        if let Some(found) = self.0.get(&key) {
            return Ok(found.clone());
        }
        // By id: its slug may be another one's by now.
        let blueprint = version.blueprint_id.to_string();
        let by = credential.to_string();
        let named = (blueprint.as_str(), Some(version.version.as_str()), Some(by.as_str()));
        let project = snapshot.resource.project_id.as_uuid();
        let declared = declare::snapshot(connection, Some(project), named).await?;
        let needs = needs(connection, version.blueprint_id.as_uuid(), credential).await?;
        Ok(self.0.entry(key).or_insert((declared, needs)).clone())
    }
}

/// The deleted ones of what a resource is made from.
async fn needs(
    connection: &mut Connection,
    blueprint: Uuid,
    credential: CloudCredentialId,
) -> Result<Vec<Needed>, Failure> {
    let cloud = credential::cloud_of(connection, credential).await?;
    let mut needs = Vec::new();
    for (kind, marks, id) in [
        (SubjectKind::Cloud, cloud::MARKS, cloud),
        (SubjectKind::Credential, credential::MARKS, Some(credential.as_uuid())),
        (SubjectKind::Blueprint, blueprint::MARKS, Some(blueprint)),
    ] {
        let Some(id) = id else { continue };
        let row = marks.find(connection, id).await?;
        needs.extend(row.filter(|row| row.is_deleted).map(|row| missing(kind, id, row)));
    }
    Ok(needs)
}

fn missing(kind: SubjectKind, id: Uuid, row: TargetRow) -> Needed {
    let subject = Subject::new(kind, id);
    let leaving = !row.is_deleted;
    Needed { subject, name: row.name, deletion_id: row.deletion_id, leaving }
}

/// What the target belongs to, which is locked before it.
async fn container(
    connection: &mut Connection,
    deletion: &Deletion,
) -> Result<Option<Subject>, Failure> {
    let Subject { kind, id } = deletion.target;
    Ok(match kind {
        SubjectKind::Resource => deletion.project_id.map(Subject::from),
        SubjectKind::Credential => {
            let cloud = credential::cloud_of(connection, CloudCredentialId::new(id)).await?;
            cloud.map(|cloud| Subject::new(SubjectKind::Cloud, cloud))
        }
        _ => of_fleet(connection, deletion.target).await?,
    })
}

/// Locks something that the target needs, and answers it if it is deleted. A project that
/// is leaving takes nothing in either.
async fn lock(connection: &mut Connection, subject: Subject) -> Result<Option<Needed>, Failure> {
    let Some(marks) = marks::of(subject.kind) else { return Ok(None) };
    let row = marks.lock(connection, subject.id).await?;
    let closed = |row: &TargetRow| {
        let leaving = subject.kind == SubjectKind::Project && row.deletion_id.is_some();
        row.is_deleted || leaving
    };
    Ok(row.filter(closed).map(|row| missing(subject.kind, subject.id, row)))
}

async fn holder(
    connection: &mut Connection,
    marks: Marks,
    name: &str,
    id: Uuid,
) -> Result<Option<Uuid>, sqlx::Error> {
    let found = sqlx::query(marks.holder).bind(name).bind(id).fetch_optional(connection).await?;
    found.map(|row| row.try_get("id")).transpose()
}

/// Gives new names and takes the marks away. A name that somebody else took since it was
/// found free refuses all of it.
pub(crate) async fn unmark(connection: &mut Connection, row: &Restored) -> Result<(), Failure> {
    for (subject, name) in &row.renamed {
        let Some(marks) = marks::of(subject.kind) else { continue };
        sqlx::query(marks.rename).bind(subject.id).bind(name).execute(&mut *connection).await?;
        protections::rename(connection, *subject, name).await?;
    }
    for marks in marks::with_members(row.kind) {
        let unmarked = sqlx::query(marks.unmark)
            .bind(row.deletion_id.as_uuid())
            .execute(&mut *connection)
            .await;
        match unmarked {
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                let message = "a name was taken by somebody else just now; ask again, and the answer says which";
                return Err(Refusal::new(ErrorKind::RestoreConflict, message).into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
