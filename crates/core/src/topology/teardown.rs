//! The teardown of a workspace: which of its servers go now. Dependents go before what they
//! depend on; of those that may go, workers go first, then load balancers, and control planes
//! last, one at a time. What goes next waits until what goes before it is proven absent.

use crate::ids::ResourceId;
use crate::topology::group::Group;
use crate::topology::role::NodeRole;
use crate::topology::server::Server;

/// The groups in the order of a teardown: each step waits for the one before.
pub fn order(groups: &[Group]) -> Vec<Vec<&Group>> {
    let mut left: Vec<&Group> = groups.iter().collect();
    let mut steps = Vec::new();
    while !left.is_empty() {
        let step = first(&left);
        left.retain(|group| step.iter().all(|gone| gone.id != group.id));
        steps.push(step);
    }
    steps
}

/// Of these groups those that go first: nothing depends on them, and none of a lower rank can
/// go.
fn first<'a>(left: &[&'a Group]) -> Vec<&'a Group> {
    let needed = |group: &Group| {
        left.iter().any(|other| {
            other.id != group.id
                && other.spec.depends_on.iter().any(|on| on == group.spec.name.as_str())
        })
    };
    let free: Vec<&Group> = left.iter().copied().filter(|group| !needed(group)).collect();
    // A declaration has no circle. If a row had one, its groups go by their rank.
    let free = if free.is_empty() { left.to_vec() } else { free };
    let rank = |group: &Group| group.spec.role.teardown_rank();
    let lowest = free.iter().map(|group| rank(group)).min();
    free.into_iter().filter(|group| Some(rank(group)) == lowest).collect()
}

/// The servers whose teardown begins now, in this order. Servers that are gone are not among
/// `servers`.
pub fn next(groups: &[Group], servers: &[Server]) -> Vec<ResourceId> {
    let of = |group: &Group| {
        servers.iter().filter(|server| server.group_id == group.id).collect::<Vec<_>>()
    };
    let left: Vec<&Group> = groups.iter().filter(|group| !of(group).is_empty()).collect();
    let known = |server: &&Server| groups.iter().any(|group| group.id == server.group_id);
    // A server whose group is not known depends on nothing, and goes first.
    let stray = servers.iter().filter(|server| !known(server));
    let mut begin: Vec<ResourceId> =
        stray.filter(|server| server.stays()).map(|server| server.id).collect();
    for group in first(&left) {
        let mut staying: Vec<&Server> =
            of(group).into_iter().filter(|server| server.stays()).collect();
        staying.sort_by_key(|server| std::cmp::Reverse((server.created_at, server.id)));
        if group.spec.role == NodeRole::ControlPlane {
            let going = control_planes(&left, servers).any(|server| !server.stays());
            let begun =
                begin.iter().any(|id| control_planes(&left, servers).any(|one| one.id == *id));
            staying.truncate(usize::from(!going && !begun));
        }
        begin.extend(staying.iter().map(|server| server.id));
    }
    begin
}

fn control_planes<'a>(
    groups: &'a [&Group],
    servers: &'a [Server],
) -> impl Iterator<Item = &'a Server> {
    servers.iter().filter(|server| {
        groups
            .iter()
            .any(|group| group.id == server.group_id && group.spec.role == NodeRole::ControlPlane)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::broker::phase::Phase;
    use crate::catalog::Name;
    use crate::fixtures::topology::{mk_group, mk_server};
    use crate::ids::GroupId;
    use crate::topology::server::Leaving;

    fn group(number: u128, role: NodeRole, depends_on: &[&str]) -> Group {
        let mut group = mk_group(role);
        group.id = GroupId::new(Uuid::from_u128(700 + number));
        group.spec.name = Name::from_stored(format!("g{number}"));
        group.spec.depends_on = depends_on.iter().map(|name| (*name).to_owned()).collect();
        group
    }

    fn server(number: u32, group: &Group) -> Server {
        Server { group_id: group.id, ..mk_server(number, Phase::Ready) }
    }

    fn names(steps: &[Vec<&Group>]) -> Vec<Vec<String>> {
        steps
            .iter()
            .map(|step| step.iter().map(|one| one.spec.name.to_string()).collect())
            .collect()
    }

    #[test]
    fn workers_go_first_and_control_planes_last() {
        let groups = [
            group(1, NodeRole::ControlPlane, &[]),
            group(2, NodeRole::LoadBalancer, &[]),
            group(3, NodeRole::Worker, &[]),
            group(4, NodeRole::Worker, &[]),
        ];
        assert_eq!(names(&order(&groups)), [vec!["g3", "g4"], vec!["g2"], vec!["g1"]]);
    }

    #[test]
    fn a_dependency_counts_more_than_a_role() {
        let groups = [
            group(1, NodeRole::Worker, &[]),
            group(2, NodeRole::LoadBalancer, &["g1"]),
            group(3, NodeRole::ControlPlane, &["g2"]),
        ];
        assert_eq!(names(&order(&groups)), [["g3"], ["g2"], ["g1"]]);
    }

    #[test]
    fn control_planes_go_one_at_a_time() {
        let groups = [group(1, NodeRole::ControlPlane, &[]), group(2, NodeRole::ControlPlane, &[])];
        let mut servers = vec![server(1, &groups[0]), server(2, &groups[0]), server(3, &groups[1])];
        assert_eq!(next(&groups, &servers), [servers[1].id]);
        servers[1].leaving = Leaving::Server;
        assert!(next(&groups, &servers).is_empty(), "it is not proven absent yet");
    }

    proptest! {
        /// Whatever the graph and whoever is slow: a server goes only when all that depends on
        /// it is gone, no two control planes go at once, and in the end everything is gone.
        #[test]
        fn a_teardown_goes_in_order_and_ends(
            shape in prop::collection::vec((0..3_usize, prop::collection::btree_set(0..6_usize, 0..3), 0..4_u32), 1..6),
            choices in prop::collection::vec(any::<prop::sample::Index>(), 200),
        ) {
            let roles = [NodeRole::Worker, NodeRole::LoadBalancer, NodeRole::ControlPlane];
            let groups: Vec<Group> = shape.iter().enumerate().map(|(number, (role, on, _))| {
                // Only earlier ones, so that there is no circle.
                let on: Vec<String> =
                    on.iter().filter(|on| **on < number).map(|on| format!("g{on}")).collect();
                let on: Vec<&str> = on.iter().map(String::as_str).collect();
                group(number as u128, roles[*role], &on)
            }).collect();
            let mut servers = Vec::new();
            for (group, (_, _, count)) in groups.iter().zip(&shape) {
                for _ in 0..*count {
                    servers.push(server(u32::try_from(servers.len()).unwrap() + 1, group));
                }
            }
            let mut choices = choices.into_iter();
            while !servers.is_empty() {
                let begun: BTreeSet<_> = next(&groups, &servers).into_iter().collect();
                for id in &begun {
                    let server = servers.iter().find(|one| one.id == *id).unwrap();
                    let of = |one: &Server| groups.iter().find(|g| g.id == one.group_id).unwrap();
                    let name = of(server).spec.name.to_string();
                    prop_assert!(
                        servers.iter().all(|other| !of(other).spec.depends_on.contains(&name)),
                        "somebody still depends on {}", name
                    );
                }
                for server in &mut servers {
                    if begun.contains(&server.id) {
                        server.leaving = Leaving::Server;
                    }
                }
                let left: Vec<&Group> = groups.iter().collect();
                let going = control_planes(&left, &servers).filter(|one| !one.stays()).count();
                prop_assert!(going <= 1, "{} control planes go at once", going);
                // Any one of those on their way is gone next.
                let leaving: Vec<usize> =
                    (0..servers.len()).filter(|number| !servers[*number].stays()).collect();
                prop_assert!(!leaving.is_empty(), "nothing goes on");
                let chosen = choices.next().unwrap().get(&leaving);
                servers.remove(*chosen);
            }
        }
    }
}
