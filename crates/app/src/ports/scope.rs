//! What belongs to which project: for callers that reach one project only. A
//! thing never changes its project, so what is read here stays true.

use std::fmt;

use async_trait::async_trait;
use slipway_core::deletion::Deletion;
use slipway_core::ids::{BootstrapTokenId, DeletionId, NodeId, ProjectId, ResourceId};
use slipway_core::node::Node;
use slipway_core::rules::positions::Span;

use super::events::PositionedEvent;
use super::listed::Listed;
use super::store::{Error, Page};

/// Something that may belong to a project.
#[derive(Debug, Clone, Copy)]
pub enum Owned {
    Resource(ResourceId),
    Node(NodeId),
    Deletion(DeletionId),
    Token(BootstrapTokenId),
}

#[async_trait]
pub trait ScopeStore: fmt::Debug + Send + Sync {
    /// The project of something; `None` if it belongs to none or is not there.
    /// Answers also for a row that is held.
    async fn project_of(&self, owned: Owned) -> Result<Option<ProjectId>, Error>;

    async fn node_list_in(
        &self,
        project: ProjectId,
        page: Page<NodeId>,
    ) -> Result<Listed<Node>, Error>;

    /// Of the project itself, its resources and their attempts.
    async fn deletion_list_in(
        &self,
        project: ProjectId,
        page: Page<DeletionId>,
    ) -> Result<Listed<Deletion>, Error>;

    /// As `event_list`, with the positions of other projects' events missing.
    async fn event_list_in(
        &self,
        project: ProjectId,
        page: Page<i64>,
    ) -> Result<Vec<PositionedEvent>, Error>;

    /// As `event_span`, as far as this project's reader can tell: events of
    /// others that were pruned are none that it missed.
    async fn event_span_in(&self, project: ProjectId) -> Result<Span, Error>;
}
