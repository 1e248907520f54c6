//! Servers: listed, added, marked, scaled down, replaced, deleted.

use serde_json::json;
use slipway_core::access::audit::Actor;
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::deletion::door::Doored;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, GroupId, ResourceId};
use slipway_core::precondition::Expected;
use slipway_core::topology::gates::Door;
use slipway_core::topology::group::Group;
use slipway_core::topology::scale::{self, Asked, GroupSnapshot, OfServer};
use slipway_core::topology::server::{Server, coming, victims};
use slipway_core::topology::workspace::Workspace;

use super::inventory::Gathered;
use super::port::{ServerFilter, ServerRow};
use super::{run, workspaces};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::port::{RedeclareKey, Redeclared};
use crate::deletion::request::{DeleteOptions, input, wake};
use crate::kind::missing;
use crate::{Context, Error};

/// Servers within the caller's reach, in the order of their ids.
pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &ServerFilter,
) -> Result<Vec<ServerRow>, Error> {
    authorise(caller, Operation::WorkspaceRead)?;
    let project = filter.project.or(caller.project);
    if caller.project.is_some() && caller.project != project {
        return Ok(Vec::new());
    }
    let filter = ServerFilter { project, ..filter.clone() };
    Ok(context.stores.topology.server_rows(&filter).await?)
}

/// One server of a workspace, by its name or its id.
#[derive(Debug, Clone)]
pub struct Found {
    pub workspace: Workspace,
    pub group: Group,
    pub server: Server,
}

/// Finds a server; `workspace` and `server` are names or ids.
pub async fn find(
    context: &Context,
    caller: &Caller,
    workspace: &str,
    server: &str,
) -> Result<Found, Error> {
    let id = workspaces::find(context, caller, workspace).await?;
    let observed = context.stores.topology.workspace_observed(id).await?;
    let unknown = || {
        let message =
            format!("workspace `{workspace}` has no server `{server}`; check its name or id");
        Refusal::new(ErrorKind::ServerNotFound, message)
    };
    let observed = observed.ok_or_else(unknown)?;
    let named = |one: &&Server| one.name == server || one.id.to_string() == server;
    let server = observed.servers.iter().find(named).ok_or_else(unknown)?;
    let group = observed.groups.iter().find(|group| group.id == server.group_id);
    let group = group.ok_or_else(unknown)?;
    Ok(Found {
        workspace: observed.workspace.clone(),
        group: group.clone(),
        server: server.clone(),
    })
}

/// Finds a group of a workspace by its name.
pub async fn find_group(
    context: &Context,
    caller: &Caller,
    workspace: &str,
    group: &str,
) -> Result<Group, Error> {
    let id = workspaces::find(context, caller, workspace).await?;
    let groups = context.stores.topology.workspace_groups(&[id]).await?;
    let found = groups.into_iter().find(|one| one.spec.name.as_str() == group);
    let unknown = || missing(ErrorKind::GroupNotFound, "group", group);
    Ok(found.ok_or_else(unknown)?)
}

/// Wants so many servers more, and answers how many the group is to have.
pub async fn scale_up(
    context: &Context,
    caller: &Caller,
    group: GroupId,
    by: u32,
) -> Result<u32, Error> {
    let actor = authorise(caller, Operation::ServerScaleUp)?;
    let mut target = 0;
    let mut rule = |snapshot: &GroupSnapshot| {
        in_reach(caller, Some(snapshot))?;
        target = snapshot.group.target().saturating_add(by);
        scale::up(snapshot, by, &actor)
    };
    context.stores.topology.group_decide(group, &mut rule).await?;
    run::wake(context).await;
    Ok(target)
}

/// Marks a server to go first if only a number is given, or takes the mark away.
pub async fn mark(
    context: &Context,
    caller: &Caller,
    found: &Found,
    marked: bool,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ServerMark)?;
    let (id, name) = (found.server.id, &found.server.name);
    let mut rule = |snapshot: &GroupSnapshot| {
        in_reach(caller, Some(snapshot))?;
        scale::mark(snapshot, id, name, marked, &actor)
    };
    Ok(context.stores.topology.group_decide(found.group.id, &mut rule).await?)
}

/// Takes one server down, if the gates let it.
pub async fn scale_down(
    context: &Context,
    caller: &Caller,
    (group, server): (GroupId, ResourceId),
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, Operation::ServerScaleDown)?;
    let inventory = inventory(context, group, Door::ScaleDown).await?;
    let of = (server, Door::ScaleDown, &inventory);
    Ok(leave(context, (caller, &actor), of, options).await?.0)
}

/// Takes so many servers of a group down, those that can be missed most first, one decision
/// each, and answers their names. The first refusal of a gate ends it; its details name those
/// whose teardown began before.
pub async fn scale_down_by(
    context: &Context,
    caller: &Caller,
    group: &Group,
    by: u32,
    options: DeleteOptions<'_>,
) -> Result<Vec<String>, Error> {
    let actor = authorise(caller, Operation::ServerScaleDown)?;
    if by == 0 {
        return Err(Refusal::invalid("by", "must be at least 1").into());
    }
    let mut gone: Vec<String> = Vec::new();
    let inventory = inventory(context, group.id, Door::ScaleDown).await?;
    while gone.len() < usize::try_from(by).unwrap_or(usize::MAX) {
        let observed = context.stores.topology.workspace_observed(group.workspace_id).await?;
        let Some(observed) = observed else { break };
        let marked = observed.groups.iter().find(|one| one.id == group.id);
        let marked = marked.map(|one| one.marked.clone()).unwrap_or_default();
        let servers = observed.of(group);
        let Some(victim) = victims(&servers, &marked).into_iter().next() else { break };
        let found = servers.iter().find(|one| one.id == victim);
        let left = match found.and_then(|victim| waits(&servers, victim)) {
            Some(refusal) => Err(refusal.into()),
            None => {
                let of = (victim, Door::ScaleDown, &inventory);
                leave(context, (caller, &actor), of, options).await
            }
        };
        match left {
            // Somebody else took the same one: another one is chosen.
            Ok((_, Left::Already)) => {}
            Ok((_, Left::Now)) => gone.extend(found.map(|one| one.name.clone())),
            Err(error) if gone.is_empty() => return Err(error),
            Err(Error { refusal, internal }) => {
                let mut details = refusal.details.clone().unwrap_or_else(|| json!({}));
                details["leaving"] = json!(gone);
                return Err(Error { refusal: refusal.with(details), internal });
            }
        }
    }
    Ok(gone)
}

/// Deletes one server as it is: an admin skips the minimum and the lock, and with broken glass
/// also the quorum and the provider's list.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    (group, server): (GroupId, ResourceId),
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, Operation::ServerDelete)?;
    if options.reason.is_none() {
        let problem = "is required: say why the minimum and the lock do not count";
        return Err(Refusal::invalid("reason", problem).into());
    }
    let door = Door::Delete { break_glass: options.break_glass };
    let inventory = inventory(context, group, door).await?;
    Ok(leave(context, (caller, &actor), (server, door, &inventory), options).await?.0)
}

/// Whether a request began the teardown of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Now,
    Already,
}

/// Why this one cannot be missed yet, though it is the first to go.
fn waits(servers: &[Server], victim: &Server) -> Option<Refusal> {
    let coming = coming(servers, &[victim.id]).filter(|_| victim.is_counted())?;
    let message = format!(
        "server `{}` would go next, and `{}`, which is to stay, is {} yet; wait until it is Ready, or name the server that is to go",
        victim.name, coming.name, coming.phase
    );
    Some(Refusal::new(ErrorKind::ReplacementUnderWay, message))
}

async fn leave(
    context: &Context,
    (caller, actor): (&Caller, &Actor),
    (server, door, inventory): (ResourceId, Door, &Gathered),
    options: DeleteOptions<'_>,
) -> Result<(DeletionId, Left), Error> {
    let ask = options.ask_in_reach(context, caller).await?;
    let (mut deletion_id, mut refused) = (ask.deletion_id, None);
    let (mut transitioned, mut waits) = (Vec::new(), false);
    let mut rule = |snapshot: &Doored<OfServer<ResourceSnapshot>>| {
        in_reach(caller, snapshot.of.owner.as_ref())?;
        let inventory = inventory.now();
        let asked = Asked { door, caller: caller.role, inventory: &inventory, ask: &ask };
        let requested = scale::leave(&snapshot.of, &snapshot.door, &asked, actor)?;
        (deletion_id, refused) = (requested.deletion_id, requested.refused);
        transitioned = transitions(&requested.commit, Some(&snapshot.of.of));
        waits = transitioned.is_empty() && !requested.commit.is_empty();
        Ok(requested.commit)
    };
    let input = input(context, caller, &ask);
    context.stores.topology.server_decide_deletion(server, input, &mut rule).await?;
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    tracing::info!(resource_id = %server, %deletion_id, ?door, "a server goes");
    context.meter.transitioned(&transitioned);
    if waits {
        wake(context).await;
    }
    context.wakes.wake();
    run::wake(context).await;
    let left = if deletion_id == ask.deletion_id { Left::Now } else { Left::Already };
    Ok((deletion_id, left))
}

/// Whoever breaks the glass does not wait for the provider.
async fn inventory(context: &Context, group: GroupId, door: Door) -> Result<Gathered, Error> {
    if door == (Door::Delete { break_glass: true }) {
        return Ok(Gathered::not_asked_for());
    }
    Ok(context.inventories.of_group(&context.stores, group).await?)
}

/// Replaces the machine of a server. A control plane is replaced with the new one first.
pub async fn replace(
    context: &Context,
    caller: &Caller,
    found: &Found,
    surge: bool,
    reason: Option<&str>,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ServerReplace)?;
    let door = Door::Replace { surge };
    let expected = Expected::Any;
    let options = DeleteOptions { reason, expected, ..DeleteOptions::default() };
    let ask = options.ask(context, caller)?;
    let inventory = inventory(context, found.group.id, door).await?;
    let (mut refused, mut transitioned) = (None, Vec::new());
    let mut rule = |snapshot: &Doored<OfServer<RedeclareSnapshot>>| {
        in_reach(caller, snapshot.of.owner.as_ref())?;
        let inventory = inventory.now();
        let asked = Asked { door, caller: caller.role, inventory: &inventory, ask: &ask };
        let requested = scale::replace(snapshot, &asked, &actor)?;
        refused = requested.refused;
        transitioned = transitions(&requested.commit, Some(&snapshot.of.of.resource));
        Ok(requested.commit)
    };
    let of = if surge { Redeclared::WithSurge } else { Redeclared::InUse };
    let version = found.group.spec.version.clone();
    let key = RedeclareKey { resource: found.server.id, version, of };
    let input = input(context, caller, &ask);
    context.stores.topology.server_decide_replacement(&key, input, &mut rule).await?;
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(())
}

/// A server out of the caller's reach is as unknown as one that is not there.
fn in_reach(caller: &Caller, owner: Option<&GroupSnapshot>) -> Result<(), Refusal> {
    match owner {
        Some(owner) if !caller.reaches(owner.workspace.project_id) => {
            let message = "there is no such server; check its name or id";
            Err(Refusal::new(ErrorKind::ServerNotFound, message))
        }
        _ => Ok(()),
    }
}
