//! What decisions about servers lock and load: the workspace, then the group, then what the
//! decision is about. So of many who ask about one group at once each sees what those before it
//! wrote.

use slipway_app::broker::port::{DeclareKey, RedeclareKey, ResourceKey};
use slipway_app::topology::port::{ApplyKey, ApplySnapshot, DeclareServer};
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use slipway_core::ids::{GroupId, ResourceId};
use slipway_core::topology::group::Group;
use slipway_core::topology::role::NodeRole;
use slipway_core::topology::scale::{GroupSnapshot, OfServer};
use slipway_core::topology::workspace::Workspace;

use super::broker::decide::ByKey;
use super::broker::declare;
use super::broker::declare::Corrected;
use super::table::Table;
use super::transaction::Load;
use super::{Connection, group, servers};
use crate::blueprints::Blueprints;
use crate::failure::Failure;

/// A locked group, and how many other servers there are.
async fn group_snapshot(
    connection: &mut Connection,
    (workspace, group): (Workspace, Group),
    but: Option<ResourceId>,
) -> Result<GroupSnapshot, Failure> {
    let of = (workspace.id, group.id, group.spec.role);
    let (counts, now) = servers::counts(connection, of, but, ready_asked(&group)).await?;
    Ok(GroupSnapshot { now, workspace, group, counts })
}

/// How many Ready servers a gate may ask for: the minimum, and of control planes a quorum of what
/// is declared, which is not more than that.
fn ready_asked(group: &Group) -> u32 {
    match group.spec.role {
        NodeRole::ControlPlane => group.spec.target().max(1),
        NodeRole::LoadBalancer | NodeRole::Worker => group.spec.min,
    }
}

/// A group by its id.
pub(crate) struct OfGroup(pub(crate) GroupId);

impl Load for OfGroup {
    type Snapshot = GroupSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<GroupSnapshot, Failure> {
        let found = group::lock(connection, self.0).await?;
        let found = found.ok_or(Failure::NotFound { kind: GroupId::KIND })?;
        group_snapshot(connection, found, None).await
    }
}

/// A resource with its group.
pub(crate) struct Server<'a> {
    pub(crate) blueprints: &'a Blueprints,
    pub(crate) id: ResourceId,
}

impl Load for Server<'_> {
    type Snapshot = OfServer<ResourceSnapshot>;

    async fn load(&self, connection: &mut Connection) -> Result<Self::Snapshot, Failure> {
        let owner = owner(connection, self.id).await?;
        let key = ResourceKey::Resource(self.id);
        let by_key = ByKey { blueprints: self.blueprints, key };
        let of = Box::pin(by_key.load(connection)).await?;
        Ok(OfServer { of, owner })
    }
}

/// The same with what its corrected declaration is checked against.
pub(crate) struct CorrectedServer<'a> {
    pub(crate) blueprints: &'a Blueprints,
    pub(crate) key: &'a RedeclareKey,
}

impl Load for CorrectedServer<'_> {
    type Snapshot = OfServer<RedeclareSnapshot>;

    async fn load(&self, connection: &mut Connection) -> Result<Self::Snapshot, Failure> {
        let owner = owner(connection, self.key.resource).await?;
        let corrected = Corrected { blueprints: self.blueprints, key: self.key };
        let of = Box::pin(corrected.load(connection)).await?;
        Ok(OfServer { of, owner })
    }
}

async fn owner(
    connection: &mut Connection,
    id: ResourceId,
) -> Result<Option<GroupSnapshot>, Failure> {
    match group::lock_of_server(connection, id).await? {
        Some(owner) => group_snapshot(connection, owner, Some(id)).await.map(Some),
        None => Ok(None),
    }
}

/// A group that lacks a server, and what the server is checked against. The project is locked
/// first, as by every declaration.
pub(crate) struct NewServer<'a> {
    pub(crate) group: GroupId,
    pub(crate) key: &'a DeclareKey,
}

impl Load for NewServer<'_> {
    type Snapshot = DeclareServer;

    async fn load(&self, connection: &mut Connection) -> Result<DeclareServer, Failure> {
        let declared: DeclareSnapshot = self.key.load(connection).await?;
        let group = OfGroup(self.group).load(connection).await?;
        Ok(DeclareServer { group, declared })
    }
}

/// A workspace with what the servers of each group are checked against.
pub(crate) struct Applied<'a>(pub(crate) &'a ApplyKey);

impl Load for Applied<'_> {
    type Snapshot = ApplySnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<ApplySnapshot, Failure> {
        let of = Workspace::load(connection, &self.0.workspace).await?;
        let mut declared = Vec::with_capacity(self.0.groups.len());
        let project = of.project.map(|id| id.as_uuid());
        for made_of in &self.0.groups {
            let named = (
                made_of.blueprint.as_str(),
                made_of.version.as_deref(),
                made_of.credential.as_deref(),
            );
            declared.push(Box::pin(declare::snapshot(connection, project, named)).await?);
        }
        Ok(ApplySnapshot { of, declared })
    }
}
