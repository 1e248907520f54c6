//! A server as the rules of its workspace see it: a resource, without what it is made of.

use crate::broker::phase::Phase;
use crate::ids::{GroupId, ProvisionedResourceId, ResourceId};
use crate::time::Timestamp;

/// What is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    Nothing,
    /// Its attempt; another one follows.
    Attempt,
    /// The server itself, now or when its grace ends.
    Server,
}

/// One server that is not deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub id: ResourceId,
    pub name: String,
    pub group_id: GroupId,
    /// Of the attempt in use.
    pub attempt_id: ProvisionedResourceId,
    pub phase: Phase,
    pub leaving: Leaving,
    /// A second attempt is made beside the one in use.
    pub surging: bool,
    /// Something keeps it from advancing.
    pub blocked: bool,
    pub created_at: Timestamp,
}

impl Server {
    /// Whether it stands for one of the servers that a group must keep.
    pub fn is_counted(&self) -> bool {
        self.phase == Phase::Ready && self.leaving == Leaving::Nothing
    }

    /// Whether its slot stays.
    pub fn stays(&self) -> bool {
        self.leaving != Leaving::Server
    }

    fn is_healthy(&self) -> bool {
        self.is_counted() && !self.blocked
    }
}

/// The order in which servers go if only a number is given: marked ones, then unhealthy ones,
/// then the newest. Those that go already are left out.
pub fn victims(servers: &[Server], marked: &[ResourceId]) -> Vec<ResourceId> {
    let mut staying: Vec<&Server> = servers.iter().filter(|server| server.stays()).collect();
    staying.sort_by_key(|server| {
        let newest_first = std::cmp::Reverse((server.created_at, server.id));
        (!marked.contains(&server.id), server.is_healthy(), newest_first)
    });
    staying.iter().map(|server| server.id).collect()
}

/// The first of these that may go now. A server that works is waited with while another one
/// still comes that is to stay: until that works, it is not there in its place.
pub fn victims_now(servers: &[Server], marked: &[ResourceId], count: usize) -> Vec<ResourceId> {
    let mut first = victims(servers, marked);
    first.truncate(count);
    if coming(servers, &first).is_some() {
        let works = |id: &ResourceId| servers.iter().any(|one| one.id == *id && one.is_counted());
        first.retain(|id| !works(id));
    }
    first
}

/// A server that still comes, beside those that are to go.
pub fn coming<'a>(servers: &'a [Server], but: &[ResourceId]) -> Option<&'a Server> {
    servers.iter().find(|server| {
        let comes = matches!(server.phase, Phase::Pending | Phase::Provisioning | Phase::Enrolling);
        comes && server.leaving == Leaving::Nothing && !but.contains(&server.id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::topology::mk_server;

    #[test]
    fn a_mark_wins_then_the_unhealthy_go_and_then_the_newest() {
        let mut servers: Vec<Server> =
            (1..=5).map(|number| mk_server(number, Phase::Ready)).collect();
        servers[1].phase = Phase::Failed;
        servers[2].blocked = true;
        servers[4].leaving = Leaving::Server;
        let order = |marked: &[ResourceId]| -> Vec<String> {
            let found = victims(&servers, marked);
            let name = |id: &ResourceId| {
                servers.iter().find(|one| one.id == *id).map(|one| one.name.clone())
            };
            found.iter().filter_map(name).collect()
        };
        assert_eq!(order(&[]), ["worker-3", "worker-2", "worker-4", "worker-1"]);
        assert_eq!(order(&[servers[0].id]), ["worker-1", "worker-3", "worker-2", "worker-4"]);
    }

    #[test]
    fn a_server_that_works_waits_for_the_one_that_comes() {
        let mut servers: Vec<Server> =
            (1..=3).map(|number| mk_server(number, Phase::Ready)).collect();
        let (first, newest) = (servers[0].id, servers[2].id);
        assert_eq!(victims_now(&servers, &[first], 1), [first]);
        servers[2].phase = Phase::Provisioning;
        assert!(victims_now(&servers, &[first], 1).is_empty(), "the new one does not work yet");
        assert_eq!(victims_now(&servers, &[], 1), [newest], "it is not needed itself");
        assert_eq!(victims_now(&servers, &[first], 2), [first, newest], "neither stays");
        servers[2].phase = Phase::Failed;
        assert_eq!(victims_now(&servers, &[first], 1), [first], "nothing comes");
    }
}
