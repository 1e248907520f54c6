//! The order of a teardown as a tree of lines. Pure.

use slipway_wire::topology::{TeardownGroup, TeardownOrder, TeardownStage};

use crate::terminal::clean;

/// The workspace, below it each stage, below that its groups with their servers.
pub(super) fn tree(order: &TeardownOrder) -> String {
    let servers: usize =
        order.stages.iter().flat_map(|stage| &stage.groups).map(|one| one.servers.len()).sum();
    let plural = if servers == 1 { "" } else { "s" };
    let mut lines = vec![format!("{} ({servers} server{plural})", clean(&order.workspace))];
    for (number, TeardownStage { groups }) in order.stages.iter().enumerate() {
        let (branch, below) = branch(number, order.stages.len());
        let after = if number == 0 { "" } else { ", once everything above is proven gone" };
        lines.push(format!("{branch} stage {}{after}", number + 1));
        for (index, group) in groups.iter().enumerate() {
            let (branch, _) = self::branch(index, groups.len());
            lines.push(format!("{below}{branch} {}", line(group)));
        }
    }
    lines.join("\n")
}

/// How one of several lines begins, and what is below it.
const fn branch(number: usize, all: usize) -> (&'static str, &'static str) {
    if number + 1 == all { ("└─", "   ") } else { ("├─", "│  ") }
}

fn line(TeardownGroup { group, role, servers }: &TeardownGroup) -> String {
    let pace = match (role.as_str(), servers.len()) {
        ("ControlPlane", 2..) => ", one at a time",
        _ => "",
    };
    let servers = if servers.is_empty() { "no server".to_owned() } else { servers.join(", ") };
    clean(&format!("{group} ({role}{pace}): {servers}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(groups: &[(&str, &str, &[&str])]) -> TeardownStage {
        let group = |(group, role, servers): &(&str, &str, &[&str])| TeardownGroup {
            group: (*group).to_owned(),
            role: (*role).to_owned(),
            servers: servers.iter().map(|name| (*name).to_owned()).collect(),
        };
        TeardownStage { groups: groups.iter().map(group).collect() }
    }

    #[test]
    fn each_stage_has_its_groups_below_it() {
        let order = TeardownOrder {
            workspace: "shop".to_owned(),
            stages: vec![
                stage(&[("workers", "Worker", &["w-2", "w-1"]), ("gpu", "Worker", &[])]),
                stage(&[("control-plane", "ControlPlane", &["cp-2", "cp-1"])]),
            ],
        };
        let expected = "\
shop (4 servers)
├─ stage 1
│  ├─ workers (Worker): w-2, w-1
│  └─ gpu (Worker): no server
└─ stage 2, once everything above is proven gone
   └─ control-plane (ControlPlane, one at a time): cp-2, cp-1";
        assert_eq!(tree(&order), expected);
    }
}
