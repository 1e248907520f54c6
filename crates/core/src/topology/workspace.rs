//! A workspace: groups of servers in a project, declared together and taken down together.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::catalog::Name;
use crate::commit::Commit;
use crate::deletion::request::{Contents, Deletable, Leaving};
use crate::error::{ErrorKind, Refusal};
use crate::event::EventType;
use crate::ids::{DeletionId, ProjectId, Revision, WorkspaceId};
use crate::kind::{existing, kind};
use crate::precondition::Expected;
use crate::rollouts::record::Rollout;
use crate::text::Reason;
use crate::time::Timestamp;
use crate::topology::TopologyWrite;
use crate::topology::event::{WORKSPACE_DELETED, WORKSPACE_PAUSED, WORKSPACE_RESUMED, announce};
use crate::topology::group::Group;
use crate::topology::server::Server;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub project_id: ProjectId,
    /// Unique in its project among the not deleted.
    pub name: Name,
    /// Since when nothing is made or taken down, a teardown included.
    pub paused_at: Option<Timestamp>,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Workspace, WorkspaceId, WorkspaceNotFound);

impl Workspace {
    pub(crate) fn about(&self) -> About {
        About::new(self.id).of(self.project_id)
    }

    /// Refuses a change of one that is being taken down, or will be.
    pub(crate) fn stays(&self) -> Result<(), Refusal> {
        if self.deletion_id.is_none() {
            return Ok(());
        }
        let message = format!(
            "workspace `{}` is being taken down, or will be; cancel that first (`slipway workspace cancel {}`), or wait",
            self.name, self.name
        );
        Err(Refusal::new(ErrorKind::Leaving, message))
    }
}

/// A workspace with its groups, whose rows are locked, and its servers.
#[derive(Debug, Clone)]
pub struct WorkspaceSnapshot {
    pub now: Timestamp,
    /// Of a new one: its project, if there is one, and whether it leaves.
    pub project: Option<ProjectId>,
    pub project_leaving: bool,
    pub workspace: Option<Workspace>,
    pub groups: Vec<Group>,
    /// Those that are not deleted, in the order in which they were made.
    pub servers: Vec<Server>,
    /// The patterns of the other workspaces of the project, with who has them.
    pub taken_patterns: Vec<TakenPattern>,
    /// Roll-outs to its servers that have not ended.
    pub rollouts: Vec<Rollout>,
}

/// Servers of another workspace of the project are named like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenPattern {
    pub workspace: String,
    pub group: String,
    pub pattern: String,
}

impl WorkspaceSnapshot {
    /// The servers of a group.
    pub fn of(&self, group: &Group) -> Vec<Server> {
        self.servers.iter().filter(|server| server.group_id == group.id).cloned().collect()
    }
}

/// Without servers it is a row of ours. With them its teardown takes them down in order.
impl Deletable for Workspace {
    type Snapshot = WorkspaceSnapshot;
    const DELETE: &'static str = "workspace.delete";

    fn found(snapshot: &WorkspaceSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.workspace, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.project_id)
    }

    fn contents(snapshot: &WorkspaceSnapshot) -> Contents {
        let servers = i64::try_from(snapshot.servers.len()).unwrap_or(i64::MAX);
        Contents { resources: servers, outside: false }
    }

    fn leaving(&self, _snapshot: &WorkspaceSnapshot, leaving: &Leaving<'_>) -> Commit {
        let event = announce(WORKSPACE_DELETED, self, self.revision.next(), leaving.now);
        Commit { events: vec![event], ..Commit::default() }
    }

    fn free(&self, snapshot: &WorkspaceSnapshot, cascade: bool) -> Result<(), Refusal> {
        let servers = snapshot.servers.len();
        if cascade || servers == 0 {
            return Ok(());
        }
        let message = format!(
            "workspace `{}` still has {servers} server(s); take them down in order with `slipway workspace teardown {}`",
            self.name, self.name
        );
        let names: Vec<_> = snapshot.servers.iter().take(20).map(|one| &one.name).collect();
        let details = json!({ "servers": servers, "names": names });
        Err(Refusal::new(ErrorKind::WorkspaceNotEmpty, message).with(details))
    }
}

/// Suspends what the loop does about it, a teardown included. What is going already goes on.
pub fn pause(
    snapshot: &WorkspaceSnapshot,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let workspace = existing(&snapshot.workspace, Expected::Any)?;
    if workspace.paused_at.is_some() {
        return Err(nothing(
            workspace,
            "is paused already; `slipway workspace resume` lets it go on",
        ));
    }
    let after = Workspace { paused_at: Some(snapshot.now), ..workspace.clone() };
    Ok(changed(snapshot, after, ("workspace.pause", WORKSPACE_PAUSED), reason, actor))
}

/// Lets it go on.
pub fn resume(
    snapshot: &WorkspaceSnapshot,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let workspace = existing(&snapshot.workspace, Expected::Any)?;
    if workspace.paused_at.is_none() {
        return Err(nothing(workspace, "is not paused"));
    }
    let after = Workspace { paused_at: None, ..workspace.clone() };
    Ok(changed(snapshot, after, ("workspace.resume", WORKSPACE_RESUMED), reason, actor))
}

fn changed(
    snapshot: &WorkspaceSnapshot,
    after: Workspace,
    (verb, event): (&'static str, EventType),
    reason: &Reason,
    actor: &Actor,
) -> Commit {
    let revision = after.revision.next();
    let entry = AuditEntry::new(verb, actor, after.about().at(revision), snapshot.now);
    let entry = entry.because(reason.as_str());
    let announced = announce(event, &after, revision, snapshot.now);
    Commit {
        writes: vec![TopologyWrite::WorkspaceUpdate(after).into()],
        events: vec![announced],
        audit: vec![entry],
        ..Commit::default()
    }
}

fn nothing(workspace: &Workspace, problem: &str) -> Refusal {
    let message = format!("workspace `{}` {problem}", workspace.name);
    Refusal::new(ErrorKind::NothingToPause, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::phase::Phase;
    use crate::deletion::door::{Ask, Door};
    use crate::deletion::request::request;
    use crate::fixtures::catalog::mk_ask;
    use crate::fixtures::mk_actor;
    use crate::fixtures::topology::{mk_server, mk_workspace_snapshot};

    #[test]
    fn it_is_paused_once_and_resumed_once() {
        let reason = Reason::parse("maintenance").unwrap();
        let mut snapshot = mk_workspace_snapshot();
        assert!(resume(&snapshot, &reason, &mk_actor()).is_err());
        let commit = pause(&snapshot, &reason, &mk_actor()).unwrap();
        assert_eq!(commit.audit[0].verb, "workspace.pause");
        if let Some(workspace) = &mut snapshot.workspace {
            workspace.paused_at = Some(snapshot.now);
        }
        assert!(pause(&snapshot, &reason, &mk_actor()).is_err());
        assert!(resume(&snapshot, &reason, &mk_actor()).is_ok());
    }

    #[test]
    fn one_with_servers_is_taken_down_and_not_deleted() {
        let mut snapshot = mk_workspace_snapshot();
        snapshot.servers = vec![mk_server(1, Phase::Ready)];
        let ask = mk_ask();
        let refusal = request::<Workspace>(&snapshot, &Door::default(), &ask, &mk_actor());
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::WorkspaceNotEmpty);
        assert_eq!(refusal.details.unwrap()["names"], json!(["worker-1"]));
        let cascade = Ask { cascade: true, ..ask.clone() };
        let door = Door::default();
        assert!(request::<Workspace>(&snapshot, &door, &cascade, &mk_actor()).is_ok());
        snapshot.servers.clear();
        assert!(request::<Workspace>(&snapshot, &door, &ask, &mk_actor()).is_ok());
    }
}
