//! What a workspace lacks: servers to declare, servers that are too many, groups that are
//! empty. The loop asks with every pass, and each action is decided again under lock.

use std::collections::BTreeSet;

use crate::ids::{GroupId, ProvisionedResourceId, ResourceId};
use crate::topology::group::Group;
use crate::topology::server::{Server, victims_now};
use crate::topology::workspace::Workspace;

/// A workspace as the loop reads it, without locks.
#[derive(Debug, Clone)]
pub struct Observed {
    pub workspace: Workspace,
    pub groups: Vec<Group>,
    pub servers: Vec<Server>,
    /// Names that something else in the project has.
    pub taken: BTreeSet<String>,
}

impl Observed {
    pub fn of(&self, group: &Group) -> Vec<Server> {
        self.servers.iter().filter(|server| server.group_id == group.id).cloned().collect()
    }
}

/// One action of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Declares a server with this name.
    Declare { group: GroupId, name: String },
    /// Takes a server down that is too many, if the gates let it.
    ScaleDown { group: GroupId, server: ResourceId },
    /// Forgets a group that was dropped and has no servers any more.
    Forget { group: GroupId },
}

impl Action {
    /// Whether it takes a server of this group down.
    pub fn takes_down_of(&self, of: GroupId) -> bool {
        matches!(self, Self::ScaleDown { group, .. } if *group == of)
    }
}

/// Every action that the workspace needs. None while it is paused, or on its way out.
pub fn next(observed: &Observed) -> Vec<Action> {
    let workspace = &observed.workspace;
    if workspace.paused_at.is_some() || workspace.deletion_id.is_some() {
        return Vec::new();
    }
    observed.groups.iter().flat_map(|group| of_group(observed, group)).collect()
}

fn of_group(observed: &Observed, group: &Group) -> Vec<Action> {
    let (servers, id) = (observed.of(group), group.id);
    if group.dropped && servers.is_empty() {
        return vec![Action::Forget { group: id }];
    }
    // The servers of a dropped group wait for those that depend on them.
    let name = group.spec.name.as_str();
    let needed = observed.groups.iter().any(|other| {
        other.spec.depends_on.iter().any(|on| on == name) && !observed.of(other).is_empty()
    });
    let difference = group.difference(&servers);
    let others = observed.servers.iter().filter(|server| server.group_id != id);
    let mut taken: BTreeSet<String> = others.map(|server| server.name.clone()).collect();
    taken.extend(observed.taken.iter().cloned());
    let free = group.free_names(&servers, &taken, difference.missing);
    let declared = free.into_iter().map(|name| Action::Declare { group: id, name });
    let surplus = if group.dropped && needed { 0 } else { difference.surplus };
    let surplus = usize::try_from(surplus).unwrap_or(usize::MAX);
    let gone = victims_now(&servers, &group.marked, surplus).into_iter();
    declared.chain(gone.map(|server| Action::ScaleDown { group: id, server })).collect()
}

/// What the servers of a group wait for: each dependency that does not have all of its servers
/// Ready, with how many are and should be.
pub fn waits_for(group: &Group, groups: &[Group], ready: impl Fn(GroupId) -> u32) -> Vec<Waiting> {
    let on = groups.iter().filter(|other| {
        other.workspace_id == group.workspace_id
            && group.spec.depends_on.iter().any(|on| on == other.spec.name.as_str())
    });
    let waiting = on.map(|other| Waiting {
        group: other.spec.name.to_string(),
        ready: ready(other.id),
        wanted: other.target().min(other.spec.max),
    });
    waiting.filter(|one| one.ready < one.wanted).collect()
}

/// A dependency that is not there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub group: String,
    pub ready: u32,
    pub wanted: u32,
}

/// Attempts that waited for a dependency and wait no more.
pub fn released(
    observed: &Observed,
    pending: &[(ProvisionedResourceId, GroupId)],
) -> Vec<ProvisionedResourceId> {
    let ready = |id: GroupId| {
        let counted = observed.servers.iter().filter(|one| one.group_id == id && one.is_counted());
        u32::try_from(counted.count()).unwrap_or(u32::MAX)
    };
    let waits = |id: GroupId| {
        let group = observed.groups.iter().find(|group| group.id == id);
        group.is_some_and(|group| !waits_for(group, &observed.groups, ready).is_empty())
    };
    pending.iter().filter(|(_, group)| !waits(*group)).map(|(id, _)| *id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::phase::Phase;
    use crate::catalog::Name;
    use crate::fixtures::at;
    use crate::fixtures::topology::{mk_group, mk_server, mk_workspace};
    use crate::topology::role::NodeRole;
    use crate::topology::server::Leaving;
    use uuid::Uuid;

    fn observed(wanted: u32, servers: Vec<Server>) -> Observed {
        let mut group = mk_group(NodeRole::Worker);
        group.spec.wanted = wanted;
        Observed { workspace: mk_workspace(), groups: vec![group], servers, taken: BTreeSet::new() }
    }

    fn ready(count: u32) -> Vec<Server> {
        (1..=count).map(|number| mk_server(number, Phase::Ready)).collect()
    }

    #[test]
    fn what_is_missing_is_declared_and_what_is_too_much_goes() {
        let group = mk_group(NodeRole::Worker).id;
        let name = |number: u32| Action::Declare { group, name: format!("worker-{number}") };
        assert_eq!(next(&observed(3, ready(1))), [name(2), name(3)]);
        assert!(next(&observed(2, ready(2))).is_empty());
        let server = mk_server(3, Phase::Ready).id;
        assert_eq!(next(&observed(2, ready(3))), [Action::ScaleDown { group, server }]);
    }

    #[test]
    fn one_that_leaves_is_replaced_by_the_next_number() {
        let mut servers = ready(2);
        servers[0].leaving = Leaving::Server;
        let group = mk_group(NodeRole::Worker).id;
        let expected = [Action::Declare { group, name: "worker-3".to_owned() }];
        assert_eq!(next(&observed(2, servers)), expected);
    }

    /// The patterns `worker-{n}` and `worker-1{n}` both make `worker-11`.
    #[test]
    fn a_name_that_another_group_has_is_passed_over() {
        let mut observed = observed(2, ready(1));
        let mut other = mk_server(2, Phase::Ready);
        other.group_id = GroupId::new(Uuid::from_u128(799));
        observed.servers.push(other);
        let group = mk_group(NodeRole::Worker).id;
        let expected = [Action::Declare { group, name: "worker-3".to_owned() }];
        assert_eq!(next(&observed), expected);
    }

    #[test]
    fn nothing_happens_while_it_is_paused() {
        let mut paused = observed(3, ready(1));
        paused.workspace.paused_at = Some(at(900));
        assert!(next(&paused).is_empty());
    }

    #[test]
    fn a_dropped_group_is_forgotten_once_it_is_empty() {
        let mut dropped = observed(2, ready(1));
        dropped.groups[0].dropped = true;
        let (group, server) = (dropped.groups[0].id, dropped.servers[0].id);
        assert_eq!(next(&dropped), [Action::ScaleDown { group, server }]);
        dropped.servers.clear();
        assert_eq!(next(&dropped), [Action::Forget { group }]);
    }

    #[test]
    fn a_server_waits_until_every_dependency_has_all_it_should_have() {
        let mut observed = observed(2, ready(1));
        let mut after = mk_group(NodeRole::LoadBalancer);
        after.id = GroupId::new(Uuid::from_u128(799));
        after.spec.name = Name::from_stored("lb".to_owned());
        after.spec.depends_on = vec![observed.groups[0].spec.name.to_string()];
        let attempt = ProvisionedResourceId::new(Uuid::from_u128(1));
        let pending = [(attempt, after.id)];
        observed.groups.push(after);
        assert!(released(&observed, &pending).is_empty(), "1 of 2 is Ready");
        observed.servers = ready(2);
        assert_eq!(released(&observed, &pending), [attempt]);
    }
}
