//! A group of servers that are alike, or one server on its own, which is a group of one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::catalog::Name;
use crate::ids::{GroupId, ProjectId, ResourceId, Revision, WorkspaceId};
use crate::text::Handle;
use crate::time::Timestamp;
use crate::topology::graph::Node;
use crate::topology::role::NodeRole;
use crate::topology::server::Server;

/// What stands for the number of a server in the pattern of their names.
pub const NUMBER: &str = "{n}";

/// What is declared about the servers of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    pub name: Name,
    /// A single server: its name is that of the group.
    pub single: bool,
    pub role: NodeRole,
    /// How many servers were declared, and changed by scaling since.
    pub wanted: u32,
    pub min: u32,
    pub max: u32,
    pub hostname_pattern: String,
    pub blueprint: String,
    pub version: Option<String>,
    pub credential: Option<String>,
    pub parameters: BTreeMap<String, Value>,
    /// Which machine: parameters that those above override.
    pub hardware: BTreeMap<String, Value>,
    pub depends_on: Vec<String>,
    pub delete_lock: bool,
}

impl GroupSpec {
    /// The values that its servers are declared with.
    pub fn values(&self) -> BTreeMap<String, Value> {
        let mut values = self.hardware.clone();
        values.extend(self.parameters.clone());
        values
    }

    /// How many servers there should be: what is wanted, and never fewer than the minimum.
    pub fn target(&self) -> u32 {
        self.wanted.max(self.min)
    }

    /// The name of the server with this number.
    pub fn server_name(&self, number: u32) -> String {
        self.hostname_pattern.replace(NUMBER, &number.to_string())
    }

    pub fn node(&self) -> Node<'_> {
        Node { name: self.name.as_str(), depends_on: &self.depends_on }
    }
}

/// A group as its row has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub id: GroupId,
    pub workspace_id: WorkspaceId,
    pub project_id: ProjectId,
    pub spec: GroupSpec,
    /// The declaration does not have it any more: its servers go, then its row.
    pub dropped: bool,
    /// The servers that go first if only a number is given.
    pub marked: Vec<ResourceId>,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What is missing or too much in a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    pub missing: u32,
    pub surplus: u32,
}

impl Group {
    /// How many servers it should have now.
    pub fn target(&self) -> u32 {
        if self.dropped { 0 } else { self.spec.target() }
    }

    /// A lower maximum deletes nothing, and nothing is made beyond it.
    pub fn difference(&self, servers: &[Server]) -> Difference {
        let staying = servers.iter().filter(|server| server.stays()).count();
        let staying = u32::try_from(staying).unwrap_or(u32::MAX);
        let make = if self.dropped { 0 } else { self.target().min(self.spec.max) };
        Difference {
            missing: make.saturating_sub(staying),
            surplus: staying.saturating_sub(self.target()),
        }
    }

    /// The lowest names that no server of the group has, as many as are asked for. Names that
    /// others have are passed over.
    pub fn free_names(
        &self,
        servers: &[Server],
        taken: &BTreeSet<String>,
        count: u32,
    ) -> Vec<String> {
        if self.spec.single {
            let name = self.spec.hostname_pattern.clone();
            // It has no other name: if something else has it, that is shown.
            let free = servers.iter().all(|server| server.name != name);
            return if free && count > 0 { vec![name] } else { Vec::new() };
        }
        let held: BTreeSet<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let names = (1..u32::MAX).map(|number| self.spec.server_name(number));
        let free = names.filter(|name| !held.contains(name.as_str()) && !taken.contains(name));
        free.take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
    }
}

/// Whether a pattern names servers: one number, and a name that nodes may have.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    if pattern.matches(NUMBER).count() != 1 {
        return Err(format!("must have `{NUMBER}` once, such as `worker-{NUMBER}`"));
    }
    // The longest number that is ever likely keeps the name within its bounds.
    Handle::parse(&pattern.replace(NUMBER, "99999"))
        .map(|_| ())
        .map_err(|fault| format!("must make names of servers: each {}", fault.problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::phase::Phase;
    use crate::fixtures::topology::{mk_group, mk_server};
    use crate::topology::server::Leaving;

    #[test]
    fn a_minimum_is_brought_about_and_a_lower_maximum_deletes_nothing() {
        let servers: Vec<Server> = (1..=3).map(|number| mk_server(number, Phase::Ready)).collect();
        let of = |wanted, min, max| {
            let mut group = mk_group(NodeRole::Worker);
            (group.spec.wanted, group.spec.min, group.spec.max) = (wanted, min, max);
            let Difference { missing, surplus } = group.difference(&servers);
            (missing, surplus)
        };
        assert_eq!(of(3, 1, 5), (0, 0));
        assert_eq!(of(5, 1, 5), (2, 0));
        assert_eq!(of(2, 1, 5), (0, 1));
        assert_eq!(of(2, 4, 5), (1, 0), "the minimum counts");
        assert_eq!(of(3, 1, 2), (0, 0), "nothing goes");
        assert_eq!(of(5, 1, 3), (0, 0), "nothing comes beyond the maximum");
        assert_eq!(of(0, 0, 3), (0, 3));
    }

    #[test]
    fn a_dropped_group_wants_nothing() {
        let group = Group { dropped: true, ..mk_group(NodeRole::Worker) };
        let found = group.difference(&[mk_server(1, Phase::Ready)]);
        assert_eq!(found, Difference { missing: 0, surplus: 1 });
    }

    #[test]
    fn free_names_are_the_lowest_and_pass_over_what_others_have() {
        let group = mk_group(NodeRole::Worker);
        let mut leaving = mk_server(2, Phase::Deregistering);
        leaving.leaving = Leaving::Server;
        let servers = [mk_server(1, Phase::Ready), leaving];
        let taken = BTreeSet::from(["worker-3".to_owned()]);
        assert_eq!(group.free_names(&servers, &taken, 2), ["worker-4", "worker-5"]);
    }

    #[test]
    fn a_pattern_has_one_number_and_makes_names() {
        for good in ["worker-{n}", "{n}-cp", "w{n}"] {
            assert!(check_pattern(good).is_ok(), "{good}");
        }
        for bad in ["worker", "w-{n}-{n}", "Worker-{n}", "w_{n}", "-{n}", ""] {
            assert!(check_pattern(bad).is_err(), "{bad}");
        }
    }
}
