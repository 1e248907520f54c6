//! Workspaces: which of their servers they wait for, and what happens next.

use std::collections::BTreeMap;

use serde_json::json;

use crate::blocker::Blocker;
use crate::deletion::record::{Deletion, DeletionState};
use crate::operations::control::Mode;
use crate::operations::explanation::{ExplainedKind, Explanation, Part};
use crate::topology::group::Group;
use crate::topology::server::{Leaving, Server};
use crate::topology::teardown;
use crate::topology::workspace::Workspace;

/// Servers that an explanation names; the counts cover all.
const NAMED: usize = 20;

/// What was read of a workspace. Of a deleted one there are only its groups.
#[derive(Debug, Clone)]
pub struct WorkspaceFacts<'a> {
    pub mode: Mode,
    pub workspace: &'a Workspace,
    pub project: &'a str,
    pub groups: &'a [Group],
    pub servers: &'a [Server],
    pub deletion: Option<&'a Deletion>,
    pub blockers: Vec<Blocker>,
}

pub fn workspace(facts: &WorkspaceFacts<'_>) -> Explanation {
    let workspace = facts.workspace;
    let (id, name) = (workspace.id.as_uuid(), workspace.name.as_str());
    let since = workspace.deleted_at.or(workspace.paused_at).unwrap_or(workspace.updated_at);
    let moving: Vec<&Server> =
        facts.servers.iter().filter(|server| !server.is_counted() || server.surging).collect();
    let unsettled: Vec<String> = facts.groups.iter().filter_map(|one| owed(one, facts)).collect();
    let state = match (workspace.deleted_at, workspace.paused_at, workspace.deletion_id) {
        (Some(_), ..) => "deleted",
        (None, Some(_), _) => "paused",
        (None, None, Some(_)) => "leaving",
        (None, None, None) if !facts.blockers.is_empty() => "blocked",
        (None, None, None) if moving.is_empty() && unsettled.is_empty() => "ready",
        (None, None, None) => "converging",
    };
    let mut found = Explanation::new(ExplainedKind::Workspace, id, name, state, since);
    found.next = "nothing".to_owned();
    // Also of one whose teardown is paused.
    if let (None, Some(deletion)) = (workspace.deleted_at, facts.deletion) {
        found.notice = Some(format!(
            "it is being deleted, asked for by {}: {}; `slipway workspace cancel {name}` stops it before its next server goes",
            deletion.requested_by, deletion.reason
        ));
    }
    match state {
        "deleted" | "ready" => {}
        "paused" => {
            found.waiting_for = Some(format!(
                "somebody to let it go on: `slipway workspace resume {name}`; its loop does nothing meanwhile"
            ));
        }
        "leaving" => leaving(&mut found, facts),
        _ => {
            let servers = moving.iter().map(|server| server.name.clone()).take(NAMED);
            let parts: Vec<String> = unsettled.into_iter().chain(servers).collect();
            found.waiting_for = Some(match parts.is_empty() {
                true => "what its blockers name".to_owned(),
                false => format!("{} to settle", parts.join(", ")),
            });
            found.next = withheld(&facts.mode).unwrap_or_else(|| {
                "its loop makes what is missing, and lets the rest go".to_owned()
            });
        }
    }
    found.facts.insert("project", json!(facts.project));
    let groups: BTreeMap<&str, String> =
        facts.groups.iter().map(|one| (one.spec.name.as_str(), counted(one, facts))).collect();
    found.facts.insert("groups", json!(groups));
    found.blockers.clone_from(&facts.blockers);
    found.parts = moving.iter().take(NAMED).map(|server| part(server, facts)).collect();
    found
}

fn of<'a>(group: &Group, facts: &WorkspaceFacts<'a>) -> impl Iterator<Item = &'a Server> {
    let id = group.id;
    facts.servers.iter().filter(move |server| server.group_id == id)
}

/// What a group has too few or too many of.
fn owed(group: &Group, facts: &WorkspaceFacts<'_>) -> Option<String> {
    let own: Vec<Server> = of(group, facts).cloned().collect();
    let difference = group.difference(&own);
    let name = &group.spec.name;
    match (difference.missing, difference.surplus) {
        (0, 0) => None,
        (0, surplus) => Some(format!("{surplus} server(s) of group {name} to go")),
        (missing, _) => Some(format!("{missing} more server(s) of group {name}")),
    }
}

fn counted(group: &Group, facts: &WorkspaceFacts<'_>) -> String {
    let (total, ready) = of(group, facts)
        .fold((0, 0), |(total, ready), one| (total + 1, ready + usize::from(one.is_counted())));
    format!("{total} of {}, {ready} Ready, at least {}", group.target(), group.spec.min)
}

fn leaving(found: &mut Explanation, facts: &WorkspaceFacts<'_>) {
    if let Some(Deletion { state: DeletionState::Scheduled, scheduled_for: Some(at), .. }) =
        facts.deletion
    {
        found.waiting_for = Some(format!("the end of its grace, at {at}"));
        found.next = "its teardown begins then".to_owned();
        return;
    }
    let going: Vec<&str> = facts
        .servers
        .iter()
        .filter(|server| !server.stays())
        .map(|server| server.name.as_str())
        .take(NAMED)
        .collect();
    if !going.is_empty() {
        found.waiting_for = Some(format!("{} to be proven gone", going.join(", ")));
    }
    let next = teardown::next(facts.groups, facts.servers);
    let after: Vec<&str> = facts
        .servers
        .iter()
        .filter(|server| next.contains(&server.id))
        .map(|server| server.name.as_str())
        .take(NAMED)
        .collect();
    found.next = withheld(&facts.mode).unwrap_or_else(|| match after.is_empty() {
        true if facts.servers.is_empty() => "its record is closed".to_owned(),
        true => "what is before them in the order goes once they are gone".to_owned(),
        false => format!("{} to go", after.join(", ")),
    });
}

/// Why nothing happens by itself.
fn withheld(mode: &Mode) -> Option<String> {
    match mode {
        Mode::Acting => None,
        Mode::Frozen(freeze) => Some(format!(
            "nothing until the freeze ends, at {}; `slipway unfreeze` ends it sooner",
            freeze.until
        )),
        Mode::Observing(_) => {
            Some("nothing: the installation only observes, `slipway resume` ends that".to_owned())
        }
    }
}

fn part(server: &Server, facts: &WorkspaceFacts<'_>) -> Part {
    let group = facts.groups.iter().find(|group| group.id == server.group_id);
    let group = group.map_or("a group that is not there", |group| group.spec.name.as_str());
    let how = match server.leaving {
        Leaving::Server => ", on its way out",
        Leaving::Attempt => ", being replaced",
        Leaving::Nothing if server.surging => ", another machine is made beside it",
        Leaving::Nothing if server.blocked => ", blocked",
        Leaving::Nothing => "",
    };
    Part {
        kind: "server".to_owned(),
        id: server.id.as_uuid(),
        name: server.name.clone(),
        state: server.phase.to_string(),
        since: None,
        about: Some(format!("of group {group}{how}")),
        resource_id: Some(server.id),
        blockers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::phase::Phase;
    use crate::fixtures::topology::{mk_group, mk_server, mk_workspace};
    use crate::fixtures::{mk_deletion, mk_snapshot};
    use crate::ids::DeletionId;
    use crate::topology::role::NodeRole;

    fn explained(workspace: &Workspace, group: &Group, servers: &[Server]) -> Explanation {
        super::workspace(&WorkspaceFacts {
            mode: Mode::Acting,
            workspace,
            project: "default",
            groups: std::slice::from_ref(group),
            servers,
            deletion: None,
            blockers: Vec::new(),
        })
    }

    #[test]
    fn a_complete_workspace_waits_for_nothing() {
        let servers = [1, 2, 3].map(|number| mk_server(number, Phase::Ready));
        let found = explained(&mk_workspace(), &mk_group(NodeRole::Worker), &servers);
        assert_eq!((found.state.as_str(), found.waiting_for), ("ready", None));
        assert_eq!(found.facts["groups"], json!({ "workers": "3 of 3, 3 Ready, at least 1" }));
        assert!(found.parts.is_empty());
    }

    #[test]
    fn what_is_missing_and_what_still_comes_is_named() {
        let servers = [mk_server(1, Phase::Ready), mk_server(2, Phase::Provisioning)];
        let found = explained(&mk_workspace(), &mk_group(NodeRole::Worker), &servers);
        assert_eq!(found.state, "converging");
        assert_eq!(
            found.waiting_for.as_deref(),
            Some("1 more server(s) of group workers, worker-2 to settle")
        );
        let parts: Vec<_> = found.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(parts, ["worker-2"]);
    }

    #[test]
    fn a_teardown_names_what_goes_and_what_goes_next() {
        let leaving = Workspace {
            deletion_id: Some(DeletionId::new(uuid::Uuid::from_u128(7))),
            ..mk_workspace()
        };
        let group = mk_group(NodeRole::ControlPlane);
        let mut servers = [1, 2].map(|number| mk_server(number, Phase::Ready));
        let found = explained(&leaving, &group, &servers);
        assert_eq!((found.state.as_str(), found.waiting_for), ("leaving", None));
        assert_eq!(found.next, "worker-2 to go");
        servers[1].leaving = Leaving::Server;
        let found = explained(&leaving, &group, &servers);
        assert_eq!(found.waiting_for.as_deref(), Some("worker-2 to be proven gone"));
        assert_eq!(found.next, "what is before them in the order goes once they are gone");
    }

    #[test]
    fn a_paused_teardown_says_both() {
        let deletion = mk_deletion(&mk_snapshot(Phase::Ready));
        let workspace = Workspace {
            deletion_id: Some(deletion.id),
            paused_at: Some(deletion.requested_at),
            ..mk_workspace()
        };
        let found = super::workspace(&WorkspaceFacts {
            mode: Mode::Acting,
            workspace: &workspace,
            project: "default",
            groups: &[],
            servers: &[],
            deletion: Some(&deletion),
            blockers: Vec::new(),
        });
        assert_eq!(found.state, "paused");
        assert!(found.notice.unwrap().contains("slipway workspace cancel prod"));
        assert!(found.waiting_for.unwrap().contains("slipway workspace resume prod"));
    }
}
