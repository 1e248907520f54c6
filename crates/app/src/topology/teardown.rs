//! The teardown of a workspace, one pass: the servers that may go now begin to go, each by a
//! deletion of its own whose parent is that of the workspace. Which ones is decided from what is
//! proven absent, so a pass that dies or runs twice continues in the same order.

use std::sync::Arc;
use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::deletion::door::{Ask, Doored};
use slipway_core::deletion::record::Deletion;
use slipway_core::error::Refusal;
use slipway_core::ids::{DeletionId, ResourceId, WorkspaceId};
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;
use slipway_core::topology::scale::{self, OfServer};
use slipway_core::topology::teardown::next;

use crate::Context;
use crate::permits::Permits;
use crate::ports::store::Error;

/// What a pass did.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    pub(crate) begun: usize,
    /// Why one of them does not go.
    pub(crate) refusal: Option<Refusal>,
}

/// Takes the servers down that may go now; `None` if the mode withholds that.
pub(crate) async fn advance(
    context: &Context,
    permits: &Arc<Permits>,
    actor: &Actor,
    deletion: &Deletion,
) -> Result<Option<Begun>, Error> {
    let store = &context.stores.topology;
    let mut done = Begun::default();
    let Some(observed) = store.workspace_observed(WorkspaceId::new(deletion.target.id)).await?
    else {
        return Ok(Some(done));
    };
    if observed.workspace.paused_at.is_some() {
        return Ok(Some(done));
    }
    for server in next(&observed.groups, &observed.servers) {
        let Ok(permit) = permits.enter(&context.stores).await? else { return Ok(None) };
        match take_down(context, actor, deletion, server, permit.revision()).await {
            Ok(true) => done.begun += 1,
            Ok(false) => {}
            Err(Error::Refused(refusal)) => done.refusal = Some(refusal),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(done))
}

async fn take_down(
    context: &Context,
    actor: &Actor,
    deletion: &Deletion,
    server: ResourceId,
    mode: slipway_core::ids::Revision,
) -> Result<bool, Error> {
    let ask = Ask {
        deletion_id: DeletionId::new(context.entropy.uuid()),
        reason: Reason::parse(&deletion.reason).map_err(Refusal::from)?,
        expected: Expected::Any,
        // A server that was to go later goes with its workspace.
        grace: Some(Duration::ZERO),
        cascade: false,
        keep: false,
        break_glass: false,
        plan: None,
    };
    let mut transitioned = Vec::new();
    let mut rule = |snapshot: &Doored<OfServer<ResourceSnapshot>>| {
        let commit = scale::tear_down(snapshot, deletion, &ask, actor)?;
        transitioned = transitions(&commit, Some(&snapshot.of.of));
        commit.permitted(Some(mode))
    };
    let input = ask.input(context.settings.deletion);
    context.stores.topology.server_decide_deletion(server, input, &mut rule).await?;
    context.meter.transitioned(&transitioned);
    Ok(!transitioned.is_empty())
}
