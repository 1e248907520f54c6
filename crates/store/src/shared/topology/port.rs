//! Implements what the port `TopologyStore` has beside the rows of its kind.

use slipway_app::broker::port::{DeclareKey, RedeclareKey};
use slipway_app::ports::store::Error;
use slipway_app::topology::port::{
    ApplyKey, ApplyRule, AttemptRow, DecidedServer, DeclareServerRule, GroupRule, ServerFilter,
    ServerReplacementRule, ServerRow, ServerRule, TopologyStore,
};
use slipway_core::blocker::Blocker;
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::door::{Defaults, DoorInput};
use slipway_core::ids::{DeletionId, GroupId, ProvisionedResourceId, ResourceId, WorkspaceId};
use slipway_core::subject::Subject;
use slipway_core::topology::group::Group;
use slipway_core::topology::next::Observed;
use slipway_core::topology::scale::OfServer;

use super::decide::{Applied, CorrectedServer, NewServer, OfGroup, Server};
use super::deletion::decide::AtTheDoor;
use super::{Backend, batch, reads, servers, waiting};

/// Decisions about servers that go on at once. Those of a workspace wait for each other; who waits
/// here and not for its row holds no connection, and those who hold the row are done sooner. The
/// semaphore is never closed.
pub(crate) const GATES_AT_ONCE: usize = 4;

pub(super) fn of_server(snapshot: &OfServer<ResourceSnapshot>) -> Option<Subject> {
    Some(snapshot.of.resource.id.into())
}

fn of_corrected(snapshot: &OfServer<RedeclareSnapshot>) -> Option<Subject> {
    Some(snapshot.of.resource.resource.id.into())
}

port! {
    TopologyStore {
        read workspace_groups(ids: &[WorkspaceId]) -> Vec<Group> = reads::groups;
        read_snapshot workspace_observed(id: WorkspaceId) -> Option<Observed> = reads::observed;
        read workspace_pending(id: WorkspaceId) -> Vec<(ProvisionedResourceId, GroupId)> = reads::pending;
        read workspace_moving(after: Option<WorkspaceId>, limit: u32) -> Vec<WorkspaceId> = waiting::moving;
        read teardown_members(id: DeletionId) -> Vec<String> = reads::teardown_members;
        read workspace_blockers(id: WorkspaceId) -> Vec<Blocker> = reads::blockers_of;
        write workspace_block(id: WorkspaceId, blockers: &[Blocker]) -> () = reads::block;
        read server_rows(filter: &ServerFilter) -> Vec<ServerRow> = reads::server_rows;
        read server_attempts(group: GroupId) -> Vec<AttemptRow> = servers::attempts;
    }
    by_hand {
        async fn workspace_apply(&self, key: &ApplyKey, rule: &mut ApplyRule<'_>) -> Result<(), Error> {
            self.decided(Applied(key), rule).await
        }

        async fn group_decide(&self, id: GroupId, rule: &mut GroupRule<'_>) -> Result<(), Error> {
            self.decided(OfGroup(id), rule).await
        }

        async fn server_declare(
            &self,
            group: GroupId,
            key: &DeclareKey,
            rule: &mut DeclareServerRule<'_>,
        ) -> Result<(), Error> {
            self.decided(NewServer { group, key }, rule).await
        }

        async fn server_decide_deletion(
            &self,
            id: ResourceId,
            input: DoorInput,
            rule: &mut ServerRule<'_>,
        ) -> Result<(), Error> {
            let _turn = self.gates.acquire().await;
            let of = Server { blueprints: &self.blueprints, id };
            Box::pin(self.decided(AtTheDoor { of, subject: of_server, input }, rule)).await
        }

        async fn server_take_down(
            &self,
            workspace: WorkspaceId,
            servers: &[ResourceId],
            defaults: Defaults,
            rule: &mut ServerRule<'_>,
        ) -> Result<Vec<DecidedServer>, Error> {
            Box::pin(batch::take_down(self, workspace, servers, defaults, rule)).await
        }

        async fn server_decide_replacement(
            &self,
            key: &RedeclareKey,
            input: DoorInput,
            rule: &mut ServerReplacementRule<'_>,
        ) -> Result<(), Error> {
            let _turn = self.gates.acquire().await;
            let of = CorrectedServer { blueprints: &self.blueprints, key };
            Box::pin(self.decided(AtTheDoor { of, subject: of_corrected, input }, rule)).await
        }
    }
}
