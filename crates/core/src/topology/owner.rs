//! Who owns a resource. A server is changed and deleted by the verbs of its workspace, which
//! ask the gates; the verbs of resources refuse it.

use serde_json::{Value, json};

use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{GroupId, WorkspaceId};
use crate::topology::role::NodeRole;

/// The workspace of a server. Written when the server is declared, and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub workspace_id: WorkspaceId,
    pub workspace: String,
    pub group_id: GroupId,
    pub group: String,
    pub role: NodeRole,
}

impl Owner {
    /// As the details of a refusal.
    pub(crate) fn details(&self) -> Value {
        json!({
            "workspace_id": self.workspace_id,
            "workspace": self.workspace,
            "group": self.group,
            "role": self.role,
        })
    }
}

/// A verb of resources that would change or take away what a workspace owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Delete,
    Retry,
    Replace,
    Update,
    Abandon,
    ForceDrain,
    Reenrol,
    Restore,
    Orphan,
}

impl Verb {
    #[cfg(test)]
    const ALL: [Self; 9] = [
        Self::Delete,
        Self::Retry,
        Self::Replace,
        Self::Update,
        Self::Abandon,
        Self::ForceDrain,
        Self::Reenrol,
        Self::Restore,
        Self::Orphan,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "deleted",
            Self::Retry => "retried",
            Self::Replace => "replaced",
            Self::Update => "updated",
            Self::Abandon => "abandoned",
            Self::ForceDrain => "force-drained",
            Self::Reenrol => "enrolled again",
            Self::Restore => "restored",
            Self::Orphan => "orphaned",
        }
    }

    /// Whether it only helps a teardown to its end: the gates passed when that began.
    const fn ends_a_teardown(self) -> bool {
        matches!(self, Self::Abandon | Self::ForceDrain | Self::Orphan)
    }

    fn instead(self, server: &str, role: NodeRole, is_ready: bool) -> String {
        let is_locked = role.is_always_locked();
        match self {
            Self::Delete if is_locked => {
                format!("`slipway server replace {server} --surge` or `slipway workspace teardown`")
            }
            Self::Abandon | Self::ForceDrain | Self::Orphan if is_locked => format!(
                "`slipway server delete {server} --reason <why>` first; then this is possible"
            ),
            Self::Delete => format!("`slipway server scale-down {server}`"),
            Self::Update => "`slipway apply` with a changed workspace".to_owned(),
            Self::Restore => "`slipway server scale-up`".to_owned(),
            Self::Abandon | Self::ForceDrain | Self::Orphan => {
                format!("`slipway server scale-down {server}` first; then this is possible")
            }
            Self::Retry | Self::Replace | Self::Reenrol if is_ready => {
                format!("`slipway server replace {server} --surge`")
            }
            // Only what is Ready is replaced with two machines at once.
            Self::Retry | Self::Replace | Self::Reenrol if is_locked => format!(
                "`slipway server delete {server} --reason <why>`, which another one follows"
            ),
            Self::Retry | Self::Replace | Self::Reenrol => {
                format!("`slipway server replace {server}`")
            }
        }
    }
}

/// Refuses a verb of resources on a server. One whose teardown began passed the gates, and can
/// be helped to its end.
pub fn check(snapshot: &ResourceSnapshot, verb: Verb) -> Result<(), Refusal> {
    let (handle, phase) = (snapshot.resource.handle.as_str(), snapshot.attempt.phase());
    check_owned(snapshot.resource.owner.as_ref(), handle, phase, verb)
}

fn check_owned(
    owner: Option<&Owner>,
    server: &str,
    phase: Phase,
    verb: Verb,
) -> Result<(), Refusal> {
    let Some(owner) = owner else { return Ok(()) };
    if phase.is_deletion() && verb.ends_a_teardown() {
        return Ok(());
    }
    let Owner { workspace, group, role, .. } = owner;
    let message = format!(
        "server `{server}` belongs to group `{group}` of workspace `{workspace}` and is not {} by itself; use {}",
        verb.as_str(),
        verb.instead(server, *role, phase == Phase::Ready)
    );
    Err(Refusal::new(ErrorKind::OwnedByWorkspace, message).with(owner.details()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::mk_snapshot;
    use crate::fixtures::topology::mk_owner;

    /// Every verb is refused for a server in every phase, but those that end a teardown which
    /// the gates let begin; and none is refused for what nobody owns.
    #[test]
    fn the_verbs_of_resources_leave_servers_alone() {
        for &phase in Phase::ALL {
            for verb in Verb::ALL {
                let mut snapshot = mk_snapshot(phase);
                assert!(check(&snapshot, verb).is_ok(), "{verb:?} {phase}");
                snapshot.resource.owner = Some(mk_owner(NodeRole::Worker));
                let passes = matches!(verb, Verb::Abandon | Verb::ForceDrain | Verb::Orphan)
                    && matches!(
                        phase,
                        Phase::Deregistering | Phase::Deprovisioning | Phase::Deleted
                    );
                let checked = check(&snapshot, verb);
                assert_eq!(checked.is_ok(), passes, "{verb:?} {phase}");
                if let Err(refusal) = checked {
                    assert_eq!(refusal.kind, ErrorKind::OwnedByWorkspace);
                    assert!(refusal.message.contains("slipway "), "{}", refusal.message);
                }
            }
        }
    }
}
