//! Roll-outs to the servers of a workspace: each gets what its group declares. They are begun by
//! the apply that declares it, see [`slipway_core::topology::rollout`].

use std::collections::HashMap;

use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::commit::{Commit, Write};
use slipway_core::deletion::door::Doored;
use slipway_core::error::ErrorKind;
use slipway_core::ids::{GroupId, ResourceId, Revision, WorkspaceId};
use slipway_core::rollouts::next::Health;
use slipway_core::rollouts::record::{Member, Rollout};
use slipway_core::time::Timestamp;
use slipway_core::topology::gates::Door;
use slipway_core::topology::group::Group;
use slipway_core::topology::rollout;
use slipway_core::topology::scale::{Asked, OfServer};
use slipway_core::topology::workspace::Workspace;

use super::inventory::Gathered;
use crate::Context;
use crate::access::authorise::Caller;
use crate::broker::port::{RedeclareKey, Redeclared};
use crate::deletion::request::DeleteOptions;
use crate::ports::store;
use crate::rollouts::run::Begun;

const REASON: &str = "its group was declared anew";

/// How the members in work are.
pub(crate) async fn observed(
    context: &Context,
    rollout: &Rollout,
    active: Vec<Member>,
) -> Result<(Option<Timestamp>, Vec<(Member, Health)>), store::Error> {
    if active.is_empty() {
        return Ok((None, Vec::new()));
    }
    let ids: Vec<_> = active.iter().map(|member| ResourceId::new(member.subject.id)).collect();
    let loaded = context.stores.broker.resource_load(&ids).await?;
    let servers: HashMap<ResourceId, ResourceSnapshot> =
        loaded.into_iter().flatten().map(|found| (found.resource.id, found)).collect();
    let groups = groups(context, rollout).await?;
    let now = servers.values().map(|found| found.now).max();
    let judged = |member: Member| {
        let server = servers.get(&ResourceId::new(member.subject.id));
        let group = server.and_then(|server| group_of(&groups, server));
        (member, rollout::health(server, group.map(|group| &group.spec)))
    };
    Ok((now, active.into_iter().map(judged).collect()))
}

/// Changes a member in the commit that records it, if the gates let it.
pub(crate) async fn begin(
    context: &Context,
    rollout: &Rollout,
    member: &Member,
    mode: Revision,
    actor: &Actor,
) -> Result<Begun, store::Error> {
    let id = ResourceId::new(member.subject.id);
    let groups = groups(context, rollout).await?;
    let found = context.stores.broker.resource_fetch(id).await?;
    let Some(group) = found.as_ref().and_then(|server| group_of(&groups, server)) else {
        return Ok(Begun::Gone("it does not belong to the workspace any more".to_owned()));
    };
    let change = Change { context, rollout, member, version: group.spec.version.clone(), mode };
    // Only a replacement asks what the provider lists.
    let decided = match change.decide(&Gathered::not_asked_for(), actor).await {
        Err(store::Error::Refused(refusal)) if refusal.kind == ErrorKind::InventoryUnavailable => {
            let listed = context.inventories.of_group(&context.stores, group.id).await?;
            change.decide(&listed, actor).await
        }
        decided => decided,
    };
    let refusal = match decided {
        Ok(true) => return Ok(Begun::Changed),
        Ok(false) => return Ok(Begun::Stale),
        Err(store::Error::NotFound { .. }) => {
            return Ok(Begun::Gone("it does not exist any more".to_owned()));
        }
        Err(store::Error::Refused(refusal)) => refusal,
        Err(error) => return Err(error),
    };
    Ok(match refusal.kind {
        // It is read again. A replacement that is under way ends by itself.
        ErrorKind::RevisionStale | ErrorKind::ReplacementUnderWay => Begun::Stale,
        ErrorKind::ResourceNotFound | ErrorKind::ServerNotFound | ErrorKind::Leaving => {
            Begun::Gone(refusal.message)
        }
        // Members in work may be what is missing.
        ErrorKind::ScaleMinViolation
        | ErrorKind::QuorumViolation
        | ErrorKind::LastLoadBalancer
        | ErrorKind::InventoryUnavailable
        | ErrorKind::InventoryMismatch => Begun::Waits(refusal.message),
        _ => Begun::Refused(refusal.message),
    })
}

/// The groups of the workspace, those that were dropped left out.
async fn groups(
    context: &Context,
    rollout: &Rollout,
) -> Result<HashMap<GroupId, Group>, store::Error> {
    let workspace = WorkspaceId::new(rollout.subject.id);
    let groups = context.stores.topology.workspace_groups(&[workspace]).await?;
    Ok(groups.into_iter().filter(|one| !one.dropped).map(|one| (one.id, one)).collect())
}

fn group_of<'a>(
    groups: &'a HashMap<GroupId, Group>,
    server: &ResourceSnapshot,
) -> Option<&'a Group> {
    groups.get(&server.resource.owner.as_ref()?.group_id)
}

/// A change of one member.
struct Change<'a> {
    context: &'a Context,
    rollout: &'a Rollout,
    member: &'a Member,
    /// Which its group declares.
    version: Option<String>,
    mode: Revision,
}

impl Change<'_> {
    /// Whether it began. While the workspace is paused or leaves, nothing does: its teardown may
    /// be cancelled.
    async fn decide(&self, inventory: &Gathered, actor: &Actor) -> Result<bool, store::Error> {
        let Self { context, rollout, member, version, mode } = self;
        let options = DeleteOptions { reason: Some(REASON), ..DeleteOptions::default() };
        let ask = options.ask(context, &Caller::trusted(&actor.name))?;
        let (mut begun, mut transitioned) = (false, Vec::new());
        let mut rule = |snapshot: &Doored<OfServer<RedeclareSnapshot>>| {
            let owner = snapshot.of.owner.as_ref();
            let waits = |of: &Workspace| {
                of.deleted_at.is_none() && (of.paused_at.is_some() || of.deletion_id.is_some())
            };
            if owner.is_some_and(|owner| waits(&owner.workspace)) {
                return Ok(Commit::default());
            }
            let inventory = inventory.now();
            // Which door it is depends on what changes.
            let door = Door::Replace { surge: true };
            let asked = Asked { door, caller: Role::Operator, inventory: &inventory, ask: &ask };
            let mut commit = rollout::change(snapshot, &asked, actor)?.commit;
            transitioned = transitions(&commit, Some(&snapshot.of.of.resource));
            commit.writes.push(Write::Rollouts(member.begin(rollout, None)));
            begun = true;
            commit.permitted(Some(*mode))
        };
        let id = ResourceId::new(member.subject.id);
        let (version, of) = (version.clone(), Redeclared::WithSurge);
        let key = RedeclareKey { resource: id, version, of };
        let input = ask.input(context.settings.deletion);
        context.stores.topology.server_decide_replacement(&key, input, &mut rule).await?;
        context.meter.transitioned(&transitioned);
        Ok(begun)
    }
}
