//! The order in which the servers of a workspace come and go. It is checked at the substrate,
//! whenever an object is made or deleted, against the rows and against what really exists there.

use slipway_app::ports::Stores;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::topology::group::Group;
use slipway_core::topology::next::Observed;
use slipway_core::topology::role::NodeRole;
use slipway_core::topology::server::Server;

use crate::simulated::Simulated;

/// What is wrong with this action on the object of an attempt. Nothing if no workspace owns it.
pub(super) async fn check(
    truth: &Stores,
    substrate: &Simulated,
    snapshot: &ResourceSnapshot,
    what: &str,
) -> Vec<String> {
    let Some(owner) = &snapshot.resource.owner else { return Vec::new() };
    let observed = match truth.topology.workspace_observed(owner.workspace_id).await {
        Ok(Some(observed)) => observed,
        other => return vec![format!("{what} in a workspace that reads {other:?}")],
    };
    let Some(group) = observed.groups.iter().find(|group| group.id == owner.group_id) else {
        return vec![format!("{what} in group {}, which is not there", owner.group)];
    };
    let handle = &snapshot.resource.handle;
    let wrong = match (what, observed.workspace.deletion_id) {
        ("action:create", None) => comes(substrate, &observed, group),
        ("action:create", Some(_)) => vec!["during the teardown of its workspace".to_owned()],
        (_, None) => goes(&observed, group),
        (_, Some(_)) => goes_with_all(substrate, &observed, group, snapshot),
    };
    wrong.into_iter().map(|wrong| format!("{what} of server {handle}: {wrong}")).collect()
}

/// Everything that it depends on is Ready, and no server of its group is there twice.
fn comes(substrate: &Simulated, observed: &Observed, group: &Group) -> Vec<String> {
    let mut wrong = Vec::new();
    for on in observed.groups.iter().filter(|other| depends(group, other)) {
        let ready = count(observed, on, |server| server.phase == Phase::Ready);
        let (there, wanted) = (substrate.count_of(on.id), target(on));
        if ready < wanted || there < wanted {
            let name = &on.spec.name;
            wrong.push(format!("of {wanted} in {name}, {ready} are Ready and {there} are there"));
        }
    }
    let staying = count(observed, group, Server::stays);
    if staying > target(group) {
        wrong.push(format!("the group has {staying} servers, not {}", target(group)));
    }
    // The second attempt of a surge is there beside the first one.
    let allowed = count(observed, group, |_| true) + count(observed, group, |one| one.surging);
    let there = substrate.count_of(group.id) + 1;
    if there > allowed {
        wrong.push(format!("{there} objects for {allowed} servers"));
    }
    wrong
}

/// While the workspace stays, its group keeps its minimum.
fn goes(observed: &Observed, group: &Group) -> Vec<String> {
    let counted = count(observed, group, Server::is_counted);
    let least = usize::try_from(group.spec.min).unwrap();
    let wrong = (counted < least).then(|| format!("{counted} of at least {least} are Ready"));
    wrong.into_iter().collect()
}

/// In a teardown all that goes before it is proven absent: what depends on it, and what has a
/// lower rank. Control planes go one at a time.
fn goes_with_all(
    substrate: &Simulated,
    observed: &Observed,
    group: &Group,
    snapshot: &ResourceSnapshot,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let rank = |group: &Group| group.spec.role.teardown_rank();
    let before = |other: &&Group| depends(other, group) || rank(other) < rank(group);
    for other in observed.groups.iter().filter(before) {
        let rows = count(observed, other, |_| true);
        let there = substrate.count_of(other.id);
        if rows + there > 0 {
            let name = &other.spec.name;
            wrong.push(format!("{rows} servers of {name} are not gone, and {there} are there"));
        }
    }
    let leaving = observed.servers.iter().filter(|server| {
        let of = observed.groups.iter().find(|group| group.id == server.group_id);
        let is_control_plane = of.is_some_and(|group| group.spec.role == NodeRole::ControlPlane);
        is_control_plane && !server.stays() && server.id != snapshot.resource.id
    });
    wrong.extend(leaving.map(|server| format!("while control plane {} goes", server.name)));
    wrong
}

fn depends(group: &Group, on: &Group) -> bool {
    group.spec.depends_on.iter().any(|name| name == on.spec.name.as_str())
}

fn target(group: &Group) -> usize {
    usize::try_from(group.target()).unwrap()
}

fn count(observed: &Observed, group: &Group, counts: impl Fn(&Server) -> bool) -> usize {
    let of = observed.servers.iter().filter(|server| server.group_id == group.id);
    of.filter(|server| counts(server)).count()
}
