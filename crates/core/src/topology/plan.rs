//! What an apply would do to the servers of a workspace, by the rules that decide it: how many
//! come, which change, which go, and the gates in their way.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::error::{ErrorKind, Refusal};
use crate::ids::{ProjectId, ResourceId};
use crate::topology::apply::{Circumstances, Desired, GroupChange, asked_to_go, changes, target};
use crate::topology::declared::{of_specs, to_fields};
use crate::topology::group::Group;
use crate::topology::role::NodeRole;
use crate::topology::rollout;
use crate::topology::server::Server;
use crate::topology::workspace::WorkspaceSnapshot;

/// See the module.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The same for as long as the same would happen.
    pub digest: String,
    pub created: Vec<Created>,
    /// Live servers that get what their group declares, with the group as it will be.
    pub changed: Vec<(Server, Group)>,
    pub deleted: Vec<Deleted>,
}

/// Servers that a group lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    pub group: String,
    pub role: NodeRole,
    pub count: u32,
}

/// A server that the declaration has no place for.
#[derive(Debug, Clone)]
pub struct Deleted {
    pub id: ResourceId,
    pub server: String,
    pub group: String,
    /// The gate in its way.
    pub refusal: Option<Refusal>,
}

pub fn plan(
    snapshot: &WorkspaceSnapshot,
    project: ProjectId,
    desired: &Desired,
    circumstances: &Circumstances<'_>,
) -> Plan {
    let workspace = target(snapshot, project, desired);
    let changes = changes(snapshot, &workspace, desired);
    let created: Vec<Created> =
        changes.iter().filter_map(|change| comes(snapshot, change)).collect();
    let changed = rollout::concerned(snapshot, &changes);
    let mut deleted = Vec::new();
    for change in &changes {
        for (server, asked) in asked_to_go(snapshot, &changes, change, circumstances) {
            let group = change.after.spec.name.to_string();
            let (id, refusal) = (server.id, asked.err());
            deleted.push(Deleted { id, server: server.name, group, refusal });
        }
    }
    let digest = digest(snapshot, desired, &created, &changed, &deleted);
    Plan { digest, created, changed, deleted }
}

impl Plan {
    /// Refuses to apply what is not what was planned.
    pub fn check(&self, planned: &str) -> Result<(), Refusal> {
        if self.digest == planned {
            return Ok(());
        }
        let message = format!(
            "plan `{planned}` does not hold any more: the workspace, its servers or the document changed since; look at `slipway workspace plan` again"
        );
        Err(Refusal::new(ErrorKind::PlanStale, message))
    }
}

fn comes(snapshot: &WorkspaceSnapshot, change: &GroupChange) -> Option<Created> {
    let missing = change.after.difference(&snapshot.of(&change.after)).missing;
    let spec = &change.after.spec;
    (missing > 0).then(|| Created { group: spec.name.to_string(), role: spec.role, count: missing })
}

fn digest(
    snapshot: &WorkspaceSnapshot,
    desired: &Desired,
    created: &[Created],
    changed: &[(Server, Group)],
    deleted: &[Deleted],
) -> String {
    let created: Vec<_> = created.iter().map(|one| (&one.group, one.count)).collect();
    let changed: Vec<_> = changed.iter().map(|(server, _)| server.id).collect();
    let deleted: Vec<_> = deleted.iter().map(|one| one.id).collect();
    let text = json!([
        snapshot.workspace.as_ref().map(|workspace| (workspace.id, workspace.revision)),
        to_fields(&of_specs(&desired.specs)),
        created,
        changed,
        deleted,
    ]);
    let hash = Sha256::digest(text.to_string());
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
