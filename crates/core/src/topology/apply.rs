//! Applying a declared workspace: new groups, changed ones, dropped ones. Everything is checked
//! before anything is written, also every gate of the servers that would go. The loop then
//! brings the groups to their counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::access::audit::{Actor, AuditEntry};
use crate::access::role::Role;
use crate::broker::declare;
use crate::broker::snapshot::DeclareSnapshot;
use crate::catalog::Name;
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{GroupId, ProjectId, ResourceId, Revision, WorkspaceId};
use crate::kind::unknown;
use crate::topology::TopologyWrite;
use crate::topology::declared::path;
use crate::topology::event::{WORKSPACE_CHANGED, WORKSPACE_CREATED, announce};
use crate::topology::gates::{self, Door, Question};
use crate::topology::group::{Group, GroupSpec};
use crate::topology::inventory::Inventory;
use crate::topology::role::NodeRole;
use crate::topology::rollout;
use crate::topology::scale::ControlPlanes;
use crate::topology::server::{Server, victims};
use crate::topology::workspace::{Workspace, WorkspaceSnapshot};

/// What somebody wants a workspace to be.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Of the workspace, if it is new.
    pub id: WorkspaceId,
    /// Of its new groups, in the order of `specs`.
    pub group_ids: Vec<GroupId>,
    pub project: String,
    pub name: Name,
    pub specs: Vec<GroupSpec>,
}

/// What is known beside the rows.
#[derive(Debug, Clone)]
pub struct Circumstances<'a> {
    pub caller: Role,
    /// What each group's servers are checked against, in the order of the specs.
    pub declared: &'a [DeclareSnapshot],
    /// What the provider lists of the groups that shrink.
    pub inventories: &'a BTreeMap<GroupId, Inventory>,
}

/// The group of a spec, as it is and as it will be.
#[derive(Debug, Clone)]
pub struct GroupChange {
    pub before: Option<Group>,
    pub after: Group,
}

impl GroupChange {
    fn is_change(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

/// Accepts the declaration, or refuses it with every fault and writes nothing.
pub fn apply(
    snapshot: &WorkspaceSnapshot,
    desired: &Desired,
    circumstances: &Circumstances<'_>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Some(project_id) = snapshot.project else {
        return Err(unknown(ErrorKind::ProjectNotFound, "project").at("metadata.project"));
    };
    if snapshot.project_leaving && snapshot.workspace.is_none() {
        let message = format!("project `{}` is being deleted, or will be", desired.project);
        return Err(Refusal::new(ErrorKind::ProjectLeaving, message).at("metadata.project"));
    }
    if let Some(workspace) = &snapshot.workspace {
        workspace.stays()?;
    }
    let workspace = target(snapshot, project_id, desired);
    let changes = changes(snapshot, &workspace, desired);
    let mut faults = Vec::new();
    for (change, declared) in changes.iter().zip(circumstances.declared) {
        faults.extend(preconditions(desired, &change.after.spec, declared));
    }
    faults.extend(changes.iter().filter_map(|change| stays_alike(snapshot, change)));
    faults.extend(taken(snapshot, &desired.specs));
    Refusal::all(faults)?;
    for change in &changes {
        for (_, asked) in asked_to_go(snapshot, &changes, change, circumstances) {
            asked?;
        }
    }
    Ok(written(snapshot, &workspace, &changes, actor))
}

/// The workspace of the declaration, as it is or new.
pub(crate) fn target(
    snapshot: &WorkspaceSnapshot,
    project_id: ProjectId,
    desired: &Desired,
) -> Workspace {
    snapshot.workspace.clone().unwrap_or_else(|| Workspace {
        id: desired.id,
        project_id,
        name: desired.name.clone(),
        paused_at: None,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    })
}

/// Every group afterwards: those of the declaration in its order, then those that it drops.
pub fn changes(
    snapshot: &WorkspaceSnapshot,
    workspace: &Workspace,
    desired: &Desired,
) -> Vec<GroupChange> {
    let live = |name: &Name| snapshot.groups.iter().find(|group| group.spec.name == *name);
    let mut changes: Vec<GroupChange> = desired
        .specs
        .iter()
        .zip(&desired.group_ids)
        .map(|(spec, id)| match live(&spec.name) {
            Some(before) => {
                let after = Group { spec: spec.clone(), dropped: false, ..before.clone() };
                GroupChange { before: Some(before.clone()), after }
            }
            None => GroupChange {
                before: None,
                after: Group {
                    id: *id,
                    workspace_id: workspace.id,
                    project_id: workspace.project_id,
                    spec: spec.clone(),
                    dropped: false,
                    marked: Vec::new(),
                    revision: Revision::FIRST,
                    created_at: snapshot.now,
                    updated_at: snapshot.now,
                },
            },
        })
        .collect();
    let kept = |group: &&Group| desired.specs.iter().any(|spec| spec.name == group.spec.name);
    let gone = snapshot.groups.iter().filter(|group| !kept(group));
    changes.extend(gone.map(|before| {
        // What is gone needs nothing that the declaration may have dropped with it.
        let after = Group { dropped: true, ..before.clone() };
        GroupChange { before: Some(before.clone()), after }
    }));
    changes
}

/// What a declaration of a server of this group would be refused for.
fn preconditions(
    desired: &Desired,
    spec: &GroupSpec,
    declared: &DeclareSnapshot,
) -> Option<Refusal> {
    let values = spec.values();
    let declaration = declare::Desired {
        project: &desired.project,
        blueprint: &spec.blueprint,
        version: spec.version.as_deref(),
        credential: spec.credential.as_deref(),
        parameters: &values,
    };
    let refusal = declare::check(declared, declaration).err()?;
    let at = |fault: &Refusal| {
        let field = fault.field.clone().unwrap_or_else(|| "blueprint".to_owned());
        fault.clone().at(format!("{}.{field}", path(spec)))
    };
    let faults: Vec<Refusal> = refusal.faults().map(at).collect();
    Refusal::all(faults).err()
}

/// A live server keeps its role, and what it is made of comes from one blueprint.
fn stays_alike(snapshot: &WorkspaceSnapshot, change: &GroupChange) -> Option<Refusal> {
    let (before, after) = (&change.before.as_ref()?.spec, &change.after.spec);
    let servers = snapshot.of(&change.after).len();
    if servers == 0 || change.after.dropped {
        return None;
    }
    let name = &after.name;
    let refuse = |kind, field: &str, message: String| {
        Some(Refusal::new(kind, message).at(format!("{}.{field}", path(after))))
    };
    if before.role != after.role {
        let message = format!(
            "group `{name}` has {servers} server(s) with role {}, and a server keeps its role; declare another group with role {}, then drop this one",
            before.role, after.role
        );
        return refuse(ErrorKind::RoleImmutable, "role", message);
    }
    let fixed = [
        ("blueprint", before.blueprint == after.blueprint),
        ("credential", before.credential == after.credential),
        ("name", before.single == after.single),
    ];
    let (field, _) = fixed.into_iter().find(|(_, same)| !same)?;
    let message = format!(
        "`{field}` of group `{name}` stays as it is while it has servers ({servers}); declare another group, then drop this one"
    );
    refuse(ErrorKind::FieldImmutable, field, message)
}

/// Two workspaces of a project never name their servers alike.
fn taken(snapshot: &WorkspaceSnapshot, specs: &[GroupSpec]) -> Vec<Refusal> {
    let of = |spec: &GroupSpec| {
        let other =
            snapshot.taken_patterns.iter().find(|taken| taken.pattern == spec.hostname_pattern)?;
        let field = if spec.single { "name" } else { "scale.template.hostname_pattern" };
        let message = format!(
            "group `{}` of workspace `{}` in the same project names its servers `{}`; choose another pattern",
            other.group, other.workspace, other.pattern
        );
        let refusal = Refusal::new(ErrorKind::HostnamePatternTaken, message);
        Some(refusal.at(format!("{}.{field}", path(spec))))
    };
    specs.iter().filter_map(of).collect()
}

/// The servers of this group that the declaration has no place for.
pub fn drops(snapshot: &WorkspaceSnapshot, change: &GroupChange) -> Vec<Server> {
    let servers = snapshot.of(&change.after);
    let surplus = change.after.difference(&servers).surplus;
    let surplus = usize::try_from(surplus).unwrap_or(usize::MAX);
    let gone = victims(&servers, &change.after.marked).into_iter().take(surplus);
    gone.filter_map(|id| servers.iter().find(|one| one.id == id).cloned()).collect()
}

/// Asks the gates about every server that would go, as if those before it were gone.
pub(crate) fn asked_to_go(
    snapshot: &WorkspaceSnapshot,
    changes: &[GroupChange],
    change: &GroupChange,
    circumstances: &Circumstances<'_>,
) -> Vec<(Server, Result<(), Refusal>)> {
    let mut answers = Vec::new();
    let unread = Inventory::Unavailable { reason: "it was not asked for".to_owned() };
    let spec = &change.after.spec;
    let mut gone: Vec<ResourceId> = Vec::new();
    for server in drops(snapshot, change) {
        gone.push(server.id);
        let counted = |role: Option<NodeRole>| {
            let left = snapshot.servers.iter().filter(|one| {
                one.is_counted()
                    && !gone.contains(&one.id)
                    && match role {
                        None => one.group_id == change.after.id,
                        Some(role) => stays_with(changes, one.group_id, role),
                    }
            });
            u32::try_from(left.count()).unwrap_or(u32::MAX)
        };
        // A lock that the same declaration takes away still counts: two steps, no accident.
        let was_locked = change.before.as_ref().is_some_and(|before| before.spec.delete_lock);
        let inventory = circumstances.inventories.get(&change.after.id).unwrap_or(&unread);
        let asked = gates::ask(&Question {
            door: Door::Apply,
            caller: circumstances.caller,
            server: &server.name,
            group: spec.name.as_str(),
            role: spec.role,
            delete_lock: spec.delete_lock || was_locked,
            min: if change.after.dropped { 0 } else { spec.min },
            control_planes: ControlPlanes {
                declared: control_planes(changes),
                others: counted(Some(NodeRole::ControlPlane)),
                under_way: false,
            },
            counted: server.is_counted(),
            others: counted(None),
            load_balancers: counted(Some(NodeRole::LoadBalancer)),
            backends: counted(Some(NodeRole::Worker)),
            inventory,
        });
        answers.push((server, asked));
    }
    answers
}

/// How many control planes there are to be.
fn control_planes(changes: &[GroupChange]) -> u32 {
    let groups = changes.iter().map(|change| &change.after);
    let planes = groups.filter(|group| group.spec.role == NodeRole::ControlPlane);
    planes.map(Group::target).fold(0, u32::saturating_add)
}

/// Whether servers of this group have the role and do not go with it.
fn stays_with(changes: &[GroupChange], id: GroupId, role: NodeRole) -> bool {
    let of = |change: &&GroupChange| change.after.id == id && !change.after.dropped;
    changes.iter().find(of).is_some_and(|change| change.after.spec.role == role)
}

fn written(
    snapshot: &WorkspaceSnapshot,
    workspace: &Workspace,
    changes: &[GroupChange],
    actor: &Actor,
) -> Commit {
    let (now, is_new) = (snapshot.now, snapshot.workspace.is_none());
    let changed: Vec<&GroupChange> = changes.iter().filter(|change| change.is_change()).collect();
    // A paused workspace goes on when it is declared again.
    let resumes = workspace.paused_at.is_some();
    if !is_new && changed.is_empty() && !resumes {
        return Commit::default();
    }
    let mut commit = Commit::default();
    let (revision, verb, event) = match is_new {
        true => (Revision::FIRST, "workspace.create", WORKSPACE_CREATED),
        false => (workspace.revision.next(), "workspace.update", WORKSPACE_CHANGED),
    };
    commit.writes.push(
        match is_new {
            true => TopologyWrite::WorkspaceInsert(workspace.clone()),
            false => {
                TopologyWrite::WorkspaceUpdate(Workspace { paused_at: None, ..workspace.clone() })
            }
        }
        .into(),
    );
    for change in &changed {
        let write = match change.before {
            None => TopologyWrite::GroupInsert(change.after.clone()),
            Some(_) => TopologyWrite::GroupUpdate(change.after.clone()),
        };
        commit.writes.push(write.into());
    }
    commit.events.push(announce(event, workspace, revision, now));
    let groups: Vec<Value> = changed.iter().map(|change| described(change)).collect();
    let details = json!({ "name": workspace.name, "groups": groups });
    let entry = AuditEntry::new(verb, actor, workspace.about().at(revision), now);
    commit.audit.push(entry.with(details));
    commit.join(rollout::begin(snapshot, workspace, changes, actor));
    commit
}

/// What becomes of a group, for the audit: numbers and names, no values of parameters.
fn described(change: &GroupChange) -> Value {
    let after = &change.after;
    let (spec, before) = (&after.spec, change.before.as_ref().map(|before| &before.spec));
    let mut shown = json!({
        "name": spec.name, "role": spec.role, "wanted": spec.wanted,
        "min": spec.min, "max": spec.max, "delete_lock": spec.delete_lock,
    });
    if let Some(before) = before {
        shown["before"] = json!({
            "wanted": before.wanted, "min": before.min, "max": before.max,
            "delete_lock": before.delete_lock,
        });
    }
    if after.dropped {
        shown["dropped"] = json!(true);
    }
    shown
}

#[cfg(test)]
mod tests;
