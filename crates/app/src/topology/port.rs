//! The store of workspaces. Locks are taken in the order project, workspace, group, resource.

use slipway_core::blocker::Blocker;
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::deletion::door::{Defaults, DoorInput, Doored};
use slipway_core::ids::{
    DeletionId, GroupId, Partition, ProjectId, ProvisionedResourceId, ResourceId, WorkspaceId,
};
use slipway_core::topology::group::Group;
use slipway_core::topology::inventory::Known;
use slipway_core::topology::next::Observed;
use slipway_core::topology::scale::{GroupSnapshot, OfServer};
use slipway_core::topology::workspace::{Workspace, WorkspaceSnapshot};

use crate::broker::port::{DeclareKey, RedeclareKey};
use crate::ports::store::{Error, Rule};

/// Which workspace a decision is about.
#[derive(Debug, Clone)]
pub enum WorkspaceKey {
    /// One that may not exist yet: its project by reference, and its name.
    Named {
        project: String,
        name: String,
    },
    Existing(WorkspaceId),
}

/// Which workspaces to list; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceFilter {
    pub project: Option<ProjectId>,
    pub show_deleted: bool,
}

/// Which servers to list, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFilter {
    pub workspace: Option<WorkspaceId>,
    pub project: Option<ProjectId>,
    pub after: Option<ResourceId>,
    pub limit: u32,
}

/// A server with the names of what it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    pub id: ResourceId,
    pub name: String,
    pub workspace_id: WorkspaceId,
    pub workspace: String,
    pub group: String,
    pub role: String,
    pub phase: String,
}

/// An attempt of a server, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub known: Known,
    pub partition: Partition,
    pub engine: Engine,
}

/// What the servers of a group are declared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeOf {
    pub blueprint: String,
    pub version: Option<String>,
    pub credential: Option<String>,
}

/// A workspace to be applied, and what the servers of each group are made of.
#[derive(Debug, Clone)]
pub struct ApplyKey {
    pub workspace: WorkspaceKey,
    pub groups: Vec<MadeOf>,
}

#[derive(Debug, Clone)]
pub struct ApplySnapshot {
    pub of: WorkspaceSnapshot,
    /// In the order of the groups.
    pub declared: Vec<DeclareSnapshot>,
}

/// A group that lacks a server, and what that is checked against.
#[derive(Debug, Clone)]
pub struct DeclareServer {
    pub group: GroupSnapshot,
    pub declared: DeclareSnapshot,
}

/// Called inside the transaction, maybe twice.
pub type ApplyRule<'a> = Rule<'a, ApplySnapshot>;
pub type GroupRule<'a> = Rule<'a, GroupSnapshot>;
pub type DeclareServerRule<'a> = Rule<'a, DeclareServer>;
pub type ServerRule<'a> = Rule<'a, Doored<OfServer<ResourceSnapshot>>>;
/// What became of one server of many.
pub type DecidedServer = (ResourceId, Result<(), Error>);
pub type ServerReplacementRule<'a> = Rule<'a, Doored<OfServer<RedeclareSnapshot>>>;

port! {
/// Everything about workspaces. Servers are resources, which the room broker keeps.
pub trait TopologyStore of (Workspace), intercepted by TopologyIntercept {
    /// The groups of these workspaces, by workspace and name.
    async fn workspace_groups(&self, ids: &[WorkspaceId]) -> Result<Vec<Group>, Error>;

    /// A live workspace as it is; `None` if there is none.
    async fn workspace_observed(&self, id: WorkspaceId) -> Result<Option<Observed>, Error>;

    /// Its attempts that wait for a dependency, each with its group.
    async fn workspace_pending(
        &self,
        id: WorkspaceId,
    ) -> Result<Vec<(ProvisionedResourceId, GroupId)>, Error>;

    /// Workspaces in which the loop may have something to do, in the order of their ids.
    async fn workspace_moving(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<WorkspaceId>, Error>;

    /// The names of the servers that a teardown has begun to take down.
    async fn teardown_members(&self, id: DeletionId) -> Result<Vec<String>, Error>;

    async fn workspace_blockers(&self, id: WorkspaceId) -> Result<Vec<Blocker>, Error>;

    /// Replaces its blockers.
    async fn workspace_block(&self, id: WorkspaceId, blockers: &[Blocker]) -> Result<(), Error>;

    async fn server_rows(&self, filter: &ServerFilter) -> Result<Vec<ServerRow>, Error>;

    /// The attempts of a group that may be outside.
    async fn server_attempts(&self, group: GroupId) -> Result<Vec<AttemptRow>, Error>;

    /// Decides about a workspace as a whole, its rows locked.
    async fn workspace_apply(
        &self,
        key: &ApplyKey,
        rule: &mut ApplyRule<'_>,
    ) -> Result<(), Error>;

    /// Decides about a group, its row locked.
    async fn group_decide(&self, id: GroupId, rule: &mut GroupRule<'_>) -> Result<(), Error>;

    /// Decides about one more server of a group.
    async fn server_declare(
        &self,
        group: GroupId,
        key: &DeclareKey,
        rule: &mut DeclareServerRule<'_>,
    ) -> Result<(), Error>;

    /// Decides whether a server goes, with its group locked before it.
    async fn server_decide_deletion(
        &self,
        id: ResourceId,
        input: DoorInput,
        rule: &mut ServerRule<'_>,
    ) -> Result<(), Error>;

    /// Decides about servers of a workspace that is being taken down, all in one transaction. No
    /// gate is asked in a teardown, so the snapshots count nothing.
    async fn server_take_down(
        &self,
        workspace: WorkspaceId,
        servers: &[ResourceId],
        defaults: Defaults,
        rule: &mut ServerRule<'_>,
    ) -> Result<Vec<DecidedServer>, Error>;

    /// Decides whether a server is replaced, with its group locked before it.
    async fn server_decide_replacement(
        &self,
        key: &RedeclareKey,
        input: DoorInput,
        rule: &mut ServerReplacementRule<'_>,
    ) -> Result<(), Error>;
}
}
