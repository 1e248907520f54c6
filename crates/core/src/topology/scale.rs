//! Scaling a group: more servers, fewer servers, which one goes first; and the deletion of a
//! single server by an admin. Each decision has the rows of the workspace and the group locked
//! before that of the resource, so that of many who ask at once each sees what the others did.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::access::audit::{Actor, AuditEntry};
use crate::access::role::Role;
use crate::broker::declare::{self, Declaration};
use crate::broker::delete;
use crate::broker::redeclare::RedeclareSnapshot;
use crate::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use crate::broker::{replace, surge};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::door::{Ask, Defaults, Door as DeletionDoor, Doored, Requested};
use crate::deletion::record::Deletion;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ProvisionedResourceId, ResourceId};
use crate::time::Timestamp;
use crate::topology::TopologyWrite;
use crate::topology::event::{GROUP_SCALED_DOWN, GROUP_SCALED_UP, scaled};
use crate::topology::gates::{self, Door, Question};
use crate::topology::group::Group;
use crate::topology::inventory::Inventory;
use crate::topology::owner::Owner;
use crate::topology::role::NodeRole;
use crate::topology::rollout::{corrections, values};
use crate::topology::workspace::Workspace;

/// A group with its workspace, both locked.
#[derive(Debug, Clone)]
pub struct GroupSnapshot {
    pub now: Timestamp,
    pub workspace: Workspace,
    pub group: Group,
    /// Counted without the server that the decision is about, if there is one.
    pub counts: Counts,
}

/// How many servers there are, by what the gates ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Other servers of the group that stay, Ready or not.
    pub others: u32,
    /// Those of them that are Ready, and not being replaced.
    pub others_counted: u32,
    /// Another server of the group is being replaced, or leaves.
    pub under_way: bool,
    /// Other load balancers of the workspace that are counted.
    pub load_balancers: u32,
    /// Workers of the workspace that are counted.
    pub backends: u32,
    /// Of a control plane: the others of the workspace, in whatever group.
    pub control_planes: ControlPlanes,
}

/// The control planes of a workspace, which have one quorum together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlPlanes {
    /// How many there are to be.
    pub declared: u32,
    /// Other ones that are counted.
    pub others: u32,
    /// Another one is being replaced, or leaves.
    pub under_way: bool,
}

/// A decision about a resource, with the group that it belongs to.
#[derive(Debug, Clone)]
pub struct OfServer<S> {
    pub of: S,
    /// `None` for a resource that no workspace owns.
    pub owner: Option<GroupSnapshot>,
}

/// Who asks for a server to go, and what is known outside.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    pub door: Door,
    pub caller: Role,
    pub inventory: &'a Inventory,
    pub ask: &'a Ask,
}

/// Takes one server of a group down, if the gates let it.
pub fn leave(
    snapshot: &OfServer<ResourceSnapshot>,
    door: &DeletionDoor,
    asked: &Asked<'_>,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let resource = &snapshot.of;
    let owner = owner(snapshot, resource)?;
    let leaves = resource.deletion.as_ref().is_some_and(|deletion| {
        deletion.target == resource.resource.id.into() && deletion.state.is_open()
    });
    if leaves {
        // It passed the gates when that began; a second request changes nothing about it.
        return delete::accept(resource, door, asked.ask, actor);
    }
    owner.workspace.stays()?;
    gates::ask(&question(resource, owner, asked))?;
    // What the gates found holds now, and not when some grace has ended.
    let ask = Ask { grace: Some(Duration::ZERO), ..asked.ask.clone() };
    let mut requested = delete::accept(resource, door, &ask, actor)?;
    let begins = |write: &Write| matches!(write, Write::Deletion(DeletionWrite::DeletionInsert(_)));
    if requested.commit.writes.iter().any(begins) {
        scaled_down(&mut requested.commit, resource, owner, asked, actor);
    }
    Ok(requested)
}

/// Replaces the machine of one server by what its group declares now, if the gates let it.
pub fn replace(
    snapshot: &Doored<OfServer<RedeclareSnapshot>>,
    asked: &Asked<'_>,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let resource = &snapshot.of.of.resource;
    let owner = owner(&snapshot.of, resource)?;
    owner.workspace.stays()?;
    gates::ask(&question(resource, owner, asked))?;
    let inner = Doored { of: snapshot.of.of.clone(), door: snapshot.door.clone() };
    let corrections = corrections(&owner.group.spec, &inner.of)?;
    match asked.door {
        Door::Replace { surge: true } => surge::accept(&inner, &corrections, asked.ask, actor),
        _ => replace::accept(&inner, &corrections, asked.ask, actor),
    }
}

pub(crate) fn owner<'a, S>(
    snapshot: &'a OfServer<S>,
    resource: &ResourceSnapshot,
) -> Result<&'a GroupSnapshot, Refusal> {
    snapshot.owner.as_ref().ok_or_else(|| {
        let message = format!(
            "resource `{}` belongs to no workspace; use `slipway resource` for it",
            resource.resource.handle
        );
        Refusal::new(ErrorKind::ServerNotFound, message)
    })
}

pub(crate) fn question<'a>(
    resource: &'a ResourceSnapshot,
    owner: &'a GroupSnapshot,
    asked: &'a Asked<'_>,
) -> Question<'a> {
    let (spec, counts) = (&owner.group.spec, &owner.counts);
    // A dropped group keeps nothing.
    let min = if owner.group.dropped { 0 } else { spec.min };
    Question {
        door: asked.door,
        caller: asked.caller,
        server: resource.resource.handle.as_str(),
        group: spec.name.as_str(),
        role: spec.role,
        delete_lock: spec.delete_lock,
        min,
        control_planes: counts.control_planes,
        counted: is_counted(resource),
        others: counts.others_counted,
        load_balancers: counts.load_balancers,
        backends: counts.backends,
        inventory: asked.inventory,
    }
}

/// As `is_counted` of a server, from the snapshot that is locked.
fn is_counted(resource: &ResourceSnapshot) -> bool {
    let in_use = match resource.beside() {
        Some(beside) if beside.attempt.id() == resource.attempt.id() => resource.other.as_deref(),
        _ => Some(resource),
    };
    let is_ready = |one: &ResourceSnapshot| one.attempt.phase() == crate::Phase::Ready;
    in_use.is_some_and(is_ready) && resource.resource.deletion_id.is_none()
}

fn scaled_down(
    commit: &mut Commit,
    resource: &ResourceSnapshot,
    owner: &GroupSnapshot,
    asked: &Asked<'_>,
    actor: &Actor,
) {
    let (workspace, group, now) = (&owner.workspace, &owner.group, owner.now);
    let id = resource.resource.id;
    let mut after = group.clone();
    after.marked.retain(|marked| *marked != id);
    // A server beyond what is wanted goes without changing that. A lost control plane is
    // followed by another one: the quorum counts those that are declared.
    let surplus = owner.counts.others >= group.target();
    if !surplus && !group.dropped && group.spec.role != NodeRole::ControlPlane {
        after.spec.wanted = group.target().saturating_sub(1);
    }
    let (wanted, verb) = (
        after.spec.wanted,
        match asked.door {
            Door::Delete { break_glass: true } => "server.break_glass",
            Door::Delete { .. } => "server.delete",
            Door::ScaleDown | Door::Apply | Door::Replace { .. } => "server.scale_down",
        },
    );
    let name = group.spec.name.as_str();
    let details = json!({
        "server": resource.resource.handle,
        "server_id": id,
        "group": name,
        "role": group.spec.role,
        "wanted": wanted,
        "inventory": asked.inventory.shown(),
    });
    changed(commit, owner, after);
    let revision = workspace.revision.next();
    let event = scaled(GROUP_SCALED_DOWN, workspace, revision, now, Some((name, wanted)));
    commit.events.push(event);
    let entry = AuditEntry::new(verb, actor, workspace.about().at(revision), now);
    commit.audit.push(entry.because(asked.ask.reason.as_str()).with(details));
}

fn changed(commit: &mut Commit, owner: &GroupSnapshot, after: Group) {
    commit.writes.push(TopologyWrite::GroupScale(after).into());
    commit.writes.push(TopologyWrite::WorkspaceUpdate(owner.workspace.clone()).into());
}

/// Wants so many servers more.
pub fn up(snapshot: &GroupSnapshot, by: u32, actor: &Actor) -> Result<Commit, Refusal> {
    let GroupSnapshot { now, workspace, group, .. } = snapshot;
    workspace.stays()?;
    let name = group.spec.name.as_str();
    if group.dropped {
        return Err(dropped(group));
    }
    if by == 0 {
        return Err(Refusal::invalid("by", "must be at least 1"));
    }
    let wanted = group.target().saturating_add(by);
    if wanted > group.spec.max {
        let message = format!(
            "group `{name}` would have {wanted} servers, and its `scale.max` is {}; raise it in the workspace first",
            group.spec.max
        );
        let details = json!({ "wanted": wanted, "max": group.spec.max, "now": group.target() });
        return Err(Refusal::new(ErrorKind::ScaleMaxViolation, message).with(details));
    }
    let mut after = group.clone();
    after.spec.wanted = wanted;
    let mut commit = Commit::default();
    changed(&mut commit, snapshot, after);
    let revision = workspace.revision.next();
    commit.events.push(scaled(GROUP_SCALED_UP, workspace, revision, *now, Some((name, wanted))));
    let entry = AuditEntry::new("server.scale_up", actor, workspace.about().at(revision), *now);
    let details = json!({ "group": name, "before": group.target(), "after": wanted });
    commit.audit.push(entry.with(details));
    Ok(commit)
}

/// Declares one more server, if the group still lacks one.
pub fn declare(
    snapshot: &GroupSnapshot,
    declared: &DeclareSnapshot,
    new: &NewServer,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let GroupSnapshot { workspace, group, counts, .. } = snapshot;
    let lacks = counts.others < group.target().min(group.spec.max) && !group.dropped;
    let is_paused = workspace.paused_at.is_some() || workspace.deletion_id.is_some();
    // Another number is free. A server on its own has no other name, and is refused below.
    let passes_over = declared.holder.is_some() && !group.spec.single;
    if is_paused || !lacks || passes_over {
        return Ok(Commit::default());
    }
    let spec = &group.spec;
    let labels = [("workspace", workspace.name.as_str()), ("group", spec.name.as_str())];
    let mut labels: BTreeMap<String, String> =
        labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    labels.insert("role".to_owned(), spec.role.as_str().to_owned());
    let declaration = Declaration {
        resource_id: new.id,
        provisioned_resource_id: new.attempt_id,
        handle: new.name.clone(),
        labels,
        project: workspace.project_id.to_string(),
        blueprint: spec.blueprint.clone(),
        version: spec.version.clone(),
        credential: spec.credential.clone(),
        parameters: values(spec, declared.blueprint.as_ref()),
        owner: Some(Owner {
            workspace_id: workspace.id,
            workspace: workspace.name.to_string(),
            group_id: group.id,
            group: spec.name.to_string(),
            role: spec.role,
        }),
    };
    declare::declare(declared, &declaration, actor)
}

/// A server to be declared.
#[derive(Debug, Clone)]
pub struct NewServer {
    pub id: ResourceId,
    pub attempt_id: ProvisionedResourceId,
    pub name: String,
}

/// Forgets a group that was dropped and has no servers any more.
pub fn forget(snapshot: &GroupSnapshot, actor: &Actor) -> Commit {
    let GroupSnapshot { now, workspace, group, counts } = snapshot;
    if !group.dropped || counts.others > 0 || counts.under_way {
        return Commit::default();
    }
    let about = workspace.about().at(workspace.revision.next());
    let details = json!({ "forgotten": group.spec.name });
    let entry = AuditEntry::new("workspace.update", actor, about, *now).with(details);
    Commit {
        writes: vec![
            TopologyWrite::GroupRemove(group.id).into(),
            TopologyWrite::WorkspaceUpdate(workspace.clone()).into(),
        ],
        audit: vec![entry],
        ..Commit::default()
    }
}

/// Takes one server down as part of the teardown of its workspace. The gates do not count: what
/// they protect goes as a whole, in order. Protection does, as everywhere.
pub fn tear_down(
    snapshot: &Doored<OfServer<ResourceSnapshot>>,
    parent: &Deletion,
    ask: &Ask,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let resource = &snapshot.of.of;
    let owner = owner(&snapshot.of, resource)?;
    let workspace = &owner.workspace;
    if workspace.deletion_id != Some(parent.id) || workspace.paused_at.is_some() {
        return Ok(Commit::default());
    }
    // A second person approved the teardown as a whole.
    let settings = Defaults { retention: parent.retention, ..Defaults::default() };
    let door = DeletionDoor { defaults: settings, brake: None, ..snapshot.door.clone() };
    let mut commit = delete::accept(resource, &door, ask, actor)?.commit;
    for write in &mut commit.writes {
        if let Write::Deletion(DeletionWrite::DeletionInsert(deletion)) = write {
            deletion.parent = Some(parent.id);
        }
    }
    Ok(commit)
}

/// Marks a server to go first if only a number is given, or takes the mark away.
pub fn mark(
    snapshot: &GroupSnapshot,
    server: ResourceId,
    name: &str,
    marked: bool,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let GroupSnapshot { now, workspace, group, .. } = snapshot;
    workspace.stays()?;
    if group.marked.contains(&server) == marked {
        return Ok(Commit::default());
    }
    let mut after = group.clone();
    after.marked.retain(|one| *one != server);
    if marked {
        after.marked.push(server);
    }
    let mut commit = Commit::default();
    changed(&mut commit, snapshot, after);
    let about = workspace.about().at(workspace.revision.next());
    let details = json!({ "server": name, "group": group.spec.name, "marked": marked });
    commit.audit.push(AuditEntry::new("server.mark", actor, about, *now).with(details));
    Ok(commit)
}

fn dropped(group: &Group) -> Refusal {
    let message = format!(
        "group `{}` was dropped from its workspace, and its servers go; declare it again",
        group.spec.name
    );
    Refusal::new(ErrorKind::GroupNotFound, message)
}

#[cfg(test)]
mod tests;
