//! What becomes of live servers when their group declares other parameters, another version or
//! another lock: a roll-out on the one mechanism of [`crate::rollouts`]. The apply that declares it
//! begins the roll-out in its own commit. The groups are its waves, in the order of their
//! dependencies; control planes change one at a time. A server is changed in place where its
//! substrate can take that. Otherwise it is replaced, with the new machine first where the
//! blueprint allows it, and through the gates of a replacement.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::access::audit::Actor;
use crate::broker::phase::Phase;
use crate::broker::redeclare::{Corrections, RedeclareSnapshot};
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::update::{self, Changes};
use crate::broker::{replace, surge};
use crate::catalog::blueprint_version::{BlueprintVersion, Engine};
use crate::closed_set::closed_set;
use crate::commit::Commit;
use crate::deletion::door::{Door as DeletionDoor, Doored};
use crate::error::{ErrorKind, Refusal};
use crate::event::derive_id;
use crate::ids::{Revision, RolloutId};
use crate::precondition::Expected;
use crate::rollouts::next::{Health, waves};
use crate::rollouts::record::{Member, MemberState, Purpose, Rollout, RolloutState, Strategy};
use crate::rollouts::rules;
use crate::subject::SubjectKind;
use crate::topology::apply::{GroupChange, drops};
use crate::topology::gates::{self, Door};
use crate::topology::graph::{Node, layers};
use crate::topology::group::{Group, GroupSpec};
use crate::topology::role::NodeRole;
use crate::topology::scale::{Asked, OfServer, owner, question};
use crate::topology::server::Server;
use crate::topology::workspace::{Workspace, WorkspaceSnapshot};

/// The parameter with which a blueprint lets the provider protect a server.
pub const DELETE_PROTECTION: &str = "delete_protection";

/// What servers of this group are declared with, from this version of their blueprint.
pub fn values(spec: &GroupSpec, version: Option<&BlueprintVersion>) -> BTreeMap<String, Value> {
    let mut values = spec.values();
    // The provider's protection mirrors the lock, where the blueprint can say so and the engine
    // clears it again.
    let has = |version: &BlueprintVersion| {
        version.engine == Engine::Hetzner
            && version.parameter_schema.view().field(DELETE_PROTECTION).is_some()
    };
    if version.is_some_and(has) {
        values.entry(DELETE_PROTECTION.to_owned()).or_insert_with(|| json!(spec.delete_lock));
    }
    values
}

/// Whether live servers of the group become different by this declaration. A group that names no
/// version leaves its servers the one that they have.
pub(crate) fn concerns_servers(before: &GroupSpec, after: &GroupSpec) -> bool {
    let version = after.version.is_some() && before.version != after.version;
    version || before.values() != after.values() || before.delete_lock != after.delete_lock
}

/// Rolls out what this declaration changes about live servers. An earlier roll-out of the
/// workspace ends by it, and its groups are part of this one.
pub(crate) fn begin(
    snapshot: &WorkspaceSnapshot,
    workspace: &Workspace,
    changes: &[GroupChange],
    actor: &Actor,
) -> Commit {
    let (groups, mut commit) = (groups(snapshot, changes), Commit::default());
    if groups.is_empty() {
        return commit;
    }
    let now = snapshot.now;
    for earlier in &snapshot.rollouts {
        let why = "the workspace was declared anew, which a newer roll-out brings";
        commit.join(rules::superseded(earlier, why, actor, now));
    }
    let members = members(snapshot, changes, &groups);
    if members.is_empty() {
        return commit;
    }
    let (id, revision) = (workspace.id.as_uuid(), workspace.revision.next().0.to_be_bytes());
    let id = derive_id(now, &[b"workspace_change", id.as_bytes(), &revision]);
    let rollout = Rollout {
        id: RolloutId::new(id),
        revision: Revision::FIRST,
        purpose: Purpose::WorkspaceChange,
        subject: workspace.id.into(),
        name: workspace.name.to_string(),
        project_id: Some(workspace.project_id),
        change: json!({ "groups": groups }),
        strategy: Strategy::default(),
        state: RolloutState::Running,
        message: None,
        requested_by: actor.name.clone(),
        reason: "the workspace was declared anew".to_owned(),
        requested_at: now,
        ended_at: None,
    };
    commit.join(rules::started(&rollout, &members, actor));
    commit
}

/// The groups whose servers change by this declaration, with those of a roll-out that it ends.
fn groups<'a>(snapshot: &'a WorkspaceSnapshot, changes: &'a [GroupChange]) -> BTreeSet<&'a str> {
    let concerned = |change: &&GroupChange| {
        let before = change.before.as_ref();
        !change.after.dropped
            && before.is_some_and(|before| concerns_servers(&before.spec, &change.after.spec))
    };
    let mut groups: BTreeSet<&str> =
        changes.iter().filter(concerned).map(|change| change.after.spec.name.as_str()).collect();
    if !groups.is_empty() {
        let earlier = snapshot.rollouts.iter().filter_map(|one| one.change["groups"].as_array());
        groups.extend(earlier.flatten().filter_map(Value::as_str));
    }
    groups
}

/// The servers that change by this declaration, each with its group as it will be.
pub(crate) fn concerned(
    snapshot: &WorkspaceSnapshot,
    changes: &[GroupChange],
) -> Vec<(Server, Group)> {
    let members = members(snapshot, changes, &groups(snapshot, changes));
    let of = |member: &Member| {
        let server = snapshot.servers.iter().find(|one| one.id.as_uuid() == member.subject.id)?;
        let of = |change: &&GroupChange| change.after.id == server.group_id;
        Some((server.clone(), changes.iter().find(of)?.after.clone()))
    };
    members.iter().filter_map(of).collect()
}

/// The servers of these groups that stay, those that others depend on first.
fn members(
    snapshot: &WorkspaceSnapshot,
    changes: &[GroupChange],
    groups: &BTreeSet<&str>,
) -> Vec<Member> {
    let nodes: Vec<Node<'_>> = changes
        .iter()
        .filter(|change| !change.after.dropped)
        .map(|change| change.after.spec.node())
        .collect();
    let layers = layers(&nodes);
    let mut found = Vec::new();
    for change in changes {
        let name = change.after.spec.name.as_str();
        if change.after.dropped || !groups.contains(name) {
            continue;
        }
        let layer = layers.iter().position(|layer| layer.contains(&name));
        let gone = drops(snapshot, change);
        let stays = snapshot
            .of(&change.after)
            .into_iter()
            .filter(|server| server.stays() && gone.iter().all(|dropped| dropped.id != server.id));
        let is_alone = change.after.spec.role == NodeRole::ControlPlane;
        found.extend(stays.map(|server| (layer, is_alone, server)));
    }
    let key = |(layer, is_alone, server): &(Option<usize>, bool, Server)| {
        (*layer, *is_alone, server.name.clone())
    };
    found.sort_by_key(key);
    // A control plane has a wave of its own.
    let alike = |one: &(Option<usize>, bool, Server), other: &(Option<usize>, bool, Server)| {
        (one.0, one.1) == (other.0, other.1) && !one.1
    };
    let places: Vec<_> = found
        .chunk_by(alike)
        .enumerate()
        .flat_map(|(at, wave)| vec![Some(at); wave.len()])
        .collect();
    let waves = waves(&places, places.len(), Strategy::default().canary);
    let member = |(((.., server), wave), position): (((_, _, Server), i32), i32)| Member {
        subject: server.id.into(),
        name: server.name,
        wave,
        position,
        state: MemberState::Waiting,
        before: json!({}),
        changed_at: None,
        message: None,
    };
    found.into_iter().zip(waves).zip(0..).map(member).collect()
}

closed_set!(
    /// How a server gets what its group declares.
    Way {
        /// It has that already.
        Nothing => "nothing",
        InPlace => "in_place",
        /// Another machine is Ready before this one goes.
        Surge => "replace_surge_first",
        /// Another machine follows this one.
        Replace => "replace",
    }
);

/// A change of one server that may be made now.
#[derive(Debug)]
pub struct Changed {
    pub way: Way,
    pub commit: Commit,
}

/// Gives a server what its group declares, or refuses it. `asked` says who asks; its door is
/// chosen here.
pub fn change(
    snapshot: &Doored<OfServer<RedeclareSnapshot>>,
    asked: &Asked<'_>,
    actor: &Actor,
) -> Result<Changed, Refusal> {
    let of = &snapshot.of.of;
    let owner = owner(&snapshot.of, &of.resource)?;
    owner.workspace.stays()?;
    under_way(&of.resource)?;
    let corrections = corrections(&owner.group.spec, of)?;
    let Corrections { version, parameters } = corrections.clone();
    let changes = Changes { version, parameters, labels: None };
    let refusal = match update::accept(of, &changes, Expected::Any, actor) {
        Ok(updated) if updated.changes.is_empty() => {
            return Ok(Changed { way: Way::Nothing, commit: Commit::default() });
        }
        Ok(updated) => return Ok(Changed { way: Way::InPlace, commit: updated.commit }),
        Err(refusal) => refusal,
    };
    let takes_another = |fault: &Refusal| {
        use ErrorKind::{ParameterImmutable, ResourceFailed, VersionNeedsReplace};
        matches!(fault.kind, ParameterImmutable | ResourceFailed | VersionNeedsReplace)
    };
    if !refusal.faults().all(takes_another) {
        return Err(refusal);
    }
    let surge = of.resource.attempt.phase() == Phase::Ready
        && of.resource.blueprint.surge
        && of.declared.blueprint.as_ref().is_some_and(|version| version.surge);
    let way = if surge { Way::Surge } else { Way::Replace };
    let asked = Asked { door: Door::Replace { surge }, ..asked.clone() };
    gates::ask(&question(&of.resource, owner, &asked))?;
    // A roll-out has limits of its own; the brake is for deletions.
    let door = DeletionDoor { brake: None, ..snapshot.door.clone() };
    let inner = Doored { of: of.clone(), door };
    let requested = match way {
        Way::Surge => surge::accept(&inner, &corrections, asked.ask, actor)?,
        _ => replace::accept(&inner, &corrections, asked.ask, actor)?,
    };
    requested.refused.map_or(Ok(Changed { way, commit: requested.commit }), Err)
}

/// Refuses a server that is being replaced already, perhaps by a roll-out before this one.
fn under_way(snapshot: &ResourceSnapshot) -> Result<(), Refusal> {
    let name = &snapshot.resource.handle;
    if let Some(failed) = failed_beside(snapshot) {
        let why = failed.attempt.failure_reason().unwrap_or("it is Failed");
        let message = format!(
            "the replacement of server `{name}` failed: {why}; take it down with `slipway resource replace {name} --abort`, then resume"
        );
        return Err(Refusal::new(ErrorKind::SurgeUnderWay, message));
    }
    let leaves = snapshot.attempt.phase().is_deletion() && another_follows(snapshot);
    if leaves || snapshot.resource.surge.is_some() {
        let message = format!("server `{name}` is being replaced; wait until that has ended");
        return Err(Refusal::new(ErrorKind::ReplacementUnderWay, message));
    }
    Ok(())
}

/// Whether it is the deletion of an attempt alone.
fn another_follows(snapshot: &ResourceSnapshot) -> bool {
    let is_attempt = |kind| kind == SubjectKind::ProvisionedResource;
    snapshot.deletion.as_ref().is_some_and(|deletion| is_attempt(deletion.target.kind))
}

/// The attempt that was to replace the one in use, if it failed.
fn failed_beside(snapshot: &ResourceSnapshot) -> Option<&ResourceSnapshot> {
    snapshot.beside().filter(|beside| beside.attempt.phase() == Phase::Failed)
}

/// What makes a server of its declaration what its group declares. Its blueprint was loaded for
/// the version that the group declared when it was read, which may be another one by now.
pub(crate) fn corrections(
    spec: &GroupSpec,
    of: &RedeclareSnapshot,
) -> Result<Corrections, Refusal> {
    let loaded = of.declared.blueprint.as_ref();
    let other = |version: &String| loaded.is_some_and(|loaded| loaded.version != *version);
    if spec.version.as_ref().is_some_and(other) {
        let message = format!("group `{}` was declared anew meanwhile; try again", spec.name);
        return Err(Refusal::new(ErrorKind::RevisionStale, message));
    }
    let target = values(spec, Some(loaded.unwrap_or(&of.resource.blueprint)));
    let parameters = of.resource.attempt.parameter_values().patch_to(&target);
    Ok(Corrections { version: spec.version.clone(), parameters })
}

/// Whether the attempt is what the group declares.
fn is_as_declared(spec: &GroupSpec, snapshot: &ResourceSnapshot) -> bool {
    let version =
        spec.version.as_ref().is_none_or(|version| snapshot.blueprint.version == *version);
    let target = values(spec, Some(&snapshot.blueprint));
    version && *snapshot.attempt.parameter_values().as_map() == target
}

/// How a server in work is; `spec` is what its group declares, if there still is one.
pub fn health(snapshot: Option<&ResourceSnapshot>, spec: Option<&GroupSpec>) -> Health {
    let (Some(snapshot), Some(spec)) = (snapshot, spec) else {
        return Health::Gone("it does not exist any more".to_owned());
    };
    let failed = |one: &ResourceSnapshot| {
        Health::Failed(one.attempt.failure_reason().unwrap_or("it is Failed").to_owned())
    };
    let leaves = snapshot.resource.deletion_id.is_some() && !another_follows(snapshot);
    if snapshot.resource.deleted_at.is_some() || leaves {
        return Health::Gone("it is on its way out".to_owned());
    }
    if snapshot.resource.surge.is_some() {
        return failed_beside(snapshot).map_or(Health::Progressing, failed);
    }
    match snapshot.attempt.phase() {
        phase if phase.is_deletion() => Health::Progressing,
        _ if !is_as_declared(spec, snapshot) => Health::Failed(
            "it is not what its group declares: its replacement was aborted, or somebody changed it"
                .to_owned(),
        ),
        Phase::Failed => failed(snapshot),
        Phase::Ready if snapshot.update_pending_since().is_none() => Health::Settled,
        _ => Health::Progressing,
    }
}

#[cfg(test)]
mod tests;
