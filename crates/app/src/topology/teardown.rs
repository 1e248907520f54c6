//! The teardown of a workspace, one pass: the servers that may go now begin to go, each by a
//! deletion of its own whose parent is that of the workspace. Which ones is decided from what is
//! proven absent, so a pass that dies or runs twice continues in the same order.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::deletion::door::{Ask, Doored};
use slipway_core::deletion::record::Deletion;
use slipway_core::error::Refusal;
use slipway_core::ids::{DeletionId, ResourceId, Revision, WorkspaceId};
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;
use slipway_core::topology::scale::{self, OfServer};
use slipway_core::topology::teardown::next;

use crate::Context;
use crate::permits::Permits;
use crate::ports::store::Error;

/// Servers in one transaction: the workspace is locked meanwhile.
const BATCH: usize = 100;

/// What a pass did.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    pub(crate) begun: usize,
    /// Servers are on their way out.
    pub(crate) leaving: bool,
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
    done.leaving = observed.servers.iter().any(|server| !server.stays());
    for servers in next(&observed.groups, &observed.servers).chunks(BATCH) {
        let Ok(permit) = permits.enter(&context.stores).await? else { return Ok(None) };
        take_down(context, actor, deletion, (servers, permit.revision()), &mut done).await?;
    }
    Ok(Some(done))
}

async fn take_down(
    context: &Context,
    actor: &Actor,
    deletion: &Deletion,
    (servers, mode): (&[ResourceId], Revision),
    done: &mut Begun,
) -> Result<(), Error> {
    let reason = Reason::parse(&deletion.reason).map_err(Refusal::from)?;
    let ask = |deletion_id| Ask {
        deletion_id,
        reason: reason.clone(),
        expected: Expected::Any,
        // A server that was to go later goes with its workspace.
        grace: Some(Duration::ZERO),
        cascade: false,
        keep: false,
        break_glass: false,
        plan: None,
    };
    let mut begun = HashMap::new();
    let mut rule = |snapshot: &Doored<OfServer<ResourceSnapshot>>| {
        let ask = ask(DeletionId::new(context.entropy.uuid()));
        let commit = scale::tear_down(snapshot, deletion, &ask, actor)?;
        begun.insert(snapshot.of.of.resource.id, transitions(&commit, Some(&snapshot.of.of)));
        commit.permitted(Some(mode))
    };
    let (store, defaults) = (&context.stores.topology, context.settings.deletion);
    let workspace = WorkspaceId::new(deletion.target.id);
    let decided = store.server_take_down(workspace, servers, defaults, &mut rule).await?;
    for (server, decided) in decided {
        match decided {
            Ok(()) => {
                let transitioned = begun.remove(&server).unwrap_or_default();
                done.begun += usize::from(!transitioned.is_empty());
                done.leaving = true;
                context.meter.transitioned(&transitioned);
            }
            Err(Error::Refused(refusal)) => done.refusal = Some(refusal),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
